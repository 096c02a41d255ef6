"""What a plan looks at: the agents that can be given work, and the unfinished tasks at one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from aof.handoffs.model import Handoff
from aof.kernel.model import Policy
from aof.org import routing
from aof.org.model import OrgChart
from aof.runs.model import Boot, Heartbeat, present_heartbeat
from aof.tasks.model import Routing, Task
from aof.workflows import hops
from aof.workflows.model import workflow_of

STARTED = frozenset({"process", "a2a"})  # the kinds of runner that a service starts by itself
_ANYBODY = "any agent may claim it"


class SchedulableAgent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent: how it is run, how many runs it may have at once, and how long one may take.

    `ack_ms` is how long it may take to answer a handoff, where the chart says so.
    """

    agent: str
    kind: str = "pull"
    team: str | None = None
    concurrency: int | None = None
    limit_ms: int | None = None
    active: bool = True
    ack_ms: int | None = None


class Workforce:
    """All agents, the limits of the teams, and which agents fit a task or one of its hops: best first, by load.

    Without a chart only the agent that a task itself names is known, and nobody knows what an agent cannot do. While
    the chart is `unusable`, for the reason that it says, no agent gets work.
    """

    def __init__(
        self,
        chart: OrgChart | None = None,
        *,
        unusable: str | None = None,
        agents: Mapping[str, SchedulableAgent] | None = None,
        team_limits: Mapping[str, int] | None = None,
    ) -> None:
        self._chart = chart if chart is not None and chart.declared else None
        self._unusable = unusable
        self._routes: dict[Routing, tuple[str, ...] | str] = {}
        self._busy = -1
        self.agents = dict(agents or {})
        self.team_limits = dict(team_limits or {})
        if self._chart is None:
            return
        for agent in self._chart.agents:
            self.agents[agent.id] = SchedulableAgent(
                agent=agent.id,
                kind=agent.runner.kind,
                team=agent.team,
                concurrency=agent.concurrency,
                limit_ms=routing.run_limit_ms(agent),
                active=agent.active,
                ack_ms=agent.runner.ack_timeout_ms,
            )
        for team in self._chart.teams:
            if team.limits.max_concurrent is not None:
                self.team_limits[team.id] = team.limits.max_concurrent

    def limit_of(self, agent: str) -> int | None:
        """How long a run of this agent may take."""
        entry = self.agents.get(agent)
        return entry.limit_ms if entry is not None else None

    def route(self, task: Task, load: Mapping[str, int]) -> tuple[str, ...] | str:
        """The agents for a task, or why there is none.

        Tasks that ask for the same go to the same, until one more is given out.
        """
        if self._unusable is not None:
            return self._unusable
        if self._chart is None:
            return (task.routing.agent,) if task.routing.agent is not None else _ANYBODY
        if (total := sum(load.values())) != self._busy:
            self._busy = total
            self._routes.clear()
        answer = self._routes.get(task.routing) if not task.profile else None
        if answer is None:
            found = routing.route(self._chart, routing.work_of(task.routing, task.profile), load)
            answer = (found.agent,) if found.agent is not None else found.reason
            if not task.profile:
                self._routes[task.routing] = answer
        return answer

    def route_hop(self, task: Task, hop: str, load: Mapping[str, int]) -> tuple[str, ...] | str:
        """The agents with the hop's role that may do what the task requires; none judges its own work."""
        if self._unusable is not None:
            return self._unusable
        if self._chart is None:
            return _ANYBODY
        workflow = workflow_of(task)
        asked = routing.work_of(Routing(role=workflow.hop(hop).role), task.profile)
        found = routing.route(self._chart, msgspec.structs.replace(asked, capabilities=()), load)
        if not found.candidates:
            return found.reason
        others = tuple(agent for agent in found.candidates if not hops.judges_own(workflow, hop, agent))
        return others or f"{', '.join(found.candidates)} did what it judges"

    def lacking(self, task: Task, agent: str) -> tuple[str, ...]:
        """What an agent cannot do of what the task needs; of one that the chart does not list nobody knows."""
        if self._chart is None or agent not in self._chart.by_id:
            return ()
        work = routing.work_of(task.routing, task.profile)
        return routing.lacking(self._chart.skills[agent], dict(work.capabilities))

    def able(self, task: Task) -> tuple[str, ...]:
        """The active agents that can do all that the task needs."""
        agents = self._chart.agents if self._chart is not None else ()
        return tuple(agent.id for agent in agents if agent.active and not self.lacking(task, agent.id))

    def orchestrator_of(self, agent: str) -> str | None:
        """Who is asked about an agent's work: the orchestrator of its team, where that is another agent."""
        known = self._chart.by_id.get(agent) if self._chart is not None else None
        if self._chart is None or known is None:
            return None
        team = self._chart.teams_by_id.get(known.team or "")
        asked = team.orchestrator if team is not None else None
        return asked if asked in self._chart.by_id and asked != agent else None


class Capacity:
    """What runs at the moment of the plan, plus what the plan has given out since."""

    def __init__(
        self, running: Iterable[Task], workforce: Workforce, most: int | None, resource_slots: Mapping[str, int]
    ) -> None:
        self._workforce = workforce
        self._most = most
        self._slots = resource_slots
        self.total = 0
        self.agents: Counter[str] = Counter()
        self._teams: Counter[str] = Counter()
        self._resources: Counter[str] = Counter()
        for task in running:
            for number, agent in enumerate(_holders(task)):
                self.take(task, agent, beside=number > 0)

    def take(self, task: Task, agent: str | None, *, beside: bool = False) -> None:
        """Count one run more; one beside others of the same task needs no more of its resource."""
        self.total += 1
        if task.resource is not None and not beside:
            self._resources[task.resource] += 1
        if agent is None:
            return
        self.agents[agent] += 1
        entry = self._workforce.agents.get(agent)
        if entry is not None and entry.team is not None:
            self._teams[entry.team] += 1

    def busy_resource(self, task: Task) -> str | None:
        """Why the task's resource cannot take another run."""
        if task.resource is None:
            return None
        used, slots = self._resources[task.resource], self._slots.get(task.resource, 1)
        return f"resource '{task.resource}' is used by {used} of {slots}" if used >= slots else None

    def full(self) -> str | None:
        """Why no agent can begin another run."""
        if self._most is None or self.total < self._most:
            return None
        return f"{self.total} runs of {self._most} at once"

    def full_for(self, entry: SchedulableAgent) -> str | None:
        """Why this agent cannot begin another run."""
        if entry.concurrency is not None and self.agents[entry.agent] >= entry.concurrency:
            return f"{entry.agent} runs {self.agents[entry.agent]} of {entry.concurrency}"
        most = self._workforce.team_limits.get(entry.team) if entry.team is not None else None
        if most is not None and entry.team is not None and self._teams[entry.team] >= most:
            return f"team {entry.team} runs {self._teams[entry.team]} of {most}"
        return None


def _holders(task: Task) -> tuple[str | None, ...]:
    """The agents that run the task, one per hop of a gated one; a single None where there is no lease."""
    if task.gated:
        held = tuple(hop["lease"]["agent"] for hop in task.workflow["hops"] if "lease" in hop)
        return held or (None,)
    return (task.lease.agent if task.lease is not None else None,)


_TOLD = 3  # agents of which a reason says why they take nothing


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    """A file with records that need not be kept any longer."""

    path: str
    records: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Unfinished tasks by what can be done with them, each group in the order of the schedule.

    `free` are those in `ready` and `backlog` that wait for no other task. `hosted` are the runs that this process
    keeps alive, `orphaned` those whose host has died. `handoffs` are messages that wait for an answer, `handed` the
    engine's open handoffs with their tasks, `answers` the tasks by which agents answer some of those, and `triggered`
    the task, trigger and reason of every handoff of a task that is not over. `hosting` says that agents can be started,
    `watches` are the agents whose health is checked. `overdue` are files to prune, and `overdue_at` is when there may
    be more. Of finished tasks only those are part of it that are to be archived, and the one that is next, however many
    there are.
    """

    running: tuple[Task, ...] = ()
    backlog: tuple[Task, ...] = ()
    ready: tuple[Task, ...] = ()
    blocked: tuple[Task, ...] = ()
    review: tuple[Task, ...] = ()
    finished: tuple[Task, ...] = ()
    free: frozenset[str] = frozenset()
    heartbeats: dict[str, Heartbeat | None] = {}
    boot: Boot | None = None
    hosted: frozenset[str] = frozenset()
    orphaned: frozenset[str] = frozenset()
    handoffs: tuple[Handoff, ...] = ()
    handed: tuple[tuple[Task, Handoff], ...] = ()
    triggered: frozenset[tuple[str, str, str]] = frozenset()
    answers: dict[str, Task] = {}
    hosting: bool = False
    watches: dict[str, routing.Watch] = {}
    overdue: tuple[Overdue, ...] = ()
    overdue_at: int | None = None


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One thing to do, and why. `agent` is who is to do the task, `run_id` the run that it is about.

    Of mail it is about a message, and no task.
    What concerns no task has an empty `task_id`. A handoff that is to begin goes from `agent` to `to_agent`, for what
    `trigger` names.
    """

    action: str
    task_id: str
    reason: str
    agent: str | None = None
    run_id: str | None = None
    hop: str | None = None
    handoff_id: str | None = None
    message_id: str | None = None
    trigger: str | None = None
    to_agent: str | None = None


class LeftAlone(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A task with which nothing is done, and why not."""

    task_id: str
    reason: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now, what not, and the moment from which the answer may be another one though nothing happened."""

    actions: tuple[Action, ...] = ()
    left: tuple[LeftAlone, ...] = ()
    next_at: int | None = None


class View:
    """What the rules of a plan look at, and where they leave what they want."""

    def __init__(self, snapshot: Snapshot, workforce: Workforce, policy: Policy, now: int) -> None:
        self.snapshot = snapshot
        self.workforce = workforce
        self.policy = policy
        self.now = now
        most = policy.scheduling.max_concurrent
        self.capacity = Capacity(snapshot.running, workforce, most, policy.resource_slots)
        self.next_at: int | None = None
        self.actions: list[Action] = []
        self.left: list[LeftAlone] = []

    def leave(self, task: Task, reasons: Iterable[str]) -> None:
        """Say what is not done with parts of a task, beside what is."""
        self.left += [LeftAlone(task_id=task.id, reason=reason) for reason in reasons]

    def first_fit(self, agents: Iterable[str]) -> tuple[str | None, str]:
        """The first of some agents that can be given something now; else why the first ones cannot."""
        reasons: list[str] = []
        for agent in agents:
            why_not = self.unfit(agent)
            if why_not is None:
                return agent, ""
            reasons.append(why_not)
        return None, "; ".join(reasons[:_TOLD]) or "nobody can take it"

    def unfit(self, agent: str) -> str | None:
        """Why this agent is not given anything now."""
        entry = self.workforce.agents.get(agent)
        if entry is None or entry.kind not in STARTED:
            return f"waits for {agent} to claim it"
        if not entry.active:
            return f"{agent} is not active"
        return self.capacity.full() or self.capacity.full_for(entry)

    def again(self, at: int) -> None:
        """The answer may be another one from that moment on."""
        if at > self.now and (self.next_at is None or at < self.next_at):
            self.next_at = at

    def beat_of(self, place: str) -> Heartbeat | None:
        """The last sign of life of a task's run, or of a hop's, as of now."""
        return present_heartbeat(self.snapshot.heartbeats.get(place), self.now, self.snapshot.boot)
