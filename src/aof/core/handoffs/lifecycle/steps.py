"""The events of a handoff's steps, each with its audit record where the specification asks for one.

Must not know when a step is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from aof.core.handoffs import audit
from aof.core.handoffs.audit import AuditStep, Outcome
from aof.core.handoffs.file_locks import unlocked
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import Checks, Handoff, Return
from aof.core.model.task import Task
from aof.core.model.times import millis

_OF_THE_EVENT = ("id", "timestamp", "rev")  # known when it is in the log
_OF_THE_MESSAGE = ("request", "depth", "sent_at")


def audited(
    step: AuditStep,
    task: Task,
    handoff: Handoff,
    *,
    reason: str | None = None,
    rationale: str | None = None,
    resolved: int | None = None,
    tokens: int | None = None,
    outcome: Outcome | None = None,
    status: str | None = None,
    notes: str | None = None,
) -> dict[str, Any]:
    """The audit record of a step; `resolved` is the moment at which the handoff ended by it."""
    return audit.record(
        step,
        from_agent=handoff.from_agent,
        to_agent=handoff.to_agent,
        handoff_type=handoff.type,
        reason=reason or handoff.reason,
        task=task,
        variables=handoff.context.context_variables,
        artifact_count=len(handoff.context.artifacts),
        decision_rationale=rationale or handoff.audit.decision_rationale,
        risk_level=handoff.audit.risk_level,
        duration_ms=resolved - millis(handoff.timestamp) if resolved is not None else None,
        tokens_consumed=tokens,
        outcome=outcome,
        trigger=handoff.trigger,
        status=status,
        notes=notes,
    )


def step(kind: str, handoff: Handoff, record: dict[str, Any] | None = None, /, **payload: Any) -> Draft:
    """An event about a handoff; with the audit record of the step, where it is one."""
    told: dict[str, Any] = {"handoffId": handoff.id, **payload}
    return Draft(type=kind, task_id=handoff.task_id, payload=told | ({"audit": record} if record is not None else {}))


def carried(handoff: Handoff) -> dict[str, Any]:
    """The record as the event that begins it carries it; of a message's own fields the event tells by itself."""
    whole: dict[str, Any] = msgspec.to_builtins(handoff)
    return {name: value for name, value in whole.items() if name not in (*_OF_THE_EVENT, *_OF_THE_MESSAGE)}


def initiated(task: Task, handoff: Handoff, *, notes: str | None = None) -> Draft:
    """A handoff is on its way to its receiver."""
    told = audited("initiated", task, handoff, notes=notes)
    return step("handoff.initiated", handoff, told, handoff=carried(handoff))


def rejected(
    task: Task,
    handoff: Handoff,
    reason: str,
    now: int,
    *,
    notify: str | None = None,
    by: str | None = None,
    checks: Checks | None = None,
) -> Draft:
    """The receiver does not take it, or cannot; `notify` is who should hear of it."""
    answer = {"status": "rejected", "reason": reason} | ({"by": by} if by is not None else {})
    told = audited("rejected", task, handoff, reason=reason, resolved=now)
    more: dict[str, Any] = {"checks": msgspec.to_builtins(checks)} if checks is not None else {}
    more |= {"reason": reason} | ({"notify": notify} if notify is not None else {})
    return step("handoff.rejected", handoff, told, acceptance=answer, **more)


def warned(handoff: Handoff, warning: str, missing: tuple[str, ...]) -> Draft:
    """Something about the handoff that should be known, and does not stop it."""
    return step("handoff.warning", handoff, code="capability_gap", message=warning, missing=list(missing))


def ended(
    task: Task,
    handoff: Handoff,
    outcome: Outcome,
    now: int,
    *,
    reason: str | None = None,
    returned: Return | None = None,
    remarks: Iterable[str] = (),
    **payload: Any,
) -> tuple[Draft, ...]:
    """The handoff is over: its closing record, and that everything it held is free."""
    good = outcome != "failed"
    tokens = returned.audit.tokens_consumed if returned is not None else None
    said = [returned.audit.notes, *remarks] if returned is not None else remarks
    notes = "; ".join(filter(None, said)) or None
    told = audited(
        "completed" if good else "failed",
        task,
        handoff,
        reason=reason,
        resolved=now,
        tokens=tokens,
        outcome=outcome,
        notes=notes,
    )
    if reason is not None:
        payload["closed_reason"] = reason
    kind = "handoff.completed" if good else "handoff.failed"
    closing = step(kind, handoff, told, outcome=outcome, **payload)
    return (closing, *_unlocked(task, handoff), step("handoff.released", handoff))


def _unlocked(task: Task, handoff: Handoff) -> tuple[Draft, ...]:
    """The receiver's locks end with the handoff; where the task has passed to the receiver, they are its run's."""
    own = tuple(lock for lock in task.locks if lock.agent == handoff.to_agent)
    runs = dict.fromkeys(lock.run_id for lock in own) if handoff.type != "sequential" else ()
    return tuple(unlocked(task, tuple(lock for lock in own if lock.run_id == run), "handoff_over") for run in runs)
