"""One tick: look at the unfinished tasks, plan, and carry out each action by an ordinary command."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from aof.errors import AofError, UnusableOrgChart
from aof.kernel.context import Environment
from aof.kernel.declarations import param
from aof.kernel.dispatcher import Dispatcher
from aof.kernel.faults import Faults
from aof.kernel.model import iso, millis
from aof.kernel.operation import operation
from aof.kernel.results import Recovered, Result
from aof.kernel.unit_of_work import Done
from aof.scheduler import steps
from aof.scheduler.model import STARTED, Action, LeftAlone, Plan, Snapshot, Workforce
from aof.scheduler.rules import archive_at, plan
from aof.scheduler.steps import OPEN_HANDOFFS, HandoffSteps, Housekeeping, WorkerHost
from aof.store.lists import Query
from aof.tasks.graph import retry_at
from aof.tasks.model import Task
from aof.workflows.model import HopState, leases, workflow_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.api.fabric import Fabric
    from aof.kernel.context import CallContext

_STILL_ENDING = 250  # milliseconds after which a worker that was in the way may have ended
_GROUPS = ("running", "backlog", "ready", "blocked", "review", "finished")
_STEPS = (*steps.TASK_STEPS, *steps.HANDOFF_STEPS)


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
        self._host = host
        self._faults = faults or Faults(environment.clock)
        self._clock = environment.clock
        self._policy = environment.policy
        self._tasks = steps.TaskSteps(environment, dispatcher, host)
        self._handoffs = steps.HandoffSteps(environment, self._tasks.execute)
        self._documents = steps.DocumentSteps(environment, self._tasks.execute, self._faults)
        self._housekeeping = steps.Housekeeping(environment)
        self._survey = Survey(environment, self._handoffs, self._housekeeping, host)
        self._job_due: int | None = None
        self._trouble: AofError | None = None
        self.last = Snapshot()

    def ticked(self, *, dry_run: bool = False, explain: bool = True) -> Ticked:
        """Plan, and unless it is only for show, do it. `explain` also what is left alone."""
        self._trouble, self._tasks.unended = None, False
        dispatched, self._job_due = self._documents.dispatch(dry_run=dry_run)
        snapshot = self.last = self.snapshot(explain=explain)
        if self._host is not None and not dry_run:
            self._host.fence(snapshot)
        if not dry_run:
            self._housekeeping.follow(self._faults)
        planned = self.planned(snapshot)
        mailed = self._documents.escalate(dry_run=dry_run)
        if dry_run:
            kept, refused = self._foreseen(planned.actions)
            return _told(planned, (*dispatched, *kept, *mailed), (*planned.left, *refused), dry_run=True)
        every = (getattr(snapshot, group) for group in _GROUPS)
        tasks: dict[str, Task] = {task.id: task for group in every for task in group}
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
            why_not = self._tasks.untrusted(action) if action.action == "assign" else None
            if why_not is None:
                kept.append(action)
            else:
                refused.append(LeftAlone(task_id=action.task_id, reason=why_not))
        return kept, refused

    def recovered(self, only: str | None = None) -> tuple[Recovered, ...]:
        """What vanished workers left behind and nothing else, of all tasks or of `only` one."""
        found: list[Recovered] = []
        snapshot = self._survey.running(only)
        for action in self.planned(snapshot).actions:
            if action.action == "stale_heartbeat":
                task = next(task for task in snapshot.running if task.id == action.task_id)
                found += self._recovered(task, action)
        return tuple(found)

    def _recovered(self, task: Task, action: Action) -> list[Recovered]:
        """What a command would be told, a person is: one task's trouble keeps no other from being recovered."""
        try:
            if why := self._tasks.ended_first(task, action):
                return [Recovered(task_id=task.id, status=task.status, reason=why)]
            return _moves(task.id, self._tasks.expired(task, action))
        except AofError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge of one action
            self._faults.note("stale_heartbeat", task.id, error)
            return []

    def planned(self, snapshot: Snapshot) -> Plan:
        """What should be done with what was seen. A task that no plan can be made for is left out, and told."""
        workforce, now = self.workforce(), self._clock.now()
        policy = self._environment.with_gates(self._policy)
        try:
            return plan(snapshot, workforce, policy, now)
        except Exception as error:
            sound, left = self._without_unplannable(snapshot, workforce, now)
            if not left:
                raise error from None
            planned = plan(sound, workforce, policy, now)
            return msgspec.structs.replace(planned, left=(*planned.left, *left))

    def _without_unplannable(
        self, snapshot: Snapshot, workforce: Workforce, now: int
    ) -> tuple[Snapshot, list[LeftAlone]]:
        """Plan each task alone to find those that cannot be."""
        left: list[LeftAlone] = []
        sound: dict[str, tuple[Task, ...]] = {}
        alone = msgspec.structs.replace(snapshot, **dict.fromkeys(_GROUPS, ()))
        for group in _GROUPS:
            kept: list[Task] = []
            for task in getattr(snapshot, group):
                try:
                    plan(msgspec.structs.replace(alone, **{group: (task,)}), workforce, self._policy, now)
                    kept.append(task)
                except Exception as error:  # noqa: BLE001 - the edge of one task
                    if wait := self._faults.wait(("plan", task.id)):
                        why_not = f"no plan can be made for it; it is looked at again in {wait:.0f} s"
                    else:
                        why_not = self._faults.failed(("plan", task.id), "planning", task.id, error)
                    left.append(LeftAlone(task_id=task.id, reason=why_not))
            sound[group] = tuple(kept)
        return msgspec.structs.replace(snapshot, **sound), left

    def _sooner(self, planned: Plan) -> Plan:
        """The plan, looked at again when something that failed is to be tried again, or what ends may have ended."""
        waits = self._faults.waiting(*_STEPS, "plan", steps.DISPATCH, steps.READING)
        moments = [self._clock.now() + round(wait * 1000) for wait in waits.values()]
        if self._tasks.unended:
            moments.append(self._clock.now() + _STILL_ENDING)
        moments += filter(None, (planned.next_at, self._job_due, self._documents.next_mail_due()))
        return msgspec.structs.replace(planned, next_at=min(moments, default=None))

    def retries(self) -> bool:
        """Whether something that failed is tried again soon; not for what keeps failing."""
        waiting = self._faults.waiting(*_STEPS)
        return any(self._faults.persistent(key) is None for key in waiting)

    def is_awaited(self) -> bool:
        """Whether the last plan goes on without a person: a worker was started, or an agent of ours will retry."""
        last = self.last
        if any(lease.worker in STARTED for task in last.running for lease in leases(task)):
            return True
        waiting = (*(task for task in last.ready if task.id in last.free), *last.running)
        dated = [task for task in waiting if task.gated or retry_at(task) is not None]
        if not dated:
            return False
        workforce = self.workforce()
        return any(self._is_retried(task, workforce) for task in dated)

    def _is_retried(self, task: Task, workforce: Workforce) -> bool:
        """Whether one of our agents will try it, or a hop of it, again by itself."""
        if task.gated:
            return any(self._hop_is_retried(task, hop, workforce) for hop in workflow_of(task).hops)
        at = retry_at(task)
        entry = workforce.agents.get(task.routing.agent or "")
        ours = task.routing.agent is None or (entry is not None and entry.kind in STARTED)
        return at is not None and at > self._clock.now() and ours

    def _hop_is_retried(self, task: Task, hop: HopState, workforce: Workforce) -> bool:
        if hop.status != "ready" or hop.not_before is None or millis(hop.not_before) <= self._clock.now():
            return False
        named = workforce.route_hop(task, hop.id, {})
        return not isinstance(named, str) and any(workforce.agents[agent].kind in STARTED for agent in named)

    def workforce(self) -> Workforce:
        """All agents of the chart. While it is being repaired no agent gets work, and everything else continues."""
        try:
            return Workforce(self._environment.chart.reachable(self._handoffs.health.known))
        except UnusableOrgChart as error:
            return Workforce(unusable=error.message)

    def snapshot(self, *, explain: bool) -> Snapshot:
        """What a plan is made from."""
        return self._survey.whole(explain=explain)

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

    def _done(self, action: Action, task: Task | None) -> str | None:
        if action.action in steps.HANDOFF_STEPS:
            return self._handoffs.carry_out(action, self.last)
        if action.action == "retention":
            return self._housekeeping.prune()
        return self._tasks.carry_out(action, task)


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


_WHENEVER: Final = "9999"  # the plan looks at the time itself
_EXPLAINED: Final = ("blocked", "review", "backlog")
_AT_ONCE: Final = 100  # tasks that one tick archives
_FINISHED: Final = ("done", "cancelled")  # a dead one waits for a person


class Survey:
    """Reads one data directory for one scheduler."""

    def __init__(
        self, environment: Environment, handoffs: HandoffSteps, housekeeping: Housekeeping, host: WorkerHost | None
    ) -> None:
        self._environment = environment
        self._store = environment.store
        self._policy = environment.policy
        self._handoffs = handoffs
        self._housekeeping = housekeeping
        self._host = host
        self._finished_at = 0
        self._finished_next: tuple[Task, ...] = ()

    def running(self, only: str | None = None) -> Snapshot:
        """Only what runs, or `only` this task if it does."""
        found = self._find(_RUNNING)[0] if only is None else self._store.records((only,))
        return self._with_runs(tuple(task for task in found if task.status == "in-progress"))

    def whole(self, *, explain: bool) -> Snapshot:
        """The unfinished tasks; those that only wait for people are read where somebody wants to know why."""
        patience = self._policy.scheduling.patience_ms
        gated = ("review",) if self._environment.gates_in_force() else ()
        explained = [one for one in _EXPLAINED if explain or one in patience or one in gated]
        runnable = _RUNNABLE if self._policy.scheduling.promote else _RUNNABLE.but(dependent=True)
        asked = (_RUNNING, _READY, runnable, OPEN_HANDOFFS, *map(_in_status, explained))
        running, ready, promotable, handed, *rest = self._find(*asked)
        others = dict(zip(explained, rest, strict=True))
        free = {task.id for task in (*promotable, *ready) if not _waits(task)}
        if any(_waits(task) for task in ready):
            (now_free,) = self._find(Query(runnable_at=_WHENEVER, counted=False, order="schedule"))
            free |= {task.id for task in now_free}
        if any(task.gated and task.waits_for_children for task in running):
            (open_now,) = self._find(Query(open_hops=True, counted=False, order="schedule"))
            free |= {task.id for task in open_now}
        return msgspec.structs.replace(
            self._with_runs(running),
            **self._handoffs.snapshot_fields(running, ready, handed),
            **self._housekeeping.snapshot_fields(),
            hosting=self._host is not None,
            backlog=others.get("backlog") or promotable,
            ready=ready,
            blocked=others.get("blocked", ()),
            review=others.get("review", ()),
            finished=self._finished(),
            free=frozenset(free | {task.id for task in promotable}),
        )

    def _with_runs(self, running: tuple[Task, ...]) -> Snapshot:
        host = self._host
        return Snapshot(
            running=running,
            heartbeats=self._store.heartbeats(place for task in running for place in task.run_places),
            boot=self._environment.clock.boot(),
            hosted=host.hosted if host is not None else frozenset(),
            orphaned=host.orphaned if host is not None else frozenset(),
        )

    def _finished(self) -> tuple[Task, ...]:
        """The tasks to be archived, a bounded number of them, or the one whose time is over next.

        Looked for when the next one is due: none that ends later can be due before.
        """
        wait = self._policy.scheduling.archive_ms
        if wait is None:
            return ()
        now = self._environment.clock.now()
        if now < self._finished_at:
            return self._finished_next
        (found,) = self._find(Query(status=_FINISHED, counted=False))
        dated = sorted((archive_at(task, wait) or 0, task.id, task) for task in found)
        due = [task for moment, _, task in dated if moment <= now][:_AT_ONCE]
        later = dated[len(due) :]
        self._finished_next = tuple(task for moment, _, task in later[:1] if moment > now)
        self._finished_at = min(later[0][0] if later else now + wait, now + wait)
        return (*due, *self._finished_next)

    def _find(self, *queries: Query) -> list[tuple[Task, ...]]:
        return [page.tasks for page in self._store.pages(queries)]


def _in_status(status: str) -> Query:
    return Query(status=(status,), counted=False, order="schedule")


_RUNNING: Final = _in_status("in-progress")
_READY: Final = _in_status("ready")
_RUNNABLE: Final = Query(runnable_at=_WHENEVER, waiting_in="backlog", counted=False, order="schedule")


def _waits(task: Task) -> bool:
    """Whether other tasks may keep it waiting."""
    return bool(task.depends_on) or task.waits_for_children


@operation(
    effect="write",
    verb="admin tick",
    section="data",
    order=120,
    former=("tick",),
    summary="do once what is due: recover, promote, give up, alert",
    notes="Also says why each other unfinished task is left as it is. Only 'aof up' starts agents.",
    example="aof admin tick --dry-run",
    needs="lead",
)
def tick(
    context: CallContext, *, dry_run: Annotated[bool, param("only show what would be done, and why")] = False
) -> Ticked:
    """Do what is due: recover, promote, give up, alert."""
    return Tick(context.environment, context.dispatcher).ticked(dry_run=dry_run)


class Recoveries(Result, frozen=True, kw_only=True):
    """What was recovered of vanished workers."""

    recovered: tuple[Recovered, ...]


def _recoveries(fabric: Fabric, values: dict[str, Any]) -> Recoveries:  # noqa: ARG001 - it has no parameters
    return Recoveries(recovered=fabric.recover())


@operation(
    effect="write",
    verb="admin recover",
    section="data",
    order=125,
    former=("recover",),
    example="aof admin recover",
    needs="lead",
    over_wire=_recoveries,
)
def recover(context: CallContext) -> tuple[Recovered, ...]:
    """Requeue the tasks of vanished workers.

    A run whose lease has ended is recovered by its reported result, else by requeueing.
    """
    return Tick(context.environment, context.dispatcher).recovered()
