"""After a commit: who should be told that a task came to review, was blocked, is done, asks, or is answered by nobody.

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


def tell(notifier: Notifier, done: Done, look: Callable[[str], Task]) -> tuple[str, ...]:
    """One notification for each task that a commit left in such a status, or handed in vain. A failure is warned of.

    A step of a handoff that somebody must hear of, such as a rejection, is told by itself. Answers with the tasks that
    are done and of which nobody heard.
    """
    unheard: list[str] = []
    last = {event.task_id: event for event in done.events if event.type in ("task.transitioned", "handoff.unanswered")}
    moved = [event for event in last.values() if event.payload.get("to", "done") in TOLD]
    told = [event for event in done.events if "notify" in event.payload]
    if not moved:  # else the question is why it was blocked
        told += [event for event in done.events if event.type == "task.question.asked"]
    for event in (*told, *moved):
        try:
            task = done.task if done.task is not None and done.task.id == event.task_id else look(event.task_id)
            heard = notifier.notify(news_of(event, task))
        except Exception as error:  # noqa: BLE001 - the change is made, whatever a notifier does
            heard = False
            warnings.warn(f"{event.task_id}: the notification failed: {error}", RuntimeWarning, stacklevel=2)
        if heard is False and event.type == "task.transitioned" and event.payload["to"] == "done":
            unheard.append(event.task_id)
    return tuple(unheard)
