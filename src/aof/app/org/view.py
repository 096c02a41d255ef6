"""The org chart as it is shown: with what each agent holds and may do. Must not decide anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from aof.core.model.org_chart import Agent, OrgChart
from aof.core.org.autonomy import limits_of
from aof.core.org.escalation import chain
from aof.core.org.health.agent_health import AgentHealth
from aof.core.org.rights import kind_of


def portrait(
    chart: OrgChart, load: Mapping[str, int], maintainers: tuple[str, ...], health: Mapping[str, AgentHealth]
) -> dict[str, Any]:
    """The whole chart, with defaults filled in, loads beside the limits, and who cannot be reached."""
    return {
        "agents": [_agent(chart, agent, load, maintainers) | _reached(health.get(agent.id)) for agent in chart.agents],
        "teams": [
            {
                "id": team.id,
                "lead": team.lead,
                "orchestrator": team.orchestrator,
                "members": list(chart.members[team.id]),
                "load": sum(load.get(member, 0) for member in chart.members[team.id]),
                "maxConcurrent": team.limits.max_concurrent,
            }
            for team in chart.teams
        ],
        "roles": {role: list(agents) for role, agents in chart.holders.items()},
        "routing": [msgspec.to_builtins(rule) for rule in chart.routing],
        "escalation": list(chart.escalation),
        "maintainers": list(maintainers),
    }


def _reached(health: AgentHealth | None) -> dict[str, Any]:
    """Whether the agent can be reached; if not, since when and why."""
    if health is None or health.available:
        return {"available": True}
    return {"available": False, "unavailableSince": health.since, "unavailableReason": health.reason}


def _agent(chart: OrgChart, agent: Agent, load: Mapping[str, int], maintainers: tuple[str, ...]) -> dict[str, Any]:
    limits = limits_of(agent)
    figures = zip(limits.__struct_encode_fields__, limits.__struct_fields__, strict=True)
    autonomy = {
        "level": agent.autonomy.level,
        "maxRisk": agent.autonomy.max_risk,
        "limits": {shown: getattr(limits, name) for shown, name in figures},
    }
    return {
        "id": agent.id,
        "name": agent.name,
        "team": agent.team,
        "kind": kind_of(chart, agent.id, maintainers),
        "roles": sorted(chart.roles_of[agent.id]),
        "capabilities": chart.skills[agent.id],
        "load": load.get(agent.id, 0),
        "concurrency": agent.concurrency,
        "autonomy": autonomy,
        "maxExecutionTime": agent.max_execution_time,
        "escalatesTo": list(chain(chart, agent.id)),
        "runner": agent.runner.kind,
        "active": agent.active,
    }
