"""Operations about the org chart, protocol messages, sessions and handoffs. Must not know any surface."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from aof.app.operations.results import Applied, Result
from aof.app.operations.spec import Operation, Params, Run, TaskId, Text
from aof.core.model.handoff import Handoff


class OrgRoute(Params, frozen=True, kw_only=True):
    """A task, or what one would ask for."""

    task_id: TaskId | UnsetType = UNSET
    agent: Text = UNSET
    role: Text = UNSET
    team: Text = UNSET
    tags: list[str] | UnsetType = UNSET
    capabilities: list[str] | UnsetType = UNSET
    risk: Text = UNSET
    autonomy_level: int | UnsetType = UNSET


class Send(Params, frozen=True, kw_only=True):
    """AOF/1 messages, as objects or as the text of their lines."""

    messages: list[Any]
    run: Run = UNSET


class SessionEnd(Params, frozen=True, kw_only=True):
    """Whose session, or which run."""

    agent: Text = UNSET
    run: Run = UNSET


class HandoffFilters(Params, frozen=True, kw_only=True):
    """Which handoffs."""

    task: TaskId | UnsetType = UNSET
    from_agent: Text = UNSET
    to_agent: Text = UNSET


class OneHandoff(Params, frozen=True, kw_only=True):
    """Which handoff."""

    handoff_id: str


class OrgCheck(Result, frozen=True, kw_only=True):
    """What is wrong with the org chart, and which version is in force."""

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


class Handoffs(Result, frozen=True, kw_only=True):
    """Handoffs, oldest first."""

    total: int
    handoffs: tuple[Handoff, ...]


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
    return Carried(applied=fabric.session_end(**values))


def _handoffs(fabric: Any, values: dict[str, Any]) -> Handoffs:
    found = fabric.handoffs(**values)
    return Handoffs(total=len(found), handoffs=found)


ROWS: tuple[Operation, ...] = (
    Operation(
        name="org_show",
        parameters=Params,
        result=dict[str, Any],
        help="The org chart in force, with what each agent holds and may do.",
        effect="read",
        tool="aof_org_show",
        verb="org show",
    ),
    Operation(
        name="org_check",
        parameters=Params,
        result=OrgCheck,
        help="What is wrong with the org chart.",
        effect="read",
        tool="aof_org_check",
        verb="org check",
        ask=_check,
    ),
    Operation(
        name="org_route",
        parameters=OrgRoute,
        result=dict[str, Any],
        help="Who would get a task, or one that asked for this, and why.",
        effect="read",
        tool="aof_org_route",
        verb="org route",
        ask=_route,
    ),
    Operation(
        name="send",
        parameters=Send,
        result=SentMessages,
        help="Deliver AOF/1 messages; each is answered.",
        effect="write",
        tool="aof_send",
        verb="send",
        tier="handoff",
        ask=_send,
    ),
    Operation(
        name="session_end",
        parameters=SessionEnd,
        result=Carried,
        help="Carry out what runs have reported; a run that is named has ended.",
        effect="write",
        tool="aof_session_end",
        verb="session-end",
        acts="agent",
        ask=_session_end,
    ),
    Operation(
        name="handoffs",
        parameters=HandoffFilters,
        result=Handoffs,
        help="Handoffs of a task, from or to an agent.",
        effect="read",
        tool="aof_handoffs",
        verb="handoff list",
        tier="handoff",
        ask=_handoffs,
    ),
    Operation(
        name="handoff",
        parameters=OneHandoff,
        result=Handoff,
        help="One handoff.",
        effect="read",
        tool="aof_handoff_show",
        verb="handoff show",
        tier="handoff",
    ),
)
