"""What each kind of event makes of a handoff. Must not know where its file lies."""

from __future__ import annotations

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.events import Event
from aof.core.model.handoff import Handoff, Request

_STATES = {"delegation.accepted": "accepted", "delegation.rejected": "rejected"}


def evolve_handoff(handoff: Handoff | None, event: Event) -> Handoff | None:
    """The handoff after the event; a request begins one, or says better what a pending one asks for."""
    payload = event.payload
    if event.type == "delegation.requested":
        request = msgspec.convert(payload["request"], prepare_type(Request))
        return Handoff(
            id=payload["handoffId"],
            kind="delegation",
            state="requested",
            rev=event.seq,
            task_id=event.task_id,
            parent_task_id=request.parent_task_id,
            from_agent=request.from_agent,
            to_agent=request.to_agent,
            depth=payload["depth"],
            request=request,
            sent_at=payload["sentAt"],
            created_at=handoff.created_at if handoff is not None else event.timestamp,
        )
    state = _STATES.get(event.type)
    if handoff is None or state is None:
        return handoff
    return msgspec.structs.replace(
        handoff, state=state, rev=event.seq, answered_at=event.timestamp, reason=payload.get("reason")
    )
