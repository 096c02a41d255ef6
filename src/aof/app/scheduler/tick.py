"""One tick: look at the unfinished tasks, plan, and carry out each action by an ordinary command.

The plan is made without locks; every command looks again under its own, so that two schedulers at once are safe and
what has changed in between is left alone. An action that raises is recorded and tried again later; all others go on.
Must not know how a worker is started or stopped: that is its host's part.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from aof.app.commands import trust
from aof.app.commands.context import Environment
from aof.app.commands.dispatcher import Dispatcher
from aof.app.commands.unit_of_work import Done
from aof.app.faults import Faults
from aof.app.operations.results import Recovered, Result
from aof.app.runs import recovery
from aof.app.scheduler import handoff_steps, housekeeping
from aof.app.scheduler.finished_tasks import FinishedTasks
from aof.app.scheduler.worker_host import WorkerHost
from aof.core.errors.base import AofError
from aof.core.errors.org import UnusableOrgChart
from aof.core.model import commands as c
from aof.core.model.ids import OURSELVES, attempt_of
from aof.core.model.run import lease_end
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.model.workflow import held_leases
from aof.core.runs.lease_clock import present
from aof.core.scheduling.crew import STARTED, Crew, Nobody, crew_of
from aof.core.scheduling.plan import plan
from aof.core.scheduling.view import Action, LeftAlone, Plan, Snapshot
from aof.ports.lists import Query

_WHENEVER = "9999"  # the plan looks at the time itself
_STILL_ENDING = 250  # milliseconds after which a worker that was in the way may have ended
_EXPLAINED = ("blocked", "review", "backlog")
_GROUPS = ("running", "backlog", "ready", "blocked", "review", "finished")


class Ticked(Result, frozen=True, kw_only=True):
    """What a tick did, or would do, and why; what it left alone; and when to look again though nothing happens."""

    dry_run: bool
    actions: tuple[Action, ...]
    left: tuple[LeftAlone, ...]
    next_at: str | None


class Tick:
    """What one tick works with; without a host nothing is started."""

    def __init__(
        self,
        environment: Environment,
        dispatcher: Dispatcher,
        host: WorkerHost | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._environment = environment
        self._dispatcher = dispatcher
        self._host = host
        self._faults = faults or Faults(environment.clock)
        self._store = environment.store
        self._clock = environment.clock
        self._policy = environment.policy
        self._handoffs = handoff_steps.HandoffSteps(environment, self._execute)
        self._housekeeping = housekeeping.Housekeeping(environment)
        self._finished = FinishedTasks(environment)
        self._jobs = housekeeping.JobSteps(environment, self._execute, self._faults)
        self._job_due: int | None = None
        self._trouble: AofError | None = None
        self._unended = False
        self.last = Snapshot()

    def ticked(self, *, dry_run: bool = False, explain: bool = True) -> Ticked:
        """Plan, and unless it is only for show, do it. `explain` also what is left alone."""
        self._trouble, self._unended = None, False
        dispatched, self._job_due = self._jobs.dispatch(dry_run=dry_run)
        snapshot = self.last = self.snapshot(explain=explain)
        if self._host is not None and not dry_run:
            self._host.fence(snapshot)
        if not dry_run:
            self._housekeeping.follow(self._faults)
        planned = self.planned(snapshot)
        mailed = housekeeping.mail_escalations(self._environment, self._faults, dry_run=dry_run)
        if dry_run:
            kept, refused = self._foreseen(planned.actions)
            return _told(planned, (*dispatched, *kept, *mailed), (*planned.left, *refused), dry_run=True)
        tasks = {task.id: task for task in (*snapshot.running, *_waiting(snapshot), *snapshot.finished)}
        done: list[Action] = []
        left = list(planned.left)
        for action in planned.actions:
            why_not = self._carried_out(action, tasks.get(action.task_id))
            if why_not is None:
                done.append(action)
            else:
                left.append(LeftAlone(task_id=action.task_id, reason=why_not))
        if self._host is None and not done and self._trouble is not None:
            raise self._trouble  # nothing could be done, and nobody tries again by himself
        return _told(self._sooner(planned), (*dispatched, *done, *mailed), tuple(left), dry_run=False)

    def _foreseen(self, actions: tuple[Action, ...]) -> tuple[list[Action], list[LeftAlone]]:
        """What `up` would do of a plan, and what it would refuse: it starts no command that nobody has trusted."""
        kept: list[Action] = []
        refused: list[LeftAlone] = []
        for action in actions:
            why_not = self._untrusted(action) if action.action == "assign" else None
            if why_not is None:
                kept.append(action)
            else:
                refused.append(LeftAlone(task_id=action.task_id, reason=why_not))
        return kept, refused

    def _untrusted(self, action: Action) -> str | None:
        known = self._environment.chart.whole().by_id.get(action.agent or "")
        return trust.untrusted(self._environment.trust, known) if known is not None else None

    def recovered(self) -> tuple[Recovered, ...]:
        """Only what vanished workers left behind."""
        found: list[Recovered] = []
        snapshot = self._running()
        for action in self.planned(snapshot).actions:
            if action.action == "stale_heartbeat":
                task = next(task for task in snapshot.running if task.id == action.task_id)
                found += self._recovered(task, action)
        return tuple(found)

    def _recovered(self, task: Task, action: Action) -> list[Recovered]:
        """What a command would be told, a person is: one task's trouble keeps no other from being recovered."""
        try:
            if why := self._ended_first(task, action):
                return [Recovered(task_id=task.id, status=task.status, reason=why)]
            return _moves(task.id, self._expired(task, action))
        except AofError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge of one action
            self._faults.note("stale_heartbeat", task.id, error)
            return []

    def planned(self, snapshot: Snapshot) -> Plan:
        """What should be done with what was seen. A task that no plan can be made for is left out, and told."""
        crew, now = self.crew(), self._clock.now()
        policy = self._environment.with_gates(self._policy)
        try:
            return plan(snapshot, crew, policy, now)
        except Exception as error:
            sound, left = self._without_unplannable(snapshot, crew, now)
            if not left:
                raise error from None
            planned = plan(sound, crew, policy, now)
            return msgspec.structs.replace(planned, left=(*planned.left, *left))

    def _without_unplannable(self, snapshot: Snapshot, crew: Crew, now: int) -> tuple[Snapshot, list[LeftAlone]]:
        """Plan each task alone to find those that cannot be."""
        left: list[LeftAlone] = []
        sound: dict[str, tuple[Task, ...]] = {}
        alone = msgspec.structs.replace(snapshot, **dict.fromkeys(_GROUPS, ()))
        for group in _GROUPS:
            kept: list[Task] = []
            for task in getattr(snapshot, group):
                try:
                    plan(msgspec.structs.replace(alone, **{group: (task,)}), crew, self._policy, now)
                    kept.append(task)
                except Exception as error:  # noqa: BLE001 - the edge of one task
                    left.append(LeftAlone(task_id=task.id, reason=self._unplanned(task, error)))
            sound[group] = tuple(kept)
        return msgspec.structs.replace(snapshot, **sound), left

    def _unplanned(self, task: Task, error: Exception) -> str:
        key = ("plan", task.id)
        if wait := self._faults.wait(key):
            return f"no plan can be made for it; it is looked at again in {wait:.0f} s"
        return self._faults.failed(key, "planning", task.id, error)

    def _sooner(self, planned: Plan) -> Plan:
        """The plan, looked at again when something that failed is to be tried again, or what ends may have ended."""
        waits = self._faults.waiting(
            *_CARRIERS, *handoff_steps.STEPS, "plan", housekeeping.DISPATCH, housekeeping.READING
        )
        moments = [self._clock.now() + round(wait * 1000) for wait in waits.values()]
        if self._unended:
            moments.append(self._clock.now() + _STILL_ENDING)
        moments += filter(None, (planned.next_at, self._job_due, housekeeping.next_mail_due(self._environment)))
        return msgspec.structs.replace(planned, next_at=min(moments, default=None))

    def retries(self) -> bool:
        """Whether something that failed is tried again soon; what keeps failing is waited for by nobody."""
        waiting = self._faults.waiting(*_CARRIERS, *handoff_steps.STEPS)
        return any(self._faults.persistent(key) is None for key in waiting)

    def crew(self) -> Crew:
        """All agents of the chart. While it is being repaired no agent gets work, and everything else continues."""
        try:
            return crew_of(self._environment.chart.reachable())
        except UnusableOrgChart as error:
            nobody = Nobody(error.message)
            return Crew(route=lambda _task, _load: nobody, route_hop=lambda _task, _hop, _load: nobody)

    def _running(self) -> Snapshot:
        running = self._find(Query(status=("in-progress",)))
        host = self._host
        return Snapshot(
            running=running,
            heartbeats=self._store.heartbeats(place for task in running for place in task.run_places),
            boot=self._clock.boot(),
            hosted=host.hosted if host is not None else frozenset(),
            orphaned=host.orphaned if host is not None else frozenset(),
        )

    def snapshot(self, *, explain: bool) -> Snapshot:
        """The unfinished tasks; those that only wait for people are read where somebody wants to know why."""
        patience = self._policy.scheduling.patience_ms
        gated = ("review",) if self._environment.gates_in_force() else ()
        others = {
            status: self._find(Query(status=(status,))) if explain or status in patience or status in gated else ()
            for status in _EXPLAINED
        }
        promotable = self._find(Query(runnable_at=_WHENEVER, waiting_in="backlog"))
        ready = self._find(Query(status=("ready",)))
        free = {task.id for task in (*promotable, *ready) if not _waits(task)}
        if any(_waits(task) for task in ready):
            free |= {task.id for task in self._find(Query(runnable_at=_WHENEVER))}
        running = self._running()
        return msgspec.structs.replace(
            running,
            **self._handoffs.look(running.running, ready),
            **self._housekeeping.look(),
            hosting=self._host is not None,
            backlog=others["backlog"] or promotable,
            ready=ready,
            blocked=others["blocked"],
            review=others["review"],
            finished=self._finished.look(),
            free=frozenset(free | {task.id for task in promotable}),
        )

    def _find(self, query: Query) -> tuple[Task, ...]:
        return self._store.find(query.but(counted=False, order="schedule")).tasks

    def _carried_out(self, action: Action, task: Task | None) -> str | None:
        """Do it; why it was not done, if so. Whatever it raises concerns this action alone."""
        key = (action.action, action.task_id, action.run_id, action.hop, action.handoff_id)
        if wait := self._faults.wait(key):
            return f"{action.action} failed; it is tried again in {wait:.0f} s"
        try:
            why_not = self._done(action, task)
        except Exception as error:  # noqa: BLE001 - the edge of one action
            if isinstance(error, AofError) and error.kind not in ("unavailable", "internal"):
                self._faults.succeeded(key)
                return error.message
            self._trouble = self._trouble or (error if isinstance(error, AofError) else None)
            return self._faults.failed(key, action.action, action.task_id, error)
        self._faults.succeeded(key)
        return why_not

    def _execute(self, command: c.OnTask) -> Done:
        return self._dispatcher.dispatch_trusted(command)

    def _did(self, command: c.OnTask) -> str | None:
        return None if self._execute(command).events else "it has changed in the meantime"

    def _done(self, action: Action, task: Task | None) -> str | None:
        if action.action in handoff_steps.STEPS:
            return self._handoffs.carry_out(action, self.last)
        if action.action == "retention":
            return self._housekeeping.prune()
        return _CARRIERS[action.action](self, action, task) if task is not None else "it has changed in the meantime"

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
        if why := self._ended_first(task, action):
            return why
        done = self._expired(task, action)
        if done is None:
            return "what its run has reported, or its file, cannot be read"
        return None if done.events else "it has changed in the meantime"

    def _ended_first(self, task: Task, action: Action) -> str | None:
        """End what still runs of a run before its task is given to somebody else; why that is not so, if so."""
        orphans = self._environment.orphans
        if orphans is None:
            return None
        for place, lease in held_leases(task):
            if lease.worker not in STARTED or (action.run_id is not None and lease.run_id != action.run_id):
                continue
            now = self._clock.now()
            beat = present(self._store.heartbeats([place])[place], now, self._clock.boot())
            if action.action == "stale_heartbeat" and lease_end(lease, beat) > now:
                return "it has changed in the meantime"
            if why := orphans.end(place, attempt_of(lease.run_id), lease.run_id):
                self._unended = True
                return why
        return None

    def _expired(self, task: Task, action: Action) -> Done | None:
        """A task's run, or only that of the hop that the action is about."""
        run = action.run_id if action.hop is not None else None
        expire = c.Expire(actor=OURSELVES, run=run, task_id=task.id)
        return recovery.recovered(self._environment, task, expire, self._execute, self._dispatcher.actor)

    def _time_out(self, action: Action, task: Task) -> str | None:
        if self._host is not None and action.run_id is not None and action.run_id in self._host.hosted:
            return self._host.stop(action.run_id, "timeout")
        if why := self._ended_first(task, action):
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
            return self._untrusted(action) or f"{action.agent} is started by 'aof up'"
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


_CARRIERS: dict[str, Callable[[Tick, Action, Task], str | None]] = {
    "promote": Tick._promote,  # noqa: SLF001 - the table of this class
    "assign": Tick._assign,  # noqa: SLF001
    "stale_heartbeat": Tick._expire,  # noqa: SLF001
    "requeue": Tick._requeue,  # noqa: SLF001
    "deadletter": Tick._deadletter,  # noqa: SLF001
    "timeout": Tick._time_out,  # noqa: SLF001
    "hop_timeout": Tick._hop_timeout,  # noqa: SLF001
    "sla_alert": Tick._alert,  # noqa: SLF001
    "overdue_alert": Tick._overdue,  # noqa: SLF001
    "gate_elapsed": Tick._accept,  # noqa: SLF001
    "cascade": Tick._cascade,  # noqa: SLF001
    "archive": Tick._archive,  # noqa: SLF001
}


def _waiting(snapshot: Snapshot) -> tuple[Task, ...]:
    return (*snapshot.backlog, *snapshot.ready, *snapshot.blocked, *snapshot.review)


def _waits(task: Task) -> bool:
    """Whether other tasks may keep it waiting."""
    return bool(task.depends_on or task.metadata.get("waitForChildren"))


def _told(planned: Plan, actions: tuple[Action, ...], left: tuple[LeftAlone, ...], *, dry_run: bool) -> Ticked:
    return Ticked(
        dry_run=dry_run,
        actions=actions,
        left=left,
        next_at=iso(planned.next_at) if planned.next_at is not None else None,
    )


def _moves(task_id: str, done: Done | None) -> list[Recovered]:
    events = done.events if done is not None else ()
    moves = [event for event in events if event.type == "task.transitioned" and event.task_id == task_id]
    if not moves or done is None or done.task is None:
        return []
    return [Recovered(task_id=task_id, status=done.task.status, reason=moves[-1].payload.get("reason", ""))]
