"""The snapshot: all tasks, their graph, what is blocked and how many are how far, at one moment. Pure.

The same lives give the same bytes: tasks stand in the order of their IDs, and everything else follows theirs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from aof.app.portable.blockers import WAITING, blocked
from aof.app.portable.edges import edges
from aof.app.portable.participants import threads
from aof.app.portable.task_histories import Life
from aof.app.portable.tasks import portable
from aof.app.portable.view_source import Scene, finished
from aof.app.portable.vocabulary import SCHEMA_VERSION, log_ref

_RECENT = 10
_UNDELIVERED = frozenset({"pending", "queued", "failed", "parent_missing"})
_FAILED = frozenset({"failed", "timed_out"})


def snapshot(scene: Scene, *, archived: bool = False) -> dict[str, Any]:
    """Everything in the contract's shape; archived tasks only when they are asked for."""
    lives = scene.lives
    shown = [life for life in scene.ordered if archived or not life.task.archived]
    related = {life.task.id: edges(scene, life) for life in shown}
    tasks = [portable(scene, life, related[life.task.id]) for life in shown]
    view: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "sessionId": lives.session,
        "workspaceId": scene.policy.project,
        "sequence": lives.seq,
    }
    if lives.moment is not None:
        view["updatedAt"] = lives.moment
    return view | {
        "threads": threads(scene, shown),
        "tasks": tasks,
        "taskSummary": _summary(scene, shown),
        "taskGraph": {"edges": [{"sourceId": one} | edge for one, found in related.items() for edge in found]},
        "blockedTasks": blocked(scene, shown),
        "deliveryState": _delivery(tasks),
        "evidenceRefs": [log_ref(1, lives.seq)] if lives.seq else [],
    }


def _summary(scene: Scene, shown: list[Life]) -> dict[str, Any]:
    """Counts by what `tasks[]` says, and the tasks that ended last, newest first."""
    by_status: Counter[str] = Counter(scene.status(life.task) for life in shown)
    ended = sorted((life for life in shown if finished(life.task)), key=_end, reverse=True)
    return {
        "totalCount": len(shown),
        "activeCount": len(shown) - len(ended),
        "terminalCount": len(ended),
        "failedCount": sum(by_status[status] for status in _FAILED),
        "lostCount": by_status["lost"],
        "waitingCount": sum(by_status[status] for status in WAITING),
        "byStatus": dict(sorted(by_status.items())),
        "recentTerminalTasks": [
            {
                "taskId": life.task.id,
                "title": life.task.title,
                "status": scene.status(life.task),
                "endedAt": life.task.ended_at or life.task.last_transition_at,
            }
            for life in ended[:_RECENT]
        ],
    }


def _end(life: Life) -> tuple[str, int]:
    return life.task.ended_at or life.task.last_transition_at, life.task.rev


def _delivery(tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """How many tasks' output is in which state of delivery, and which finished ones have not reached their receiver."""
    states = Counter(task["deliveryState"]["state"] for task in tasks)
    late = [task["taskId"] for task in tasks if "endedAt" in task and task["deliveryState"]["state"] in _UNDELIVERED]
    return {"byState": dict(sorted(states.items())), "undelivered": late}
