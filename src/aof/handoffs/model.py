"""The handoff record, exactly as `handoffs/<id>.json` holds it, its IDs, and what each kind of event makes of it."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec

from aof.kernel.events import Event
from aof.kernel.model import FINISHED
from aof.org.model import HUMAN, Risk
from aof.support.answer import StructAnswer
from aof.support.hashing import hexdigest
from aof.support.typed import prepare_type
from aof.tasks.model import FileLock, Link, OpenHandoff, Task
from aof.workflows.model import leases

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


class Handoff(StructAnswer, frozen=True, kw_only=True, omit_defaults=True):
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
