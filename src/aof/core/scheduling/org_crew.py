"""An org chart as the scheduler sees it. Routing decides; this only asks it. Must not know any routing rule."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from aof.core.model import workflow_state
from aof.core.model.org_chart import OrgChart
from aof.core.model.task import Routing, Task
from aof.core.org import autonomy, routing, work_profile
from aof.core.scheduling.crew import Crew, Nobody, Seat
from aof.core.workflows import claim


def crew_of(chart: OrgChart) -> Crew:
    """Everybody in the chart, with their limits."""
    if not chart.declared:
        return Crew()
    seats = {
        agent.id: Seat(
            agent=agent.id,
            kind=agent.runner.kind,
            team=agent.team,
            concurrency=agent.concurrency,
            limit_ms=autonomy.run_limit_ms(agent),
            active=agent.active,
            ack_ms=agent.runner.ack_timeout_ms,
        )
        for agent in chart.agents
    }
    limits = {team.id: team.limits.max_concurrent for team in chart.teams if team.limits.max_concurrent is not None}

    known: dict[Routing, tuple[str, ...] | Nobody] = {}
    busy = -1

    def routed(task: Task, load: Mapping[str, int]) -> tuple[str, ...] | Nobody:
        """Tasks that ask for the same go to the same, until one more is given out."""
        nonlocal busy
        if (total := sum(load.values())) != busy:
            busy = total
            known.clear()
        answer = known.get(task.routing) if not task.profile else None
        if answer is None:
            found = routing.route(chart, work_profile.work_of(task.routing, task.profile), load)
            answer = (found.agent,) if found.agent is not None else Nobody(found.reason)
            if not task.profile:
                known[task.routing] = answer
        return answer

    def routed_hop(task: Task, hop: str, load: Mapping[str, int]) -> tuple[str, ...] | Nobody:
        """The agents with the hop's role that may do what the task requires; none judges its own work."""
        workflow = workflow_state.workflow_of(task)
        asked = work_profile.work_of(Routing(role=workflow.hop(hop).role), task.profile)
        found = routing.route(chart, msgspec.structs.replace(asked, capabilities=()), load)
        if not found.candidates:
            return Nobody(found.reason)
        others = tuple(agent for agent in found.candidates if not claim.judges_own(workflow, hop, agent))
        return others or Nobody(f"{', '.join(found.candidates)} did what it judges")

    return Crew(
        seats=seats,
        team_limits=limits,
        route=routed,
        route_hop=routed_hop,
        lacking=partial(_lacking, chart),
        able=partial(_able, chart),
        orchestrators=_orchestrators(chart),
    )


def _orchestrators(chart: OrgChart) -> dict[str, str]:
    """Who is asked about each agent's work: the orchestrator of its team, where that is another agent."""
    found = {team.id: team.orchestrator for team in chart.teams if team.orchestrator in chart.by_id}
    asked = {agent.id: found.get(agent.team or "") for agent in chart.agents}
    return {name: one for name, one in asked.items() if one is not None and one != name}


def _lacking(chart: OrgChart, task: Task, agent: str) -> tuple[str, ...]:
    """What an agent cannot do of what the task needs; of one that the chart does not list nobody knows."""
    if agent not in chart.by_id:
        return ()
    return routing.lacking(chart.skills[agent], dict(work_profile.work_of(task.routing, task.profile).capabilities))


def _able(chart: OrgChart, task: Task) -> tuple[str, ...]:
    return tuple(agent.id for agent in chart.agents if agent.active and not _lacking(chart, task, agent.id))
