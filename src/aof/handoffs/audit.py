"""The audit record of a handoff's step, and how long the files keep one. The log keeps all of them for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from aof.handoffs.context import TASK_STATUS
from aof.handoffs.context import TaskStatus as HandoffTaskStatus
from aof.kernel.model import FINISHED, Event, millis
from aof.org.model import Risk
from aof.support.hashing import hexdigest
from aof.support.typed import prepare_type
from aof.tasks.model import Task

AuditStep = Literal["initiated", "accepted", "rejected", "completed", "failed", "timeout", "escalated"]
AuditedKind = Literal["sequential", "delegation", "broadcast", "escalation"]
Outcome = Literal["success", "partial", "failed"]
Trigger = Literal["task_completion", "capability_mismatch", "escalation", "timeout", "explicit_request"]

AUDIT: Final = "audit"
_OF_THE_EVENT: Final = frozenset({"handoff_id", "timestamp", "seq", "hash"})
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_encode = msgspec.json.Encoder().encode


class ContextSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the handoff's task was like at the step."""

    task_id: str
    task_status: HandoffTaskStatus
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
    handoff_type: AuditedKind
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


def audit_payload(
    event_type: AuditStep,
    *,
    from_agent: str,
    to_agent: str,
    handoff_type: AuditedKind,
    reason: str,
    task: Task,
    variables: Any,
    artifact_count: int,
    decision_rationale: str = "",
    risk_level: Risk = "low",
    duration_ms: int | None = None,
    tokens_consumed: int | None = None,
    outcome: Outcome | None = None,
    trigger: Trigger | None = None,
    status: str | None = None,
    notes: str | None = None,
) -> dict[str, Any]:
    """What the step's event carries as `payload.audit`; what is not known is left out.

    `variables` are the handoff's context variables, as a mapping or a record; only their hash is kept.
    """
    snapshot = ContextSnapshot(
        task_id=task.id,
        task_status=handoff_status(task.status),
        context_variables_hash=variables_hash(variables),
        artifact_count=artifact_count,
    )
    whole = AuditRecord(
        handoff_id="",
        timestamp="",
        event_type=event_type,
        from_agent=from_agent,
        to_agent=to_agent,
        handoff_type=handoff_type,
        reason=reason,
        context_snapshot=snapshot,
        decision_rationale=decision_rationale,
        risk_level=risk_level,
        duration_ms=duration_ms,
        tokens_consumed=tokens_consumed,
        outcome=outcome,
        trigger=trigger,
        status=status,
        notes=notes,
        seq=0,
        hash="",
    )
    named = msgspec.to_builtins(whole).items()
    return {name: value for name, value in named if value is not None and name not in _OF_THE_EVENT}


def variables_hash(variables: Any) -> str:
    """SHA-256 of the variables as JSON with sorted keys: equal variables have equal hashes, in whatever order."""
    return hexdigest(_encode_sorted(variables))


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


__all__ = ["HandoffTaskStatus", "handoff_status"]


def handoff_status(status: str) -> HandoffTaskStatus:
    """The word for a status."""
    return TASK_STATUS[status]


_DAY: Final = 86_400_000
CLOSED_MS: Final = 30 * _DAY
COMPLETED_MS: Final = 90 * _DAY
ESCALATED_MS: Final = 180 * _DAY
SHORTEST_MS: Final = min(CLOSED_MS, COMPLETED_MS, ESCALATED_MS)


class Closure(msgspec.Struct, frozen=True):
    """When a task was closed, and whether its work was completed."""

    at: int
    completed: bool


def closure_of(task: Task) -> Closure | None:
    """The task's closure; None while it is open."""
    if task.status not in FINISHED:
        return None
    return Closure(millis(task.last_transition_at), task.status == "done")


def kept_until(record: AuditRecord, closure: Closure | None) -> int | None:
    """The moment until which a record is kept at least; None while its task is open.

    What belongs to several classes is kept for the longest of their times.
    """
    if closure is None:
        return None
    escalated = record.event_type == "escalated" or record.handoff_type == "escalation"
    length = COMPLETED_MS if closure.completed else CLOSED_MS
    return max(closure.at, millis(record.timestamp)) + (max(length, ESCALATED_MS) if escalated else length)
