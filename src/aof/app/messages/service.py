"""Operations about messages and sessions. Must not know which store or channel is in use."""

from __future__ import annotations

from collections.abc import Iterator

from aof.app.messages import router
from aof.app.operations import results
from aof.app.runs import recovery
from aof.core.errors.base import Call, InvalidInput
from aof.core.messages import session
from aof.core.model import events, workflow
from aof.core.model.ids import task_of_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.context import Environment, Principal
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.commands.identity import Authentication
    from aof.app.commands.unit_of_work import Done
    from aof.app.operations.results import Applied, Sent
    from aof.core.model.events import Event
    from aof.core.model.task import Task

_FEW = 10  # messages that one send delivers without a pause
_LONGEST_PAUSE = 0.05  # seconds


class MessageService:
    """What agents tell AOF, and what AOF makes of a session that has ended."""

    def __init__(
        self, environment: Environment, principal: Principal, authentication: Authentication, dispatcher: Dispatcher
    ) -> None:
        self._environment = environment
        self._principal = principal
        self._authentication = authentication
        self._dispatcher = dispatcher

    def send(self, *messages: Any, run: str | None = None) -> tuple[Sent, ...]:
        """Deliver AOF/1 messages: objects, texts, or lists of them. Each is answered; a refusal raises nothing.

        `run` is the run that the channel speaks for, if it knows. Text that is not a message does not count against the
        limit; what comes after the limit is refused with one answer, the last. After the first few, each message is
        followed by a pause as long as it took, so that others get half of the time.
        """
        here, caller = self._environment, self._principal
        delivery = router.Router(
            here.store,
            here.clock,
            self._dispatcher.dispatch,
            caller.actor,
            run_of=caller.run_of,
            proven=self._authentication.session_name(),
        )
        waiting, answers = _flat(messages), []
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

    def remark(self, kind: str, payload: dict[str, Any], task_id: str = "") -> None:
        """Put a remark about the service into the log; it may name a task, and changes none."""
        draft = events.Draft(type=kind, task_id=task_id, payload=payload)
        router.record(self._environment.store, self._environment.clock, draft, self._principal.actor)

    def session_end(self, *, agent: str | None = None, run: str | None = None) -> tuple[Applied, ...]:
        """Carry out what runs have reported: all of them, or those of one agent.

        With a `run`, that run has ended: what it has reported is carried out, and without a report it has failed.
        """
        applied: list[Applied] = []
        agent = agent or (self._authentication.only_name() if run is None else None)
        for task in self._sessions(agent, run):
            ended = session.EndSession(
                actor=_agent_of(task, agent, run), run=run, task_id=task.id, caller=self._principal.actor
            )
            done = recovery.recovered(self._environment, task, ended, self._dispatcher.dispatch, self._principal.actor)
            if task.gated and done is not None and done.task is not None:
                applied += _of_hops(task, done.task, done.events)
            elif moves := _moves(done, task.id):
                applied.append(_applied(task.id, moves, done.events if done is not None else ()))
        return tuple(applied)

    def _sessions(self, agent: str | None, run: str | None) -> Iterator[Task]:
        """The running tasks that the end of a session may concern."""
        if run is None:
            models = self._environment.read_models
            tasks = self._environment.store.find(models.query(status="in-progress")).tasks
        elif (task_id := task_of_run(run)) is not None:
            tasks = (self._environment.lookup.get(task_id),)
        else:
            raise InvalidInput(f"{run[:80]!r} is not a run", "name the run that the claim returned", Call("list", {}))
        for task in tasks:
            if _agent_of(task, agent, run):
                yield task


def _flat(messages: tuple[Any, ...]) -> Iterator[Any]:
    for message in messages:
        if isinstance(message, list | tuple):
            yield from message
        else:
            yield message


def _moves(done: Done | None, task_id: str) -> list[Event]:
    events = done.events if done is not None else ()
    return [event for event in events if event.type == "task.transitioned" and event.task_id == task_id]


def _applied(task_id: str, moves: list[Event], events: tuple[Event, ...]) -> Applied:
    """How the run ended: with the outcome that it reported, or in vain, and then the reason has a name."""
    outcome = "cancelled"
    for event in events:
        if event.task_id == task_id and event.type == "task.attempt.completed":
            outcome = event.payload["outcome"]
        elif event.task_id == task_id and event.type == "task.attempt.failed":
            outcome = event.payload["error"]["code"]
    return results.Applied(
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
            yield results.Applied(
                task_id=before.id, from_status=before.status, to_status=after.status, outcome=outcome, hop=hop
            )


def _agent_of(task: Task, agent: str | None, run: str | None) -> str:
    """Whose session on the task this is about; nobody's: empty."""
    held = workflow.leases(task) if task.gated else filter(None, (task.lease,))
    return next((one.agent for one in held if agent in (None, one.agent) and run in (None, one.run_id)), "")
