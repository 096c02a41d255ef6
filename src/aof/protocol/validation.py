"""From a detected message to a valid one, or to the reason why it is none, which names the field.

Must not know any task: whether there is one, and who may speak for it, is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.errors.base import AofError, PayloadTooLarge
from aof.core.errors.messages import InvalidEnvelope, TaskIdMismatch
from aof.core.model.ids import is_task_id
from aof.core.model.times import millis
from aof.core.runs.completion import miscounted
from aof.core.validation import limits, messages
from aof.core.validation.output import escaping
from aof.protocol.messages import (
    PAYLOADS,
    AcceptedPayload,
    CompletionPayload,
    Envelope,
    Payload,
    RejectedPayload,
    RequestPayload,
    StatusPayload,
)

_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?\Z", re.ASCII
)
_VERSION: Final = 1
_TYPE: Final = 128


class Valid(msgspec.Struct, frozen=True):
    """A message that can be acted on. `odd` is what was wrong and does no harm: a field and the detail."""

    envelope: Envelope
    payload: Payload
    odd: tuple[dict[str, str], ...] = ()


class Unknown(msgspec.Struct, frozen=True):
    """A sound envelope of a type that version 1 does not have."""

    envelope: Envelope


def validate(fields: dict[str, Any]) -> Valid | Unknown | AofError:
    """Check the envelope, then the payload by its type. Never raises."""
    envelope = _envelope(fields)
    if isinstance(envelope, AofError):
        return envelope
    model = PAYLOADS.get(envelope.type)
    if model is None:
        return Unknown(envelope)
    try:
        payload = msgspec.convert(envelope.payload, prepare_type(model))
    except msgspec.ValidationError as error:
        return _malformed(error, envelope.payload, model, "payload")
    named = getattr(payload, "task_id", envelope.task_id)
    other = _mismatch(envelope, named) if named != envelope.task_id else None
    problem: AofError | None = _bad_id("payload.taskId", named) or other or _CHECKS[model](payload)
    if problem is not None:
        return problem if isinstance(problem, PayloadTooLarge | TaskIdMismatch) else _as_envelope(problem)
    return _settled(envelope, payload)


def _envelope(fields: dict[str, Any]) -> Envelope | AofError:
    version = fields.get("version", _VERSION)
    if isinstance(version, int | float) and (isinstance(version, bool) or version != _VERSION):
        return InvalidEnvelope(
            f"'version' is {version}, and this is AOF/{_VERSION}",
            f"send messages of version {_VERSION}",
            version=version,
        )
    if type(version) is float:  # 1.0 is not the number that the protocol names
        return InvalidEnvelope(f"'version' must be the number {_VERSION}", f'send "version": {_VERSION}')
    try:
        envelope = msgspec.convert(fields, prepare_type(Envelope))
    except msgspec.ValidationError as error:
        return _malformed(error, fields, Envelope)
    problem = (
        _bad_id("taskId", envelope.task_id)
        or limits.name("fromAgent", envelope.from_agent)
        or limits.name("toAgent", envelope.to_agent)
        or limits.line("type", envelope.type, _TYPE, required=True)
        or limits.line("runId", envelope.run_id, _TYPE)
        or _bad_moment("sentAt", envelope.sent_at)
    )
    return _as_envelope(problem) if problem is not None else envelope


def _malformed(error: msgspec.ValidationError, given: object, kind: type[Any], below: str = "") -> InvalidEnvelope:
    """What is wrong, with the field's whole name."""
    wrong = messages.complaint(str(error), given, kind, name=below, noun="field")
    return InvalidEnvelope(wrong.sentence, wrong.choices or "see the fields of a message in the protocol's reference")


def _as_envelope(problem: AofError) -> InvalidEnvelope:
    return InvalidEnvelope(problem.message, problem.hint)


def _bad_id(field: str, value: str) -> InvalidEnvelope | None:
    if is_task_id(value):
        return None
    return InvalidEnvelope(f"'{field}' is not a task ID: {value[:80]!r}", "give the full ID: TASK-2026-02-09-057")


def _bad_moment(field: str, value: str) -> InvalidEnvelope | None:
    try:
        if _MOMENT.match(value):
            millis(value)
            return None
    except (ValueError, OverflowError):
        pass
    return InvalidEnvelope(f"'{field}' is not a date and time: {value[:80]!r}", "write it as 2026-02-09T21:00:00.000Z")


def _mismatch(envelope: Envelope, named: str) -> TaskIdMismatch:
    return TaskIdMismatch(
        f"the envelope is about {envelope.task_id} and its payload about {named}",
        "name the same task in 'taskId' and 'payload.taskId'",
    )


def _completion(payload: CompletionPayload) -> AofError | None:
    return (
        limits.line("payload.summaryRef", payload.summary_ref, limits.ITEM, required=True)
        or _list("deliverables", payload.deliverables, single_line=True)
        or _list("blockers", payload.blockers, limits.BLOCKERS)
        or limits.text("payload.notes", payload.notes, limits.NOTES)
        or _unnamed_blocker(payload)
        or miscounted("payload.tests", msgspec.structs.asdict(payload.tests) if payload.tests is not None else None)
        or escaping(
            ("payload.summaryRef", payload.summary_ref),
            *(("payload.deliverables", ref) for ref in payload.deliverables),
        )
    )


def _unnamed_blocker(payload: CompletionPayload) -> AofError | None:
    if payload.outcome != "blocked" or payload.blockers:
        return None
    return InvalidEnvelope("'payload.blockers' is empty, and the outcome is 'blocked'", "say what is in the way")


def _status(payload: StatusPayload) -> AofError | None:
    if payload.status is None and not (payload.progress or payload.notes or payload.blockers):
        return InvalidEnvelope(
            "'payload' says nothing", "give at least one of 'status', 'progress', 'blockers' and 'notes'"
        )
    return (
        limits.name("payload.agentId", payload.agent_id)
        or limits.text("payload.progress", payload.progress, limits.PROGRESS)
        or limits.text("payload.notes", payload.notes, limits.NOTES)
        or _list("blockers", payload.blockers or (), limits.BLOCKERS)
    )


def _request(payload: RequestPayload) -> AofError | None:
    same = payload.parent_task_id == payload.task_id
    return (
        _bad_id("payload.parentTaskId", payload.parent_task_id)
        or (InvalidEnvelope("'payload.parentTaskId' is the task itself", "name the task above it") if same else None)
        or limits.name("payload.fromAgent", payload.from_agent)
        or limits.name("payload.toAgent", payload.to_agent)
        or _list("acceptanceCriteria", _criteria(payload)[0])
        or _list("expectedOutputs", payload.expected_outputs)
        or _list("contextRefs", payload.context_refs)
        or _list("constraints", payload.constraints)
        or (_bad_moment("payload.dueBy", payload.due_by) if payload.due_by is not None else None)
    )


def _criteria(payload: RequestPayload) -> tuple[tuple[str, ...], str]:
    """The acceptance criteria as far as they can be told, and what is wrong with their form."""
    given = payload.acceptance_criteria
    if isinstance(given, list | tuple) and all(isinstance(item, str) and item.strip() for item in given):
        return tuple(given), ""
    loose = given if isinstance(given, list) else [given]
    texts = (
        item if isinstance(item, str) else msgspec.json.encode(item).decode() for item in loose if item is not None
    )
    return tuple(text for text in texts if text.strip()), "'payload.acceptanceCriteria' must be a list of texts"


def _accepted(payload: AcceptedPayload) -> AofError | None:
    if payload.accepted:
        return None
    return InvalidEnvelope("'payload.accepted' must be true", "send handoff.rejected with a reason instead")


def _rejected(payload: RejectedPayload) -> AofError | None:
    if payload.accepted:
        return InvalidEnvelope("'payload.accepted' must be false", "send handoff.accepted instead")
    return limits.text("payload.reason", payload.reason, limits.REASON, required=True)


def _list(
    name: str, values: tuple[str, ...], most: int = limits.ITEMS, *, single_line: bool = False
) -> AofError | None:
    return limits.items(f"payload.{name}", values, most, single_line=single_line)


def _settled(envelope: Envelope, payload: Payload) -> Valid:
    """The message as it counts: criteria of a wrong form are corrected, with a warning."""
    if not isinstance(payload, RequestPayload):
        return Valid(envelope, payload)
    criteria, wrong = _criteria(payload)
    odd = ({"field": "payload.acceptanceCriteria", "detail": wrong},) if wrong else ()
    return Valid(envelope, msgspec.structs.replace(payload, acceptance_criteria=criteria), odd)


_CHECKS: Final[dict[type[Payload], Callable[[Any], AofError | None]]] = {
    CompletionPayload: _completion,
    StatusPayload: _status,
    RequestPayload: _request,
    AcceptedPayload: _accepted,
    RejectedPayload: _rejected,
}
