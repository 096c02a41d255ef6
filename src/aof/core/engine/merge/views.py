"""What authors saw: the tasks that several clones worked on, as each author had them before and after each commit.

Folds every lane once, from what it builds on. Tasks that only one clone worked on are left out. Must not know which
side wins.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from aof.core.engine.merge.commits.census import Census
from aof.core.engine.merge.commits.lanes import ROOT, CommitPlace, Lanes, Span
from aof.core.evolve.handoff import evolve_handoff
from aof.core.evolve.task import evolve
from aof.core.model.events import Event, about_handoff, is_remark
from aof.core.model.handoffs.record import Handoff, HandoffState
from aof.core.model.task import Task

_FURTHEST: Final = ("backlog", "ready", "in-progress", "blocked", "deadletter", "review", "cancelled", "done")
_HOPS: Final = (
    "waiting",
    "rejected",
    "ready",
    "running",
    "blocked",
    "timed_out",
    "failed",
    "review",
    "skipped",
    "done",
)
_KEPT: Final = frozenset({"task.updated", "task.dependency.updated", "task.restored"})
_HANDOFFS: Final[tuple[HandoffState, ...]] = (
    "queued",
    "requested",
    "deferred",
    "accepted",
    "rejected",
    "escalated",
    "failed",
    "completed",
)


class HopStanding(NamedTuple):
    """How far a hop was."""

    status: str
    epoch: int
    since: str

    @property
    def order(self) -> tuple[int, int, str]:
        """The furthest first."""
        return -_HOPS.index(self.status), -self.epoch, self.since


class TaskStanding(NamedTuple):
    """How far a task was after a commit, for its author."""

    status: str
    archived: bool
    attempts: int
    since: str
    holder: str | None
    hops: dict[str, HopStanding]
    handoffs: dict[str, int]

    @property
    def order(self) -> tuple[int, int, str]:
        """The furthest first, then more attempts, then the earlier one."""
        return -_FURTHEST.index(self.status), -self.attempts, self.since


class TaskStates(NamedTuple):
    """Tasks and handoffs at one point of a lane."""

    tasks: dict[str, Task]
    handoffs: dict[str, Handoff]

    def copy(self) -> TaskStates:
        """The same, to go on from."""
        return TaskStates({**self.tasks}, {**self.handoffs})

    def add(self, event: Event) -> None:
        """Go on by one event."""
        self.tasks[event.task_id] = evolve(self.tasks.get(event.task_id), event)
        if about_handoff(event):
            name = event.payload["handoffId"]
            handoff = evolve_handoff(self.handoffs.get(name), event)
            if handoff is not None:
                self.handoffs[name] = handoff


class Views:
    """The tasks of `contested`, by their keys, as the authors of a span had them.

    `before` has the task before each event that changes content, `after` how far it was behind each commit, and
    `restored` what came of a task whose file was restored.
    """

    def __init__(
        self, lanes: Lanes, span: Span, census: Census, contested: Collection[str], common: TaskStates
    ) -> None:
        self._lanes = lanes
        self._span = span
        self._census = census
        self._contested = contested
        self.before: dict[tuple[CommitPlace, int], Task] = {}
        self.after: dict[tuple[CommitPlace, str], TaskStanding] = {}
        self.restored: dict[tuple[CommitPlace, int], Task] = {}
        self._branches: dict[CommitPlace, list[int]] = {}
        self._states: dict[int, TaskStates] = {}
        if not contested:
            return
        ends = dict(span.ends)
        inner = census.inner_lanes
        for lane in inner:
            root = self._root_of(lane)
            self._branches.setdefault(root, []).append(lane)
            ends[root.lane] = max(ends.get(root.lane, 0), root.at + 1)
        self._branch(span.fork, common)
        for lane in inner:
            self._fold(lane, ends.get(lane, 0), self._states.pop(lane))

    def _root_of(self, lane: int) -> CommitPlace:
        """The commit that a lane builds on; the fork for those that begin there."""
        fork, after = self._span.fork, self._lanes.after(lane)
        common = lane == fork.lane or after == ROOT or (after.lane == fork.lane and after.at <= fork.at)
        return fork if common else after

    def _branch(self, place: CommitPlace, state: TaskStates) -> None:
        for lane in self._branches.get(place, ()):
            self._states[lane] = state.copy()

    def _fold(self, lane: int, end: int, state: TaskStates) -> None:
        commits = self._lanes.lanes[lane].commits
        for index in range(self._span.begin(lane), end):
            self._add(CommitPlace(lane, index), commits[index].events, state)
            self._branch(CommitPlace(lane, index), state)

    def _add(self, place: CommitPlace, events: tuple[Event, ...], state: TaskStates) -> None:
        touched: dict[str, str] = {}
        for number, event in enumerate(events):
            if not event.task_id or is_remark(event):
                continue
            key = self._census.key(place.lane, event.task_id)
            if key not in self._contested:
                continue
            touched[key] = event.task_id
            before = state.tasks.get(event.task_id)
            if before is not None and event.type in _KEPT:
                self.before[place, number] = before
            state.add(event)
            if before is not None and event.type == "task.restored":
                self.restored[place, number] = state.tasks[event.task_id]
        if not self._lanes.lanes[place.lane].heads:
            for key, name in touched.items():
                self.after[place, key] = _standing(state.tasks[name], state.handoffs)


def _standing(task: Task, handoffs: dict[str, Handoff]) -> TaskStanding:
    hops = {
        hop["id"]: HopStanding(hop["status"], hop.get("epoch", 0), _since(hop)) for hop in task.workflow.get("hops", ())
    }
    states = {link.target_id: handoffs[link.target_id].state for link in task.links if link.target_id in handoffs}
    return TaskStanding(
        status=task.status,
        archived=task.archived,
        attempts=task.retry.attempts,
        since=task.last_transition_at,
        holder=task.lease.agent if task.lease is not None else None,
        hops=hops,
        handoffs={name: -_HANDOFFS.index(state) for name, state in states.items()},
    )


def _since(hop: dict[str, Any]) -> str:
    """When a hop came to its status."""
    if "lease" in hop:
        return str(hop["lease"]["acquiredAt"])
    return str(hop.get("endedAt") or hop.get("openedAt") or "")
