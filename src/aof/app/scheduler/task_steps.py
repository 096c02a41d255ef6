"""Carries out the due actions of tasks, each by an ordinary command that checks again under its own locks.

Must not know when something is due, nor how a worker is started or stopped: that is its host's part.
"""

from __future__ import annotations

from collections.abc import Callable

from aof.app.commands import trust
from aof.app.commands.context import Environment
from aof.app.commands.dispatcher import Dispatcher
from aof.app.commands.unit_of_work import Done
from aof.app.runs import recovery
from aof.app.scheduler.worker_host import WorkerHost
from aof.core.model import commands as c
from aof.core.model.ids import OURSELVES, attempt_of
from aof.core.model.run import lease_end
from aof.core.model.task import Task
from aof.core.model.workflow import held_leases
from aof.core.runs.lease_clock import present
from aof.core.scheduling.crew import STARTED
from aof.core.scheduling.view import Action

CHANGED = "it has changed in the meantime"


class TaskSteps:
    """The steps of tasks that the scheduler takes by itself; without a host nothing is started."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher, host: WorkerHost | None) -> None:
        self._environment = environment
        self._dispatcher = dispatcher
        self._host = host
        self._clock = environment.clock
        self.unended = False  # whether a worker that was in the way is still ending

    def carry_out(self, action: Action, task: Task | None) -> str | None:
        """Do it; why it was not done, if so."""
        return CHANGED if task is None else _CARRIERS[action.action](self, action, task)

    def untrusted(self, action: Action) -> str | None:
        """Why the agent of an action is not started: nobody has trusted its command."""
        known = self._environment.chart.whole().by_id.get(action.agent or "")
        return trust.untrusted(self._environment.trust, known) if known is not None else None

    def execute(self, command: c.OnTask) -> Done:
        """Carry out a command in our own name."""
        return self._dispatcher.dispatch_trusted(command)

    def _did(self, command: c.OnTask) -> str | None:
        return None if self.execute(command).events else CHANGED

    def _promote(self, action: Action, task: Task) -> str | None:
        return self._did(c.Promote(actor=OURSELVES, task_id=task.id, reason=action.reason))

    def _deadletter(self, action: Action, task: Task) -> str | None:
        return self._did(c.DeadLetter(actor=OURSELVES, task_id=task.id, reason=action.reason))

    def _alert(self, action: Action, task: Task) -> str | None:
        return self._did(c.Alert(actor=OURSELVES, task_id=task.id, status=task.status, reason=action.reason))

    def _overdue(self, action: Action, task: Task) -> str | None:
        alert = c.Alert(actor=OURSELVES, task_id=task.id, status=task.status, due=task.due, reason=action.reason)
        return self._did(alert)

    def _archive(self, action: Action, task: Task) -> str | None:
        return self._did(c.ArchiveTask(actor=OURSELVES, task_id=task.id, reason=action.reason))

    def _accept(self, action: Action, task: Task) -> str | None:
        return self._did(c.Approve(actor=OURSELVES, task_id=task.id, reason=action.reason))

    def _expire(self, action: Action, task: Task) -> str | None:
        if why := self.ended_first(task, action):
            return why
        done = self.expired(task, action)
        if done is None:
            return "what its run has reported, or its file, cannot be read"
        return None if done.events else CHANGED

    def ended_first(self, task: Task, action: Action) -> str | None:
        """End what is left of a run before its task goes to another agent; returns why that failed, if it did."""
        orphans = self._environment.orphans
        if orphans is None:
            return None
        for place, lease in held_leases(task):
            if lease.worker not in STARTED or (action.run_id is not None and lease.run_id != action.run_id):
                continue
            now = self._clock.now()
            beat = present(self._environment.store.heartbeats([place])[place], now, self._clock.boot())
            if action.action == "stale_heartbeat" and lease_end(lease, beat) > now:
                return CHANGED
            if why := orphans.end(place, attempt_of(lease.run_id), lease.run_id):
                self.unended = True
                return why
        return None

    def expired(self, task: Task, action: Action) -> Done | None:
        """A task's run, or only that of the hop that the action is about."""
        run = action.run_id if action.hop is not None else None
        expire = c.Expire(actor=OURSELVES, run=run, task_id=task.id)
        return recovery.recovered(self._environment, task, expire, self.execute, self._dispatcher.actor)

    def _time_out(self, action: Action, task: Task) -> str | None:
        if self._host is not None and action.run_id is not None and action.run_id in self._host.hosted:
            return self._host.stop(action.run_id, "timeout")
        if why := self.ended_first(task, action):
            return why
        return self._did(
            c.Fail(
                actor=OURSELVES,
                task_id=task.id,
                run=action.run_id,
                code="max_execution_time",
                message=action.reason,
                cause="timed_out",
            )
        )

    def _hop_timeout(self, action: Action, task: Task) -> str | None:
        return self._did(c.TimeOut(actor=OURSELVES, task_id=task.id, hop=action.hop or ""))

    def _assign(self, action: Action, task: Task) -> str | None:
        if self._host is None or action.agent is None:
            return self.untrusted(action) or f"{action.agent} is started by 'aof up'"
        return self._host.begin(task, action.agent, action.hop)

    def _cascade(self, action: Action, task: Task) -> str | None:
        assert self._host is not None
        assert action.run_id is not None
        if action.run_id in self._host.hosted:
            return self._host.stop(action.run_id, "cancelled")
        return self._host.clear(task, action.run_id, "cancelled")

    def _requeue(self, action: Action, task: Task) -> str | None:
        assert self._host is not None
        assert action.run_id is not None
        return self._host.clear(task, action.run_id, "lost")


_CARRIERS: dict[str, Callable[[TaskSteps, Action, Task], str | None]] = {
    "promote": TaskSteps._promote,  # noqa: SLF001 - the table of this class
    "assign": TaskSteps._assign,  # noqa: SLF001
    "stale_heartbeat": TaskSteps._expire,  # noqa: SLF001
    "requeue": TaskSteps._requeue,  # noqa: SLF001
    "deadletter": TaskSteps._deadletter,  # noqa: SLF001
    "timeout": TaskSteps._time_out,  # noqa: SLF001
    "hop_timeout": TaskSteps._hop_timeout,  # noqa: SLF001
    "sla_alert": TaskSteps._alert,  # noqa: SLF001
    "overdue_alert": TaskSteps._overdue,  # noqa: SLF001
    "gate_elapsed": TaskSteps._accept,  # noqa: SLF001
    "cascade": TaskSteps._cascade,  # noqa: SLF001
    "archive": TaskSteps._archive,  # noqa: SLF001
}
STEPS = tuple(_CARRIERS)
