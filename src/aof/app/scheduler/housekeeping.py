"""What the scheduler does beside the tasks: health of agents, jobs, unanswered mail, audit files and their retention.

Only changes of health are events. What is looked at depends on the runner: of a process whether it lives, of a pulling
agent when it was last heard of, of a peer whether its card comes. What was not acknowledged in time is escalated, once.
Must not know when a check is due, how jobs and mail are kept, how long a record is kept, nor how files are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aof.app.commands import trust
from aof.app.commands.context import Environment
from aof.app.documents import reading
from aof.app.documents.mailbox import response_times
from aof.app.faults import Faults
from aof.app.handoffs.pending import Retention
from aof.app.jobs.dispatch import dispatched
from aof.app.messages import router
from aof.core.documents.mailbox.facts import PATH as MAILBOX
from aof.core.errors.base import AofError
from aof.core.jobs import timing
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import Handoff
from aof.core.model.ids import OURSELVES
from aof.core.model.org_chart import Agent
from aof.core.model.task import Task
from aof.core.model.times import day, millis
from aof.core.model.workflow import held_leases
from aof.core.org.health.agent_health import AVAILABLE, INTERVAL_MS, THRESHOLD, UNAVAILABLE, Watch, checked
from aof.core.scheduling.crew import STARTED
from aof.core.scheduling.view import Action, Overdue, Snapshot
from aof.documents.jobs.projection import NAME as JOBS
from aof.documents.jobs.projection import PATH as JOBS_FILE
from aof.documents.jobs.projection import parsed
from aof.ports import store as ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.jobs.dispatch import Execute
    from aof.core.jobs.job import Job
    from aof.core.org.health.agent_health import AgentHealth

Probe = Callable[[Agent], int | None]  # the milliseconds until the agent answered; None without an answer
_AT_ONCE = 0
DISPATCH, READING = "job_dispatch", "jobs"
_READING = (READING,)
_WHAT = "mail_escalate"
_DAY = 86_400_000
_FOLLOWING = ("audit files",)


class Health:
    """The health of the agents of one data directory, as one scheduler sees it."""

    def __init__(self, environment: Environment, probes: Mapping[str, Probe] | None = None) -> None:
        self._environment = environment
        self._probes = probes or {}
        self._watches: dict[str, Watch] = {}
        self.known: Mapping[str, AgentHealth] | None = None  # what the log said when agents were last looked at

    def watched(self, running: tuple[Task, ...], handed: tuple[tuple[Task, Handoff], ...]) -> dict[str, Watch]:
        """The agents to check: those that hold a run or an accepted handoff, and those that could not be reached."""
        chart = self._environment.chart.readable()
        if chart is None:
            self.known, self._watches = {}, {}
            return self._watches
        self.known = self._environment.store.health()
        holding = {lease.agent for task in running for _, lease in held_leases(task)}
        holding |= {one.to_agent for _, one in handed if one.state == "accepted"}
        gone = {name for name, health in self.known.items() if not health.available}
        names = (holding | gone) & chart.by_id.keys()
        now = self._environment.clock.now()
        self._watches = {name: self._watches.get(name) or Watch(checked_at=now) for name in names}
        return self._watches

    def check(self, name: str, snapshot: Snapshot) -> str | None:
        """Check one agent; three failures in a row say that it cannot be reached, and one success that it can."""
        chart = self._environment.chart.readable()
        agent = chart.by_id.get(name) if chart is not None else None
        if agent is None or name not in self._watches:
            return "it has changed in the meantime"
        watch = checked(self._watches[name], self._answered(agent, snapshot), self._environment.clock.now())
        self._watches[name] = watch
        if not watch.failures:
            self._say(name, "it has answered a check", available=True)
        elif watch.unhealthy:
            self._say(name, f"{THRESHOLD} checks in a row have failed", available=False)
        return None

    def lost(self, name: str, reason: str) -> None:
        """The agent cannot be reached, whatever a check would say."""
        self._say(name, reason, available=False)

    def _answered(self, agent: Agent, snapshot: Snapshot) -> int | None:
        probe = self._probes.get(agent.runner.kind)
        if probe is not None:
            return probe(agent)
        if agent.runner.kind in STARTED:
            return self._alive(agent, snapshot)
        return self._heard_of(agent, snapshot)

    def _alive(self, agent: Agent, snapshot: Snapshot) -> int | None:
        """Every process of the agent has a host that lives; one without a process can be started."""
        own = {lease.run_id for task in snapshot.running for _, lease in held_leases(task) if lease.agent == agent.id}
        if own & snapshot.orphaned or trust.untrusted(self._environment.trust, agent):
            return None
        return _AT_ONCE

    def _heard_of(self, agent: Agent, snapshot: Snapshot) -> int | None:
        """A sign of life of one of its runs, or an answer to a handoff, since the last check was due."""
        beats = (
            snapshot.heartbeats.get(place)
            for task in snapshot.running
            for place, lease in held_leases(task)
            if lease.agent == agent.id
        )
        heard = [millis(beat.last_heartbeat) for beat in beats if beat is not None]
        heard += [millis(one.answered_at) for _, one in snapshot.handed if one.to_agent == agent.id and one.answered_at]
        recent = self._environment.clock.now() - max(heard, default=0) <= INTERVAL_MS
        return _AT_ONCE if recent else None

    def _say(self, name: str, reason: str, *, available: bool) -> None:
        """Record a change, once."""
        known = self._environment.store.health().get(name)
        if (known.available if known is not None else True) is available:
            return
        kind = AVAILABLE if available else UNAVAILABLE
        draft = Draft(type=kind, task_id="", payload={"agent": name, "reason": reason})
        router.record(self._environment.store, self._environment.clock, draft, OURSELVES)


class DocumentSteps:
    """Handles jobs and mail in every tick; a job that fails does not affect others, and is retried later."""

    def __init__(self, environment: Environment, execute: Execute, faults: Faults) -> None:
        self._environment = environment
        self._execute = execute
        self._faults = faults
        self._mailbox: str | None = None

    def dispatch(self, *, dry_run: bool) -> tuple[tuple[Action, ...], int | None]:
        """What jobs created, or would, and when to look again."""
        jobs: tuple[Job, ...] = ()

        def look() -> None:
            nonlocal jobs
            texts = (reading.foreseen if dry_run else reading.texts)(self._environment, JOBS, JOBS_FILE, MAILBOX)
            self._mailbox = texts[MAILBOX]
            jobs = tuple(parsed(texts[JOBS_FILE]).jobs.values())

        self._mailbox = None
        self._faults.attempt(_READING, "reading the jobs", "", look)
        if not jobs:
            return (), None
        done: list[Action] = []
        for job in jobs:
            done += self._of(job, dry_run=dry_run)
        now = self._environment.clock.now()
        sound = (job for job in jobs if not self._faults.wait((DISPATCH, job.id)))
        coming = [when for job in sound if (when := timing.next_due(job, now)) is not None]
        return tuple(done), min(coming, default=None)

    def _of(self, job: Job, *, dry_run: bool) -> list[Action]:
        key = (DISPATCH, job.id)
        occasions = timing.due(job, self._environment.clock.now())
        if not occasions or self._faults.wait(key):
            return []
        if dry_run:
            return [_action("", job, one.name, None) for one in occasions]
        done: list[Action] = []
        try:
            for one in dispatched(self._environment, self._execute, job, occasions):
                done.append(_action(one.task_id or "", job, one.occasion, one.error))  # noqa: PERF401 - kept if it fails
            self._faults.succeeded(key)
        except Exception as error:  # noqa: BLE001 - the edge of one job
            self._faults.failed(key, DISPATCH, job.id, error)
        return done

    def escalate(self, *, dry_run: bool) -> tuple[Action, ...]:
        """Escalate mail that is due; what cannot be escalated now is tried again with the next tick."""
        done = []
        try:
            if not (text := self._mail()):
                return ()
            policy = reading.policy_of(self._environment)
            for late in response_times.due(self._environment, policy, text):
                if dry_run or response_times.escalate(self._environment, policy, late):
                    reason = f"{late.message_id}: {late.agent} did not acknowledge it within the {late.tier} window"
                    done.append(Action(action=_WHAT, task_id="", reason=reason, message_id=late.message_id))
        except (AofError, ports.ScopeTooNarrow) as error:  # the latter: somebody has deleted the lock meanwhile
            self._faults.note(_WHAT, "", error)
        return tuple(done)

    def next_mail_due(self) -> int | None:
        """When a message that names a time becomes due."""
        text = self._mail()
        return response_times.next_due(self._environment, text) if text else None

    def _mail(self) -> str:
        """The mailbox, read with the jobs where these can be read."""
        if self._mailbox is None:
            with self._environment.store.unit(ports.Scope()) as unit:
                self._mailbox = unit.document(MAILBOX)
        return self._mailbox


def _action(task_id: str, job: Job, occasion: str, error: str | None) -> Action:
    reason = f"job {job.id}: {occasion}"
    return Action(action=DISPATCH, task_id=task_id, reason=f"{reason}: {error}" if error else reason)


class Housekeeping:
    """Looks once a day for what can be removed: no time of retention is shorter."""

    def __init__(self, environment: Environment) -> None:
        self._clock = environment.clock
        self._files = environment.store.audit_files(environment.policy.project)
        self._retention = Retention(environment)
        self._looked = ""
        self._found: tuple[Overdue, ...] = ()

    def follow(self, faults: Faults) -> None:
        """Let the audit files catch up with the log; what keeps them from it concerns nothing else."""
        if self._files is not None:
            faults.attempt(_FOLLOWING, "writing the audit files", "", self._files.follow)

    def look(self) -> dict[str, Any]:
        """What a plan should know of the files, as fields of its snapshot."""
        return {"overdue": self.overdue(), "overdue_at": self.look_again()}

    def overdue(self) -> tuple[Overdue, ...]:
        """The audit files with records that need not be kept any longer."""
        today = day(self._clock.now())
        if self._looked != today:
            self._found = tuple(Overdue(path=one.path, records=one.records) for one in self._retention.expired())
            self._looked = today
        return self._found

    def look_again(self) -> int | None:
        """The moment from which there may be more; None where there are no files."""
        return millis(day(self._clock.now())) + _DAY if self._files is not None and self._files.exist() else None

    def prune(self) -> str | None:
        """Remove those records; why that was not done, if so."""
        self._looked = ""
        return None if self._retention.prune() else "it has changed in the meantime"
