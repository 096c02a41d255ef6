"""The snapshot: all tasks, their graph, what is blocked and how many are how far, at one moment. Pure.

The same lives give the same bytes: tasks stand in the order of their IDs, and everything else follows theirs. Each task
has its part in it, which later snapshots share as long as nothing that it shows can have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Any

from aof._support.frozen import FrozenDict, freeze
from aof.app.portable.blockers import WAITING, blocked, busy
from aof.app.portable.edges import edges
from aof.app.portable.participants import threads, turns
from aof.app.portable.relations import Relations
from aof.app.portable.task_histories import Life, Lives
from aof.app.portable.tasks import portable
from aof.app.portable.view_source import Scene, finished
from aof.app.portable.vocabulary import SCHEMA_VERSION, log_ref
from aof.core.model.org_chart import OrgChart
from aof.core.model.policy import Policy

_RECENT = 10
_UNDELIVERED = frozenset({"pending", "queued", "failed", "parent_missing"})
_FAILED = frozenset({"failed", "timed_out"})


class TaskPart:
    """What the snapshot says of one task. Nothing in it is changed any more."""

    __slots__ = ("delivery", "edges", "ended", "held", "record", "status", "turns")

    def __init__(self, scene: Scene, life: Life) -> None:
        task = life.task
        related = freeze(edges(scene, life))
        self.record: dict[str, Any] = portable(scene, life, related)
        self.status: str = self.record["status"]
        self.delivery: str = self.record["deliveryState"]["state"]
        self.edges = [FrozenDict({"sourceId": task.id} | edge) for edge in related]
        self.held: dict[str, Any] | None = freeze(blocked(scene, task))
        self.turns = {agent: freeze(line) for agent, line in turns(scene, life).items()} if life.attempts else None
        self.ended = (task.ended_at or task.last_transition_at, task.rev) if finished(task) else None


class KeptView:
    """The parts of all tasks as of the last call, and the lives that they were made from."""

    def __init__(self, policy: Policy) -> None:
        self.lives = Lives()
        self.relations = Relations(self.lives.by_id, policy)
        self._parts: dict[str, TaskPart] = {}
        self._chart: OrgChart | None = None
        self._odd: dict[str, str] = {}
        self._busy: dict[str, str | None] = {}

    def follow(self) -> None:
        """Apply the news of the lives; the parts that these can have changed are rebuilt on demand."""
        self._forget(self.relations.follow(self.lives.changed))
        self.lives.changed.clear()

    def shown(self, *, archived: bool) -> list[Life]:
        """The tasks that a snapshot shows: archived ones only when they are asked for."""
        return [life for life in self.relations.ordered if archived or not life.task.archived]

    def snapshot(self, scene: Scene, shown: Iterable[Life]) -> dict[str, Any]:
        """Everything in the contract's shape."""
        self._look_again(scene)
        kept, parts = self._parts, []
        for life in shown:
            part = kept.get(life.task.id)
            if part is None:
                part = kept[life.task.id] = TaskPart(scene, life)
            parts.append(part)
        return _assembled(scene, parts)

    def _look_again(self, scene: Scene) -> None:
        """Discard the parts of tasks that have changed outside the log."""
        if scene.chart is not self._chart:
            self._chart = scene.chart
            self._parts.clear()
        self._forget(self.relations.restless)
        odd = self._odd, scene.odd
        self._forget(one for one in odd[0].keys() | odd[1].keys() if odd[0].get(one) != odd[1].get(one))
        self._odd = dict(scene.odd)
        if scene.chart is not None:
            for agent, tasks in self.relations.routed.items():
                why = busy(scene, agent)
                if why != self._busy.get(agent):
                    self._busy[agent] = why
                    self._forget(tasks)

    def _forget(self, tasks: Iterable[str]) -> None:
        for task_id in tasks:
            self._parts.pop(task_id, None)


def _assembled(scene: Scene, parts: list[TaskPart]) -> dict[str, Any]:
    lives = scene.lives
    view: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "sessionId": lives.session,
        "workspaceId": scene.policy.project,
        "sequence": lives.seq,
    }
    if lives.moment is not None:
        view["updatedAt"] = lives.moment
    return view | {
        "threads": threads(part.turns for part in parts if part.turns is not None),
        "tasks": [part.record for part in parts],
        "attempts": _attempts(parts),
        "taskSummary": _summary(parts),
        "taskGraph": {"edges": [edge for part in parts for edge in part.edges]},
        "blockedTasks": [part.held for part in parts if part.held is not None],
        "deliveryState": _delivery(parts),
        "evidenceRefs": [log_ref(1, lives.seq)] if lives.seq else [],
    }


def _attempts(parts: list[TaskPart]) -> list[dict[str, Any]]:
    """The runs that are under way, in the order of their tasks, and after them those that ended last, newest first."""
    active = [one for one in _each_attempt(parts) if one[1]["nativeStatus"] == "running"]
    ended = (one for one in _each_attempt(parts) if "endedAt" in one[1])
    recent = nlargest(_RECENT, ended, key=lambda one: (one[1]["endedAt"], one[1]["runId"]))
    return [FrozenDict({"taskId": task_id} | attempt) for task_id, attempt in (*active, *recent)]


def _each_attempt(parts: list[TaskPart]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((part.record["taskId"], one) for part in parts for one in part.record["attempts"])


def _summary(parts: list[TaskPart]) -> dict[str, Any]:
    """Counts by what `tasks[]` says, and the tasks that ended last, newest first."""
    by_status: Counter[str] = Counter([part.status for part in parts])
    ended = [part for part in parts if part.ended is not None]
    return {
        "totalCount": len(parts),
        "activeCount": len(parts) - len(ended),
        "terminalCount": len(ended),
        "failedCount": sum(by_status[status] for status in _FAILED),
        "lostCount": by_status["lost"],
        "waitingCount": sum(by_status[status] for status in WAITING),
        "byStatus": dict(sorted(by_status.items())),
        "recentTerminalTasks": [
            {
                "taskId": part.record["taskId"],
                "title": part.record["title"],
                "status": part.status,
                "endedAt": part.ended[0] if part.ended is not None else "",
            }
            for part in nlargest(_RECENT, ended, key=_end)
        ],
    }


def _end(part: TaskPart) -> tuple[str, int]:
    assert part.ended is not None
    return part.ended


def _delivery(parts: list[TaskPart]) -> dict[str, Any]:
    """How many tasks' output is in which state of delivery, and which finished ones have not reached their receiver."""
    states = Counter([part.delivery for part in parts])
    late = [part.record["taskId"] for part in parts if part.delivery in _UNDELIVERED and "endedAt" in part.record]
    return {"byState": dict(sorted(states.items())), "undelivered": late}
