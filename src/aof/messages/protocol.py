"""AOF/1 on the wire: its five messages, how one is recognised in text or JSON, and the check of its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from aof.errors import AofError, InvalidEnvelope, InvalidJson, PayloadTooLarge, TaskIdMismatch
from aof.kernel import findings, limits
from aof.kernel.kinds import Status
from aof.kernel.model import is_task_id, millis
from aof.runs.model import Outcome
from aof.runs.results import miscounted
from aof.support import nesting
from aof.support.typed import prepare_type
from aof.tasks.fields import escaping_reference

PROTOCOL: Final = "aof"
PREFIX: Final = "AOF/1 "
BYTE_ORDER_MARK: Final = "\ufeff"  # some editors write it before the text; it means nothing
NONCE: Final = "nonce"  # the field of an envelope that proves which process printed it; never stored
LARGEST: Final = 10_000_000  # bytes of a whole envelope
_WIDEST: Final = 4  # bytes of a character
_VERSION: Final = 1
_TYPE: Final = 128  # characters
_HINT: Final = 'send one JSON object: {"protocol":"aof","version":1,"type":…,"taskId":…,…}'
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError, ValueError, TypeError, OverflowError)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?\Z", re.ASCII
)


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Common form: the wire writes names in camel case."""


class Envelope(Wire, frozen=True, kw_only=True):
    """What every message has. `runId` is optional: a channel that knows the run supplies it."""

    protocol: Literal["aof"]
    version: Literal[1]
    type: str
    task_id: str
    from_agent: str
    to_agent: str
    sent_at: str
    payload: dict[str, Any]
    run_id: str | None = None


class Payload(Wire, frozen=True, kw_only=True):
    """The part of a message that differs by type."""


class Tests(Payload, frozen=True, kw_only=True):
    """How many tests there were and how they went."""

    total: int
    passed: int
    failed: int


class CompletionPayload(Payload, frozen=True, kw_only=True):
    """`completion.report`: the outcome of a run."""

    outcome: Outcome
    summary_ref: str
    deliverables: tuple[str, ...] = ()
    tests: Tests | None = None
    blockers: tuple[str, ...] = ()
    notes: str | None = None


class StatusPayload(Payload, frozen=True, kw_only=True):
    """`status.update`: how far the work is, or where the task should go."""

    task_id: str
    agent_id: str
    status: Status | None = None
    progress: str | None = None
    blockers: tuple[str, ...] | None = None
    notes: str | None = None


class RequestPayload(Payload, frozen=True, kw_only=True):
    """`handoff.request`: what a child task's agent is asked to do. Criteria of a wrong form do not stop it."""

    task_id: str
    parent_task_id: str
    from_agent: str
    to_agent: str
    acceptance_criteria: Any = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    due_by: str | None = None


class AcceptedPayload(Payload, frozen=True, kw_only=True):
    """`handoff.accepted`: the addressee takes the child task."""

    task_id: str
    accepted: bool


class RejectedPayload(Payload, frozen=True, kw_only=True):
    """`handoff.rejected`: the addressee does not take it, and says why."""

    task_id: str
    accepted: bool
    reason: str


PAYLOADS: Final[dict[str, type[Payload]]] = {
    "handoff.request": RequestPayload,
    "handoff.accepted": AcceptedPayload,
    "handoff.rejected": RejectedPayload,
    "status.update": StatusPayload,
    "completion.report": CompletionPayload,
}


class Incoming(msgspec.Struct, frozen=True):
    """Something that arrived: a parsed object, a text, or both, of which the object counts."""

    payload: object = None
    content: object = None


class Detected(msgspec.Struct, frozen=True):
    """A message of ours: its fields as plain JSON, or what is wrong with it."""

    fields: dict[str, Any] = {}
    problem: AofError | None = None


class _OwnFields(msgspec.Struct):
    """As much of a message as is needed to say whose it is, without building all of it."""

    protocol: object = None
    type: object = None
    taskId: object = None  # noqa: N815 - the wire's name
    fromAgent: object = None  # noqa: N815 - the wire's name


def incoming(given: object) -> Incoming:
    """A message, its text, or an event that holds one, as the caller gave it."""
    if isinstance(given, Incoming):
        return given
    if isinstance(given, dict):
        if given.get("protocol") != PROTOCOL and ("content" in given or isinstance(given.get("payload"), dict)):
            return Incoming(given.get("payload"), given.get("content"))
        return Incoming(payload=given)
    return Incoming(content=given)


def detect(arrived: Incoming) -> Detected | None:
    """The message in what arrived; None where there is none. Never raises."""
    if isinstance(arrived.payload, dict) and arrived.payload.get("protocol") == PROTOCOL:
        return _in_object(arrived.payload)
    text = arrived.content
    if isinstance(text, bytes | bytearray | memoryview):
        text = bytes(text).decode("utf-8", "surrogateescape")  # it keeps its beginning, which may claim to be ours
    if not isinstance(text, str):
        return None
    text = text.removeprefix(BYTE_ORDER_MARK)
    return _after_prefix(text[len(PREFIX) :]) if text.startswith(PREFIX) else _in_plain_json(text)


def _in_object(given: dict[Any, Any]) -> Detected:
    """The message is encoded and decoded again, so that nothing but plain data goes any further."""
    try:
        data = msgspec.json.encode(given)
        if len(data) > LARGEST:
            return Detected(_own_fields(data), _too_large(len(data)))
        return Detected(nesting.decode_json(data, dict[str, Any]))
    except _UNREADABLE as error:
        return Detected(problem=InvalidEnvelope(f"the message is not plain JSON: {nesting.reason(error)}", _HINT))


def _after_prefix(text: str) -> Detected:
    try:
        data = text.encode()
        if len(data) > LARGEST:
            return Detected(problem=_too_large(len(data)))
        value = nesting.decode_json(data, object)
    except _UNREADABLE as error:
        return Detected(problem=InvalidJson(f"what follows '{PREFIX}' is not JSON: {error}", _HINT))
    if not isinstance(value, dict):
        return Detected(problem=InvalidEnvelope(f"what follows '{PREFIX}' is not a JSON object", _HINT))
    return Detected(value)


def _in_plain_json(text: str) -> Detected | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        data = text.encode()
        if len(data) > LARGEST:
            fields = _own_fields(data)
            return Detected(fields, _too_large(len(data))) if fields.get("protocol") == PROTOCOL else None
        value = nesting.decode_json(data, object)
    except _UNREADABLE as error:
        problem = InvalidJson(f"the message is not JSON: {error}", _HINT)
        return Detected(problem=problem) if is_meant(text) else None
    return Detected(value) if isinstance(value, dict) and value.get("protocol") == PROTOCOL else None


def is_meant(text: str) -> bool:
    """Whether JSON that cannot be read was meant as a message: it looks like JSON and names the protocol."""
    return text.lstrip().startswith(("{", "[")) and '"protocol"' in text and f'"{PROTOCOL}"' in text


def _own_fields(data: bytes) -> dict[str, Any]:
    found = nesting.decode_json(data, _OwnFields)
    return {name: getattr(found, name) for name in _OwnFields.__struct_fields__}


def _too_large(size: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the message has {size:,} bytes, the limit is {LARGEST:,}",
        "keep long text in a file under the task's outputs/ and refer to it",
    )


def messages_in(text: str) -> list[object]:
    """What the text holds, in order: parsed objects where it is JSON, else its lines that are not blank.

    Lines that together are a message, or broken JSON that was meant as one, stay together.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    found = _one_document(text)
    if found is None:
        found = _objects_in_a_row(text)
    return found if found is not None else [part for block in _blocks(text) for part in _parts(block)]


def _blocks(text: str) -> list[list[str]]:
    """The lines, split before each that begins a document or a message."""
    blocks: list[list[str]] = [[]]
    for line in _lines(text):
        if line.startswith(("{", "[", PREFIX)):
            blocks.append([])
        blocks[-1].append(line)
    return blocks


def _lines(text: str) -> list[str]:
    """Split at line breaks only: the other separators of Unicode may stand inside a JSON string."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _parts(block: list[str]) -> list[str]:
    """A document at the beginning of a block, sound or broken, then the lines after it."""
    whole = "\n".join(block).strip()
    if not is_meant(whole):
        return [line for line in block if line.strip()]
    try:
        _, end = json.JSONDecoder().raw_decode(whole)
    except (ValueError, RecursionError):
        return [whole]
    return [whole[:end], *(line for line in _lines(whole[end:]) if line.strip())]


def _one_document(text: str) -> list[object] | None:
    """The messages of a text that is JSON as a whole, or one message behind its prefix."""
    prefixed = text.startswith(PREFIX)
    try:
        value = nesting.decode_json(text[len(PREFIX) :] if prefixed else text, object)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if prefixed:
        return [text]
    return list(value) if isinstance(value, list) else [_kept_as_text_if_too_large(value, text.strip())]


def _objects_in_a_row(text: str) -> list[object] | None:
    """Objects one after another, however they are laid out; None where it is anything else."""
    decoder = json.JSONDecoder()
    found: list[object] = []
    place, end = 0, len(text)
    while True:
        while place < end and text[place].isspace():
            place += 1
        if place == end:
            return found or None
        if text[place] != "{":
            return None
        try:
            value, after = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return None
        found.append(_kept_as_text_if_too_large(value, text[place:after]))
        place = after


def _kept_as_text_if_too_large(value: object, text: str) -> object:
    """Of a message that is larger than any may be, the size of the text that it came as counts."""
    if not isinstance(value, dict) or "protocol" not in value or _WIDEST * len(text) <= LARGEST:
        return value
    return text if len(text.encode("utf-8", "surrogateescape")) > LARGEST else value


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
    problem = _other_task(envelope, payload) or _CHECKS[model](payload)
    if problem is not None:
        kept = isinstance(problem, PayloadTooLarge | TaskIdMismatch)
        return problem if kept else InvalidEnvelope(problem.message, problem.hint)
    if not isinstance(payload, RequestPayload):
        return Valid(envelope, payload)
    criteria, wrong = _criteria(payload)  # those of a wrong form are corrected, with a warning
    odd = ({"field": "payload.acceptanceCriteria", "detail": wrong},) if wrong else ()
    return Valid(envelope, msgspec.structs.replace(payload, acceptance_criteria=criteria), odd)


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
    return InvalidEnvelope(problem.message, problem.hint) if problem is not None else envelope


def _malformed(error: msgspec.ValidationError, given: object, kind: type[Any], below: str = "") -> InvalidEnvelope:
    """What is wrong, with the field's whole name."""
    wrong = findings.complaint(str(error), given, kind, name=below, noun="field")
    return InvalidEnvelope(wrong.sentence, wrong.choices or "see the fields of a message in the protocol's reference")


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


def _other_task(envelope: Envelope, payload: Payload) -> AofError | None:
    named = getattr(payload, "task_id", envelope.task_id)
    if (problem := _bad_id("payload.taskId", named)) or named == envelope.task_id:
        return problem
    return TaskIdMismatch(
        f"the envelope is about {envelope.task_id} and its payload about {named}",
        "name the same task in 'taskId' and 'payload.taskId'",
    )


def _completion(payload: CompletionPayload) -> AofError | None:
    problem = (
        limits.line("payload.summaryRef", payload.summary_ref, limits.ITEM, required=True)
        or limits.items("payload.deliverables", payload.deliverables, limits.ITEMS, single_line=True)
        or limits.items("payload.blockers", payload.blockers, limits.BLOCKERS)
        or limits.text("payload.notes", payload.notes, limits.NOTES)
    )
    if problem is None and payload.outcome == "blocked" and not payload.blockers:
        return InvalidEnvelope("'payload.blockers' is empty, and the outcome is 'blocked'", "say what is in the way")
    tests = msgspec.structs.asdict(payload.tests) if payload.tests is not None else None
    deliverables = (("payload.deliverables", ref) for ref in payload.deliverables)
    return (
        problem
        or miscounted("payload.tests", tests)
        or escaping_reference(("payload.summaryRef", payload.summary_ref), *deliverables)
    )


def _status(payload: StatusPayload) -> AofError | None:
    if payload.status is None and not (payload.progress or payload.notes or payload.blockers):
        return InvalidEnvelope(
            "'payload' says nothing", "give at least one of 'status', 'progress', 'blockers' and 'notes'"
        )
    return (
        limits.name("payload.agentId", payload.agent_id)
        or limits.text("payload.progress", payload.progress, limits.PROGRESS)
        or limits.text("payload.notes", payload.notes, limits.NOTES)
        or limits.items("payload.blockers", payload.blockers or (), limits.BLOCKERS)
    )


def _request(payload: RequestPayload) -> AofError | None:
    same = payload.parent_task_id == payload.task_id
    return (
        _bad_id("payload.parentTaskId", payload.parent_task_id)
        or (InvalidEnvelope("'payload.parentTaskId' is the task itself", "name the task above it") if same else None)
        or limits.name("payload.fromAgent", payload.from_agent)
        or limits.name("payload.toAgent", payload.to_agent)
        or limits.items("payload.acceptanceCriteria", _criteria(payload)[0], limits.ITEMS)
        or limits.items("payload.expectedOutputs", payload.expected_outputs, limits.ITEMS)
        or limits.items("payload.contextRefs", payload.context_refs, limits.ITEMS)
        or limits.items("payload.constraints", payload.constraints, limits.ITEMS)
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


_CHECKS: Final[dict[type[Payload], Callable[[Any], AofError | None]]] = {
    CompletionPayload: _completion,
    StatusPayload: _status,
    RequestPayload: _request,
    AcceptedPayload: _accepted,
    RejectedPayload: _rejected,
}
