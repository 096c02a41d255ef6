"""The one router of protocol messages, whatever channel they come by: recognise, check, act, record.

A message that is refused is recorded and nothing else; one that is none of ours is not even that; one that raises is
refused as `internal`, with a reference. Must not know any channel: a channel that knows the run it speaks for says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof.app import faults
from aof.app.commands.unit_of_work import Done
from aof.app.operations.results import Sent
from aof.core.errors.base import AofError, Internal
from aof.core.errors.messages import TooManyMessages
from aof.core.errors.runs import StaleLease
from aof.core.handoffs.delegation import HandoffAnswer, HandoffRequest
from aof.core.messages.completion import CompletionReport
from aof.core.messages.message import Message
from aof.core.messages.status import StatusUpdate
from aof.core.model.commands import OnTask
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import Request
from aof.core.model.ids import is_agent_name, is_task_id, task_of_run
from aof.core.validation import limits
from aof.ports.clock import Clock
from aof.ports.store import Scope, Store
from aof.protocol.detection import NONCE, Detected, detect, incoming
from aof.protocol.messages import (
    AcceptedPayload,
    CompletionPayload,
    Envelope,
    Payload,
    RejectedPayload,
    RequestPayload,
    StatusPayload,
)
from aof.protocol.validation import Unknown, Valid, validate

_DETAIL: Final = 1_000
_SHOWN: Final = 80
_OURS: Final = ("unavailable", "internal")


class Router:
    """Delivers messages. `execute` carries out a command, as for every other operation.

    `caller` is the name that the caller gives, `proven` the one that its token, secret or session has.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        execute: Callable[[OnTask], Done],
        caller: str,
        *,
        run_of: Callable[[str], str | None] | None = None,
        proven: str | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._execute = execute
        self._caller = caller
        self._run_of = run_of
        self._proven = proven or caller

    def deliver(self, given: object, run: str | None = None) -> Sent:
        """Handle one message. Raises only what is not a fault of the message, such as a full disk."""
        found: Detected | None = None
        try:
            found = detect(incoming(given))
            if found is None:
                return Sent(outcome="ignored")
            found.fields.pop(NONCE, None)  # of the channel, which has looked at it; nobody keeps or repeats it
            return self._handled(found, run)
        except AofError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge of one message: the next one comes
            return self._broken(found.fields if found is not None else {}, error)

    def _handled(self, found: Detected, run: str | None) -> Sent:
        message = validate(found.fields) if found.problem is None else found.problem
        if isinstance(message, Unknown):
            return self._unknown(message.envelope)
        if isinstance(message, AofError):
            return self._refused(found.fields, message)
        command = _command(message, run or self._held(message), self._caller)
        if isinstance(command, AofError):
            return self._refused(found.fields, command)
        try:
            done = self._execute(command)
        except AofError as error:
            if error.kind in _OURS:
                raise
            return self._refused(found.fields, error)
        return _answer(message.envelope, done)

    def refuse_rest(self, limit: int, count: int) -> Sent:
        """One answer, and one remark in the log, for all that one call brings beyond the limit."""
        problem = TooManyMessages(
            f"one send takes {limit:,} messages; {count:,} more lines or messages after them were not looked at",
            f"send the rest again, at most {limit:,} at a time; [messages] perSend in aof.toml sets the limit",
        )
        return self._refused({}, problem)

    def _held(self, message: Valid) -> str | None:
        """The run that the channel holds the task with that the message is about, if the message names none itself."""
        if self._run_of is None or message.envelope.run_id is not None:
            return None
        return self._run_of(_about(message))

    def _unknown(self, envelope: Envelope) -> Sent:
        payload = {"type": envelope.type, "toAgent": envelope.to_agent, "sentAt": envelope.sent_at}
        payload |= self._deliverer(envelope.from_agent)
        draft = Draft(
            type="protocol.message.unknown", task_id=envelope.task_id, run_id=envelope.run_id, payload=payload
        )
        self._record(draft, envelope.from_agent)
        return Sent(outcome="unknown", type=envelope.type, task_id=envelope.task_id, reason="unknown_type")

    def _refused(self, fields: dict[str, Any], problem: AofError) -> Sent:
        """Record a refusal with as much as can be told of the message."""
        task_id, kind, by = fields.get("taskId"), fields.get("type"), fields.get("fromAgent")
        known = task_id if isinstance(task_id, str) and is_task_id(task_id) else None
        shown = kind if isinstance(kind, str) and limits.line("type", kind, limits.ITEM) is None else None
        payload: dict[str, Any] = {"reason": problem.code, "detail": problem.message[:_DETAIL]}
        if shown is not None:
            payload["type"] = shown
        if known is None and isinstance(task_id, str):
            payload["taskId"] = task_id[:_SHOWN].encode("ascii", "backslashreplace").decode()
        if "version" in problem.details:
            payload["version"] = problem.details["version"]
        sender = by if isinstance(by, str) and is_agent_name(by) else self._caller
        payload |= self._deliverer(sender)
        self._record(Draft(type="protocol.message.rejected", task_id=known or "", payload=payload), sender)
        return refusal(problem, shown, known)

    def _deliverer(self, sender: str) -> dict[str, str]:
        """The deliverer of a message that is only recorded, if it is not the sender."""
        return {} if sender == self._proven else {"calledBy": self._proven}

    def _broken(self, fields: dict[str, Any], error: Exception) -> Sent:
        """A fault of ours: told and recorded with the reference under which the log has its traceback."""
        name = faults.record("a message", error)
        hint = "the message was set aside; report the fault with the traceback that the log has under this reference"
        problem = Internal(f"the message could not be handled (reference {name})", hint)
        try:
            return self._refused(fields, problem)
        except AofError:
            raise
        except Exception as worse:  # noqa: BLE001 - as above
            faults.record("recording a message", worse)
            return refusal(problem, None, None)

    def _record(self, draft: Draft, actor: str) -> None:
        record(self._store, self._clock, draft, actor)


def record(store: Store, clock: Clock, draft: Draft, actor: str) -> None:
    """Put a remark into the log, which touches nothing else."""
    with store.unit(Scope()) as unit:
        unit.commit((draft,), actor=actor, agent=None, now=clock.now())


def refusal(problem: AofError, kind: str | None, task_id: str | None) -> Sent:
    """The answer to the sender of a refused message."""
    return Sent(
        outcome="rejected",
        type=kind,
        task_id=task_id,
        reason=problem.code,
        detail=problem.message[:_DETAIL],
        hint=problem.hint or msgspec.UNSET,
        call=problem.call or msgspec.UNSET,
    )


def _answer(envelope: Envelope, done: Done) -> Sent:
    refused = done.decision.refusal
    if refused is not None:
        return refusal(refused, envelope.type, envelope.task_id)
    instead = done.decision.instead
    started = next((event.run_id for event in done.events if event.type == "task.attempt.started"), None)
    return Sent(
        outcome="accepted" if len(done.events) > 1 else "noop",
        type=envelope.type,
        task_id=envelope.task_id,
        reason=instead.code if instead is not None else None,
        detail=instead.message if instead is not None else msgspec.UNSET,
        run_id=started or msgspec.UNSET,
        secret=done.secret or msgspec.UNSET,
    )


def _about(message: Valid) -> str:
    """The task that the sender must hold."""
    payload = message.payload
    return payload.parent_task_id if isinstance(payload, RequestPayload) else message.envelope.task_id


def _command(message: Valid, run: str | None, caller: str) -> Message | AofError:
    envelope, payload = message.envelope, message.payload
    known = run if run is not None and task_of_run(run) == _about(message) else None
    if known is not None and envelope.run_id not in (None, known):
        return StaleLease(
            f"the message names {str(envelope.run_id)[:_SHOWN]}, and comes from {known}", "name the run that sends it"
        )
    common: dict[str, Any] = {
        "actor": envelope.from_agent,
        "run": envelope.run_id or known,
        "task_id": envelope.task_id,
        "type": envelope.type,
        "to_agent": envelope.to_agent,
        "sent_at": envelope.sent_at,
        "caller": caller,
    }
    return _of(payload, common, message.odd)


def _of(payload: Payload, common: dict[str, Any], odd: tuple[dict[str, str], ...]) -> Message:
    fields = msgspec.structs.asdict(payload)
    fields.pop("task_id", None)
    match payload:
        case CompletionPayload():
            tests = payload.tests
            fields["tests"] = msgspec.structs.asdict(tests) if tests is not None else None
            return CompletionReport(**common, **fields)
        case StatusPayload():
            fields["blockers"] = payload.blockers or ()
            return StatusUpdate(**common, **fields)
        case RequestPayload():
            fields["due_by"] = payload.due_by or msgspec.UNSET
            return HandoffRequest(**common, request=Request(task_id=common["task_id"], **fields), odd=odd)
        case AcceptedPayload() | RejectedPayload():
            return HandoffAnswer(**common, **fields)
    raise AssertionError(payload)
