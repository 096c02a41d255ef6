"""Operations about the org chart, protocol messages and sessions. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from aof.app.documents.mailbox.results import LeftOver
from aof.app.operations.results import Applied, Result
from aof.app.operations.rows.fields import Object, Run
from aof.app.operations.spec import Cli, Family, Operation, Params, Spelling, param

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
