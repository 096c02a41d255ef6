"""The forms that an entry can have: how each is written, and how it is read back.

A form is recognised by what stands first in the entry. Text by others follows it, and is escaped so that it cannot
look like another form or another entry. Must not know where an entry stands, nor who may write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aof.documents.escaping import contained, inline, inline_original, original
from aof.documents.markdown import bold_field, opens_code, plain_field
from aof.documents.worklog.model import Form

STATUSES: Final = ("In progress", "Ready for review", "Ready for merge", "Complete")
HANDOFF_KEYS: Final = (
    "Handoff",
    "Owner",
    "Status",
    "Changed files",
    "Tests run",
    "Risks/assumptions",
    "Blocking items",
    "Next owner",
)
LISTS: Final = ("Changed files", "Tests run", "Risks/assumptions", "Blocking items")
PROPOSAL_KEYS: Final = (
    "ID",
    "Author",
    "Date",
    "Scope",
    "Proposal",
    "Risks",
    "Rollback",
    "Objection deadline",
    "Status",
)
PROPOSAL_STATUSES: Final = ("open", "accepted", "rejected", "superseded")
NONE: Final = "none"
# Lines of somebody's text that would begin an entry or a form.
RESERVED: Final = r"\d\d:\d\d[ \t]*[—\u2013-]|\*\*[^*\n]{1,160}:\*\*|(?:Handoff|Escalated):"

QUICK: Final = re.compile(
    r"(?P<time>[0-2]\d:[0-5]\d)(?: ?UTC| ?Z)?[ \t]*[—\u2013-]+[ \t]*"
    r"(?P<owner>[^:\s][^:]{0,127}?(?::[^:\s]+)*):[ \t]+(?P<rest>.+)\Z"
)
_REST: Final = re.compile(
    r"(?P<what>.*?)(?:[ \t]+\((?P<result>[^()]*(?:\([^()]*\)[^()]*)*)\))?\."
    r"(?:[ \t]+Next:[ \t]+(?P<next>\S+?)(?:[ \t]+(?P<task>.*?))?\.)?[ \t]*\Z"
)
_QUICK: Final = 2_000  # characters; a longer line is not looked at in detail
_NOTED: Final = re.compile(r"(?P<name>[^()]*?)(?:[ \t]+\((?P<note>.*)\))?[ \t]*\Z")
_RECOMMENDED: Final = re.compile(r"(?P<who>.+?) recommended\Z")
_COUNTER: Final = re.compile(r"(?P<who>.+?)['\u2019]s counter-recommendation\Z")


def quick_line(time: str, owner: str, what: str, result: str = "", following: tuple[str, str] = ("", "")) -> str:
    """`HH:MM — <owner>: <what> (<result>). Next: <owner> <task>.`."""
    said = f"{time} — {owner}: {inline(what).rstrip('.')}"
    if result:
        said += f" ({inline(result)})"
    if following[0]:
        said += f". Next: {' '.join(inline(part) for part in following if part)}"
    return f"{said}."


def quick_fields(line: str) -> dict[str, str] | None:
    """The values of such a line, or None where it is none."""
    found = QUICK.match(line.rstrip())
    if found is None:
        return None
    fields = {"time": found["time"], "owner": found["owner"].strip()}
    rest = _REST.match(found["rest"]) if len(found["rest"]) <= _QUICK else None
    if rest is None:
        return fields | {"what": found["rest"]}
    named = {"what": rest["what"], "result": rest["result"], "nextOwner": rest["next"], "next": rest["task"]}
    return fields | {name: inline_original(value) for name, value in named.items() if value}


def block(fields: Mapping[str, Any]) -> str:
    """A full handoff, with its keys in order, in a fence so that its lines stay lines."""
    lines = ["```"]
    for key in HANDOFF_KEYS:
        value = fields.get(key, NONE)
        if isinstance(value, str):
            lines.append(f"{key}: {inline(value)}")
        elif not value:
            lines.append(f"{key}: {NONE}")
        else:
            lines += [f"{key}:", *(f"  - {inline(str(item))}" for item in value)]
    return "\n".join([*lines, "```"])


def bold(fields: Iterable[tuple[str, str]]) -> str:
    """Bold lines, a paragraph each; text of several lines goes on below its key."""
    return "\n\n".join(_bold(key, contained(text, RESERVED)) for key, text in fields)


def _bold(key: str, text: str) -> str:
    below = "\n" in text or text.startswith("- ")
    return f"**{key}:**\n\n{text}" if below else f"**{key}:** {text}"


def read_form(lines: Sequence[str]) -> tuple[Form, dict[str, Any], str]:
    """What form the lines of an entry have, the values that it names, and the rest of the text."""
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return "none", {}, ""
    if (found := _read_block(lines, first)) is not None:
        fields, end = found
        return "handoff", fields, _text(lines[end:])
    pairs, rest = _read_bold(lines[first:])
    if pairs:
        form = _bold_form(pairs)
        if form is not None:
            return form, dict(pairs) if form != "counter" else _counter(pairs), rest
    if (said := plain_field(lines[first])) is not None and said[0] == "Escalated":
        return "escalation", {"Escalation": said[1]}, _text(lines[first + 1 :])
    return "none", {}, _text(lines)


def _text(lines: Sequence[str]) -> str:
    return original("\n".join(lines).strip("\n"), RESERVED)


def _read_block(lines: Sequence[str], first: int) -> tuple[dict[str, Any], int] | None:
    """A handoff block, with or without a fence, and where it ends."""
    fenced = opens_code(lines[first]) is not None
    place = first + fenced
    if place >= len(lines) or (plain_field(lines[place]) or ("",))[0] != HANDOFF_KEYS[0]:
        return None
    fields: dict[str, Any] = {}
    key = ""
    while place < len(lines):
        line = lines[place]
        found = plain_field(line)
        if found is not None and found[0] in HANDOFF_KEYS:
            key = found[0]
            fields[key] = _value(key, found[1])
        elif key in LISTS and (item := re.match(r"[ \t]*[-*][ \t]+(.*)\Z", line.rstrip())):
            fields[key] = [*fields[key], item[1]]
        elif fenced and opens_code(line) is not None:
            return fields, place + 1
        elif not line.strip() and not fenced:
            break
        elif line.strip():
            if not fenced:
                break
            fields.setdefault("", []).append(line.strip())
        place += 1
    return fields, place


def _value(key: str, text: str) -> Any:
    if key not in LISTS:
        return text
    if not text or text.lower().rstrip(".") == NONE:
        return []
    return [item.strip() for item in text.split(",") if item.strip()]


def _read_bold(lines: Sequence[str]) -> tuple[list[tuple[str, str]], str]:
    """The bold keys from the first line on, each with the text up to the next one."""
    pairs: list[tuple[str, list[str]]] = []
    if bold_field(lines[0]) is None:
        return [], _text(lines)
    for line in lines:
        found = bold_field(line)
        if found is not None:
            pairs.append((found[0], [found[1]]))
        else:
            pairs[-1][1].append(line)
    return [(key, _text(said)) for key, said in pairs], ""


def _bold_form(pairs: Sequence[tuple[str, str]]) -> Form | None:
    keys = [key for key, _ in pairs]
    if _RECOMMENDED.match(keys[0]) or any(map(_COUNTER.match, keys)):
        return "counter"
    return {"ID": "proposal", "Decision": "decision", "Escalation": "escalation"}.get(keys[0])  # type: ignore[return-value]


def _counter(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, said in pairs:
        if other := _RECOMMENDED.match(key):
            fields |= {"other": other["who"], "recommended": said}
        elif this := _COUNTER.match(key):
            fields |= {"this": this["who"], "counter": said}
        else:
            fields[key] = said
    return fields


def noted(value: str) -> tuple[str, str]:
    """An owner and the note in brackets behind it."""
    found = _NOTED.match(value) if len(value) <= _QUICK else None
    return (found["name"].strip(), found["note"] or "") if found is not None else (value, "")
