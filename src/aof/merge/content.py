"""What becomes of content that several clones changed: fields, bodies, edges between tasks, and documents."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NamedTuple

import msgspec

from aof.documents import mail_rules
from aof.kernel.events import Draft, Event
from aof.merge.commits import CommitPlace, Original, Span
from aof.merge.model import Clash, Notes
from aof.merge.names import Census
from aof.tasks import body as tasks_body
from aof.tasks.manual_edits import merge_text
from aof.tasks.model import Task

_SECTIONS = (tasks_body.COMMENTS, tasks_body.HEADING)


class ContentMerge(NamedTuple):
    """The changes to make, and the fields in which both sides differ."""

    changes: dict[str, Any]
    clashes: list[Clash]


def fields_of(task: Task) -> dict[str, Any]:
    """A task's record as JSON has it; the key of an absent field is absent."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(task))
    return whole


def merge_content(base: dict[str, Any], here: dict[str, Any], changes: dict[str, Any]) -> ContentMerge:
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
        old, merged = before or {}, dict(there or {})
        for key in (*old, *(key for key in wanted if key not in old)):
            value = _value(f"{name}.{key}", old.get(key), merged.get(key), wanted.get(key), clashes)
            if value is None and key not in wanted:
                merged.pop(key, None)
            else:
                merged[key] = value
        return merged
    clashes.append(Clash(field=name, kept=wanted, other=there))
    return wanted


def _same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON, where 1, 1.0 and true differ."""
    return one == other and msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def _body(before: str, there: str, wanted: str, clashes: list[Clash]) -> str:
    if before == there:
        return wanted
    old, now, new = (tasks_body.description(text).rstrip() for text in (before, there, wanted))
    text = merge_text(old, now, new)
    if text is None:
        clashes.append(Clash(field="description", kept=new, other=now))
    merged = there if text == now else tasks_body.with_description(there, new if text is None else text)
    for heading in _SECTIONS:
        known = _entries(before, heading)
        merged = _with_entries(merged, heading, [one for one in _entries(wanted, heading) if one not in known])
    return merged


def _entries(body: str, heading: str) -> list[str]:
    """The entries of a section as they stand there; the lines behind a `- ` line belong to it."""
    place = tasks_body.section(body, heading)
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
    place = tasks_body.section(body, heading)
    if place is None:
        gap = "" if not body else end if body.endswith("\n") else end * 2
        return f"{body}{gap}{heading}{end}{end}{added}"
    kept, after = body[: place[1]].rstrip("\r\n"), body[place[1] :]
    gap = end * 2 if kept[place[0] :].rstrip(" \t") == heading else end
    return f"{kept}{gap}{added}" + (f"{end}{after}" if after else "")


EDGE_TYPES: Final = frozenset({"task.created", "task.restored", "task.updated", "task.dependency.updated"})


class Edges:
    """The dependencies and the parent of each task, as far as the replay has come."""

    def __init__(self, census: Census, order: list[Original], tasks: dict[str, Task]) -> None:
        self._depends: dict[str, tuple[str, ...]] = {}
        self._parents: dict[str, str | None] = {}
        for name, events in census.common_events.items():
            task = tasks.get(name)
            if task is not None:
                self._depends[name], self._parents[name] = task.depends_on, task.parent_id
            else:
                self._scan(name, events)
        self._suspect = self._circular(census, order)

    def _scan(self, name: str, events: list[Event]) -> None:
        """The edges of a task that nobody has touched, without the rest of it."""
        for event in events:
            if event.type in EDGE_TYPES:
                fields = _fields_in(event)
                if "dependsOn" in fields or event.type in ("task.created", "task.restored"):
                    self._depends[name] = tuple(fields.get("dependsOn") or ())
                if "parentId" in fields or event.type in ("task.created", "task.restored"):
                    self._parents[name] = fields.get("parentId")

    def _circular(self, census: Census, order: list[Original]) -> bool:
        """Whether all dependencies that anybody made close a cycle."""
        graph: dict[str, set[str]] = {name: set(edges) for name, edges in self._depends.items() if edges}
        for original in order:
            lane = original.place.lane
            for event in original.events:
                if event.type in EDGE_TYPES and (edges := _fields_in(event).get("dependsOn")):
                    node = graph.setdefault(census.key(lane, event.task_id), set())
                    node.update(census.key(lane, edge) for edge in edges)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError:
            return True
        return False

    def after(self, task: Task, notes: Notes) -> list[Draft]:
        """Take note of a task's edges after an event; the drafts that take out again what closes a cycle."""
        before, parent = self._depends.get(task.id, ()), self._parents.get(task.id)
        self._depends[task.id], self._parents[task.id] = task.depends_on, task.parent_id
        drafts: list[Draft] = []
        if self._suspect:
            left = task.depends_on
            for edge in task.depends_on:
                if edge not in before and self._reaches(edge, task.id):
                    left = tuple(one for one in left if one != edge)
                    self._depends[task.id] = left
                    notes.leave_out(task.id, edge)
                    payload: dict[str, Any] = {"dependsOn": list(left), "removed": edge}
                    drafts.append(Draft(type="task.dependency.updated", task_id=task.id, payload=payload))
        if task.parent_id is not None and task.parent_id != parent and self._above(task.parent_id, task.id):
            self._parents[task.id] = parent
            notes.leave_out(task.id, task.parent_id, kind="parent")
            payload = {"changes": {"parentId": parent}, "fields": ["parentId"]}
            drafts.append(Draft(type="task.updated", task_id=task.id, payload=payload))
        return drafts

    def _reaches(self, start: str, target: str) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            here = waiting.pop()
            if here == target:
                return True
            fresh = [edge for edge in self._depends.get(here, ()) if edge not in seen]
            seen.update(fresh)
            waiting += fresh
        return False

    def _above(self, start: str, target: str) -> bool:
        seen: set[str] = set()
        here: str | None = start
        while here is not None and here not in seen:
            if here == target:
                return True
            seen.add(here)
            here = self._parents.get(here)
        return False


def _fields_in(event: Event) -> dict[str, Any]:
    """The fields of a task that an event sets."""
    fields: dict[str, Any] = event.payload.get("task") or event.payload.get("changes") or event.payload
    return fields


_SUPERSEDED: Final = "document.superseded"
_CHARTER: Final = "document.charter.created"
_STATUSES: Final = ("unread", "acknowledged", "blocked", "actioned", "closed")


class DocumentMerge:
    """Merges what clones wrote into documents, shared contexts and answers, in the order of the replay."""

    def __init__(self, span: Span, notes: Notes) -> None:
        self._span = span
        self._notes = notes
        self._statuses: dict[str, str] = {}
        self._charters: list[CommitPlace] = []
        self._variables: dict[tuple[str, str], tuple[CommitPlace, Any]] = {}

    def event(self, event: Event, place: CommitPlace) -> Event:
        """The event as it counts after what other clones have written; a second charter, for one, is superseded."""
        if event.type == _CHARTER:
            return self._charter(event, place)
        if event.type in (mail_rules.CHANGED, mail_rules.CLOSED):
            return self._changed(event)
        return event

    def share(self, event: Event, place: CommitPlace) -> None:
        """Record a write to a shared context; of two clones' values the later one counts and both are noted."""
        self._set(event.task_id, f"context.{event.payload['name']}", event.payload.get("value"), place)

    def answer(self, event: Event, place: CommitPlace) -> None:
        """Record an answer to a question; of two clones' answers the later one counts and both are noted."""
        self._set(event.task_id, f"question.{event.payload['question']}", event.payload["text"], place)

    def _set(self, task_id: str, field: str, value: Any, place: CommitPlace) -> None:
        last, other = self._variables.get((task_id, field), (None, value))
        if last is not None and not self._span.saw(place, last) and other != value:
            self._notes.clash(task_id, [Clash(field=field, kept=value, other=other)])
        self._variables[task_id, field] = (place, value)

    def _charter(self, event: Event, place: CommitPlace) -> Event:
        unseen = any(not self._span.saw(place, other) for other in self._charters)
        if unseen:
            self._notes.general.append(f"the charter was created twice; that of {event.actor} is in the log only")
            return msgspec.structs.replace(event, type=_SUPERSEDED, payload={"was": event.type, "told": event.payload})
        self._charters.append(place)
        return event

    def _changed(self, event: Event) -> Event:
        name, wanted = event.payload["messageId"], event.payload["status"]
        here = self._statuses.get(name, event.payload["before"])
        if here != event.payload["before"] and _rank(here) > _rank(wanted):
            if event.type == mail_rules.CHANGED:
                return msgspec.structs.replace(event, payload=event.payload | {"status": here})
            return event
        self._statuses[name] = wanted
        return event


def _rank(status: str) -> int:
    return _STATUSES.index(status) if status in _STATUSES else -1
