"""The audit record of a handoff's step, and how long the files keep one. The log keeps all of them for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from aof.handoffs.context import TASK_STATUS, TaskStatus, digest
from aof.handoffs.model import Handoff, HandoffType, Trigger
from aof.kernel.events import Event
from aof.kernel.model import FINISHED, millis
from aof.org.model import Risk
from aof.support.typed import prepare_type
from aof.tasks.model import Task

AuditStep = Literal["initiated", "accepted", "rejected", "completed", "failed", "timeout", "escalated"]
Outcome = Literal["success", "partial", "failed"]

AUDIT: Final = "audit"
_OF_THE_EVENT: Final = frozenset({"handoff_id", "timestamp", "seq", "hash"})  # known once it is in the log
_encode = msgspec.json.Encoder().encode


class ContextSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the handoff's task was like at the step."""

    task_id: str
    task_status: TaskStatus
    context_variables_hash: str
    artifact_count: int


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One audit record: the fields of its specification in their order, then what AOF adds.

    `duration_ms`, `tokens_consumed` and `outcome` are known when the handoff is resolved. `trigger` is what started the
    handoff; `status` says `deferred` of an acceptance that puts the work off; `notes` is what else the step has to
    say: an assessment, a missing capability, the attempt. `seq` and `hash` are those of the event in the log that the
    record is, so that either proves the other.
    """

    handoff_id: str
    timestamp: str
    event_type: AuditStep
    from_agent: str
    to_agent: str
    handoff_type: HandoffType
    reason: str
    context_snapshot: ContextSnapshot
    decision_rationale: str = ""
    risk_level: Risk = "low"
    duration_ms: int | None = None
    tokens_consumed: int | None = None
    outcome: Outcome | None = None
    trigger: Trigger | None = None
    status: str | None = None
    notes: str | None = None
    seq: int
    hash: str


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
    """What the event of a step carries as `payload.audit`; what is not known is left out.

    `resolved` is the moment at which the handoff ended by this step. Of the context variables only the hash is kept.
    """
    record = AuditRecord(
        handoff_id="",
        timestamp="",
        event_type=step,
        from_agent=handoff.from_agent,
        to_agent=handoff.to_agent,
        handoff_type=handoff.type,
        reason=reason or handoff.reason,
        context_snapshot=ContextSnapshot(
            task_id=task.id,
            task_status=TASK_STATUS[task.status],
            context_variables_hash=digest(handoff.context.context_variables),
            artifact_count=len(handoff.context.artifacts),
        ),
        decision_rationale=rationale or handoff.audit.decision_rationale,
        risk_level=handoff.audit.risk_level,
        duration_ms=resolved - millis(handoff.timestamp) if resolved is not None else None,
        tokens_consumed=tokens,
        outcome=outcome,
        trigger=handoff.trigger,
        status=status,
        notes=notes,
        seq=0,
        hash="",
    )
    fields = msgspec.to_builtins(record).items()
    return {name: value for name, value in fields if value is not None and name not in _OF_THE_EVENT}


def is_audited(payload: Mapping[str, Any]) -> bool:
    """Whether an event with this payload is an audit record."""
    return AUDIT in payload and "handoffId" in payload


def audit_record(event: Event) -> AuditRecord | None:
    """The audit record that an event is; None when it is none. Raises ValueError where it is not a whole one."""
    if not is_audited(event.payload):
        return None
    own = {"handoff_id": event.payload["handoffId"], "timestamp": event.timestamp, "seq": event.seq, "hash": event.hash}
    return msgspec.convert({**event.payload[AUDIT], **own}, prepare_type(AuditRecord))


def line_of(record: AuditRecord) -> bytes:
    """A record as one line of JSON, with its end."""
    return _encode(record) + b"\n"


_DAY: Final = 86_400_000
CLOSED_MS: Final = 30 * _DAY
COMPLETED_MS: Final = 90 * _DAY
ESCALATED_MS: Final = 180 * _DAY
SHORTEST_MS: Final = min(CLOSED_MS, COMPLETED_MS, ESCALATED_MS)


def kept_until(record: AuditRecord, task: Task | None) -> int | None:
    """The moment until which a record is kept at least; None while its task is open, or where there is none.

    What belongs to several classes is kept for the longest of their times.
    """
    if task is None or task.status not in FINISHED:
        return None
    escalated = record.event_type == "escalated" or record.handoff_type == "escalation"
    length = COMPLETED_MS if task.status == "done" else CLOSED_MS
    return max(millis(task.last_transition_at), millis(record.timestamp)) + (
        max(length, ESCALATED_MS) if escalated else length
    )
