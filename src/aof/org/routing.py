"""Which agent gets a task: who fits it, how much one may hold at once, and how far one may go on its own.

An agent that cannot be reached gets none: the checks of an agent, what they come to, and who is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from aof.errors import AtCapacity, BudgetTooSmall, Call
from aof.kernel.events import Event
from aof.org.model import Agent, AutonomyLimits, OrgChart, Risk, Target
from aof.support.answer import StructAnswer
from aof.tasks.fields import required_capabilities
from aof.tasks.model import Routing

_MOST_LEVEL: Final = 3
Stage = Literal["agent", "role", "team", "rule", "capability"]
_NAMED: Final[tuple[Stage, ...]] = ("agent", "role", "team")  # what a task may say itself of who gets it
_SHOWN: Final = 5
RISKS: Final[tuple[Risk, ...]] = ("low", "medium", "high")
_MINUTE: Final = 60_000
BY_LEVEL: Final = {
    0: AutonomyLimits(iterations=5, minutes=10, files=0, lines=0, tool_calls=10),
    1: AutonomyLimits(iterations=20, minutes=30, files=10, lines=1000, tool_calls=50),
    2: AutonomyLimits(iterations=50, minutes=60, files=30, lines=3000, tool_calls=200),
    3: AutonomyLimits(iterations=100, minutes=120, files=50, lines=5000, tool_calls=500),
}


class WorkProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A task as routing sees it. `capabilities` are names, each with how proficient one must at least be in it."""

    agent: str | None = None
    role: str | None = None
    team: str | None = None
    tags: tuple[str, ...] = ()
    capabilities: tuple[tuple[str, float], ...] = ()
    level: int | None = None
    risk: Risk | None = None


def work_of(routing: Routing, profile: dict[str, Any]) -> WorkProfile:
    """The task's routing, and what its profile asks for; what no one could understand there asks for nothing."""
    level, risk = profile.get("autonomyLevel"), profile.get("risk")
    return WorkProfile(
        agent=routing.agent,
        role=routing.role,
        team=routing.team,
        tags=routing.tags,
        capabilities=tuple(required_capabilities(profile).items()),
        level=level if type(level) is int and 0 <= level <= _MOST_LEVEL else None,
        risk=next((known for known in RISKS if known == risk), None),
    )


class Pool(msgspec.Struct, frozen=True):
    """The candidates of one stage of routing; `ranked` ones in that order, the others by load."""

    stage: Stage
    name: str
    agents: tuple[str, ...]
    ranked: tuple[str, ...] = ()
    nobody: str = ""


class RoutingStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One stage that was looked at, and what came of it."""

    stage: Stage
    looked_for: str
    found: tuple[str, ...] = ()
    outcome: str


class Route(StructAnswer, msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who gets the task and why. `state` is `waits` when those who could take it are busy."""

    state: Literal["routed", "waits", "no_route"]
    agent: str | None = None
    stage: Stage | None = None
    reason: str
    candidates: tuple[str, ...] = ()
    steps: tuple[RoutingStep, ...] = ()
    others: dict[str, str] = {}


def route(chart: OrgChart, work: WorkProfile, load: Mapping[str, int]) -> Route:
    """Who gets the task, by how many tasks each agent holds."""
    steps: list[RoutingStep] = []
    for pool in pools(chart, work):
        order = _order(pool, load)
        able = tuple(agent for agent in order if unfit(chart, work, pool, agent) is None)
        if not able:
            outcome = pool.nobody or "; ".join(f"{agent}: {unfit(chart, work, pool, agent)}" for agent in order)
            steps.append(RoutingStep(stage=pool.stage, looked_for=pool.name, found=pool.agents, outcome=outcome))
            continue
        heads = tuple(agent for agent in able if agent in pool.ranked) or able
        free = next((agent for agent in heads if capacity_refusal(chart, chart.by_id[agent], load) is None), None)
        outcome = f"{free} gets it" if free else "at capacity; it waits for the first that is free"
        steps.append(RoutingStep(stage=pool.stage, looked_for=pool.name, found=heads, outcome=outcome))
        return Route(
            state="routed" if free else "waits",
            agent=free,
            stage=pool.stage,
            reason=f"{pool.name}: {outcome}",
            candidates=heads,
            steps=tuple(steps),
            others=_others(chart, work, pool, load, free),
        )
    others = {agent.id: routing_refusal(chart, work, agent.id) or "" for agent in chart.agents}
    return Route(state="no_route", reason=stranded(chart, work) or "", steps=tuple(steps), others=others)


def stranded(chart: OrgChart, work: WorkProfile) -> str | None:
    """Why no agent could take the task, however free they were; None when one could."""
    reasons: list[str] = []
    for pool in pools(chart, work):
        why = {agent: unfit(chart, work, pool, agent) for agent in pool.agents}
        if None in why.values():
            return None
        each = "; ".join(f"{agent}: {reason}" for agent, reason in list(why.items())[:_SHOWN])
        more = f"; and {len(why) - _SHOWN} more" if len(why) > _SHOWN else ""
        reasons.append(f"{pool.name}: {pool.nobody or each + more}")
    return "; ".join(reasons)


def routing_refusal(chart: OrgChart, work: WorkProfile, agent: str) -> str | None:
    """Why this agent may not take the task; None when it may. Capacity is not considered."""
    why: str | None = "nobody can take it"
    for pool in pools(chart, work):
        fit = [one for one in pool.agents if unfit(chart, work, pool, one) is None]
        if agent in fit:
            return None
        if pool.stage == "capability" and agent not in chart.by_id and not pool.nobody:
            missing = lacking({}, _wanted(chart, work))  # an agent that the chart does not list has no capabilities
            return f"it lacks {_listed(missing)}" if missing else None
        why = unfit(chart, work, pool, agent) if agent in pool.agents else pool.nobody or f"it is for {pool.name}"
        if fit:
            break
    return why


def pools(chart: OrgChart, work: WorkProfile) -> Iterator[Pool]:
    """The pools of candidates, in the order of the stages.

    Where the task names an agent, a role or a team, that is the only pool; rules give way to the next.
    """
    named = next((key for key in _NAMED if getattr(work, key) is not None), None)
    if named is not None:
        yield _pool_of(chart, Target(**{named: getattr(work, named)}))
        return
    matching = [rule for rule in chart.routing if rule.tags and set(rule.tags) <= set(work.tags)]
    for rule in sorted(matching, key=lambda rule: -rule.weight):  # a stable order: the first of equals stays first
        pool = _pool_of(chart, rule.to)
        name = f"the rule for {_listed(rule.tags)} (weight {rule.weight:g}), {pool.name}"
        yield msgspec.structs.replace(pool, stage="rule", name=name)
    yield _everybody(chart, work, ruled=bool(matching))


def _pool_of(chart: OrgChart, to: Target) -> Pool:
    if to.agent is not None:
        there = (to.agent,) if to.agent in chart.by_id else ()
        return Pool("agent", f"agent '{to.agent}'", there, there, "" if there else "there is no such agent")
    if to.role is not None:
        holders = chart.holders.get(to.role, ())
        return Pool("role", f"role '{to.role}'", holders, nobody="" if holders else "no agent has this role")
    name = to.team or ""  # a team's tasks go to its orchestrator, then its lead; any member may take one
    team = chart.teams_by_id.get(name)
    if team is None:
        return Pool("team", f"team '{name}'", (), nobody="there is no such team")
    heads = tuple(head for head in dict.fromkeys((team.orchestrator, team.lead)) if head is not None)
    ranked = tuple(head for head in heads if head in chart.by_id)
    agents = tuple(dict.fromkeys((*ranked, *chart.members[name])))
    return Pool("team", f"team '{name}'", agents, ranked, "" if agents else "nobody is in this team")


def _everybody(chart: OrgChart, work: WorkProfile, *, ruled: bool) -> Pool:
    """All agents: whether one has what is required is looked at one by one."""
    wanted = _wanted(chart, work)
    name = f"whoever can do {_listed(wanted)}" if wanted else "anybody"
    known = any(tag in chart.capabilities for tag in work.tags)
    if work.tags and (chart.routing or chart.capabilities) and not ruled and not known:
        nobody = f"no rule and no capability is about {_listed(work.tags)}"
        return Pool("capability", name, (), nobody=nobody)
    nobody = "" if chart.agents else "the org chart names no agent"
    return Pool("capability", name, tuple(agent.id for agent in chart.agents), nobody=nobody)


def _wanted(chart: OrgChart, work: WorkProfile) -> dict[str, float]:
    """What the task's profile requires, and the tags that are a capability of some agent."""
    return {tag: 0.0 for tag in work.tags if tag in chart.capabilities} | dict(work.capabilities)


def unfit(chart: OrgChart, work: WorkProfile, pool: Pool, name: str) -> str | None:
    """Why an agent of the pool cannot take the task; None when it can. A named agent needs no capability."""
    agent = chart.by_id[name]
    if not agent.active:
        return "it is not active"
    if pool.stage != "agent":
        wanted = _wanted(chart, work) if pool.stage == "capability" else dict(work.capabilities)
        missing = lacking(chart.skills[name], wanted)
        if missing:
            return f"it lacks {_listed(missing)}"
    return too_little(agent, level=work.level, risk=work.risk)


def lacking(skills: Mapping[str, float], wanted: Mapping[str, float]) -> tuple[str, ...]:
    """The capabilities that are not among these skills, or not well enough, in the order they are asked for."""
    return tuple(
        f"{name} (at least {least:g}, has {skills[name]:g})" if name in skills else name
        for name, least in wanted.items()
        if skills.get(name, -1.0) < least
    )


def _order(pool: Pool, load: Mapping[str, int]) -> tuple[str, ...]:
    """The ranked ones first; the others by load, and as they stand in the chart."""
    rest = [agent for agent in pool.agents if agent not in pool.ranked]
    return (*pool.ranked, *sorted(rest, key=lambda agent: load.get(agent, 0)))


def _others(
    chart: OrgChart, work: WorkProfile, pool: Pool, load: Mapping[str, int], chosen: str | None
) -> dict[str, str]:
    """Why each other agent does not get it."""
    why: dict[str, str] = {}
    for agent in chart.agents:
        if agent.id == chosen:
            continue
        if agent.id not in pool.agents:
            why[agent.id] = f"it is for {pool.name}"
        else:
            busy = unfit(chart, work, pool, agent.id) or capacity_refusal(chart, agent, load)
            why[agent.id] = busy or _behind(pool, agent.id, chosen, load)
    return why


def _behind(pool: Pool, agent: str, chosen: str | None, load: Mapping[str, int]) -> str:
    if chosen in pool.ranked:
        return f"{chosen} comes first in {pool.name}"
    held, less = load.get(agent, 0), load.get(chosen or "", 0)
    if held != less:
        return f"it holds {held} tasks, {chosen} holds {less}"
    return f"{chosen} stands before it in the chart"


def _listed(names: Mapping[str, float] | tuple[str, ...]) -> str:
    return ", ".join(names)


def team_limit(chart: OrgChart, agent: Agent) -> int | None:
    """How many tasks the members of the agent's team may hold together; None where nothing limits them."""
    team = chart.teams_by_id.get(agent.team) if agent.team is not None else None
    return team.limits.max_concurrent if team is not None else None


def counted_agents(chart: OrgChart, agent: Agent) -> frozenset[str]:
    """Whose running tasks count before this agent may take one more; empty where nothing limits it."""
    whose: set[str] = set()
    if agent.concurrency is not None:
        whose.add(agent.id)
    if agent.team is not None and team_limit(chart, agent) is not None:
        whose.update(chart.members[agent.team])
    return frozenset(whose)


def capacity_locks(chart: OrgChart, agent: Agent) -> frozenset[str]:
    """The names under which claims that count together are decided one after the other."""
    names = {f"agent:{agent.id}"} if agent.concurrency is not None else set()
    if team_limit(chart, agent) is not None:
        names.add(f"team:{agent.team}")
    return frozenset(names)


def capacity_refusal(chart: OrgChart, agent: Agent, load: Mapping[str, int]) -> str | None:
    """Why the agent may not take one more task now, by how many each agent holds; None when it may."""
    if agent.concurrency is not None and load.get(agent.id, 0) >= agent.concurrency:
        return f"it holds {load.get(agent.id, 0)} of the {agent.concurrency} tasks that it may hold at once"
    most = team_limit(chart, agent)
    if most is not None and agent.team is not None:
        held = sum(load.get(member, 0) for member in chart.members[agent.team])
        if held >= most:
            return f"its team '{agent.team}' holds {held} of the {most} tasks that it may hold at once"
    return None


def at_capacity(chart: OrgChart, agent: Agent, load: Mapping[str, int]) -> AtCapacity | None:
    """The refusal of one more task."""
    why = capacity_refusal(chart, agent, load)
    if why is None:
        return None
    return AtCapacity(
        f"{agent.id} cannot take another task now: {why}",
        "finish or release one first",
        Call("list", {"agent": agent.id, "status": "in-progress"}),
        agent=agent.id,
        load=load.get(agent.id, 0),
    )


def limits_of(agent: Agent) -> AutonomyLimits:
    """What one run of the agent may use: its own figures, else those of its level, else None for no limit."""
    level = agent.autonomy.level
    base = BY_LEVEL[level] if level is not None else AutonomyLimits()
    own = msgspec.structs.asdict(agent.autonomy.limits)
    return msgspec.structs.replace(base, **{name: value for name, value in own.items() if value is not None})


def too_little(agent: Agent, *, level: int | None, risk: Risk | None) -> str | None:
    """Why the agent's autonomy does not suffice for work of that level and risk; None when it does."""
    own = agent.autonomy
    if level is not None and own.level is not None and own.level < level:
        return f"its autonomy level is {own.level}, and the task needs {level}"
    if risk is not None and own.max_risk is not None and RISKS.index(risk) > RISKS.index(own.max_risk):
        return f"it may take {own.max_risk} risk at most, and the task's is {risk}"
    return None


def run_limit_ms(agent: Agent) -> int | None:
    """How long one run of the agent may take: its own figure or that of its budget, whichever is shorter."""
    own, minutes = agent.max_execution_ms, limits_of(agent).minutes
    if minutes is None:
        return own
    return minutes * _MINUTE if own is None else min(own, minutes * _MINUTE)


def may_take(chart: OrgChart | None, name: str, *, level: int | None, risk: Risk | None) -> BudgetTooSmall | None:
    """The refusal of work that needs more autonomy than the agent has; None where nothing says that it is too much.

    Every agent that work is given to must pass: the one that is named, and each that it is rerouted or escalated to.
    """
    agent = chart.by_id.get(name) if chart is not None else None
    why = too_little(agent, level=level, risk=risk) if agent is not None else None
    if agent is None or why is None:
        return None
    needed = {"level": level, "risk": risk}
    there = {"level": agent.autonomy.level, "risk": agent.autonomy.max_risk}
    return BudgetTooSmall(
        f"the autonomy of {name} is too small: {why}",
        "give it to an agent with a larger budget",
        Call("org_show", {}),
        agent=name,
        required={what: value for what, value in needed.items() if value is not None},
        available={what: value for what, value in there.items() if value is not None},
    )


UNAVAILABLE: Final = "agent.unavailable"
AVAILABLE: Final = "agent.available"
INTERVAL_MS: Final = 60_000  # between two checks
TIMEOUT_MS: Final = 10_000
THRESHOLD: Final = 3  # checks in a row that have failed


class AgentHealth(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The health record of an agent: whether it can be reached, since when, and why that was said."""

    agent: str
    available: bool
    since: str
    reason: str


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of one agent so far: when the last one was, and how many have failed since one succeeded."""

    checked_at: int
    failures: int = 0

    @property
    def due_at(self) -> int:
        """When the next check is due."""
        return self.checked_at + INTERVAL_MS

    @property
    def unhealthy(self) -> bool:
        """Whether enough checks in a row have failed."""
        return self.failures >= THRESHOLD


def checked_health(watch: Watch, answered_ms: int | None, now: int) -> Watch:
    """The checks after one more; `answered_ms` is how long the agent took, None without an answer."""
    healthy = answered_ms is not None and answered_ms <= TIMEOUT_MS
    return Watch(checked_at=now, failures=0 if healthy else watch.failures + 1)


def health_of(event: Event) -> AgentHealth | None:
    """What an event says of an agent's health; None when it says nothing of it."""
    if event.type not in (UNAVAILABLE, AVAILABLE):
        return None
    agent, reason = str(event.payload.get("agent", "")), str(event.payload.get("reason", ""))
    return AgentHealth(agent=agent, available=event.type == AVAILABLE, since=event.timestamp, reason=reason)


def without_unavailable(chart: OrgChart, unavailable: Collection[str]) -> OrgChart:
    """The chart as it is for who gives out work: an agent that cannot be reached is not active."""
    if not any(agent.id in unavailable and agent.active for agent in chart.agents):
        return chart
    agents = tuple(
        msgspec.structs.replace(agent, active=False) if agent.id in unavailable else agent for agent in chart.agents
    )
    return msgspec.structs.replace(chart, agents=agents)
