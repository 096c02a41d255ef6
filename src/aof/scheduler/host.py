"""Hosting runs: claims a task for an agent, has it started, keeps its lease, and says what its end means."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from aof.api.fabric import Fabric
from aof.documents.mail_operations import Inbox
from aof.errors import AofError, Conflict, NotFound, Refused, RunnerFailed
from aof.handoffs.model import Handoff
from aof.kernel import commands
from aof.kernel.events import Draft
from aof.kernel.faults import Faults, Tell
from aof.kernel.kinds import Cause
from aof.kernel.model import OURSELVES, attempt_of, run_place
from aof.kernel.ports import Ended, Runner, Work
from aof.kernel.results import Claimed
from aof.messages.service import WorkerOutput, record_remark
from aof.org.model import Agent
from aof.org.routing import run_limit_ms
from aof.queries.views import Child, children_of
from aof.runs.brief import EarlierRun, brief
from aof.runs.claimed_run import holding
from aof.runs.leases import BEATS_PER_LEASE, WAITS_FOR_CHILDREN
from aof.scheduler import steps as scheduler_steps
from aof.scheduler.model import STARTED, Snapshot
from aof.store.lists import Query
from aof.store.port import Clock, Scope, Store
from aof.tasks.model import Task
from aof.workflows.model import held_leases

_LINGER = 10.0  # seconds that a worker may take to end after its run has
_NAMED = 40  # variables that one warning lists


class Steps:
    """The steps of one run."""

    def __init__(self, task_id: str, clock: Clock, faults: Faults, tell: Tell) -> None:
        self.try_at: float | None = None
        self._task_id = task_id
        self._clock = clock
        self._faults = faults
        self._tell = tell
        self._waiting: deque[Step] = deque()
        self._tries = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, *steps: Step, last: bool = False) -> None:
        """Carry out these after those that wait; `last` are the end of the run, which always finds room."""
        if len(self._waiting) >= _MOST and not last:
            self._tell("trouble", self._task_id, "a message was dropped: too many wait for the disk")
            return
        self._waiting.extend(steps)
        if self.try_at is None:
            self.carry_out()

    def carry_out(self) -> None:
        """Do what waits."""
        self.try_at = None
        while self._waiting:
            what, do = self._waiting[0]
            try:
                do()
            except (Conflict, Refused, NotFound) as error:
                self._tell("late", self._task_id, error.message)
            except Exception as error:  # noqa: BLE001 - the edge of one step
                if isinstance(error, AofError) and self._tries < _TRIES - 1:
                    self.try_at = self._clock.monotonic() + 2.0**self._tries
                    self._tries += 1
                    self._faults.note(f"{what} is tried again", self._task_id, error)
                    return
                self._faults.note(what, self._task_id, error)
            self._tries = 0
            self._waiting.popleft()


class _Hosted(msgspec.Struct):
    """A run that is kept alive here."""

    work: Work
    steps: Steps
    output: WorkerOutput
    every: float = 0.0
    beat_at: float = 0.0
    ends_at: float | None = None
    over: bool = False
    stopping: bool = False
    gone: bool = False


class Hosting:
    """Implements `scheduler.steps.WorkerHost`, and `kernel.ports.Listener` for its workers."""

    def __init__(self, fabric: Fabric, tell: Tell, faults: Faults | None = None) -> None:
        self._environment = fabric.services.environment
        self._fabric = fabric.on_behalf_of(fabric.services.principal.as_service())
        self._clock = self._environment.clock
        self._tell = tell
        self._faults = faults or Faults(self._clock, tell)
        self._ends = RunEnds(self._fabric, tell)
        self._runs: dict[str, _Hosted] = {}
        self._warned: set[str] = set()
        self._untrusted: dict[str, object] = {}
        self.waiting: set[str] = set()  # places where an earlier worker was in the way
        self.freed = False  # one of them is free
        self.runner: Runner

    @property
    def hosted(self) -> frozenset[str]:
        """The runs that are kept alive here."""
        return frozenset(self._runs)

    @property
    def orphaned(self) -> frozenset[str]:
        """Filled by `look_for_orphans`."""
        return self._orphaned

    _orphaned: frozenset[str] = frozenset()

    def look_for_orphans(self) -> None:
        """Which running runs of started workers have a dead host; asked once in a while, not in every tick."""
        running = self._fabric.store.find(Query(status=("in-progress",), counted=False)).tasks
        self._orphaned = frozenset(
            lease.run_id
            for task in running
            for place, lease in held_leases(task)
            if lease.worker in STARTED
            and lease.run_id not in self._runs
            and self.runner.orphaned(place, attempt_of(lease.run_id))
        )

    def begin(self, task: Task, agent: str, hop: str | None = None) -> str | None:
        """Claim for the agent and start it; limits that span agents are counted again under one lock."""
        chart = self._fabric.org
        known = chart.by_id.get(agent)
        if known is None or known.runner.kind not in STARTED:
            return f"{agent} is not started by a service any more"
        if why := scheduler_steps.untrusted_commands(self._environment.trust, known):
            if self._untrusted.get(agent) != known.runner:  # told once for each command, however many tasks wait
                self._untrusted[agent] = known.runner
                self._tell("untrusted", "", why)
            return why
        place = run_place(task.id, hop)
        if why := self.runner.reserve(place):
            self.waiting.add(place)
            return why
        try:
            return self._within_limits(task, known, hop)
        finally:
            self.runner.give_back(place)

    def _within_limits(self, task: Task, known: Agent, hop: str | None) -> str | None:
        most = self._environment.policy.scheduling.max_concurrent
        if most is None:
            return self._begun(task, known, hop)
        with self._fabric.store.unit(Scope(names=frozenset({"scheduler"}))):
            found = self._fabric.store.find(Query(status=("in-progress",), limit=most))
            running = max(found.total, sum(max(len(held_leases(one)), 1) for one in found.tasks))
            return self._begun(task, known, hop) if running < most else f"{running} runs of {most} at once"

    def _begun(self, task: Task, agent: Agent, hop: str | None) -> str | None:
        claimed = self._fabric.claim(task.id, agent=agent.id, worker=agent.runner.kind, hop=hop, actor=OURSELVES)
        try:
            return self._started(task, agent, claimed)
        except Exception as error:  # noqa: BLE001 - the edge of one run
            what = self._faults.note(f"starting {agent.id}", task.id, error)
            self.runner.stop(claimed.run_id, "fenced", hard=True)
            self._ends.fail(task.id, claimed.run_id, "runner_failed", what)
            return what

    def _started(self, task: Task, agent: Agent, claimed: Claimed) -> str | None:
        whole = self._fabric.get(task.id)
        lease, hop = holding(whole, claimed.run_id)
        if lease is None or lease.run_id != claimed.run_id:
            return "somebody ended the run at once"
        earlier = earlier_runs(self._fabric.store, whole.id, claimed.attempt)
        handed, mail = self._fabric.store.handoffs((whole,)), self._fabric.turn_began(agent.id, "runner")
        below = children_of(self._fabric.store, whole.id)
        work = work_of(whole, agent, claimed, hop, earlier, handoffs=handed, mail=mail, children=below)
        try:
            self.runner.start(work)
        except RunnerFailed as error:
            self._tell("failed", work.task_id, error.message)
            self._ends.fail(work.task_id, work.run_id, error.code, error.message)
            return error.message
        self._warn_of_dropped(work)
        now = self._clock.monotonic()
        every = lease.ttl_ms / 1000 / BEATS_PER_LEASE
        limit = run_limit_ms(agent)
        ends = now + limit / 1000 if limit is not None else None
        self._runs[work.run_id] = self._hosted(work, every=every, beat_at=now + every, ends_at=ends)
        return None

    def _warn_of_dropped(self, work: Work) -> None:
        """Once per agent: an agent that needs a key must be given it by name."""
        names = self.runner.dropped(work)
        if not names or work.agent in self._warned:
            return
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        listed = "the variables named above" if self._warned else f"{', '.join(names[:_NAMED])}{more}"
        self._warned.add(work.agent)
        what = f"{work.agent} does not get {listed}; name what it needs in its runner: inheritEnv: [NAME], or all"
        self._tell("environment", work.task_id, what)

    def stop(self, run_id: str, why: str) -> str | None:
        """End the worker of a hosted run."""
        run = self._runs.get(run_id)
        if run is None or run.stopping:
            return f"its worker is being ended ({why})"
        self._stop(run, why)
        return None

    def _stop(self, run: _Hosted, why: str) -> None:
        self.runner.stop(run.work.run_id, why)
        run.stopping = True

    def stop_all(self, why: str, *, hard: bool = False) -> None:
        """End every worker; `hard` also waits for nothing that could not be carried out yet."""
        for run_id, run in list(self._runs.items()):
            try:
                self.runner.stop(run_id, why, hard=hard)
            except Exception as error:  # noqa: BLE001 - the edge of one run
                self._faults.note("stop", run.work.task_id, error)
            if hard and run.gone:
                self._runs.pop(run_id, None)

    def clear(self, task: Task, run_id: str, why: str) -> str | None:
        """A dead host's run: kill what is left of it, then end it by what it reported, else as lost."""
        at = next((at for at, lease in held_leases(task) if lease.run_id == run_id), task.id)
        if not_ended := self.runner.end(at, attempt_of(run_id), run_id):
            self.waiting.add(at)
            return not_ended
        self._orphaned -= {run_id}
        self._ends.end_lost(task.id, at, run_id, cancelled=why == "cancelled")
        return None

    def fence(self, snapshot: Snapshot) -> None:
        """End workers whose run was ended by others; one that has completed may take a moment to exit."""
        held = {lease.run_id for task in snapshot.running for _, lease in held_leases(task)}
        for run_id, run in self._runs.items():
            if run_id not in held and not run.over and not run.gone:
                self._guarded("fence", run, self._fence)

    def _fence(self, run: _Hosted) -> None:
        attempts = self._fabric.store.attempts(run.work.task_id)
        ended = next((one for one in attempts if one.run_id == run.work.run_id), None)
        if ended is not None and ended.status == "running":
            return  # the index was read before the claim
        run.over = True
        delegated = ended is not None and ended.error is not None and ended.error.code == WAITS_FOR_CHILDREN
        if delegated or (ended is not None and ended.status == "completed"):
            run.ends_at = self._clock.monotonic() + _LINGER
        else:
            self._stop(run, "fenced")

    def _guarded(self, what: str, run: _Hosted, step: Callable[[_Hosted], object]) -> None:
        """Whatever it raises concerns this run alone, and is tried again later."""
        self._faults.attempt((what, run.work.run_id), what, run.work.task_id, partial(step, run))

    def poll(self) -> float | None:
        """Renew what is due, end what has had its time; returns in how many seconds to look again."""
        waits: list[float] = []
        for run in list(self._runs.values()):
            now = self._clock.monotonic()
            for at, what, step in _DUE:
                moment = at(run)
                if moment is not None and moment <= now:
                    self._guarded(what, run, partial(step, self))
            waits += [
                max(moment - now, self._faults.wait((what, run.work.run_id)))
                for at, what, _ in _DUE
                if (moment := at(run)) is not None and run.work.run_id in self._runs
            ]
        return min(waits, default=None)

    def _out_of_time(self, run: _Hosted) -> None:
        self._stop(run, "finished" if run.over else "timeout")
        run.ends_at = None

    def _beat(self, run: _Hosted) -> None:
        run.beat_at = self._clock.monotonic() + run.every
        try:
            self._fabric.heartbeat(run.work.task_id, run=run.work.run_id)
        except (Conflict, NotFound):
            return  # the next tick finds out why, and ends the worker
        except AofError as error:
            self._tell("trouble", run.work.task_id, f"the lease could not be renewed: {error.message}")

    def said(self, work: Work, text: str) -> None:
        """A protocol message of that run; what is wrong with it is recorded and stops nobody."""
        self._of(work).steps.add(("message", lambda: self._deliver(work, text)))

    def ended(self, ended: Ended) -> None:
        """Record how the worker ended, then end its session by what that means."""
        work, run = ended.work, self._of(ended.work)
        self.freed |= work.place in self.waiting
        self._tell("exit", work.task_id, f"{work.agent} {ended.how}")
        run.gone = True
        self._fabric.turn_ended(work.agent, "runner")
        run.steps.add(
            ("exit", lambda: self._ends.record(ended)),
            ("session_end", lambda: self._ends.end_session(ended)),
            last=True,
        )
        self._leave(run)

    def _of(self, work: Work) -> _Hosted:
        """The run; one that was never kept alive here has nothing to be renewed."""
        return self._runs.get(work.run_id) or self._runs.setdefault(work.run_id, self._hosted(work, over=True))

    def _hosted(self, work: Work, **more: Any) -> _Hosted:
        steps = Steps(work.task_id, self._clock, self._faults, self._tell)
        return _Hosted(work, steps, WorkerOutput(work, partial(self._unproven, work)), **more)

    def _unproven(self, work: Work, detail: str) -> None:
        """A line that looks like a message and is none: said once for a run, where people look for it."""
        self._tell("warning", work.task_id, detail)
        payload = {"code": "unproven_message", "detail": detail}
        draft = Draft(type="task.warning", task_id=work.task_id, run_id=work.run_id, payload=payload)
        record_remark(self._fabric.store, self._clock, draft, OURSELVES)

    def _again(self, run: _Hosted) -> None:
        run.steps.carry_out()
        self._leave(run)

    def _leave(self, run: _Hosted) -> None:
        """Nothing is left to be done about a run that is over."""
        if run.gone and not run.steps:
            self._runs.pop(run.work.run_id, None)

    def _deliver(self, work: Work, text: str) -> None:
        message = self._of(work).output.message_in(text)
        if message is None:
            return
        for sent in self._speaking_for(work.agent).send(message, run=work.run_id):
            reason = f", {sent.reason}" if sent.reason else ""
            self._tell("message", work.task_id, f"{work.agent}: {sent.type or 'message'} {sent.outcome}{reason}")

    def _speaking_for(self, agent: str) -> Fabric:
        """The fabric for what a worker has printed; where callers are bound, it speaks as its agent only."""
        if not self._fabric.binds_callers:
            return self._fabric
        return self._fabric.on_behalf_of(self._fabric.services.principal.passing_on(agent))


_Moment = Callable[[_Hosted], float | None]
_DUE: tuple[tuple[_Moment, str, Callable[[Hosting, _Hosted], None]], ...] = (  # when, what it is called, what is done
    (lambda run: run.steps.try_at, "retry", Hosting._again),  # noqa: SLF001
    (lambda run: None if run.gone else run.ends_at, "end", Hosting._out_of_time),  # noqa: SLF001
    (lambda run: None if run.over else run.beat_at, "heartbeat", Hosting._beat),  # noqa: SLF001
)


_TRIES: Final = 5
_MOST: Final = 1_000  # steps that wait

Step = tuple[str, Callable[[], Any]]  # what it is called, and what is done


_GRACE = 5.0
_NONCE = 16  # bytes


def work_of(
    task: Task,
    agent: Agent,
    claimed: Claimed,
    hop: str | None,
    earlier: Iterable[EarlierRun],
    *,
    handoffs: Iterable[Handoff] = (),
    mail: Inbox,
    children: Sequence[Child] = (),
) -> Work:
    """The work of a claimed run: `earlier` are the task's runs before it, `handoffs` those of the task."""
    runner = agent.runner
    return Work(
        task_id=task.id,
        hop=hop,
        place=run_place(task.id, hop),
        run_id=claimed.run_id,
        epoch=claimed.epoch,
        attempt=claimed.attempt,
        agent=agent.id,
        command=runner.command,
        env=runner.env,
        inherit_env=runner.inherit_env,
        cwd=runner.cwd,
        brief=brief(
            task,
            claimed.run_id,
            [one for one in earlier if one.run.hop == hop],
            hop,
            handed=_under(handoffs, agent.id),
            mail=mail.messages,
            children=children,
        ),
        secret=claimed.secret if isinstance(claimed.secret, str) else "",
        nonce=os.urandom(_NONCE).hex(),
        messages=runner.messages,
        peer=runner.url if runner.kind == "a2a" else None,
        token_env=runner.token_env,
        grace=(runner.grace_ms or _GRACE * 1000) / 1000,
    )


def earlier_runs(store: Store, task_id: str, attempt: int) -> list[EarlierRun]:
    """The task's runs before this one, each with the last event to go on from."""
    runs = [one for one in store.attempts(task_id) if one.attempt < attempt]
    history = store.events(task_id=task_id) if runs else ()
    reached = {event.run_id: event.seq for event in history if event.type == "task.progress"}
    return [EarlierRun(run, reached.get(run.run_id)) for run in runs]


def _under(handoffs: Iterable[Handoff], agent: str) -> list[Handoff]:
    """The handoffs that the agent works under: those that it accepted, and the last that brought it the task."""
    own = [one for one in handoffs if one.to_agent == agent]
    came = [one for one in own if one.type == "sequential" and one.state == "completed"]
    return [*came[-1:], *(one for one in own if one.state == "accepted")]


class RunEnds:
    """Ends runs in the name of the service."""

    def __init__(self, fabric: Fabric, tell: Tell) -> None:
        self._fabric = fabric
        self._tell = tell

    def record(self, ended: Ended) -> None:
        """How the worker ended."""
        self._do(
            commands.Exited(
                actor=OURSELVES,
                agent=ended.work.agent,
                task_id=ended.work.task_id,
                run=ended.work.run_id,
                exit_code=ended.exit_code,
                signal=ended.signal,
                stopped=ended.stopped,
                output=ended.output,
            )
        )

    def end_session(self, ended: Ended) -> None:
        """End the session of a worker by what its end means."""
        work = ended.work
        if ended.stopped in ("fenced", "finished"):
            return  # the run had been ended already
        if ended.stopped == "cancelled":
            self._do(commands.Settle(actor=OURSELVES, run=work.run_id, task_id=work.task_id))
            return
        by_us = ended.stopped in ("timeout", "shutdown")
        if not by_us or self._has_reported(work.task_id, work.place, work.run_id):
            for applied in self._fabric.session_end(run=work.run_id):
                where = f"hop {applied.hop}: " if applied.hop else ""
                how = f"{where}{applied.outcome}: {applied.from_status} → {applied.to_status}"
                self._tell("session_end", work.task_id, how)
        elif ended.stopped == "timeout":
            self.fail(work.task_id, work.run_id, "max_execution_time", ended.how, "timed_out")
        else:  # not the agent's fault: the task goes back as it was
            self._fabric.release(work.task_id, run=work.run_id, reason="the service was stopped")

    def end_lost(self, task_id: str, place: str, run_id: str, *, cancelled: bool) -> None:
        """A dead host's run of which nothing is left: it ends by what it reported, else as lost."""
        if cancelled:
            self._do(commands.Settle(actor=OURSELVES, run=run_id, task_id=task_id))
        elif self._has_reported(task_id, place, run_id):
            self._fabric.session_end(run=run_id)
        else:
            self.fail(task_id, run_id, "host_died", "the host of the run was killed", "lost")

    def _has_reported(self, task_id: str, at: str, run_id: str) -> bool:
        with self._fabric.store.unit(Scope(read=frozenset({task_id}))) as unit:
            result = unit.result(at)
        return isinstance(result, AofError) or (result is not None and result.run_id == run_id)

    def fail(self, task_id: str, run_id: str, code: str, message: str, cause: Cause = "failed") -> None:
        """The run has failed."""
        self._do(commands.Fail(actor=OURSELVES, task_id=task_id, run=run_id, code=code, message=message, cause=cause))

    def _do(self, command: commands.OnTask) -> None:
        self._fabric.services.dispatcher.dispatch_trusted(command)
