"""How much an agent and its team may hold at once. The load is an argument."""

from __future__ import annotations

from collections.abc import Mapping

from aof.core.errors.base import Call
from aof.core.errors.org import AtCapacity
from aof.core.model.org_chart import Agent, OrgChart


def team_limit(chart: OrgChart, agent: Agent) -> int | None:
    """How many tasks the members of the agent's team may hold together; None where nothing limits them."""
    team = chart.teams_by_id.get(agent.team) if agent.team is not None else None
    return team.limits.max_concurrent if team is not None else None


def counted(chart: OrgChart, agent: Agent) -> frozenset[str]:
    """Whose running tasks count before this agent may take one more; empty where nothing limits it."""
    whose: set[str] = set()
    if agent.concurrency is not None:
        whose.add(agent.id)
    if agent.team is not None and team_limit(chart, agent) is not None:
        whose.update(chart.members[agent.team])
    return frozenset(whose)


def locks(chart: OrgChart, agent: Agent) -> frozenset[str]:
    """The names under which claims that count together are decided one after the other."""
    names = {f"agent:{agent.id}"} if agent.concurrency is not None else set()
    if team_limit(chart, agent) is not None:
        names.add(f"team:{agent.team}")
    return frozenset(names)


def full(chart: OrgChart, agent: Agent, load: Mapping[str, int]) -> str | None:
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
    why = full(chart, agent, load)
    if why is None:
        return None
    return AtCapacity(
        f"{agent.id} cannot take another task now: {why}",
        "finish or release one first",
        Call("list", {"agent": agent.id, "status": "in-progress"}),
        agent=agent.id,
        load=load.get(agent.id, 0),
    )
