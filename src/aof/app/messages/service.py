"""Operations about messages, sessions and handoffs. Must not know which store or channel is in use.

What only a message needs is loaded when one arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aof.app.commands.authenticated import Asking
from aof.app.operations import results
from aof.core.errors import messages as message_errors
from aof.core.errors import runs as run_errors
from aof.core.errors import tasks as task_errors
from aof.core.errors.base import Call, InvalidInput
from aof.core.messages import session
from aof.core.model import events, workflow_state
from aof.core.model.ids import task_of_run
from aof.ports import store as ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.unit_of_work import Done
    from aof.app.operations.results import Applied, Sent
    from aof.core.model.commands import OnTask
    from aof.core.model.events import Event
    from aof.core.model.handoff import Handoff
    from aof.core.model.task import Task


class Messaging(Asking):
    """What agents tell AOF, and what AOF makes of a run that has ended."""

    _run_of: Callable[[str], str | None] | None = None  # of a caller that may hold several tasks

    def send(self, *messages: Any, run: str | None = None) -> tuple[Sent, ...]:
        """Deliver AOF/1 messages: objects, texts, or lists of them. Each is answered; a refusal raises nothing.

        `run` is the run that the channel speaks for, where it knows. Text that is no message does not count towards the
        limit; what comes after the limit is refused with one answer, the last.
        """
        from aof.app.messages.router import Router

        router = Router(
            self.store, self._clock, self._ask, self._actor, run_of=self._run_of, proven=self._session_name()
        )
        waiting, answers = _flat(messages), []
        left = self._policy.messages_per_send
        for message in waiting:
            if left <= 0:
                answers.append(router.refuse_rest(self._policy.messages_per_send, 1 + sum(1 for _ in waiting)))
                break
            answers.append(router.deliver(message, run or self._run))
            left -= answers[-1].outcome != "ignored"
        return tuple(answers)

    def remark(self, kind: str, payload: dict[str, Any]) -> None:
        """Put a remark about the service into the log, which concerns no task."""
        from aof.app.messages.router import record

        record(self.store, self._clock, events.Draft(type=kind, task_id="", payload=payload), self._actor)

    def session_end(self, *, agent: str | None = None, run: str | None = None) -> tuple[Applied, ...]:
        """Carry out what runs have reported: all of them, or those of one agent.

        With a `run`, that run has ended: what it has reported is carried out, and without a report it has failed.
        """
        applied: list[Applied] = []
        agent = agent or (self._speaks_as() if run is None else None)
        for task in self._sessions(agent, run):
            ended = session.EndSession(actor=_agent_of(task, agent, run), run=run, task_id=task.id, caller=self._actor)
            done = self._recovered(task, ended, self._ask)
            if task.gated and done is not None and done.task is not None:
                applied += _of_hops(task, done.task, done.events)
            elif moves := _moves(done, task.id):
                applied.append(_applied(task.id, moves, done.events if done is not None else ()))
        return tuple(applied)

    def _sessions(self, agent: str | None, run: str | None) -> Iterator[Task]:
        """The running tasks that the end of a session may concern."""
        if run is None:
            tasks = self.store.find(self._reading.query(status="in-progress")).tasks
        elif (task_id := task_of_run(run)) is not None:
            tasks = (self.get(task_id),)
        else:
            raise InvalidInput(f"{run[:80]!r} is no run", "name the run that the claim returned", Call("list", {}))
        for task in tasks:
            if _agent_of(task, agent, run):
                yield task

    def _recovered(self, task: Task, command: OnTask, carry_out: Callable[[OnTask], Done]) -> Done | None:
        """Go on with the others where a person must look at one."""
        try:
            return carry_out(command)
        except task_errors.UnreadableTask:
            return None  # until somebody has corrected its file
        except run_errors.UnreadableResult as problem:
            self._reject_result(task, problem)
            return None

    def _reject_result(self, task: Task, problem: run_errors.UnreadableResult) -> None:
        """Said once for each run and problem, however often somebody looks."""
        from aof.app.messages.router import record

        run = task.lease.run_id if task.lease is not None else None
        payload = {"reason": problem.code, "detail": problem.message}
        kind = "protocol.message.rejected"
        said = (event for event in self.store.events(task_id=task.id) if event.type == kind and event.run_id == run)
        if not any(event.payload == payload for event in said):
            draft = events.Draft(type=kind, task_id=task.id, run_id=run, payload=payload)
            record(self.store, self._clock, draft, self._actor)

    def handoffs(
        self, *, task: str | None = None, from_agent: str | None = None, to_agent: str | None = None
    ) -> tuple[Handoff, ...]:
        """The handoffs, oldest first: of one task (as child or as parent), from or to one agent."""
        task_id = self.resolve(task) if task is not None else None
        return tuple(
            handoff
            for handoff in self.store.handoffs()
            if task_id in (None, handoff.task_id, handoff.parent_task_id)
            and from_agent in (None, handoff.from_agent)
            and to_agent in (None, handoff.to_agent)
        )

    def handoff(self, handoff_id: str) -> Handoff:
        """One handoff."""
        from aof.core.model.handoff import task_of_handoff

        task_id = task_of_handoff(handoff_id)
        if task_id is not None:
            with self.store.unit(ports.Scope(read=frozenset({task_id}))) as unit:
                found = [handoff for handoff in unit.handoffs(task_id) if handoff.id == handoff_id]
            if found:
                return found[0]
        raise message_errors.HandoffNotFound(
            f"there is no handoff {handoff_id[:80]!r}", "list what there is", Call("handoffs", {})
        )


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
    held = workflow_state.leases(task) if task.gated else filter(None, (task.lease,))
    return next((one.agent for one in held if agent in (None, one.agent) and run in (None, one.run_id)), "")
