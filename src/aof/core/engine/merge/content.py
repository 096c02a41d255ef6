"""Content of a task, merged three ways: what an author changed, put onto what others have made of it meanwhile.

In a clash the later change stands, and the other is named. Entries of work log and comments are added to those of
others. Values are those of JSON. Must not know who wrote what, or when.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from aof.core.engine.merge.model import Clash
from aof.core.evolve import work_log
from aof.core.model.task import Task
from aof.core.tasks.merge import merge_text

_SECTIONS = (work_log.COMMENTS, work_log.HEADING)


class ContentMerge(NamedTuple):
    """The changes to make, and the fields in which both sides differ."""

    changes: dict[str, Any]
    clashes: list[Clash]


def fields_of(task: Task) -> dict[str, Any]:
    """A task's record as JSON has it; the key of an absent field is absent."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(task))
    return whole


def merge(base: dict[str, Any], here: dict[str, Any], changes: dict[str, Any]) -> ContentMerge:
    """An author's changes to a task that was `base` for it and is `here` in the merged history."""
    outcome = ContentMerge({}, [])
    for name, wanted in changes.items():
        before, there = base.get(name), here.get(name)
        if name == "body":
            value = _body(before or "", there or "", wanted or "", outcome.clashes)
        else:
            value = _value(name, before, there, wanted, outcome.clashes)
        if not _same(value, there):
            outcome.changes[name] = value
    return outcome


def merge_list(base: list[Any], here: list[Any], wanted: list[Any]) -> list[Any]:
    """What one side added is added, and what it took out is gone; nothing clashes."""
    kept = [item for item in here if item in wanted or item not in base]
    return kept + [item for item in wanted if item not in base and item not in here]


def _value(name: str, before: Any, there: Any, wanted: Any, clashes: list[Clash]) -> Any:
    if _same(before, there) or _same(there, wanted):
        return wanted
    if _same(before, wanted):
        return there
    if isinstance(wanted, list) and isinstance(there, list | None) and isinstance(before, list | None):
        return merge_list(before or [], there or [], wanted)
    if isinstance(wanted, dict) and isinstance(there, dict | None) and isinstance(before, dict | None):
        return _mapping(name, before or {}, there or {}, wanted, clashes)
    clashes.append(Clash(field=name, kept=wanted, other=there))
    return wanted


def _mapping(
    name: str, before: dict[str, Any], there: dict[str, Any], wanted: dict[str, Any], clashes: list[Clash]
) -> dict[str, Any]:
    merged = dict(there)
    for key in (*before, *(key for key in wanted if key not in before)):
        value = _value(f"{name}.{key}", before.get(key), there.get(key), wanted.get(key), clashes)
        if value is None and key not in wanted:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def _same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON, where 1, 1.0 and true differ."""
    return one == other and msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def _body(before: str, there: str, wanted: str, clashes: list[Clash]) -> str:
    if before == there:
        return wanted
    old, now, new = (work_log.description(text).rstrip() for text in (before, there, wanted))
    text = merge_text(old, now, new)
    if text is None:
        clashes.append(Clash(field="description", kept=new, other=now))
    merged = there if text == now else work_log.with_description(there, new if text is None else text)
    for heading in _SECTIONS:
        known = _entries(before, heading)
        merged = _with_entries(merged, heading, [one for one in _entries(wanted, heading) if one not in known])
    return merged


def _entries(body: str, heading: str) -> list[str]:
    """The entries of a section as they stand there; the lines behind a `- ` line belong to it."""
    place = work_log.section(body, heading)
    found: list[str] = []
    if place is None:
        return found
    for line in body[place[0] : place[1]].replace("\r\n", "\n").split("\n")[1:]:
        if line.startswith("- ") or (line.strip() and not found):
            found.append(line)
        elif found and line.strip():
            found[-1] += f"\n{line}"
    return found


def _with_entries(body: str, heading: str, entries: list[str]) -> str:
    """The body with entries at the end of a section."""
    known = _entries(body, heading)
    fresh = [entry for entry in entries if entry not in known]
    if not fresh:
        return body
    end = "\r\n" if "\r\n" in body else "\n"
    added = "".join(entry.replace("\n", end) + end for entry in fresh)
    place = work_log.section(body, heading)
    if place is None:
        gap = "" if not body else end if body.endswith("\n") else end * 2
        return f"{body}{gap}{heading}{end}{end}{added}"
    kept, after = body[: place[1]].rstrip("\r\n"), body[place[1] :]
    gap = end * 2 if kept[place[0] :].rstrip(" \t") == heading else end
    return f"{kept}{gap}{added}" + (f"{end}{after}" if after else "")
