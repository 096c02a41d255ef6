"""Which events are news for people, and what the news says. Must not know who is told, nor how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aof.core.documents.mailbox.facts import ESCALATED
from aof.core.model.events import Event
from aof.core.model.task import Task
from aof.ports.notifier import Kind, Notification

Look = Callable[[str], Task]
_KINDS: Final[dict[str, Kind]] = {
    "task.transitioned": "status",
    "task.sla_alert": "sla",
    "task.overdue": "sla",
    "handoff.unanswered": "handoff",
    "task.question.asked": "question",
}


def is_news(event: Event) -> bool:
    """Whether the event may be news for somebody."""
    return event.type in _KINDS or event.type == ESCALATED or "notify" in event.payload


def told(event: Event, look: Look) -> Notification:
    """What such an event says. `look` finds a task as it is now, and raises where it cannot."""
    return _of_mail(event) if event.type == ESCALATED else news_of(event, look(event.task_id))


def _of_mail(event: Event) -> Notification:
    """A message that its receiver did not answer in time."""
    payload = event.payload
    return Notification(
        task_id=payload["messageId"],
        title=payload["text"],
        from_status="unread",
        status="escalated",
        actor=event.actor,
        timestamp=event.timestamp,
        seq=event.seq,
        kind="mail",
        priority="high",
        agent=payload["agent"],
    )


def news_of(event: Event, task: Task) -> Notification:
    """What such an event says, about the task as it is now."""
    payload = event.payload
    kind = _KINDS.get(event.type, "handoff")
    moved = kind == "status"
    return Notification(
        task_id=event.task_id,
        title=task.title,
        from_status=payload["from"] if moved else task.status,
        status=payload["to"] if moved else task.status,
        actor=event.agent or event.actor,
        timestamp=event.timestamp,
        seq=event.seq,
        reason=payload["question"]["text"]
        if kind == "question"
        else payload.get("reason") or payload.get("closed_reason"),
        kind=kind,
        priority=task.priority,
        agent=_concerned(task),
        to=payload.get("notify"),
        handoff_id=payload.get("handoffId") if "notify" in payload else None,
    )


def _concerned(task: Task) -> str | None:
    return task.lease.agent if task.lease is not None else task.routing.agent
