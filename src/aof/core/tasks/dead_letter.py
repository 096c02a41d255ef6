"""Giving a task up, and running it again: both tell the tasks that depend on it. Must not know who decides so."""

from __future__ import annotations

from aof.core.model.events import Draft
from aof.core.model.records import Records
from aof.core.model.task import Task
from aof.core.tasks import dependencies
from aof.core.tasks.transitions import transition


def dead_lettered(records: Records, task: Task, now: int, *, reason: str, error: dict[str, str]) -> tuple[Draft, ...]:
    """Give the task up: `deadletter` with the cause on it, its dependents told."""
    dead = transition(task, "deadletter", reason=reason, error=error)
    return (dead, *dependencies.cascade(records, (task.id,), "deadletter", now))


def revived(records: Records, task: Task, now: int, reason: str) -> tuple[Draft, ...]:
    """A finished task is ready again, and so is what was blocked because of it."""
    freed = dependencies.release_dependents(records, task.id, now)
    return (by_hand(task, reason), *dependencies.back(records, task, "ready", now, reason=reason), *freed)


def by_hand(task: Task, reason: str) -> Draft:
    """A retry on request: the count of failures starts over, and there is no wait."""
    payload = {"reason": reason, "attempt": task.retry.attempts + 1, "cause": "retry", "byHand": True}
    return Draft(type="task.retrying", task_id=task.id, payload=payload)
