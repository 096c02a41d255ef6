"""What each kind of event makes of a handoff, of the list of open ones on its task, and of its file locks."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof.handoffs.model import (
    OPEN,
    Acceptance,
    Assessment,
    Checks,
    Constraints,
    Handoff,
    HandoffContext,
    HandoffState,
    Rationale,
    Request,
    Return,
    ReturnProtocol,
    Validation,
    is_format_1,
)
from aof.kernel.events import Event
from aof.support.typed import prepare_type
from aof.tasks.model import FileLock, Link, OpenHandoff, Task
from aof.workflows.model import leases

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
    changes = _changes(handoff, event) if handoff is not None else None
    if handoff is None or changes is None:
        return handoff
    state = (state_after(event) or handoff.state) if handoff.is_open else handoff.state  # an end is final
    return _replace(handoff, state=state, rev=event.seq, **changes)


def _begun(before: Handoff | None, event: Event) -> Handoff:
    """A request begins a handoff, or says better what a pending one asks for."""
    payload = event.payload
    at = before.timestamp if before is not None else event.timestamp
    if "handoff" in payload:
        fields = payload["handoff"] | {"id": payload["handoffId"], "timestamp": at, "rev": event.seq}
        if "request" in payload:
            fields |= {"request": payload["request"], "depth": payload["depth"], "sent_at": payload["sentAt"]}
        return msgspec.convert(fields, prepare_type(Handoff))
    request = msgspec.convert(payload["request"], prepare_type(Request))
    return read_format_1(
        Handoff1(
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
            created_at=at,
        )
    )


def _changes(handoff: Handoff, event: Event) -> dict[str, Any] | None:  # noqa: C901, PLR0911, PLR0912 - one case per event
    """What the event changes in the record beside its state; None where the record keeps nothing of it."""
    payload, at = event.payload, event.timestamp
    match event.type:
        case "delegation.accepted":
            return {"acceptance": Acceptance(status="accepted", acknowledged_at=at, reason=payload.get("reason"))}
        case "delegation.rejected":
            answer = Acceptance(status="rejected", acknowledged_at=at, reason=payload.get("reason"))
            return {"acceptance": answer, "closed_at": at}
        case "handoff.accepted" | "handoff.deferred":
            return _answered(event)
        case "handoff.rejected":
            return _answered(event) | _closed(event)
        case "handoff.completed" | "handoff.failed":
            return _closed(event)
        case "handoff.escalated":
            return _escalated(handoff, event)
        case "handoff.rerouted":
            return {"forwarded_to": payload["forwarded_to"]}
        case "handoff.returned":
            return {"returned": msgspec.convert(payload["return"], prepare_type(Return))}
        case "handoff.late_return":
            late = msgspec.convert(payload["return"], prepare_type(Return))
            return {"late_returns": (*handoff.late_returns, late)}
        case "handoff.resent":
            return {"resends": handoff.resends + 1, "resent_at": at, "reminded_at": None}
        case "handoff.delivered":
            return {"resent_at": at}
        case "handoff.reminded":
            return {"reminded_at": at}
        case "handoff.timeout":
            return {"timeouts": handoff.timeouts + 1, "timed_out_at": at}
        case "handoff.informed":
            variables = handoff.context.context_variables
            after = variables | {"custom": variables.get("custom", {}) | payload["variables"]}
            return {"context": _replace(handoff.context, context_variables=after)}
    return None


def _answered(event: Event) -> dict[str, Any]:
    given = event.payload["acceptance"] | {"acknowledged_at": event.timestamp}
    changes: dict[str, Any] = {"acceptance": msgspec.convert(given, prepare_type(Acceptance))}
    if "checks" in event.payload:
        changes["checks"] = msgspec.convert(event.payload["checks"], prepare_type(Checks))
    if "warnings" in event.payload:
        changes["warnings"] = tuple(event.payload["warnings"])
    return changes


def _closed(event: Event) -> dict[str, Any]:
    changes: dict[str, Any] = {"closed_at": event.timestamp}
    for name in ("outcome", "forwarded_to", "closed_reason"):
        if name in event.payload:
            changes[name] = event.payload[name]
    if "warnings" in event.payload:
        changes["warnings"] = tuple(event.payload["warnings"])
    return changes


def _escalated(handoff: Handoff, event: Event) -> dict[str, Any]:
    changes = _closed(event) if "forwarded_to" in event.payload else {}
    if handoff.closed_at is not None:
        changes.pop("closed_at", None)
    if "assessment" in event.payload:
        own = msgspec.convert(event.payload["assessment"] | {"at": event.timestamp}, prepare_type(Assessment))
        changes["assessments"] = (*handoff.assessments, own)
    return changes


class Handoff1(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The record as earlier versions wrote it: `handoffs/HO-….json`."""

    id: str
    kind: Literal["delegation"]
    state: Literal["requested", "accepted", "rejected"]
    rev: int
    task_id: str
    parent_task_id: str
    from_agent: str
    to_agent: str
    depth: int
    request: Request
    sent_at: str
    created_at: str
    answered_at: str | None = None
    reason: str | None = None


def read_format_1(old: Handoff1) -> Handoff:
    """The handoff of a record of earlier versions."""
    answer = None
    if old.answered_at is not None and old.state != "requested":
        answer = Acceptance(status=old.state, acknowledged_at=old.answered_at, reason=old.reason)
    return Handoff(
        id=old.id,
        timestamp=old.created_at,
        from_agent=old.from_agent,
        to_agent=old.to_agent,
        type="delegation",
        reason=request_reason(old.request),
        context=request_context(old.request),
        validation=Validation(),
        return_protocol=ReturnProtocol(expected=True),
        audit=Rationale(),
        state=old.state,
        rev=old.rev,
        number=int(old.id.rpartition("-")[2]),
        trigger="explicit_request",
        parent_task_id=old.parent_task_id,
        acceptance=answer,
        depth=old.depth,
        request=old.request,
        sent_at=old.sent_at,
    )


def write_format_1(handoff: Handoff) -> Handoff1:
    """The record of a handoff that earlier versions began, as they wrote it."""
    assert handoff.request is not None
    answer = handoff.acceptance
    state: Literal["requested", "accepted", "rejected"] = "requested"
    if answer is not None and answer.status != "deferred":
        state = answer.status
    return Handoff1(
        id=handoff.id,
        kind="delegation",
        state=state,
        rev=handoff.rev,
        task_id=handoff.task_id,
        parent_task_id=handoff.request.parent_task_id,
        from_agent=handoff.from_agent,
        to_agent=handoff.to_agent,
        depth=handoff.depth,
        request=handoff.request,
        sent_at=handoff.sent_at or "",
        created_at=handoff.timestamp,
        answered_at=answer.acknowledged_at if answer is not None else None,
        reason=answer.reason if answer is not None else None,
    )


def request_reason(request: Request) -> str:
    """Why an AOF/1 request hands a task over, which its message does not say in words."""
    return f"part of {request.parent_task_id}"


def request_context(request: Request) -> HandoffContext:
    """The context of an AOF/1 request: the task, and by when the work is due."""
    due = request.due_by if request.due_by is not msgspec.UNSET else None
    return HandoffContext(task_id=request.task_id, constraints=Constraints(deadline=due))


def open_handoff_begun(task: Task, event: Event) -> dict[str, Any]:
    """The task names the handoff among its links, and lists it as open; earlier versions only did the former."""
    name = event.payload["handoffId"]
    known = any((link.kind, link.target_id) == ("handoff", name) for link in task.links)
    links = task.links if known else (*task.links, Link(kind="handoff", target_id=name, created_at=event.timestamp))
    if is_format_1(name):
        return {"links": links}
    handoff = event.payload["handoff"]
    one = OpenHandoff(
        id=name,
        type=handoff["type"],
        state=handoff["state"],
        from_agent=handoff["from_agent"],
        to_agent=handoff["to_agent"],
        by_message="request" in event.payload,
    )
    return {"links": links, "handoffs": (*(other for other in task.handoffs if other.id != name), one)}


def open_handoff_changed(task: Task, event: Event) -> dict[str, Any]:
    """The list after an answer or an end: what is over is not on it any more."""
    state = state_after(event)
    name = event.payload["handoffId"]
    if state is None or all(one.id != name for one in task.handoffs):
        return {}
    kept = (_replace(one, state=state) if one.id == name else one for one in task.handoffs)
    return {"handoffs": tuple(one for one in kept if one.state in OPEN)}


def files_locked(task: Task, event: Event) -> dict[str, Any]:
    """The run works on these paths; one that it had is held in the new way."""
    payload = event.payload
    run = event.run_id or ""
    others = tuple(lock for lock in task.locks if lock.run_id != run or lock.path not in payload["paths"])
    fresh = tuple(
        FileLock(path=path, mode=payload["mode"], agent=payload["agent"], run_id=run, since=event.timestamp)
        for path in payload["paths"]
    )
    return {"locks": others + fresh}


def files_unlocked(task: Task, event: Event) -> dict[str, Any]:
    """The run has given these back, or they were taken away."""
    gone = event.payload["paths"]
    return {"locks": tuple(lock for lock in task.locks if lock.run_id != event.run_id or lock.path not in gone)}


def kept_locks(task: Task, event: Event) -> tuple[FileLock, ...]:
    """The locks that are left once the event has changed everything else: those of runs that go on."""
    ended = event.run_id if event.type in ("task.attempt.completed", "task.attempt.failed") else None
    runs = {lease.run_id for lease in leases(task)} - {ended}
    return tuple(lock for lock in task.locks if lock.run_id in runs)
