"""Operations on the org chart. Must not know where the chart comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from aof.kernel.declarations import param
from aof.kernel.operation import Family, Spelling, method, operation
from aof.kernel.results import Result
from aof.org import model, rights, routing
from aof.org.chart import escalation_chain
from aof.org.model import Agent, OrgChart
from aof.org.rights import kind_of
from aof.org.routing import AgentHealth, limits_of
from aof.store import directory
from aof.store.lists import DictAnswer, Query
from aof.tasks import fields
from aof.tasks import model as tasks_model
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.api.fabric import Fabric
    from aof.kernel.context import CallContext
    from aof.org.routing import Route
    from aof.store.directory import OrgReport
    from aof.tasks.model import Task


class ShownChart(DictAnswer):
    """The org chart in force with what each agent holds and may do, in the names that JSON has."""

    __slots__ = ()

    @property
    def state(self) -> str:
        """Which chart is in force."""
        return str(self["state"])

    @property
    def agents(self) -> list[dict[str, Any]]:
        """The agents, with their load and limits."""
        agents: list[dict[str, Any]] = self["agents"]
        return agents

    @property
    def teams(self) -> list[dict[str, Any]]:
        """The teams, with their load."""
        teams: list[dict[str, Any]] = self["teams"]
        return teams

    @property
    def roles(self) -> dict[str, list[str]]:
        """Who has each role."""
        roles: dict[str, list[str]] = self["roles"]
        return roles

    @property
    def routing(self) -> list[dict[str, Any]]:
        """The rules by tag."""
        routing: list[dict[str, Any]] = self["routing"]
        return routing

    @property
    def escalation(self) -> list[str]:
        """The roles, from a worker upward."""
        escalation: list[str] = self["escalation"]
        return escalation

    @property
    def maintainers(self) -> list[str]:
        """Who maintains the project."""
        maintainers: list[str] = self["maintainers"]
        return maintainers


class OrgCheck(Result, frozen=True, kw_only=True):
    """Problems of the org chart, and which version is in force."""

    ok: bool
    path: str
    state: str
    problems: list[dict[str, Any]]


def _route(fabric: Fabric, values: dict[str, Any]) -> dict[str, Any]:
    route = fabric.org_route(**values)
    shown: dict[str, Any] = msgspec.to_builtins(route)
    return shown | {"agent": route.agent}


_ORG = Family(
    verb="org",
    help="show or check the org chart, or see who would get a task",
    example="aof org route --tag api --capability python:0.8",
    section="team",
    order=10,
)


@method
def org_report(context: CallContext) -> OrgReport:
    """Which chart is in force, and everything that is wrong with the one that is written down."""
    source = context.environment.org
    if source is None:
        return directory.OrgReport(path="", state="absent", chart=model.EMPTY)
    return source.report()


@operation(effect="read", example="aof org show", family=_ORG)
def org_show(context: CallContext) -> ShownChart:
    """The org chart in force, with what each agent holds and may do."""
    report = org_report(context)
    maintainers, health = context.environment.policy.maintainers, context.environment.store.health()
    shown = chart_view(report.chart, org_load(context), maintainers, health)
    return ShownChart({"state": report.state, **shown})


@operation(effect="read", example="aof org check", family=_ORG)
def org_check(context: CallContext) -> OrgCheck:
    """Problems of the org chart."""
    report = org_report(context)
    return OrgCheck(
        ok=all(finding.severity == "note" for finding in report.findings),
        path=report.path,
        state=report.state,
        problems=[finding.as_dict() for finding in report.findings],
    )


@method
def org_load(context: CallContext) -> dict[str, int]:
    """How many tasks each agent holds or has taken on by a handoff; those that have none are left out."""
    store, models = context.environment.store, context.environment.read_models
    running = store.find(models.query(status="in-progress")).tasks
    handed = store.find(Query(open_handoffs=True)).tasks
    held = {one.id: one for one in (*running, *handed)}.values()
    return dict(Counter(agent for one in held for agent in workflows_model.occupied_by(one)))


@operation(effect="read", example="aof org route 001", family=_ORG, over_wire=_route)
def org_route(
    context: CallContext,
    task_id: Annotated[str, param("task to route", Spelling(place="ID"))] | None = None,
    *,
    agent: Annotated[str, param("for this agent")] | None = None,
    role: Annotated[str, param("for this role")] | None = None,
    team: Annotated[str, param("for this team")] | None = None,
    tags: Annotated[Sequence[str], param("with this tag", Spelling(option="--tag"))] = (),
    capabilities: Annotated[
        Sequence[str],
        param(
            "for agents with this capability, as NAME or NAME:0.8 for a minimum proficiency",
            Spelling(option="--capability"),
        ),
    ] = (),
    risk: Annotated[str, param("of this risk: low, medium or high")] | None = None,
    autonomy_level: Annotated[int, param("for this autonomy level", Spelling(option="--level"))] | None = None,
) -> Route:
    """Which agent a task, or one with these requirements, would go to, and why."""
    if task_id is not None:
        known = context.environment.lookup.get(task_id)
        asked = routing.work_of(known.routing, known.profile)
    else:
        if problem := fields.bad_capabilities("capabilities", capabilities):
            raise problem
        profile = {fields.KEY: list(capabilities), "risk": risk, "autonomyLevel": autonomy_level}
        wanted = tasks_model.Routing(agent=agent, role=role, team=team, tags=tuple(tags))
        asked = routing.work_of(wanted, profile)
    return routing.route(context.environment.chart.whole(), asked, org_load(context))


def chart_view(
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
        "escalatesTo": list(escalation_chain(chart, agent.id)),
        "runner": agent.runner.kind,
        "active": agent.active,
    }


def waiting_for(fabric: Fabric, agent: str) -> Sequence[Task]:
    """The tasks in review that this agent may judge: never its own work, and what the org chart allows."""
    environment = fabric.services.environment
    chart, policy = environment.chart.readable(), environment.policy
    return [task for task in fabric.tasks(status="review") if rights.may_judge(policy, chart, agent, task)]
