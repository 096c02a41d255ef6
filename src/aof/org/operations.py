"""Operations about the org chart, protocol messages and sessions.

Must not know where the chart comes from, nor any surface.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from aof.documents.mail_operations import LeftOver
from aof.kernel.declarations import Cli, Family, Object, Operation, Params, Run, Spelling, param
from aof.kernel.results import Applied, Result
from aof.org import model, rights, routing
from aof.org.chart import escalation_chain
from aof.org.health import AgentHealth
from aof.org.model import Agent, OrgChart
from aof.org.rights import kind_of
from aof.org.routing import limits_of
from aof.store import directory
from aof.store.lists import Query
from aof.tasks import fields
from aof.tasks import model as tasks_model
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.api.fabric import Fabric
    from aof.kernel.context import Environment
    from aof.org.routing import Route
    from aof.queries.service import QueryService
    from aof.store.directory import OrgReport
    from aof.tasks.model import Task


_ORG = Family(
    verb="org",
    help="show or check the org chart, or see who would get a task",
    example="aof org route --tag api --capability python:0.8",
)


class OrgRouteParams(Params, frozen=True, kw_only=True):
    """A task, or what one would ask for."""

    task_id: Annotated[str, param("task to route", Spelling(place="ID"))] | UnsetType = UNSET
    agent: Annotated[str, param("for this agent")] | UnsetType = UNSET
    role: Annotated[str, param("for this role")] | UnsetType = UNSET
    team: Annotated[str, param("for this team")] | UnsetType = UNSET
    tags: Annotated[list[str], param("with this tag", Spelling(option="--tag"))] | UnsetType = UNSET
    capabilities: (
        Annotated[
            list[str],
            param(
                "for agents with this capability, as NAME or NAME:0.8 for a minimum proficiency",
                Spelling(option="--capability"),
            ),
        ]
        | UnsetType
    ) = UNSET
    risk: Annotated[str, param("of this risk: low, medium or high")] | UnsetType = UNSET
    autonomy_level: Annotated[int, param("for this autonomy level", Spelling(option="--level"))] | UnsetType = UNSET


class SendParams(Params, frozen=True, kw_only=True):
    """AOF/1 messages, as objects or as the text of their lines."""

    messages: Annotated[
        list[str | Object],
        param(
            "AOF/1 messages, as objects or as text",
            Spelling(place="[FILE]", target="file", note="(one per line, or JSON documents; -: standard input)"),
        ),
    ]
    run: Run = UNSET


class SessionEndParams(Params, frozen=True, kw_only=True):
    """Whose session, or which run."""

    agent: Annotated[str, param("only the runs of this agent")] | UnsetType = UNSET
    run: Annotated[str, param("this run has ended; without a report it has failed")] | UnsetType = UNSET


class OrgCheck(Result, frozen=True, kw_only=True):
    """Problems of the org chart, and which version is in force."""

    ok: bool
    path: str
    state: str
    problems: list[dict[str, Any]]


class SentMessages(Result, frozen=True, kw_only=True):
    """What became of each message."""

    results: list[dict[str, Any]]


class Carried(Result, frozen=True, kw_only=True):
    """What was carried out."""

    applied: tuple[Applied, ...]
    mail: LeftOver = LeftOver()


def _check(fabric: Any, _values: dict[str, Any]) -> OrgCheck:
    report = fabric.org_report()
    problems = [finding.told() for finding in report.findings]
    ok = all(finding.severity == "note" for finding in report.findings)
    return OrgCheck(ok=ok, path=report.path, state=report.state, problems=problems)


def _route(fabric: Any, values: dict[str, Any]) -> Any:
    route = fabric.org_route(**values)
    return msgspec.to_builtins(route) | {"agent": route.agent}


def _send(fabric: Any, values: dict[str, Any]) -> SentMessages:
    rows = [msgspec.to_builtins(sent) for sent in fabric.send(values["messages"], run=values.get("run"))]
    return SentMessages(results=[{name: one for name, one in row.items() if name != "call"} for row in rows])


def _session_end(fabric: Any, values: dict[str, Any]) -> Carried:
    applied = fabric.session_end(**values)
    agent = values.get("agent") or (fabric.actor if "run" not in values else None)
    return Carried(applied=applied, mail=fabric.turn_ended(agent, "session-end") if agent else LeftOver())


ROWS: tuple[Operation, ...] = (
    Operation(
        name="org_show",
        parameters=Params,
        result=dict[str, Any],
        help="The org chart in force, with what each agent holds and may do.",
        effect="read",
        tool="aof_org_show",
        verb="org show",
        cli=Cli(section="team", order=10, example="aof org show", family=_ORG),
    ),
    Operation(
        name="org_check",
        parameters=Params,
        result=OrgCheck,
        help="Problems of the org chart.",
        effect="read",
        tool="aof_org_check",
        verb="org check",
        cli=Cli(section="team", order=10, example="aof org check", family=_ORG),
        ask=_check,
    ),
    Operation(
        name="org_route",
        parameters=OrgRouteParams,
        result=dict[str, Any],
        help="Which agent a task, or one with these requirements, would go to, and why.",
        effect="read",
        tool="aof_org_route",
        verb="org route",
        cli=Cli(section="team", order=10, example="aof org route 001", family=_ORG),
        ask=_route,
    ),
    Operation(
        name="send",
        parameters=SendParams,
        result=SentMessages,
        help="Deliver AOF/1 messages; each is answered.",
        effect="write",
        tool="aof_send",
        verb="send",
        cli=Cli(section="team", order=10, summary="deliver AOF/1 messages", example="aof send report.json"),
        tier="handoff",
        ask=_send,
    ),
    Operation(
        name="session_end",
        parameters=SessionEndParams,
        result=Carried,
        help="Apply the results that runs have reported; a named run has ended.",
        effect="write",
        tool="aof_session_end",
        verb="session-end",
        cli=Cli(
            section="team",
            order=20,
            summary="apply the results that runs have reported",
            example="aof session-end --agent swe-backend",
        ),
        acts="agent",
        ask=_session_end,
    ),
)


class OrgService:
    """Shows the chart, checks it, and says who would get a task."""

    def __init__(self, environment: Environment, queries: QueryService) -> None:
        self._environment = environment
        self._queries = queries

    def org_report(self) -> OrgReport:
        """Which chart is in force, and everything that is wrong with the one that is written down."""
        source = self._environment.org
        if source is None:
            return directory.OrgReport(path="", state="absent", chart=model.EMPTY)
        return source.report()

    def org_show(self) -> dict[str, Any]:
        """The chart in force, with what each agent holds and may do."""
        report = self.org_report()
        maintainers, health = self._environment.policy.maintainers, self._environment.store.health()
        return {"state": report.state, **portrait(report.chart, self.org_load(), maintainers, health)}

    def org_load(self) -> dict[str, int]:
        """How many tasks each agent holds or has taken on by a handoff; those that have none are left out."""
        found = self._environment.store.find(Query(open_handoffs=True)).tasks
        held = {one.id: one for one in (*self._queries.running(), *found)}.values()
        return dict(Counter(agent for one in held for agent in workflows_model.occupied_by(one)))

    def org_route(
        self,
        task_id: str | None = None,
        *,
        agent: str | None = None,
        role: str | None = None,
        team: str | None = None,
        tags: Sequence[str] = (),
        capabilities: Sequence[str] = (),
        risk: str | None = None,
        autonomy_level: int | None = None,
    ) -> Route:
        """Which agent a task, or one with these requirements, would go to; and why not to the others."""
        if task_id is not None:
            known = self._queries.get(task_id)
            asked = routing.work_of(known.routing, known.profile)
        else:
            if problem := fields.bad_capabilities("capabilities", capabilities):
                raise problem
            profile = {fields.KEY: list(capabilities), "risk": risk, "autonomyLevel": autonomy_level}
            wanted = tasks_model.Routing(agent=agent, role=role, team=team, tags=tuple(tags))
            asked = routing.work_of(wanted, profile)
        return routing.route(self._environment.chart.whole(), asked, self.org_load())


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
        "escalatesTo": list(escalation_chain(chart, agent.id)),
        "runner": agent.runner.kind,
        "active": agent.active,
    }


def waiting_for(fabric: Fabric, agent: str) -> Sequence[Task]:
    """The tasks in review that this agent may judge: never its own work, and what the org chart allows."""
    environment = fabric.services.environment
    chart, policy = environment.chart.readable(), environment.policy
    return [task for task in fabric.tasks(status="review") if rights.may_judge(policy, chart, agent, task)]
