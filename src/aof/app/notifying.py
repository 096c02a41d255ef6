"""After a commit: who should be told that a task came to review, was blocked or is done. Must not know how."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

from aof.app.execute import Done
from aof.core.tasks.task import Task
from aof.ports.notifier import Notification, Notifier

TOLD: Final = frozenset({"review", "blocked", "done"})


def tell(notifier: Notifier, done: Done, look: Callable[[str], Task]) -> None:
    """One notification for each task that a commit left in such a status. A failure is only warned of."""
    last = {event.task_id: event for event in done.events if event.type == "task.transitioned"}
    for task_id, event in last.items():
        if event.payload["to"] not in TOLD:
            continue
        try:
            task = done.task if done.task is not None and done.task.id == task_id else look(task_id)
            notifier.notify(
                Notification(
                    task_id=task_id,
                    title=task.title,
                    from_status=event.payload["from"],
                    status=event.payload["to"],
                    actor=event.agent or event.actor,
                    timestamp=event.timestamp,
                    seq=event.seq,
                    reason=event.payload.get("reason"),
                )
            )
        except Exception as error:  # noqa: BLE001 - the change is made, whatever a notifier does
            warnings.warn(f"{task_id}: the notification failed: {error}", RuntimeWarning, stacklevel=2)
