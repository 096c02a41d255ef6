"""What events make of the file locks of a task: only a run that is under way has any. Must not judge."""

from __future__ import annotations

from typing import Any, Final

from aof.core.model.events import Event
from aof.core.model.task import FileLock, Task
from aof.core.model.workflow import leases

_ENDS: Final = frozenset({"task.attempt.completed", "task.attempt.failed"})


def locked(task: Task, event: Event) -> dict[str, Any]:
    """The run works on these paths; one that it had is held in the new way."""
    payload = event.payload
    run = event.run_id or ""
    others = tuple(lock for lock in task.locks if lock.run_id != run or lock.path not in payload["paths"])
    fresh = tuple(
        FileLock(path=path, mode=payload["mode"], agent=payload["agent"], run_id=run, since=event.timestamp)
        for path in payload["paths"]
    )
    return {"locks": others + fresh}


def unlocked(task: Task, event: Event) -> dict[str, Any]:
    """The run has given these back, or they were taken away."""
    gone = event.payload["paths"]
    return {"locks": tuple(lock for lock in task.locks if lock.run_id != event.run_id or lock.path not in gone)}


def kept(task: Task, event: Event) -> tuple[FileLock, ...]:
    """The locks that are left once the event has changed everything else: those of runs that go on."""
    ended = event.run_id if event.type in _ENDS else None
    runs = {lease.run_id for lease in leases(task)} - {ended}
    return tuple(lock for lock in task.locks if lock.run_id in runs)
