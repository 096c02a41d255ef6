"""Carries out what is due of tasks.

Handoffs, jobs, mail and agents' health, each by a command that checks again under its own locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from aof.documents import mail_service, reading
from aof.documents.mail_rules import PATH as MAILBOX
from aof.errors import AofError
from aof.handoffs import answers
from aof.handoffs import delegation as handoffs_delegation
from aof.handoffs.initiation import Initiate
from aof.handoffs.model import Handoff, Trigger
from aof.handoffs.operations import HandoffCache, Retention
from aof.handoffs.payload import HandoffProposal
from aof.jobs import rules as jobs_rules
from aof.jobs.operations import dispatched
from aof.jobs.rules import NAME as JOBS
from aof.jobs.rules import PATH as JOBS_FILE
from aof.jobs.rules import parse_jobs
from aof.kernel import commands
from aof.kernel.commands import OnTask
from aof.kernel.context import Environment
from aof.kernel.dispatcher import Dispatcher
from aof.kernel.events import Draft
from aof.kernel.faults import Faults
from aof.kernel.model import OURSELVES, attempt_of, day, millis
from aof.kernel.ports import CommandLine, Trust
from aof.kernel.unit_of_work import Done
from aof.messages import service as messages_service
from aof.org.model import HUMAN, Agent, OrgChart
from aof.org.routing import AVAILABLE, INTERVAL_MS, THRESHOLD, UNAVAILABLE, Watch, checked_health
from aof.runs.model import lease_end, present_heartbeat
from aof.scheduler.model import STARTED, Action, Overdue, Snapshot
from aof.scheduler.rules import RUNS_IT, TO_ANSWER
from aof.store import port
from aof.store.lists import Query
from aof.support.typed import prepare_type
from aof.tasks.fields import KEY
from aof.tasks.model import Task
from aof.tasks.operations import with_new_id
from aof.workflows.model import held_leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.jobs.operations import Execute
    from aof.jobs.rules import Job
    from aof.org.routing import AgentHealth


class WorkerHost(Protocol):
    """Who starts and stops workers. Each call answers why it did nothing, or None."""

    @property
    def hosted(self) -> frozenset[str]:
        """The runs that it keeps alive."""
        ...

    @property
    def orphaned(self) -> frozenset[str]:
        """Running process runs whose host has died on this machine."""
        ...

    def fence(self, snapshot: Snapshot) -> None:
        """End workers whose run was ended by others."""
        ...

    def begin(self, task: Task, agent: str, hop: str | None = None) -> str | None:
        """Claim the task, or a hop of it, for the agent and start it."""
        ...

    def stop(self, run_id: str, why: str) -> str | None:
        """End the worker of a hosted run; what follows comes when it has ended."""
        ...

    def clear(self, task: Task, run_id: str, why: str) -> str | None:
        """End what a dead host has left of a run, and the run."""
        ...


CHANGED = "it has changed in the meantime"
_PLAIN: dict[str, Callable[..., OnTask]] = {
    "promote": commands.Promote,
    "deadletter": commands.DeadLetter,
    "gate_elapsed": commands.Approve,
    "archive": commands.ArchiveTask,
}  # of an action that one command carries out
TASK_STEPS = (
    *_PLAIN, "assign", "stale_heartbeat", "requeue", "cascade", "timeout", "hop_timeout", "sla_alert", "overdue_alert",
)  # fmt: skip
HANDOFF_STEPS = (
    "handoff_unanswered", "handoff_begin", "health_check", "handoff_deliver", "handoff_accept", "handoff_ask",
    "handoff_remind", "handoff_timeout", "handoff_return", "handoff_withdraw",
)  # fmt: skip


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
        done: str | None = CHANGED
        if task is None:
            return done
        plain = _PLAIN.get(action.action)
        if plain is not None:
            return self._did(plain(actor=OURSELVES, task_id=task.id, reason=action.reason))
        match action.action:
            case "assign":
                done = self._assign(action, task)
            case "stale_heartbeat":
                done = self._expire(action, task)
            case "requeue" | "cascade":
                done = self._stop(action, task)
            case "timeout":
                done = self._time_out(action, task)
            case "hop_timeout":
                done = self._did(commands.TimeOut(actor=OURSELVES, task_id=task.id, hop=action.hop or ""))
            case "sla_alert" | "overdue_alert":
                due, why = task.due if action.action == "overdue_alert" else None, action.reason
                alert = commands.Alert(actor=OURSELVES, task_id=task.id, status=task.status, due=due, reason=why)
                done = self._did(alert)
        return done

    def untrusted(self, action: Action) -> str | None:
        """Why the agent of an action is not started: nobody has trusted its command."""
        known = self._environment.chart.whole().by_id.get(action.agent or "")
        return untrusted_commands(self._environment.trust, known) if known is not None else None

    def execute(self, command: commands.OnTask) -> Done:
        """Carry out a command in our own name."""
        return self._dispatcher.dispatch_trusted(command)

    def _did(self, command: commands.OnTask) -> str | None:
        return None if self.execute(command).events else CHANGED

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
            beat = present_heartbeat(self._environment.store.heartbeats([place])[place], now, self._clock.boot())
            if action.action == "stale_heartbeat" and lease_end(lease, beat) > now:
                return CHANGED
            if why := orphans.end(place, attempt_of(lease.run_id), lease.run_id):
                self.unended = True
                return why
        return None

    def expired(self, task: Task, action: Action) -> Done | None:
        """A task's run, or only that of the hop that the action is about."""
        run = action.run_id if action.hop is not None else None
        expire = commands.Expire(actor=OURSELVES, run=run, task_id=task.id)
        return messages_service.recover_run(self._environment, task, expire, self.execute, self._dispatcher.actor)

    def _assign(self, action: Action, task: Task) -> str | None:
        if self._host is None or action.agent is None:
            return self.untrusted(action) or f"{action.agent} is started by 'aof up'"
        return self._host.begin(task, action.agent, action.hop)

    def _stop(self, action: Action, task: Task) -> str | None:
        """End a run with its worker, which this process hosts or whose host has died."""
        assert self._host is not None
        assert action.run_id is not None
        cancelled = action.action == "cascade"
        if cancelled and action.run_id in self._host.hosted:
            return self._host.stop(action.run_id, "cancelled")
        return self._host.clear(task, action.run_id, "cancelled" if cancelled else "lost")

    def _time_out(self, action: Action, task: Task) -> str | None:
        if self._host is not None and action.run_id is not None and action.run_id in self._host.hosted:
            return self._host.stop(action.run_id, "timeout")
        if why := self.ended_first(task, action):
            return why
        return self._did(
            commands.Fail(
                actor=OURSELVES,
                task_id=task.id,
                run=action.run_id,
                code="max_execution_time",
                message=action.reason,
                cause="timed_out",
            )
        )


OPEN_HANDOFFS = Query(open_handoffs=True, archived=True, counted=False)


class HandoffSteps:
    """The steps of handoffs that the scheduler takes by itself."""

    def __init__(self, environment: Environment, execute: Callable[[OnTask], Done]) -> None:
        self._environment = environment
        self._execute = execute
        self.health = Health(environment)
        self._pending = HandoffCache(environment.store)
        self._asked: dict[str, str] = {}

    def snapshot_fields(
        self, running: tuple[Task, ...], ready: tuple[Task, ...], handed: tuple[Task, ...]
    ) -> dict[str, Any]:
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
            query = Query(tag=handoffs_delegation.TAG, archived=True, counted=False)
            found = {handoffs_delegation.handoff_of(one): one.id for one in self._environment.store.find(query).tasks}
            known |= {name: found[name] for name in asked if name in found}
        self._asked |= known
        tasks = self._environment.store.records(tuple(known.values())) if known else ()
        return {name: one for one in tasks if (name := handoffs_delegation.handoff_of(one)) is not None}

    def carry_out(self, action: Action, snapshot: Snapshot) -> str | None:
        """Do it; why it was not done, if so."""
        if action.action == "handoff_unanswered":
            return self._did(
                handoffs_delegation.RecordUnanswered(
                    actor=OURSELVES, task_id=action.task_id, handoff_id=action.handoff_id or "", reason=action.reason
                )
            )
        if action.action == "handoff_begin":
            return self._begin(action)
        if action.action == "health_check":
            return self.health.check(action.agent or "", snapshot)
        handoff = next((one for _, one in snapshot.handed if one.id == action.handoff_id), None)
        return CHANGED if handoff is None else self._go_on(action, handoff)

    def _go_on(self, action: Action, handoff: Handoff) -> str | None:
        match action.action:
            case "handoff_deliver":
                done = self._did(answers.Deliver(actor=OURSELVES, task_id=action.task_id, handoff_id=handoff.id))
            case "handoff_accept":
                done = self._accept(action, handoff)
            case "handoff_ask":
                done = self._ask(action, handoff)
            case "handoff_remind":
                done = self._did(answers.Remind(actor=OURSELVES, task_id=action.task_id, handoff_id=handoff.id))
            case "handoff_timeout":
                done = self._time_out(action, handoff)
            case "handoff_return":
                done = self._return(action, handoff)
            case _:  # handoff_withdraw
                withdraw = answers.Withdraw(
                    actor=OURSELVES,
                    agent=handoff.from_agent,
                    task_id=action.task_id,
                    handoff_id=handoff.id,
                    reason=action.reason,
                )
                done = self._did(withdraw)
        return done

    def _did(self, command: OnTask) -> str | None:
        return None if self._execute(command).events else CHANGED

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

    def _accept(self, action: Action, handoff: Handoff) -> str | None:
        """For an agent that is started: the run begins when the scheduler assigns the task."""
        known = self._environment.chart.whole().by_id.get(handoff.to_agent)
        if known is not None and (why := untrusted_commands(self._environment.trust, known)):
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
        ask = partial(handoffs_delegation.answer_task, task, handoff)
        done = with_new_id(self._environment, lambda task_id: self._execute(ask(task_id)))
        return None if done.events else CHANGED

    def _time_out(self, action: Action, handoff: Handoff) -> str | None:
        """An agent that does not even acknowledge cannot be reached."""
        if handoff.state == "requested":
            self.health.lost(handoff.to_agent, action.reason)
        command = answers.TimeOutHandoff(
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
        command = answers.ReturnResult(
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
            return CHANGED
        watch = checked_health(self._watches[name], self._answered(agent, snapshot), self._environment.clock.now())
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
        if own & snapshot.orphaned or untrusted_commands(self._environment.trust, agent):
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
        messages_service.record_remark(self._environment.store, self._environment.clock, draft, OURSELVES)


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
            jobs = tuple(parse_jobs(texts[JOBS_FILE]).jobs.values())

        self._mailbox = None
        self._faults.attempt(_READING, "reading the jobs", "", look)
        if not jobs:
            return (), None
        done: list[Action] = []
        for job in jobs:
            done += self._of(job, dry_run=dry_run)
        now = self._environment.clock.now()
        sound = (job for job in jobs if not self._faults.wait((DISPATCH, job.id)))
        coming = [when for job in sound if (when := jobs_rules.next_due(job, now)) is not None]
        return tuple(done), min(coming, default=None)

    def _of(self, job: Job, *, dry_run: bool) -> list[Action]:
        key = (DISPATCH, job.id)
        occasions = jobs_rules.due_occasions(job, self._environment.clock.now())
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
            for late in mail_service.due_escalations(self._environment, policy, text):
                if dry_run or mail_service.escalate(self._environment, policy, late):
                    reason = f"{late.message_id}: {late.agent} did not acknowledge it within the {late.tier} window"
                    done.append(Action(action=_WHAT, task_id="", reason=reason, message_id=late.message_id))
        except (AofError, port.ScopeTooNarrow) as error:  # the latter: somebody has deleted the lock meanwhile
            self._faults.note(_WHAT, "", error)
        return tuple(done)

    def next_mail_due(self) -> int | None:
        """When a message that names a time becomes due."""
        text = self._mail()
        return mail_service.next_due(self._environment, text) if text else None

    def _mail(self) -> str:
        """The mailbox, read with the jobs where these can be read."""
        if self._mailbox is None:
            with self._environment.store.unit(port.Scope()) as unit:
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

    def snapshot_fields(self) -> dict[str, Any]:
        """What a plan should know of the audit files, as fields of its snapshot.

        `overdue` are those with records that need not be kept any longer, and at `overdue_at` there may be more.
        """
        today = day(self._clock.now())
        if self._looked != today:
            self._found = tuple(Overdue(path=one.path, records=one.records) for one in self._retention.expired())
            self._looked = today
        exist = self._files is not None and self._files.exist()
        return {"overdue": self._found, "overdue_at": millis(today) + _DAY if exist else None}

    def prune(self) -> str | None:
        """Remove those records; why that was not done, if so."""
        self._looked = ""
        return None if self._retention.prune() else CHANGED


NOTIFY = "notify"


def agent_command(agent: Agent) -> CommandLine:
    """What starts an agent; of a peer, where its tasks are sent."""
    runner = agent.runner
    inherited = runner.inherit_env
    if runner.token_env is not None and isinstance(inherited, tuple):
        inherited = (*inherited, runner.token_env)
    return CommandLine(
        source=f"agent {agent.id}",
        kind="runner",
        command=("a2a", runner.url or "") if runner.kind == "a2a" else runner.command,
        env=runner.env,
        inherit_env=inherited,
        cwd=runner.cwd,
    )


def notification_command(command: Sequence[str]) -> CommandLine:
    """What is started for each notification."""
    return CommandLine(source=NOTIFY, kind="notify", command=tuple(command))


def notification_file_command(file: str) -> CommandLine:
    """A file outside of the data directory that notifications are appended to; its path could be any file."""
    return CommandLine(source=f"{NOTIFY} file", kind="file", command=(file,))


def channel_command(name: str, shown: str, hidden: str) -> CommandLine:
    """A service that news is sent to: where it leads as far as that may be shown, and the whole as a digest."""
    return CommandLine(source=f"{NOTIFY} channel {name}", kind="channel", command=(shown,), hidden=hidden)


def started_commands(chart: OrgChart | None, notify: Sequence[str], file: str | None = None) -> Iterator[CommandLine]:
    """Every command that AOF would start for this data directory; `file` is one outside that it would write to."""
    for agent in chart.agents if chart is not None else ():
        if agent.runner.kind in STARTED:
            yield agent_command(agent)
    if notify:
        yield notification_command(notify)
    if file is not None:
        yield notification_file_command(file)


def untrusted_commands(trust: Trust | None, agent: Agent) -> str | None:
    """Why the command of an agent must not be started, if so. Without a keeper of trust every command may."""
    command = agent_command(agent)
    return None if trust is None or trust.covers(command) else untrusted_refusal(command)


def untrusted_refusal(command: CommandLine) -> str:
    """Why a command is not run, a file not written, or nothing sent to a channel."""
    if command.kind in ("file", "channel"):
        return f"the {command.source} {command.command[0]} is not trusted; see it and allow it: aof trust"
    return f"the command of {command.source} is not trusted; see it and allow it: aof trust"
