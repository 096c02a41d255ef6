"""After a commit: who should be told that a task came to review, was blocked, is done, or that nobody answers for it.

Must not know how.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

from aof.app.commands.unit_of_work import Done
from aof.app.notifications.news import news_of
from aof.core.model.task import Task
from aof.ports.notifier import Notifier

TOLD: Final = frozenset({"review", "blocked", "done"})


def tell(notifier: Notifier, done: Done, look: Callable[[str], Task]) -> None:
    """One notification for each task that a commit left in such a status, or handed in vain. A failure is warned of."""
    last = {event.task_id: event for event in done.events if event.type in ("task.transitioned", "handoff.unanswered")}
    for task_id, event in last.items():
        if event.type == "task.transitioned" and event.payload["to"] not in TOLD:
            continue
        try:
            task = done.task if done.task is not None and done.task.id == task_id else look(task_id)
            notifier.notify(news_of(event, task))
        except Exception as error:  # noqa: BLE001 - the change is made, whatever a notifier does
            warnings.warn(f"{task_id}: the notification failed: {error}", RuntimeWarning, stacklevel=2)
