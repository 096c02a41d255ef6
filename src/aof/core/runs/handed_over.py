"""Why a task that was handed to an agent is nobody else's to begin, and not that agent's before it has accepted.

Must not know how a handoff is answered.
"""

from __future__ import annotations

from aof.core.errors.base import Call
from aof.core.errors.handoffs import HandedOver
from aof.core.model.task import Task


def not_taken_by(task: Task, agent: str) -> HandedOver | None:
    """The refusal of a run by an agent that has not accepted the task; None where nothing was handed over."""
    moving = [one for one in task.handoffs if one.moves]
    if not moving or any(one.to_agent == agent and one.state == "accepted" for one in moving):
        return None
    asked = next((one for one in moving if one.to_agent == agent), None)
    if asked is not None:
        return HandedOver(
            f"{task.id} was handed to {agent}, who has not accepted it",
            "accept the handoff first",
            Call("handoff_accept", {"handoff_id": asked.id, "agent": agent}),
            handoff_id=asked.id,
        )
    first = moving[0]
    return HandedOver(
        f"{task.id} was handed to {first.to_agent} by {first.from_agent}",
        f"leave it to {first.to_agent}, or let {first.from_agent} withdraw the handoff",
        Call("handoff_show", {"handoff_id": first.id}),
        handoff_id=first.id,
    )
