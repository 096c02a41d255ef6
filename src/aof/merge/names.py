"""IDs after a merge: what was created in several clones, what each author meant by an ID, and its ID from now on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from aof.documents import mail_rules
from aof.jobs import rules as jobs_rules
from aof.kernel.events import Event, is_remark
from aof.kernel.model import FAILED
from aof.merge.commits import ROOT, CommitPlace, Lanes, Original, Span
from aof.merge.model import rule_of

BIRTH: Final = "birth"  # the key in the payload of a birth that a merge lane repeats
ASKED, ANSWERED = "task.question.asked", "task.question.answered"
_BEGINNING: Final = frozenset({"task.created", "task.restored", mail_rules.SENT, jobs_rules.ADDED, ASKED, ANSWERED})
_SAYING: Final = frozenset({"remark", "mail", "jobs", "document"})  # rules of events that change no task
_JOB: Final = "job:"  # what the keys of jobs begin with: they go by names that people chose


class Birth(NamedTuple):
    """The creation of a task, message, job or question behind the fork: under which ID, in which commit."""

    key: str
    name: str
    original: Original
    title: str


class Census:
    """What the commits of a span create and change. `touching` has the commits about each task, in canonical order."""

    def __init__(self, lanes: Lanes, span: Span, order: list[Original]) -> None:
        self._lanes = lanes
        self._span = span
        self._own: dict[int, dict[str, tuple[int, str]]] = {}
        self._names: dict[int, dict[str, tuple[int, str]]] = {}
        self._known: dict[int, dict[str, str]] = {}
        self.common: set[str] = set()
        self.common_events: dict[str, list[Event]] = {}
        self.births: list[Birth] = []
        self.born: set[str] = set()
        self.touching: dict[str, list[Original]] = {}
        self.deaths: dict[str, list[Original]] = {}
        self._read_common()
        for number in self.inner_lanes:
            if lanes.lanes[number].heads:
                self._read_merge(number)
        for original in order:
            self._read(original)

    def key(self, lane: int, name: str) -> str:
        """What the author of a lane means by an ID: a birth behind the fork, else the ID itself."""
        known = self._known.setdefault(lane, {})
        found = known.get(name)
        if found is None:
            found = known[name] = self._look(lane, name)
        return found

    def names_on(self, lane: int) -> Iterator[tuple[int, int]]:
        """The lanes behind the fork that a lane can see, with the last commit of each, nearest first."""
        place = CommitPlace(lane, self._span.ends.get(lane, 0))
        while place != ROOT:
            yield place
            if place.lane == self._span.fork.lane:
                return
            place = self._lanes.after(place.lane)
            if place.lane == self._span.fork.lane and place.at <= self._span.fork.at:
                return

    def named(self, lane: int) -> dict[str, tuple[int, str]]:
        """The births of one lane by their IDs there, each with the number of its commit."""
        return self._own.get(lane, {})

    def called(self, key: str) -> Callable[[int], str]:
        """The ID of a task in a lane."""

        def name_in(lane: int) -> str:
            for number, last in self.names_on(lane):
                found = self._names.get(number, {}).get(key)
                if found is not None and found[0] <= last:
                    return found[1]
            return key

        return name_in

    def names_of(self, key: str) -> set[str]:
        """Every ID that a task had in any lane."""
        return {names[key][1] for names in self._names.values() if key in names}

    @cached_property
    def inner_lanes(self) -> list[int]:
        """The lanes of the span and the merge lanes between them, each behind the one that it builds on."""
        found: dict[int, int] = {}
        for lane in self._span.ends:
            way = [number for number, _ in self.names_on(lane)]
            found |= {number: len(way) - at for at, number in enumerate(way)}
        return sorted(found, key=lambda number: (found[number], number))

    def path_to_fork(self) -> Iterator[Event]:
        """The events of the common path."""
        if self._span.fork == ROOT:
            return
        for lane, last in self._lanes.path(self._span.fork):
            for commit in self._lanes.lanes[lane].commits[: last + 1]:
                yield from commit.events

    def _look(self, lane: int, name: str) -> str:
        for number, last in self.names_on(lane):
            found = self._own.get(number, {}).get(name)
            if found is not None and found[0] <= last:
                return found[1]
        return name

    def _read_common(self) -> None:
        events = self.common_events
        for event in self.path_to_fork():
            if event.task_id and not is_remark(event):
                if event.task_id not in events:
                    events[event.task_id] = []
                events[event.task_id].append(event)
                if (asked := _asked(event)) is not None:
                    self.common.add(question_name(event.task_id, asked))
            elif event.type == mail_rules.SENT:
                self.common.add(event.payload["messageId"])
            elif event.type == jobs_rules.ADDED:
                self.common.add(_JOB + event.payload["job"])
        self.common.update(events)

    def _read_merge(self, lane: int) -> None:
        for commit in self._lanes.lanes[lane].commits:
            for event in commit.events:
                if BIRTH in event.payload and (name := self._name_begun(lane, event)) is not None:
                    self._name(lane, name, 0, event.payload[BIRTH])

    def _read(self, original: Original) -> None:
        lane, index = original.place
        keys: list[str | None] = []
        for event in original.events:
            if event.type in _BEGINNING:
                self._begin(original, event, index)
            rule = rule_of(event.type)
            if not event.task_id or rule in _SAYING or (rule == "handoff" and is_remark(event)):
                keys.append(None)
                continue
            key = self.key(lane, event.task_id)
            keys.append(key)
            touching = self.touching.get(key)
            if touching is None:
                self.touching[key] = [original]
            elif touching[-1] is not original:
                touching.append(original)
            if event.type == "task.transitioned" and event.payload["to"] in FAILED:
                self.deaths.setdefault(key, []).append(original)
        original.keys = tuple(keys)

    def _begin(self, original: Original, event: Event, index: int) -> None:
        lane = original.place.lane
        name = self._name_begun(lane, event)
        if name is not None and self._is_birth(lane, name, event):
            self._name(lane, name, index, event.hash)
            self.born.add(event.hash)
            self.births.append(Birth(event.hash, name, original, _title(event)))

    def _name_begun(self, lane: int, event: Event) -> str | None:
        asked = _asked(event)
        return question_name(self.key(lane, event.task_id), asked) if asked is not None else _begun(event)

    def _name(self, lane: int, name: str, index: int, key: str) -> None:
        self._own.setdefault(lane, {})[name] = (index, key)
        self._names.setdefault(lane, {})[key] = (index, name)
        self._known.get(lane, {}).pop(name, None)

    def _is_birth(self, lane: int, name: str, event: Event) -> bool:
        """Whether it begins something: the log may know the task of a restored file, a removed job, a question."""
        if event.type in ("task.created", mail_rules.SENT):
            return True
        return name not in self.common and self.key(lane, name) == name


def question_name(task: str, name: str) -> str:
    """What a question of a task goes by, whatever its author called the task."""
    return f"question:{task}:{name}"


def _asked(event: Event) -> str | None:
    """The number of the question that an event may begin."""
    if event.type == ASKED:
        return str(event.payload["question"]["id"])
    return str(event.payload["asked"]["id"]) if event.type == ANSWERED and "asked" in event.payload else None


def _begun(event: Event) -> str | None:
    """The ID of what an event begins: a task, a message or a job."""
    if event.type in ("task.created", "task.restored"):
        return event.task_id
    if event.type == mail_rules.SENT:
        return str(event.payload["messageId"])
    return _JOB + str(event.payload["job"]) if event.type == jobs_rules.ADDED else None


def _title(event: Event) -> str:
    payload = event.payload
    begun = payload.get("task") or payload.get("message") or payload.get("asked") or {}
    if event.type == ASKED:
        begun = payload["question"]
    return str(begun.get("title") or begun.get("subject") or begun.get("text") or payload.get("job") or "")


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
        """The event with its references renamed to what its author meant."""
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
        if (named := _with_renamed_job(event, payload, renames)) is not payload or payload is not event.payload:
            changes["payload"] = named
        return msgspec.structs.replace(event, **changes) if changes else event

    def _question(self, event: Event, payload: dict[str, Any], lane: int) -> dict[str, Any]:
        """Questions are numbered within their task."""
        if event.type not in (ASKED, ANSWERED):
            return payload
        question = payload["question"]
        name = question_name(self._census.key(lane, event.task_id), question["id"] if event.type == ASKED else question)
        fresh = self.renames(lane).get(name, name).rpartition(":")[2]
        if event.type == ASKED:
            return payload | {"question": question | {"id": fresh}}
        asked = {"asked": payload["asked"] | {"id": fresh}} if "asked" in payload else {}
        return payload | {"question": fresh} | asked

    def value(self, value: Any, lane: int) -> Any:
        """A value of a payload with its references renamed; the very same object where nothing in it changes."""
        renames = self.renames(lane)
        if not renames:
            return value
        text = _encode(value).decode()
        if not any(_renamed(found, renames) != found for found in _REFERENCE.findall(text)):
            return value
        return _with_renamed(value, renames, "")


def _with_renamed(value: Any, renames: dict[str, str], key: str) -> Any:
    if isinstance(value, str):
        if key in _WORDS:
            return _REFERENCE.sub(lambda found: _renamed(found[0], renames), value)
        return _renamed(value, renames)
    if isinstance(value, dict):
        return {name: _with_renamed(item, renames, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_renamed(item, renames, key) for item in value]
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


def _with_renamed_job(event: Event, payload: dict[str, Any], renames: dict[str, str]) -> dict[str, Any]:
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
