"""How long a handoff may stay without an answer. Must not know how it was sent, or what is done about it."""

from __future__ import annotations

from typing import Final

from aof.core.model.handoffs.record import Handoff
from aof.core.model.times import iso, millis
from aof.core.scheduling.crew import STARTED, Seat
from aof.core.scheduling.view import Action

ACKNOWLEDGED_MS: Final = 30_000  # by an agent that AOF itself starts


def answer_due(handoff: Handoff, seat: Seat | None, default_ms: int) -> int:
    """When an answer is due: soon for agents that AOF starts, else at the due date, else after the default timeout."""
    begun = millis(handoff.created_at)
    if seat is not None and seat.ack_ms is not None:
        return begun + seat.ack_ms
    if seat is not None and seat.kind in STARTED:
        return begun + ACKNOWLEDGED_MS
    due_by = handoff.context.constraints.deadline
    return millis(due_by) if due_by is not None else begun + default_ms


def unanswered(handoff: Handoff, due: int) -> Action:
    """What is to be said of a handoff whose time is over."""
    return Action(
        action="handoff_unanswered",
        task_id=handoff.task_id,
        reason=f"{handoff.to_agent} has not answered {handoff.id} by {iso(due)}",
        agent=handoff.to_agent,
        handoff_id=handoff.id,
    )
