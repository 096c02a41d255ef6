"""After a commit: who should be told that a task came to review, was blocked, is done, or that nobody answers for it.

Must not know how.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

from aof.app.commands.unit_of_work import Done
from aof.core.model.task import Task
from aof.ports.notifier import Notification, Notifier

TOLD: Final = frozenset({"review", "blocked", "done"})


def tell(notifier: Notifier, done: Done, look: Callable[[str], Task]) -> tuple[str, ...]:
    """One notification for each task that a commit left in such a status, or handed in vain. A failure is warned of.

    Answers with the tasks that are done and whose news did not get through.
    """
    unheard: list[str] = []
    last = {event.task_id: event for event in done.events if event.type in ("task.transitioned", "handoff.unanswered")}
    for task_id, event in last.items():
        moved = event.type == "task.transitioned"
        if moved and event.payload["to"] not in TOLD:
            continue
        try:
            task = done.task if done.task is not None and done.task.id == task_id else look(task_id)
            heard = notifier.notify(
                Notification(
                    task_id=task_id,
                    title=task.title,
                    from_status=event.payload["from"] if moved else task.status,
                    status=event.payload["to"] if moved else task.status,
                    actor=event.agent or event.actor,
                    timestamp=event.timestamp,
                    seq=event.seq,
                    reason=event.payload.get("reason"),
                )
            )
        except Exception as error:  # noqa: BLE001 - the change is made, whatever a notifier does
            heard = False
            warnings.warn(f"{task_id}: the notification failed: {error}", RuntimeWarning, stacklevel=2)
        if heard is False and moved and event.payload["to"] == "done":
            unheard.append(task_id)
    return tuple(unheard)
