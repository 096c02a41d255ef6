"""Who made and who touched what: the tasks, messages and jobs of a span, by their births.

A task of the common path goes by its ID, which is settled. One that was born behind the fork goes by its birth: the
hash of the event that created it, under whatever ID each author knew it. Must not know what becomes of an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from aof.core.documents.mailbox import facts
from aof.core.engine.merge.commits.lanes import ROOT, CommitPlace, Lanes, Span
from aof.core.engine.merge.commits.order import Original
from aof.core.engine.merge.rules import rule_of
from aof.core.jobs import job
from aof.core.model.events import Event, is_remark
from aof.core.model.lifecycle import FAILED

BIRTH: Final = "birth"  # the key in the payload of a birth that a merge lane repeats
ASKED, ANSWERED = "task.question.asked", "task.question.answered"
_BEGINNING: Final = frozenset({"task.created", "task.restored", facts.SENT, job.ADDED, ASKED, ANSWERED})
_SAYING: Final = frozenset({"remark", "mail", "jobs", "document"})  # rules of events that change no task
_JOB: Final = "job:"  # what the keys of jobs begin with: they go by names that people chose


class Birth(NamedTuple):
    """Something that was begun behind the fork: under which ID, in which commit."""

    key: str
    name: str
    original: Original
    title: str


class Census:
    """What the span touches. `touching` has the commits about each task, in canonical order."""

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
        """What the authors of a lane called a task."""

        def name_in(lane: int) -> str:
            for number, last in self.names_on(lane):
                found = self._names.get(number, {}).get(key)
                if found is not None and found[0] <= last:
                    return found[1]
            return key

        return name_in

    def names_of(self, key: str) -> set[str]:
        """Every ID that a task had for somebody."""
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
        for lane, last in self._lanes.path(self._span.fork).steps:
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
                    self.common.add(question(event.task_id, asked))
            elif event.type == facts.SENT:
                self.common.add(event.payload["messageId"])
            elif event.type == job.ADDED:
                self.common.add(_JOB + event.payload["job"])
        self.common.update(events)

    def _read_merge(self, lane: int) -> None:
        for commit in self._lanes.lanes[lane].commits:
            for event in commit.events:
                if BIRTH in event.payload and (name := self._begun(lane, event)) is not None:
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
        name = self._begun(lane, event)
        if name is not None and self._is_birth(lane, name, event):
            self._name(lane, name, index, event.hash)
            self.born.add(event.hash)
            self.births.append(Birth(event.hash, name, original, _title(event)))

    def _begun(self, lane: int, event: Event) -> str | None:
        asked = _asked(event)
        return question(self.key(lane, event.task_id), asked) if asked is not None else _begun(event)

    def _name(self, lane: int, name: str, index: int, key: str) -> None:
        self._own.setdefault(lane, {})[name] = (index, key)
        self._names.setdefault(lane, {})[key] = (index, name)
        self._known.get(lane, {}).pop(name, None)

    def _is_birth(self, lane: int, name: str, event: Event) -> bool:
        """Whether it begins something: the log may know the task of a restored file, a removed job, a question."""
        if event.type in ("task.created", facts.SENT):
            return True
        return name not in self.common and self.key(lane, name) == name


def question(task: str, name: str) -> str:
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
    if event.type == facts.SENT:
        return str(event.payload["messageId"])
    return _JOB + str(event.payload["job"]) if event.type == job.ADDED else None


def _title(event: Event) -> str:
    told = event.payload.get("task") or event.payload.get("message") or event.payload.get("asked") or {}
    if event.type == ASKED:
        told = event.payload["question"]
    return str(told.get("title") or told.get("subject") or told.get("text") or event.payload.get("job") or "")


def chained(span: Span, commits: Iterable[Original]) -> bool:
    """Whether each of these had seen the one before: nobody worked beside another."""
    before: CommitPlace | None = None
    for original in commits:
        here = original.place
        if before is not None and before.lane != here.lane and not span.saw(here, before):
            return False
        before = here
    return True
