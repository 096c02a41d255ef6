"""The life of each task: what one pass over the log tells of it, and more than its record keeps.

The record says what is; this also knows since when an edge is there and which event a run began with.
Must not know where the events come from.
"""

from __future__ import annotations

from typing import Any

from aof.app.portable.vocabulary import UNKNOWN
from aof.core.evolve.handoff import evolve_handoff
from aof.core.evolve.run import evolve_run, result_of
from aof.core.evolve.task import evolve
from aof.core.model.events import Event, about_handoff, is_remark
from aof.core.model.handoffs.record import Handoff
from aof.core.model.run import Run, RunResult
from aof.core.model.task import Task

_MAKING = frozenset({"task.created", "task.restored", "task.updated", "task.dependency.updated"})


class Attempt:
    """One run: the events that it began with and reported by, and the last one to go on from."""

    __slots__ = ("began", "checkpoint", "digests", "output", "reported", "result", "run")

    def __init__(self, run: Run, began: int) -> None:
        self.run = run
        self.began = began
        self.result: RunResult | None = None
        self.reported: int | None = None
        self.checkpoint: int | None = None
        self.output: dict[str, Any] = {}
        self.digests: dict[str, str] = {}


class Review:
    """Somebody's word on a result."""

    __slots__ = ("at", "by", "reason", "seq")

    def __init__(self, event: Event) -> None:
        self.seq = event.seq
        self.at = event.timestamp
        self.by = str(event.payload.get("by") or event.payload.get("agent") or event.agent or event.actor)
        self.reason = str(event.payload.get("reason") or "approved")


class Life:
    """What the log tells of one task. `since` are the moments at which its edges to other tasks came to be."""

    __slots__ = ("attempts", "first", "handoffs", "reviews", "since", "task")

    def __init__(self, event: Event) -> None:
        self.first = event.seq
        self.task: Task = evolve(None, event)
        self.attempts: list[Attempt] = []
        self.handoffs: dict[str, Handoff] = {}
        self.reviews: list[Review] = []
        self.since: dict[str, str] = dict.fromkeys(_others(self.task), event.timestamp)

    def add(self, event: Event) -> None:
        """Go on by one event."""
        before, self.task = self.task, evolve(self.task, event)
        if event.type in _MAKING and _others(before) != _others(self.task):
            self.since = {other: self.since.get(other, event.timestamp) for other in _others(self.task)}
        note = _NOTED.get(event.type)
        if note is not None:
            note(self, event)
        elif about_handoff(event):
            self._hand_off(event)

    @property
    def parent(self) -> tuple[str, str] | None:
        """The task that this one is a part of, or that it was handed down from, and since when."""
        above = self.task.parent_id
        if above is not None:
            return above, self.since[f"^{above}"]
        for one in reversed(self.handoffs.values()):
            if one.state != "rejected" and one.parent_task_id is not None:
                return one.parent_task_id, one.created_at
        return None

    def _began(self, event: Event) -> None:
        run = evolve_run(None, event)
        assert run is not None
        self.attempts.append(Attempt(run, event.seq))

    def _ended(self, event: Event) -> None:
        for attempt in reversed(self.attempts):
            if attempt.run.run_id == event.run_id:
                attempt.run = evolve_run(attempt.run, event) or attempt.run
                return

    def _reported(self, event: Event) -> None:
        attempt = self._attempt(event.run_id)
        if attempt is not None:
            attempt.result, attempt.reported = result_of(event), event.seq
            attempt.digests = event.payload.get("digests", {})
            if attempt.result.outcome == "partial":
                attempt.checkpoint = event.seq

    def _progressed(self, event: Event) -> None:
        attempt = self._attempt(event.run_id)
        if attempt is not None:
            attempt.checkpoint = event.seq

    def _exited(self, event: Event) -> None:
        attempt = self._attempt(event.run_id)
        if attempt is not None:
            attempt.output = event.payload.get("output") or {}

    def _superseded(self, event: Event) -> None:
        """A run of another clone that does not stand is an attempt all the same."""
        was = event.payload["was"]
        if was == "task.attempt.started":
            self._began(event)
        elif was == "task.completed":
            attempt = self._attempt(event.run_id)
            if attempt is not None and attempt.run.status == "superseded":
                attempt.result, attempt.reported = result_of(event), event.seq
                attempt.digests = event.payload["told"].get("digests", {})
        else:
            self._ended(event)

    def _moved(self, event: Event) -> None:
        if event.payload.get("from") == "review" and event.payload.get("to") == "done" and "by" in event.payload:
            self.reviews.append(Review(event))

    def _approved(self, event: Event) -> None:
        self.reviews.append(Review(event))

    def _attempt(self, run_id: str | None) -> Attempt | None:
        return next((one for one in reversed(self.attempts) if one.run.run_id == run_id), None)

    def _hand_off(self, event: Event) -> None:
        name = event.payload["handoffId"]
        handoff = evolve_handoff(self.handoffs.get(name), event)
        if handoff is not None:
            self.handoffs[name] = handoff


def _others(task: Task) -> tuple[str, ...]:
    """The tasks that this one stands below or waits for; the parent is marked, for it may be both."""
    return (f"^{task.parent_id}", *task.depends_on) if task.parent_id else task.depends_on


_NOTED = {
    "task.attempt.started": Life._began,  # noqa: SLF001 - the table of this class
    "task.attempt.completed": Life._ended,  # noqa: SLF001
    "task.attempt.failed": Life._ended,  # noqa: SLF001
    "task.completed": Life._reported,  # noqa: SLF001
    "task.progress": Life._progressed,  # noqa: SLF001
    "run.exited": Life._exited,  # noqa: SLF001
    "task.transitioned": Life._moved,  # noqa: SLF001
    "task.superseded": Life._superseded,  # noqa: SLF001
    "task.hop.approved": Life._approved,  # noqa: SLF001
}


class Lives:
    """All tasks after an event, and which event that was."""

    __slots__ = ("by_id", "changed", "first_hash", "last_hash", "moment", "seq")

    def __init__(self) -> None:
        self.by_id: dict[str, Life] = {}
        self.seq = 0
        self.moment: str | None = None
        self.first_hash = self.last_hash = ""
        self.changed: set[str] = set()  # the tasks that events were about; whoever has seen to them empties it

    @property
    def session(self) -> str:
        """What this log goes by, wherever it is copied to: it begins with the same event."""
        return f"LOG-{self.first_hash[:16]}" if self.first_hash else UNKNOWN

    def add(self, event: Event) -> None:
        """Go on by one event."""
        if not self.seq:
            self.first_hash = event.hash
        self.seq, self.last_hash = event.seq, event.hash
        self.moment = event.timestamp if self.moment is None else max(self.moment, event.timestamp)
        if not event.task_id or is_remark(event):
            return
        self.changed.add(event.task_id)
        life = self.by_id.get(event.task_id)
        if life is None:
            self.by_id[event.task_id] = Life(event)
        else:
            life.add(event)
