"""Carries out what is due of handoffs, each by an ordinary command that looks again under its own locks.

Must not know when something is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from aof._support.typed import prepare_type
from aof.app.commands import trust
from aof.app.commands.context import Environment
from aof.app.commands.unit_of_work import Done
from aof.app.handoffs.pending import Pending
from aof.app.scheduler.housekeeping import Health
from aof.app.tasks.service import with_new_id
from aof.core.handoffs import answer_task, unanswered
from aof.core.handoffs.lifecycle import answers, returns, timeouts
from aof.core.handoffs.lifecycle.initiation import Initiate
from aof.core.handoffs.lifecycle.proposal import HandoffProposal
from aof.core.model.commands import OnTask
from aof.core.model.handoffs.record import Handoff, Trigger
from aof.core.model.ids import OURSELVES
from aof.core.model.org_chart import HUMAN
from aof.core.model.task import Task
from aof.core.scheduling.handoff_timers import RUNS_IT, TO_ANSWER
from aof.core.scheduling.view import Action, Snapshot
from aof.core.validation.required_capabilities import KEY
from aof.ports.lists import Query

BEGIN = "handoff_begin"
CHECK = "health_check"
OPEN_HANDOFFS = Query(open_handoffs=True, archived=True, counted=False)
_CHANGED = "it has changed in the meantime"


class HandoffSteps:
    """The steps of handoffs that the scheduler takes by itself."""

    def __init__(self, environment: Environment, execute: Callable[[OnTask], Done]) -> None:
        self._environment = environment
        self._execute = execute
        self.health = Health(environment)
        self._pending = Pending(environment.store)
        self._asked: dict[str, str] = {}

    def look(self, running: tuple[Task, ...], ready: tuple[Task, ...], handed: tuple[Task, ...]) -> dict[str, Any]:
        """What a plan should know of handoffs and of those that hold something, as fields of its snapshot."""
        self._pending.forget((*running, *ready, *handed))
        still_open = self._pending.open(handed)
        answering = self._answers(one for _, one in still_open)
        self._asked = {name: task.id for name, task in answering.items()}
        return {
            "handoffs": self._pending.messages((*running, *ready)),
            "handed": still_open,
            "answers": answering,
            "watches": self.health.watched(running, still_open),
            "triggered": self._pending.triggered((*running, *ready)),
        }

    def _answers(self, handoffs: Iterable[Handoff]) -> dict[str, Task]:
        """The tasks by which agents answer some of these handoffs; looked for only where somebody was asked."""
        asked = {one.id for one in handoffs if one.acceptance and one.acceptance.reason == TO_ANSWER}
        known = {name: task_id for name, task_id in self._asked.items() if name in asked}
        if asked - known.keys():
            query = Query(tag=answer_task.TAG, archived=True, counted=False)
            found = {answer_task.handoff_of(one): one.id for one in self._environment.store.find(query).tasks}
            known |= {name: found[name] for name in asked if name in found}
        self._asked |= known
        tasks = self._environment.store.records(tuple(known.values())) if known else ()
        return {name: one for one in tasks if (name := answer_task.handoff_of(one)) is not None}

    def carry_out(self, action: Action, snapshot: Snapshot) -> str | None:
        """Do it; why it was not done, if so."""
        if action.action == "handoff_unanswered":
            return self._did(_said(action))
        if action.action == BEGIN:
            return self._begin(action)
        if action.action == CHECK:
            return self.health.check(action.agent or "", snapshot)
        found = next((one for _, one in snapshot.handed if one.id == action.handoff_id), None)
        return _CHANGED if found is None else _STEPS[action.action](self, action, found)

    def _did(self, command: OnTask) -> str | None:
        return None if self._execute(command).events else _CHANGED

    def _begin(self, action: Action) -> str | None:
        """Hand over for an agent, for a reason that the plan has found."""
        (task,) = self._environment.store.records((action.task_id,))
        target = action.to_agent or ""
        escalates = action.trigger == "timeout" or not target
        proposal = HandoffProposal(
            type="escalation" if escalates else "sequential",
            to=(target,) if target and target != HUMAN else (),
            reason=action.reason,
            rationale=action.reason,
            capabilities=tuple(task.profile.get(KEY, ())) if action.trigger == "capability_mismatch" else (),
            trigger=msgspec.convert(action.trigger, prepare_type(Trigger)),
        )
        command = Initiate(
            actor=OURSELVES, agent=action.agent, task_id=action.task_id, proposal=proposal, detected=True
        )
        return self._did(command)

    def _deliver(self, action: Action, handoff: Handoff) -> str | None:
        return self._did(timeouts.Deliver(actor=OURSELVES, task_id=action.task_id, handoff_id=handoff.id))

    def _accept(self, action: Action, handoff: Handoff) -> str | None:
        """For an agent that is started: the run begins when the scheduler assigns the task."""
        known = self._environment.chart.whole().by_id.get(handoff.to_agent)
        if known is not None and (why := trust.untrusted(self._environment.trust, known)):
            return why
        accept = answers.Accept(
            actor=OURSELVES,
            agent=handoff.to_agent,
            task_id=action.task_id,
            handoff_id=handoff.id,
            reason=None if handoff.type in RUNS_IT else TO_ANSWER,
            begin=False,
        )
        return self._did(accept)

    def _ask(self, action: Action, handoff: Handoff) -> str | None:
        """Create the task by which the agent answers; the ordinary assignment starts the agent."""
        (task,) = self._environment.store.records((action.task_id,))
        ask = partial(answer_task.question, task, handoff)
        done = with_new_id(self._environment, lambda task_id: self._execute(ask(task_id)))
        return None if done.events else _CHANGED

    def _remind(self, action: Action, handoff: Handoff) -> str | None:
        return self._did(timeouts.Remind(actor=OURSELVES, task_id=action.task_id, handoff_id=handoff.id))

    def _time_out(self, action: Action, handoff: Handoff) -> str | None:
        """An agent that does not even acknowledge cannot be reached."""
        if handoff.state == "requested":
            self.health.lost(handoff.to_agent, action.reason)
        command = timeouts.TimeOutHandoff(
            actor=OURSELVES,
            task_id=action.task_id,
            handoff_id=handoff.id,
            state=handoff.state,
            reason=action.reason,
        )
        return self._did(command)

    def _return(self, action: Action, handoff: Handoff) -> str | None:
        """What an agent has done under a delegation, or has answered, is its return."""
        (handed,) = self._environment.store.records((action.task_id,))
        answer = self._answers((handoff,)).get(handoff.id)
        task = answer or handed
        done = task.status == "done"
        command = returns.ReturnResult(
            actor=OURSELVES,
            agent=handoff.to_agent,
            task_id=action.task_id,
            handoff_id=handoff.id,
            status="success" if done else "failed",
            result={"task": task.id, "status": task.status} | ({"answer": self._summary(answer)} if answer else {}),
            notes=action.reason,
        )
        return self._did(command)

    def _summary(self, task: Task) -> str:
        """What the last result of a task says."""
        results = [
            event.payload["result"]
            for event in self._environment.store.events(task_id=task.id)
            if event.type == "task.completed"
        ]
        return str(results[-1].get("notes") or "") if results else ""

    def _withdraw(self, action: Action, handoff: Handoff) -> str | None:
        command = timeouts.Withdraw(
            actor=OURSELVES,
            agent=handoff.from_agent,
            task_id=action.task_id,
            handoff_id=handoff.id,
            reason=action.reason,
        )
        return self._did(command)


def _said(action: Action) -> unanswered.SayUnanswered:
    return unanswered.SayUnanswered(
        actor=OURSELVES, task_id=action.task_id, handoff_id=action.handoff_id or "", reason=action.reason
    )


_STEPS: dict[str, Callable[[HandoffSteps, Action, Handoff], str | None]] = {
    "handoff_deliver": HandoffSteps._deliver,  # noqa: SLF001 - the table of this class
    "handoff_accept": HandoffSteps._accept,  # noqa: SLF001
    "handoff_ask": HandoffSteps._ask,  # noqa: SLF001
    "handoff_remind": HandoffSteps._remind,  # noqa: SLF001
    "handoff_timeout": HandoffSteps._time_out,  # noqa: SLF001
    "handoff_return": HandoffSteps._return,  # noqa: SLF001
    "handoff_withdraw": HandoffSteps._withdraw,  # noqa: SLF001
}
STEPS = ("handoff_unanswered", BEGIN, CHECK, *_STEPS)
