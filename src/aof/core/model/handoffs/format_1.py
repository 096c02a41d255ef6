"""The handoff record as earlier versions wrote it: delegations only, with IDs such as HO-2026-02-21-001-7.

Such a record stays as it is, in the same shape, however long its task lives. Must not know files or events.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from aof.core.model.handoffs.record import (
    Acceptance,
    Constraints,
    Handoff,
    HandoffContext,
    Rationale,
    Request,
    ReturnProtocol,
    Validation,
)


class Handoff1(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`handoffs/HO-….json`."""

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


def read(old: Handoff1) -> Handoff:
    """The same handoff as the engine knows it."""
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


def write(handoff: Handoff) -> Handoff1:
    """The record in the shape that it has always had."""
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
    """What an AOF/1 request carries, as far as the record has a place for it."""
    due = request.due_by if request.due_by is not msgspec.UNSET else None
    return HandoffContext(task_id=request.task_id, constraints=Constraints(deadline=due))
