"""What each kind of event makes of a handoff. Must not know where its file lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.events import Event
from aof.core.model.handoffs import format_1
from aof.core.model.handoffs.record import (
    Acceptance,
    AnswerStatus,
    Assessment,
    Checks,
    Handoff,
    HandoffState,
    Request,
    Return,
)

_replace = msgspec.structs.replace

# The state that each event leaves a handoff in. An event that is not here may still say more about one.
STATES: Final[dict[str, HandoffState]] = {
    "delegation.accepted": "accepted",
    "delegation.rejected": "rejected",
    "handoff.accepted": "accepted",
    "handoff.rejected": "rejected",
    "handoff.deferred": "deferred",
    "handoff.completed": "completed",
    "handoff.failed": "failed",
    "handoff.delivered": "requested",
}


def state_after(event: Event) -> HandoffState | None:
    """The state that the event leaves its handoff in; None where it stays as it is."""
    if event.type == "handoff.escalated":  # what begins as an escalation goes on, what was passed on is over
        return "escalated" if "forwarded_to" in event.payload else None
    return STATES.get(event.type)


def evolve_handoff(handoff: Handoff | None, event: Event) -> Handoff | None:
    """The handoff after the event; the same object where the event says nothing that the record keeps."""
    if event.type in ("handoff.initiated", "delegation.requested"):
        return _begun(handoff, event)
    handler = _HANDLERS.get(event.type)
    if handoff is None or handler is None:
        return handoff
    state = (state_after(event) or handoff.state) if handoff.is_open else handoff.state  # an end is final
    return _replace(handoff, state=state, rev=event.seq, **handler(handoff, event))


def _begun(before: Handoff | None, event: Event) -> Handoff:
    """A request begins a handoff, or says better what a pending one asks for."""
    payload = event.payload
    at = before.timestamp if before is not None else event.timestamp
    if "handoff" not in payload:
        return _begun_in_format_1(event, at)
    fields = payload["handoff"] | {"id": payload["handoffId"], "timestamp": at, "rev": event.seq}
    if "request" in payload:
        fields |= {"request": payload["request"], "depth": payload["depth"], "sent_at": payload["sentAt"]}
    return msgspec.convert(fields, prepare_type(Handoff))


def _begun_in_format_1(event: Event, at: str) -> Handoff:
    request = msgspec.convert(event.payload["request"], prepare_type(Request))
    return format_1.read(
        format_1.Handoff1(
            id=event.payload["handoffId"],
            kind="delegation",
            state="requested",
            rev=event.seq,
            task_id=event.task_id,
            parent_task_id=request.parent_task_id,
            from_agent=request.from_agent,
            to_agent=request.to_agent,
            depth=event.payload["depth"],
            request=request,
            sent_at=event.payload["sentAt"],
            created_at=at,
        )
    )


def _answered_by_message(_handoff: Handoff, event: Event) -> dict[str, Any]:
    status: AnswerStatus = "accepted" if event.type == "delegation.accepted" else "rejected"
    answer = Acceptance(status=status, acknowledged_at=event.timestamp, reason=event.payload.get("reason"))
    return {"acceptance": answer} | ({"closed_at": event.timestamp} if status == "rejected" else {})


def _answered(_handoff: Handoff, event: Event) -> dict[str, Any]:
    given = event.payload["acceptance"] | {"acknowledged_at": event.timestamp}
    changes: dict[str, Any] = {"acceptance": msgspec.convert(given, prepare_type(Acceptance))}
    if "checks" in event.payload:
        changes["checks"] = msgspec.convert(event.payload["checks"], prepare_type(Checks))
    if "warnings" in event.payload:
        changes["warnings"] = tuple(event.payload["warnings"])
    return changes | (_closed(event) if event.type == "handoff.rejected" else {})


def _closed(event: Event) -> dict[str, Any]:
    changes: dict[str, Any] = {"closed_at": event.timestamp}
    for name in ("outcome", "forwarded_to", "closed_reason"):
        if name in event.payload:
            changes[name] = event.payload[name]
    if "warnings" in event.payload:
        changes["warnings"] = tuple(event.payload["warnings"])
    return changes


def _ended(_handoff: Handoff, event: Event) -> dict[str, Any]:
    return _closed(event)


def _escalated(handoff: Handoff, event: Event) -> dict[str, Any]:
    changes = _closed(event) if "forwarded_to" in event.payload else {}
    if handoff.closed_at is not None:
        changes.pop("closed_at", None)
    if "assessment" in event.payload:
        said = msgspec.convert(event.payload["assessment"] | {"at": event.timestamp}, prepare_type(Assessment))
        changes["assessments"] = (*handoff.assessments, said)
    return changes


def _rerouted(_handoff: Handoff, event: Event) -> dict[str, Any]:
    return {"forwarded_to": event.payload["forwarded_to"]}


def _returned(_handoff: Handoff, event: Event) -> dict[str, Any]:
    return {"returned": msgspec.convert(event.payload["return"], prepare_type(Return))}


def _returned_late(handoff: Handoff, event: Event) -> dict[str, Any]:
    late = msgspec.convert(event.payload["return"], prepare_type(Return))
    return {"late_returns": (*handoff.late_returns, late)}


def _resent(handoff: Handoff, event: Event) -> dict[str, Any]:
    return {"resends": handoff.resends + 1, "resent_at": event.timestamp, "reminded_at": None}


def _reminded(_handoff: Handoff, event: Event) -> dict[str, Any]:
    return {"reminded_at": event.timestamp}


def _timed_out(handoff: Handoff, event: Event) -> dict[str, Any]:
    return {"timeouts": handoff.timeouts + 1, "timed_out_at": event.timestamp}


def _informed(handoff: Handoff, event: Event) -> dict[str, Any]:
    variables = handoff.context.context_variables
    after = variables | {"custom": variables.get("custom", {}) | event.payload["variables"]}
    return {"context": _replace(handoff.context, context_variables=after)}


def _delivered(_handoff: Handoff, event: Event) -> dict[str, Any]:
    return {"resent_at": event.timestamp}


_HANDLERS: Final[dict[str, Callable[[Handoff, Event], dict[str, Any]]]] = {
    "delegation.accepted": _answered_by_message,
    "delegation.rejected": _answered_by_message,
    "handoff.accepted": _answered,
    "handoff.rejected": _answered,
    "handoff.deferred": _answered,
    "handoff.escalated": _escalated,
    "handoff.rerouted": _rerouted,
    "handoff.returned": _returned,
    "handoff.late_return": _returned_late,
    "handoff.completed": _ended,
    "handoff.failed": _ended,
    "handoff.resent": _resent,
    "handoff.reminded": _reminded,
    "handoff.timeout": _timed_out,
    "handoff.delivered": _delivered,
    "handoff.informed": _informed,
}
