"""Numbers and references in the merged history.

In a collision the root lane keeps a number below the blocks, else the earlier birth does; the other gets one that
follows from its birth alone, so that every clone finds the same. References follow what their author meant. Must not
know what an event does.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from aof.core.engine.merge.commits.census import ANSWERED, ASKED, Birth, Census, question
from aof.core.engine.merge.commits.lanes import Lanes
from aof.core.model.events import Event

DERIVED: Final = 1_000_000  # derived numbers begin here: behind the root's own count and behind every clone's block
_BLOCKS: Final = 100_000  # numbers below belong to the root lane
_QUESTIONS: Final = 1_000  # the same for questions, which are numbered within their task
_DIGITS: Final = 12
_REFERENCE: Final = re.compile(r"\b(?:TASK|MSG|RUN|HO)-[0-9][0-9a-f-]*[0-9a-f]")
_WORDS: Final = ("reason",)  # what AOF or a person says in words about other tasks
_encode = msgspec.json.Encoder().encode


class Names:
    """The ID of everything that was born behind the fork, and the references of each lane's authors."""

    def __init__(self, lanes: Lanes, census: Census) -> None:
        self._census = census
        self._ids: dict[str, str] = {}
        self._moved: dict[int, dict[str, tuple[int, str]]] = {}
        self._renames: dict[int, dict[str, str]] = {}
        self.renumbered: list[tuple[Birth, str]] = []
        self._number(lanes)
        for lane in census.inner_lanes:
            named = census.named(lane)
            self._moved[lane] = {name: at for name, at in named.items() if self._ids[at[1]] != name}

    def of(self, key: str) -> str:
        """The ID of a task in the merged history."""
        return self._ids.get(key, key)

    def aliases(self, key: str) -> list[str]:
        """The other IDs that a task had: where it was made, and in earlier merges."""
        return sorted(self._census.names_of(key) - {self.of(key)})

    def renames(self, lane: int) -> dict[str, str]:
        """The IDs that mean something else now than to the author of this lane."""
        found = self._renames.get(lane)
        if found is None:
            found = self._renames[lane] = {}
            for number, last in self._census.names_on(lane):
                for name, (index, key) in self._moved.get(number, {}).items():
                    if index <= last:
                        found.setdefault(name, self._ids[key])
        return found

    def _number(self, lanes: Lanes) -> None:
        taken = set(self._census.common)
        roots = {number for number, lane in enumerate(lanes.lanes) if not lane.name}
        births = self._census.births
        for birth in [one for one in births if one.original.place.lane in roots and _number_of(one.name) < _BLOCKS]:
            if birth.name not in taken:
                self._ids[birth.key] = birth.name
                taken.add(birth.name)
        for birth in births:
            if birth.key not in self._ids and birth.name not in taken:
                self._ids[birth.key] = birth.name
                taken.add(birth.name)
        for birth in births:
            if birth.key not in self._ids:
                fresh = _derived(birth, taken)
                self._ids[birth.key] = fresh
                taken.add(fresh)
                self.renumbered.append((birth, fresh))

    def event(self, event: Event, lane: int) -> Event:
        """The event with its references as the author meant them."""
        renames = self.renames(lane)
        if not renames:
            return event
        changes: dict[str, Any] = {}
        task = renames.get(event.task_id, event.task_id)
        if task != event.task_id:
            changes["task_id"] = task
        if event.run_id is not None and (run := _renamed(event.run_id, renames)) != event.run_id:
            changes["run_id"] = run
        payload = self.value(event.payload, lane) if event.payload else event.payload
        payload = self._question(event, payload, lane)
        if (named := _job(event, payload, renames)) is not payload or payload is not event.payload:
            changes["payload"] = named
        return msgspec.structs.replace(event, **changes) if changes else event

    def _question(self, event: Event, payload: dict[str, Any], lane: int) -> dict[str, Any]:
        """Questions are numbered within their task."""
        if event.type not in (ASKED, ANSWERED):
            return payload
        told = payload["question"]
        name = question(self._census.key(lane, event.task_id), told["id"] if event.type == ASKED else told)
        fresh = self.renames(lane).get(name, name).rpartition(":")[2]
        if event.type == ASKED:
            return payload | {"question": told | {"id": fresh}}
        return (
            payload | {"question": fresh} | ({"asked": payload["asked"] | {"id": fresh}} if "asked" in payload else {})
        )

    def value(self, value: Any, lane: int) -> Any:
        """Any value of a payload in the same way; the very same object where nothing in it changes."""
        renames = self.renames(lane)
        if not renames:
            return value
        text = _encode(value).decode()
        if not any(_renamed(found, renames) != found for found in _REFERENCE.findall(text)):
            return value
        return _walk(value, renames, "")


def _walk(value: Any, renames: dict[str, str], key: str) -> Any:
    if isinstance(value, str):
        if key in _WORDS:
            return _REFERENCE.sub(lambda found: _renamed(found[0], renames), value)
        return _renamed(value, renames)
    if isinstance(value, dict):
        return {name: _walk(item, renames, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, renames, key) for item in value]
    return value


def _renamed(text: str, renames: dict[str, str]) -> str:
    """A task, message, run or old handoff ID; the last two begin with the task's."""
    found = renames.get(text)
    if found is not None:
        return found
    kind, _, rest = text.partition("-")
    if kind not in ("RUN", "HO"):
        return text
    parts = rest.split("-")
    task = renames.get(f"TASK-{'-'.join(parts[:4])}")
    return text if task is None else "-".join([kind, task[5:], *parts[4:]])


def _job(event: Event, payload: dict[str, Any], renames: dict[str, str]) -> dict[str, Any]:
    """Jobs go by names, which are looked for only where a job is meant."""
    if event.type.startswith("document.job."):
        name = renames.get(f"job:{payload.get('job')}")
        if name is not None:
            payload = payload | {"job": name[4:]}
            if "record" in payload:
                payload["record"] = payload["record"] | {"id": name[4:]}
    elif event.type.startswith("task.link.") and payload.get("kind") == "job":
        name = renames.get(f"job:{payload.get('targetId')}")
        if name is not None:
            payload = payload | {"targetId": name[4:]}
    return payload


def _number_of(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _derived(birth: Birth, taken: set[str]) -> str:
    if birth.name.startswith("job:"):
        return f"{birth.name[:40]}-{birth.key[:12]}"
    if birth.name.startswith("question:"):
        stem, number = birth.name.rpartition(":")[0], _QUESTIONS + int(birth.key[:_DIGITS], 16) % (9 * _QUESTIONS)
        while (fresh := f"{stem}:Q{number}") in taken:
            number += 1
        return fresh
    stem, number = birth.name.rpartition("-")[0], DERIVED + int(birth.key[:_DIGITS], 16) % (9 * DERIVED)
    while (fresh := f"{stem}-{number}") in taken:
        number += 1
    return fresh
