"""Looking into the past: every task as it was after any event, from the log alone. Must not look at the present."""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.errors.base import Call, InvalidInput
from aof.core.errors.tasks import TaskNotFound
from aof.core.evolve.task import evolve
from aof.core.model.events import is_remark
from aof.core.model.task import Task
from aof.ports.progress import Say, silent
from aof.ports.store import Store

_OFTEN = 1_000  # events


def known(store: Store, seq: int) -> None:
    """Refuse the number of an event that there is not; zero stands for the time before the first one."""
    last = store.head()
    if not 0 <= seq <= last:
        raise InvalidInput(f"there is no event {seq}; the last one is {last}", "see the events", Call("log", {}))


def tasks_at(store: Store, seq: int, say: Say = silent) -> dict[str, Task]:
    """All tasks after the event with this number."""
    known(store, seq)
    tasks: dict[str, Task] = {}
    for event in store.events():
        if event.seq > seq:
            break
        if event.seq % _OFTEN == 0:
            say(f"{event.seq:,} of {seq:,} events")
        if event.task_id and not is_remark(event):
            tasks[event.task_id] = evolve(tasks.get(event.task_id), event)
    return tasks


def task_at(store: Store, task_id: str, seq: int) -> Task:
    """One task after the event with this number."""
    known(store, seq)
    task: Task | None = None
    for event in store.events(task_id=task_id):
        if event.seq > seq:
            break
        if not is_remark(event):
            task = evolve(task, event)
    if task is None:
        raise TaskNotFound(
            f"there was no task {task_id} at event {seq}", "see its events", Call("log", {"task_id": task_id})
        )
    return task


def portrait(task: Task) -> dict[str, Any]:
    """A past task as `show` gives a present one, as far as the log alone tells."""
    shown: dict[str, Any] = msgspec.to_builtins(task)
    for name in ("layout", "archived"):
        shown.pop(name, None)
    return shown | {"body": task.body}
