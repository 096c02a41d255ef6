"""The one router of protocol messages, whatever channel they come by.

Sessions and their ends; messages among a worker's output.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Any, Final

import msgspec

from aof.documents.mail_operations import LeftOver
from aof.errors import (
    AofError,
    Call,
    Internal,
    InvalidInput,
    StaleLease,
    TooManyMessages,
    UnreadableResult,
    UnreadableTask,
)
from aof.handoffs.delegation import HandoffAnswer, HandoffRequest
from aof.handoffs.model import Request
from aof.kernel import events as kernel_events
from aof.kernel import faults
from aof.kernel import limits as kernel_limits
from aof.kernel import results as kernel_results
from aof.kernel.commands import OnTask
from aof.kernel.context import Environment
from aof.kernel.declarations import Object, Run, param
from aof.kernel.events import Draft
from aof.kernel.limits import visible
from aof.kernel.model import is_agent_name, is_task_id, task_of_run
from aof.kernel.operation import Spelling, method, operation
from aof.kernel.ports import Work
from aof.kernel.results import Applied, Result, Sent
from aof.kernel.unit_of_work import Done
from aof.messages import rules
from aof.messages.message_line import VARIABLE
from aof.messages.protocol import (
    NONCE,
    PREFIX,
    AcceptedPayload,
    CompletionPayload,
    Detected,
    Envelope,
    RejectedPayload,
    RequestPayload,
    StatusPayload,
    Unknown,
    Valid,
    detect,
    incoming,
    validate,
)
from aof.messages.rules import CompletionReport, Message, StatusUpdate
from aof.store.port import Clock, Scope, Store
from aof.support import nesting
from aof.tasks.model import Task
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.api.fabric import Fabric
    from aof.kernel.context import CallContext
    from aof.kernel.events import Event


_DETAIL: Final = 1_000
_SHOWN: Final = 80
_OURS: Final = ("unavailable", "internal")
_REJECTED: Final = "protocol.message.rejected"


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
        if run is None and self._run_of is not None and message.envelope.run_id is None:
            run = self._run_of(_about(message))  # by which the channel holds the task
        command = _command(message, run, self._caller)
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

    def _unknown(self, envelope: Envelope) -> Sent:
        payload = {"type": envelope.type, "toAgent": envelope.to_agent, "sentAt": envelope.sent_at}
        payload |= self._deliverer(envelope.from_agent)
        draft = Draft(
            type="protocol.message.unknown", task_id=envelope.task_id, run_id=envelope.run_id, payload=payload
        )
        record_remark(self._store, self._clock, draft, envelope.from_agent)
        return Sent(outcome="unknown", type=envelope.type, task_id=envelope.task_id, reason="unknown_type")

    def _refused(self, fields: dict[str, Any], problem: AofError) -> Sent:
        """Record a refusal with as much as can be told of the message."""
        task_id, kind, by = fields.get("taskId"), fields.get("type"), fields.get("fromAgent")
        known = task_id if isinstance(task_id, str) and is_task_id(task_id) else None
        shown = kind if isinstance(kind, str) and kernel_limits.line("type", kind, kernel_limits.ITEM) is None else None
        payload: dict[str, Any] = {"reason": problem.code, "detail": problem.message[:_DETAIL]}
        if shown is not None:
            payload["type"] = shown
        if known is None and isinstance(task_id, str):
            payload["taskId"] = task_id[:_SHOWN].encode("ascii", "backslashreplace").decode()
        if "version" in problem.details:
            payload["version"] = problem.details["version"]
        sender = by if isinstance(by, str) and is_agent_name(by) else self._caller
        payload |= self._deliverer(sender)
        draft = Draft(type=_REJECTED, task_id=known or "", payload=payload)
        record_remark(self._store, self._clock, draft, sender)
        return refusal_answer(problem, shown, known)

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
            return refusal_answer(problem, None, None)


def record_remark(store: Store, clock: Clock, draft: Draft, actor: str) -> None:
    """Put a remark into the log, which touches nothing else."""
    with store.unit(Scope()) as unit:
        unit.commit((draft,), actor=actor, agent=None, now=clock.now())


def refusal_answer(problem: AofError, kind: str | None, task_id: str | None) -> Sent:
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
        return refusal_answer(refused, envelope.type, envelope.task_id)
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
            return HandoffRequest(**common, request=Request(task_id=common["task_id"], **fields), odd=message.odd)
        case AcceptedPayload() | RejectedPayload():
            return HandoffAnswer(**common, **fields)
    raise AssertionError(payload)


_FEW = 10  # messages that one send delivers without a pause
_LONGEST_PAUSE = 0.05  # seconds


class SentMessages(Result, frozen=True, kw_only=True):
    """What became of each message."""

    results: list[dict[str, Any]]


class Carried(Result, frozen=True, kw_only=True):
    """What was carried out."""

    applied: tuple[Applied, ...]
    mail: LeftOver = LeftOver()


def _sent(
    fabric: Fabric,
    messages: Annotated[
        Sequence[str | Object],
        param(
            "AOF/1 messages, as objects or as text",
            Spelling(place="[FILE]", target="file", note="(one per line, or JSON documents; -: standard input)"),
        ),
    ],
    *,
    run: Run | None = None,
) -> SentMessages:
    rows = [msgspec.to_builtins(sent) for sent in fabric.send(messages, run=run)]
    return SentMessages(results=[{name: one for name, one in row.items() if name != "call"} for row in rows])


@operation(
    effect="write",
    section="team",
    order=10,
    summary="deliver AOF/1 messages",
    example="aof send report.json",
    tier="handoff",
    over_wire=_sent,
)
def send(context: CallContext, *messages: Any, run: str | None = None) -> tuple[Sent, ...]:
    """Deliver AOF/1 messages; each is answered.

    They are objects, texts, or lists of them; a refusal raises nothing. `run` is the run that the channel speaks for,
    if it knows. Text that is not a message does not count against the limit; what comes after the limit is refused with
    one answer, the last. After the first few, each message is followed by a pause as long as it took, so that others
    get half of the time.
    """
    here, caller = context.environment, context.principal
    delivery = Router(
        here.store,
        here.clock,
        context.dispatch,
        caller.actor,
        run_of=caller.run_of,
        proven=context.authentication.session_name(),
    )
    given = (one if isinstance(one, list | tuple) else (one,) for one in messages)
    waiting, answers = chain.from_iterable(given), []
    left = most = here.policy.messages_per_send
    for message in waiting:
        if left <= 0:
            answers.append(delivery.refuse_rest(most, 1 + sum(1 for _ in waiting)))
            break
        began = here.clock.monotonic()
        answers.append(delivery.deliver(message, run or caller.run))
        if answers[-1].outcome == "ignored":
            continue
        left -= 1
        if len(answers) > _FEW:
            here.clock.sleep(min(here.clock.monotonic() - began, _LONGEST_PAUSE))
    return tuple(answers)


@method
def remark(context: CallContext, kind: str, payload: dict[str, Any], task_id: str = "") -> None:
    """Put a remark about the service into the log; it may name a task, and changes none."""
    draft = kernel_events.Draft(type=kind, task_id=task_id, payload=payload)
    record_remark(context.environment.store, context.environment.clock, draft, context.actor)


def _carried(fabric: Fabric, values: dict[str, Any]) -> Carried:
    applied = fabric.session_end(**values)
    agent = values.get("agent") or (fabric.actor if "run" not in values else None)
    return Carried(applied=applied, mail=fabric.turn_ended(agent, "session-end") if agent else LeftOver())


@operation(
    effect="write",
    section="team",
    order=20,
    summary="apply the results that runs have reported",
    example="aof session-end --agent swe-backend",
    acts="agent",
    over_wire=_carried,
)
def session_end(
    context: CallContext,
    *,
    agent: Annotated[str, param("only the runs of this agent")] | None = None,
    run: Annotated[str, param("this run has ended; without a report it has failed")] | None = None,
) -> tuple[Applied, ...]:
    """Apply the results that runs have reported; a named run has ended.

    They are those of all runs, or of one agent's. What a run that has ended has reported is carried out, and without a
    report it has failed.
    """
    here, applied = context.environment, list[Applied]()
    agent = agent or (context.authentication.only_name() if run is None else None)
    if run is None:
        tasks = here.store.find(here.read_models.query(status="in-progress")).tasks
    elif (task_id := task_of_run(run)) is not None:
        tasks = (here.lookup.get(task_id),)
    else:
        raise InvalidInput(f"{run[:80]!r} is not a run", "name the run that the claim returned", Call("list", {}))
    for task in tasks:
        held = workflows_model.leases(task) if task.gated else filter(None, (task.lease,))
        holder = next((one.agent for one in held if agent in (None, one.agent) and run in (None, one.run_id)), None)
        if not holder:
            continue
        ended = rules.EndSession(actor=holder, run=run, task_id=task.id, caller=context.actor)
        done = recover_run(here, task, ended, context.dispatch, context.actor)
        events = done.events if done is not None else ()
        moves = [event for event in events if event.type == "task.transitioned" and event.task_id == task.id]
        if task.gated and done is not None and done.task is not None:
            applied += _of_hops(task, done.task, events)
        elif moves:
            applied.append(_applied(task.id, moves, events))
    return tuple(applied)


def _applied(task_id: str, moves: list[Event], events: tuple[Event, ...]) -> Applied:
    """How the run ended: with the outcome that it reported, or in vain, and then the reason has a name."""
    outcome = "cancelled"
    for event in events:
        if event.task_id == task_id and event.type == "task.attempt.completed":
            outcome = event.payload["outcome"]
        elif event.task_id == task_id and event.type == "task.attempt.failed":
            outcome = event.payload["error"]["code"]
    return kernel_results.Applied(
        task_id=task_id, from_status=moves[0].payload["from"], to_status=moves[-1].payload["to"], outcome=outcome
    )


def _of_hops(before: Task, after: Task, events: tuple[Event, ...]) -> Iterator[Applied]:
    """Each run of a hop that has ended by itself, also where the task goes on as it was."""
    for event in events:
        hop = event.payload.get("hop") if event.task_id == before.id else None
        if hop is None or event.type not in ("task.attempt.completed", "task.attempt.failed"):
            continue
        outcome = event.payload.get("outcome") or event.payload["error"]["code"]
        if outcome != "reset":  # another hop's rejection has ended it
            yield kernel_results.Applied(
                task_id=before.id, from_status=before.status, to_status=after.status, outcome=outcome, hop=hop
            )


def recover_run(
    environment: Environment, task: Task, command: OnTask, dispatch: Callable[[OnTask], Done], actor: str
) -> Done | None:
    """Carry out the command; None where a person must look at the task first, so that others can go on."""
    try:
        return dispatch(command)
    except UnreadableTask:
        return None  # until somebody has corrected its file
    except UnreadableResult as problem:
        _reject_result(environment, task, problem, actor)
        return None


def _reject_result(environment: Environment, task: Task, problem: UnreadableResult, actor: str) -> None:
    """Record why a result was rejected, once for each run and problem."""
    store = environment.store
    run = task.lease.run_id if task.lease is not None else None
    payload = {"reason": problem.code, "detail": problem.message}
    said = (event for event in store.events(task_id=task.id) if event.type == _REJECTED and event.run_id == run)
    if not any(event.payload == payload for event in said):
        draft = Draft(type=_REJECTED, task_id=task.id, run_id=run, payload=payload)
        record_remark(store, environment.clock, draft, actor)


PLAIN: Final = "plain"
_FIELD: Final = re.compile(rf'"{NONCE}"\s*:\s*"([0-9A-Za-z_-]{{1,128}})"')
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError, ValueError)


class WorkerOutput:
    """The lines of one run. `warn` is called once, for the first that looks like a message and proves nothing."""

    def __init__(self, work: Work, warn: Callable[[str], None]) -> None:
        self._nonce = work.nonce
        self._plain = work.messages == PLAIN
        self._agent = work.agent
        self._brief = _squeezed(work.brief) if self._plain else ""
        self._warn: Callable[[str], None] | None = warn

    def message_in(self, line: str) -> str | None:
        """The line without its nonce, if it counts as a message."""
        given = _nonce_of(line.removeprefix(PREFIX))
        if given is not None:
            proven = bool(self._nonce) and hmac.compare_digest(given.encode("utf-8", "replace"), self._nonce.encode())
            return line.replace(self._nonce, "*" * len(self._nonce)) if proven else self._ignored(_WRONG)
        if not self._plain:
            return self._ignored(_WITHOUT)
        # Broken JSON can only be refused, and every brief contains such a beginning.
        quoted = _parsed(line.removeprefix(PREFIX)) is not None and _squeezed(visible(line)) in self._brief
        return self._ignored(_OF_BRIEF) if quoted else line

    def _ignored(self, why: str) -> str | None:
        """No message: plain output, and the first time a warning."""
        warn, self._warn = self._warn, None
        if warn is not None:
            warn(f"{self._agent} {why}")
        return None


_WITHOUT: Final = (
    f"printed an AOF/1 line without '{NONCE}': it is plain output and no message. Let the agent send the value of "
    f"${VARIABLE} in the envelope's field '{NONCE}'; if it only knows the plain form, set "
    "'runner: {messages: plain}' in org/org-chart.yaml"
)
_WRONG: Final = f"printed an AOF/1 line with a '{NONCE}' that is not its own: it is plain output and no message"
_OF_BRIEF: Final = (
    "printed an AOF/1 line that is also in its brief: it is plain output and not a message, also with 'messages: plain'"
)


def _nonce_of(text: str) -> str | None:
    """The nonce of a message, also of one that is broken, so that its sender learns of it."""
    fields = _parsed(text)
    if fields is None:
        found = _FIELD.search(text)
        return found.group(1) if found is not None else None
    given = fields.get(NONCE)
    return None if given is None else given if isinstance(given, str) else ""


def _parsed(text: str) -> dict[str, Any] | None:
    """The object that the text is; None where it is anything else."""
    try:
        return nesting.decode_json(text.encode(), dict[str, Any])
    except _UNREADABLE:
        return None


def _squeezed(text: str) -> str:
    """The text without white space, so that a line with other spaces counts as the same line."""
    return "".join(text.split())
