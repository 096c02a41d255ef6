"""The normalized status: a pure function of folder, lease, heartbeat, intent, `blocked.kind` and cause.

It is derived whenever it is asked for and stored nowhere, so that there is no second truth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from aof.core.model import workflow
from aof.core.model.run import Heartbeat, lease_end
from aof.core.model.task import Lease, Task
from aof.core.tasks.graph import retry_at

Normalized = Literal[
    "draft",
    "accepted",
    "queued",
    "preparing",
    "running",
    "waiting_input",
    "waiting_permission",
    "waiting_resource",
    "blocked",
    "paused",
    "retrying",
    "cancelling",
    "cancelled",
    "timed_out",
    "failed",
    "lost",
    "completed",
    "archived",
    "stale",
    "unknown",
]


def normalized_status(task: Task | None, heartbeat: Heartbeat | None, now: int, *, stale: bool = False) -> Normalized:
    """Exactly one of the twenty. None stands for a file that cannot be read."""
    if task is None:
        return "unknown"
    if stale:
        return "stale"
    return "archived" if task.archived else _BY_STATUS[task.status](task, heartbeat, now)


def _backlog(task: Task, _heartbeat: Heartbeat | None, _now: int) -> Normalized:
    return "draft" if task.metadata.get("draft") else "accepted"


def _ready(task: Task, _heartbeat: Heartbeat | None, now: int) -> Normalized:
    at = retry_at(task)
    return "queued" if at is None or at <= now else "retrying"


def _running(task: Task, heartbeat: Heartbeat | None, now: int) -> Normalized:
    lease = _last_lease(task, heartbeat) if task.gated else task.lease
    over = lease is None or lease_end(lease, heartbeat) <= now
    if task.cancel is not None and (task.cancel.stopped or not over):
        return "cancelling"
    if lease is None or over:
        return "lost"
    if _is_unclear(task):
        return "unknown"
    if task.questions and _is_asked(task):
        return "waiting_input"
    beaten = heartbeat is not None and heartbeat.run_id == lease.run_id and heartbeat.beat_count > 0
    return "running" if beaten or task.progress else "preparing"


def _is_unclear(task: Task) -> bool:
    """Whether a peer works on it, and is in a state that we do not know."""
    remote = task.metadata.get("remote")
    return isinstance(remote, dict) and remote.get("remoteStatus") == "unknown"


def _is_asked(task: Task) -> bool:
    """Whether a run that goes on waits for an answer."""
    runs = {lease.run_id for lease in workflow.leases(task)}
    return any(one.run_id in runs for one in task.open_questions)


def _last_lease(task: Task, heartbeat: Heartbeat | None) -> Lease | None:
    """Of the hops of a gated task the one that lasts longest speaks for all."""
    return max(workflow.leases(task), key=lambda lease: lease_end(lease, heartbeat), default=None)


def _dead(task: Task, _heartbeat: Heartbeat | None, _now: int) -> Normalized:
    cause = task.last_error.cause if task.last_error else "failed"
    return cause if cause in ("timed_out", "lost") else "failed"


_BY_STATUS: Final[dict[str, Callable[[Task, Heartbeat | None, int], Normalized]]] = {
    "backlog": _backlog,
    "ready": _ready,
    "in-progress": _running,
    "review": lambda _task, _heartbeat, _now: "waiting_permission",
    "blocked": lambda task, _heartbeat, _now: task.blocked.kind if task.blocked else "blocked",
    "done": lambda _task, _heartbeat, _now: "completed",
    "cancelled": lambda _task, _heartbeat, _now: "cancelled",
    "deadletter": _dead,
}
