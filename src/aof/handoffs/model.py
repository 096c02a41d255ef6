"""The handoff record, exactly as `handoffs/<id>.json` holds it, and its IDs."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec

from aof.kernel.model import FINISHED
from aof.org.model import HUMAN, Risk
from aof.support.hashing import hexdigest

HandoffType = Literal["sequential", "delegation", "broadcast", "escalation"]
HandoffState = Literal["queued", "requested", "deferred", "accepted", "rejected", "escalated", "completed", "failed"]
OnTimeout = Literal["retry", "escalate", "fail"]
Aggregation = Literal["all", "any", "majority"]
Trigger = Literal["task_completion", "capability_mismatch", "escalation", "timeout", "explicit_request"]
AnswerStatus = Literal["accepted", "rejected", "deferred"]
ReturnStatus = Literal["success", "partial", "failed", "timeout"]
ContentType = Literal["text", "json", "artifact_ref"]
CapabilityMatch = Literal["full", "partial", "none"]
Urgency = Literal["immediate", "normal", "low"]

TYPES: Final[tuple[HandoffType, ...]] = ("sequential", "delegation", "broadcast", "escalation")
AGGREGATIONS: Final[tuple[Aggregation, ...]] = ("all", "any", "majority")
UNANSWERED: Final = frozenset({"queued", "requested", "deferred"})
OPEN: Final = UNANSWERED | {"accepted"}
MAX_REROUTES: Final = 3
MAX_RESENDS: Final = 3
MAX_LEVEL: Final = 3  # of an escalation: worker, reviewer, architect, human


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an AOF/1 delegation asks for: the nine fields of `inputs/handoff.json`, in their order."""

    task_id: str
    parent_task_id: str
    from_agent: str
    to_agent: str
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    due_by: str | msgspec.UnsetType = msgspec.UNSET


class _SchemaPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the specification's schema: every key is written."""


class _AddedPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part that AOF adds to the schema: defaults are left out."""


class RequiredCapability(_SchemaPart, frozen=True, kw_only=True):
    """A capability that the receiver must have, and how well; one without a least proficiency is a plain name."""

    capability_id: str
    min_proficiency: float


class Constraints(_SchemaPart, frozen=True, kw_only=True):
    """The limits within which the work is to be done."""

    budget: float | None = None
    deadline: str | None = None


class HandoffContext(_SchemaPart, frozen=True, kw_only=True):
    """What the receiver needs to go on: the task, messages, variables, references to artifacts, limits."""

    task_id: str
    conversation_history: tuple[dict[str, Any], ...] = ()
    context_variables: dict[str, Any] = {}
    artifacts: tuple[dict[str, Any], ...] = ()
    constraints: Constraints = Constraints()


class Validation(_SchemaPart, frozen=True, kw_only=True):
    """What the receiver is checked against. `autonomy_budget` is the autonomy level (0 to 3) that the work needs."""

    required_capabilities: tuple[str | RequiredCapability, ...] = ()
    autonomy_budget: int | None = None

    @property
    def wanted(self) -> dict[str, float]:
        """Each required capability with the least proficiency in it."""
        asked = (one if isinstance(one, RequiredCapability) else (one, 0.0) for one in self.required_capabilities)
        pairs = (one if isinstance(one, tuple) else (one.capability_id, one.min_proficiency) for one in asked)
        return dict(pairs)


class ReturnProtocol(_SchemaPart, frozen=True, kw_only=True):
    """Whether and by when a result is owed, and what is done when it does not come. `timeout` is such as `5m`."""

    expected: bool
    timeout: str | None = None
    on_timeout: OnTimeout = "retry"


class Rationale(_SchemaPart, frozen=True, kw_only=True):
    """Why the handoff was made, and how risky the work is."""

    decision_rationale: str = ""
    risk_level: Risk = "low"


class Acceptance(_AddedPart, frozen=True, kw_only=True):
    """The receiver's answer. `by` is the agent or person that gave it, where that is another than the receiver."""

    status: AnswerStatus
    acknowledged_at: str
    reason: str | None = None
    estimated_completion: str | None = None
    by: str | None = None


class ReturnedResult(_SchemaPart, frozen=True, kw_only=True):
    """The result in a return."""

    content_type: ContentType
    body: Any


class ContextUpdates(_SchemaPart, frozen=True, kw_only=True):
    """What a return changes in the context that the agents of the workflow share."""

    variables_changed: dict[str, Any] = {}
    artifacts_produced: tuple[Any, ...] = ()


class ReturnAudit(_SchemaPart, frozen=True, kw_only=True):
    """When the work was done, and what it took."""

    completion_time: str
    tokens_consumed: int | None = None
    notes: str = ""


class Return(_SchemaPart, frozen=True, kw_only=True):
    """The result of a handoff, on its way from the receiver to the original sender."""

    handoff_id: str
    from_agent: str
    to_agent: str
    status: ReturnStatus
    result: ReturnedResult | None
    context_updates: ContextUpdates = ContextUpdates()
    audit: ReturnAudit


class Assessment(_SchemaPart, frozen=True, kw_only=True):
    """The assessment of one level of an escalation; level 0 is the agent that began it."""

    level: int
    agent: str
    assessment: str
    at: str


class Checks(_AddedPart, frozen=True, kw_only=True):
    """What was found when the receiver was checked: its capabilities, and its load against its limit."""

    capability: CapabilityMatch = "full"
    missing: tuple[str, ...] = ()
    load: int | None = None
    limit: int | None = None
    at: str | None = None


class RoutingChoice(_AddedPart, frozen=True, kw_only=True):
    """Whom the sender suggested, where routing decided otherwise or was left to decide, and why."""

    suggested: str | None = None
    decided: str
    reason: str


class Handoff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One handoff to one agent. `rev` is the number of the event that wrote this version.

    `number` counts the handoffs of the task. A handoff that went on to another agent names the record that followed it
    in `forwarded_to`, and that one names this one in `forwarded_from`; `tried` are the agents that were asked before.
    `level` is how far an escalation has climbed. `waiting_task_id` is the sender's task that is blocked until the
    return, and `waiting_for` what its block names: the first record, or the whole broadcast. `request` and `sent_at`
    are those of an AOF/1 message, `depth` how deep such a delegation is.
    """

    id: str
    timestamp: str
    from_agent: str
    to_agent: str
    type: HandoffType
    reason: str
    context: HandoffContext
    validation: Validation
    return_protocol: ReturnProtocol
    audit: Rationale
    state: HandoffState
    rev: int
    number: int
    trigger: Trigger
    parent_task_id: str | None = None
    broadcast_group_id: str | None = None
    aggregation: Aggregation | None = None
    level: int = 0
    urgency: Urgency | None = None
    assessments: tuple[Assessment, ...] = ()
    history: dict[str, Any] | None = None
    coordinate: bool = False
    subtask: str | None = None
    routing: RoutingChoice | None = None
    checks: Checks | None = None
    warnings: tuple[str, ...] = ()
    waiting_task_id: str | None = None
    waiting_for: str | None = None
    owner_before: str | None = None
    forwarded_from: str | None = None
    forwarded_to: str | None = None
    tried: tuple[str, ...] = ()
    reroutes: int = 0
    resends: int = 0
    resent_at: str | None = None
    reminded_at: str | None = None
    timeouts: int = 0
    timed_out_at: str | None = None
    acceptance: Acceptance | None = None
    returned: Return | None = msgspec.field(default=None, name="return")
    late_returns: tuple[Return, ...] = ()
    outcome: Literal["success", "partial", "failed"] | None = None
    closed_at: str | None = None
    closed_reason: str | None = None
    depth: int = 0
    request: Request | None = None
    sent_at: str | None = None

    @property
    def task_id(self) -> str:
        """The task that is handed over."""
        return self.context.task_id

    @property
    def created_at(self) -> str:
        """When it began."""
        return self.timestamp

    @property
    def answered_at(self) -> str | None:
        """When the receiver answered."""
        return self.acceptance.acknowledged_at if self.acceptance is not None else None

    @property
    def is_open(self) -> bool:
        """Whether it is not over yet."""
        return self.state in OPEN

    def outlives(self, status: str) -> bool:
        """Whether it goes on when its task has this status: of a failed one, a person says what becomes of it."""
        asks = self.to_agent == HUMAN and self.forwarded_from is not None
        return status not in FINISHED or (status == "deadletter" and asks)


def by_age(handoff: Handoff) -> tuple[str, str, int]:
    """Sorts handoffs by when they began."""
    return handoff.timestamp, handoff.task_id, handoff.number


_UUID4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z", re.ASCII)
_FORMAT_1: Final = re.compile(r"HO-[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{3,9}-[0-9]{1,15}\Z", re.ASCII)
_PART: Final = re.compile(r"[0-9a-f-]{1,36}\Z", re.ASCII)


def uuid4(entropy: str, number: int) -> str:
    """The nth version 4 UUID from random text that the caller has drawn; 122 bits of it count."""
    digits = hexdigest(f"{entropy}:{number}".encode())
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def is_handoff_id(text: str) -> bool:
    """Whether the text is a whole handoff ID; it becomes a file name."""
    return _UUID4.match(text) is not None or is_format_1(text)


def is_format_1(text: str) -> bool:
    """Whether the text is an ID as earlier versions made them, from the task and its version."""
    return _FORMAT_1.match(text) is not None


def is_part(text: str) -> bool:
    """Whether the text could be the beginning of a handoff's ID."""
    return _PART.match(text) is not None
