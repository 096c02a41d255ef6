"""What one part of a chart says of another, and whether that leads anywhere.

None of it keeps a chart from being used: a name that leads nowhere is passed over. Must not know shapes or figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aof.core.findings import Finding, Severity, Step, similar, suggestion
from aof.core.org.chart import HUMAN, OrgChart, RoutingRule

DEPTH = 3
_At = tuple[Step, ...]


def dangling(chart: OrgChart) -> Iterator[Finding]:
    """Names that nobody has, roles and rules that lead nowhere, escalations that never end."""
    yield from _teams(chart)
    yield from _roles(chart)
    yield from _agents(chart)
    yield from _escalation(chart)
    yield from _rules(chart)


def _odd(at: _At, code: str, detail: str, fix: str, severity: Severity = "warning") -> Finding:
    return Finding(code=code, severity=severity, at=at, detail=detail, fix=fix)


def _unknown(at: _At, what: str, name: str, known: Iterable[str]) -> Finding:
    there = sorted(known)
    fix = suggestion(name, there, f"add the {what}, or use one of: {', '.join(there) or 'there is none yet'}")
    return _odd(at, f"unknown_{what}", f"there is no {what} '{name[:80]}'", fix)


def _teams(chart: OrgChart) -> Iterator[Finding]:
    for number, team in enumerate(chart.teams):
        for key, name in (("lead", team.lead), ("orchestrator", team.orchestrator)):
            at = ("teams", number, key)
            if name is None:
                continue
            if name not in chart.by_id:
                yield _unknown(at, "agent", name, chart.by_id)
            elif not chart.by_id[name].active:
                detail = f"the {key} of team '{team.id}', '{name}', is not active"
                yield _odd(at, "inactive_lead", detail, "name an active agent, or set it active")


def _roles(chart: OrgChart) -> Iterator[Finding]:
    for role, given in chart.roles.items():
        for number, name in enumerate(given.agents):
            if name not in chart.by_id:
                yield _unknown(("roles", role, "agents", number), "agent", name, chart.by_id)
        if not _held(chart, role):
            detail = f"no active agent has the role '{role}'"
            yield _odd(("roles", role), "unheld_role", detail, "list an active agent under it, or remove the role")


def _held(chart: OrgChart, role: str) -> bool:
    return any(chart.by_id[agent].active for agent in chart.holders.get(role, ()))


def _agents(chart: OrgChart) -> Iterator[Finding]:
    for number, agent in enumerate(chart.agents):
        at: _At = ("agents", number)
        if agent.team is not None and agent.team not in chart.teams_by_id:
            yield _unknown((*at, "team"), "team", agent.team, chart.teams_by_id)
        for place, role in enumerate(agent.roles):
            # An agent may bring a role into being, so only what looks like a slip of the pen is one.
            if chart.roles and role not in chart.roles and similar(role, chart.roles) is not None:
                yield _unknown((*at, "roles", place), "role", role, chart.roles)
        target = agent.escalates_to
        if target is not None and target not in (*chart.by_id, *chart.holders, HUMAN):
            yield _unknown((*at, "escalatesTo"), "agent", target, chart.by_id)
        yield from _chain(chart, agent.id, (*at, "escalatesTo"))


def _chain(chart: OrgChart, start: str, at: _At) -> Iterator[Finding]:
    way = [start]
    while (above := chart.by_id.get(way[-1])) is not None and above.escalates_to is not None:
        way.append(above.escalates_to)
        if way[-1] in way[:-1]:
            if way[-1] == start == min(way):  # told once, not by each of its members
                detail = f"escalations go round in a circle: {' → '.join(way)}"
                yield _odd(at, "escalation_cycle", detail, f"end one of these at '{HUMAN}', or remove it")
            return
    if len(way) - 1 > DEPTH:
        detail = f"an escalation from '{start}' takes {len(way) - 1} steps: {' → '.join(way)}"
        yield _odd(at, "escalation_depth", detail, f"at most {DEPTH} are followed; let '{start}' escalate further up")


def _escalation(chart: OrgChart) -> Iterator[Finding]:
    if len(chart.escalation) > DEPTH:
        detail = f"the escalation chain has {len(chart.escalation)} steps"
        yield _odd(("escalation",), "escalation_depth", detail, f"keep {DEPTH}: the rest is never reached")
    for number, role in enumerate(chart.escalation):
        at = ("escalation", number)
        if role in chart.escalation[:number]:
            yield _odd(at, "duplicate_id", f"'{role}' is in the escalation chain twice", "keep one of them")
        elif role != HUMAN and role not in chart.by_id and not _held(chart, role):
            detail = f"no active agent has the role '{role}', so an escalation passes over it"
            yield _odd(at, "unheld_role", detail, "give the role to somebody, or leave it out", "note")


def _rules(chart: OrgChart) -> Iterator[Finding]:
    for number, rule in enumerate(chart.routing):
        at: _At = ("routing", number)
        yield from _target(chart, rule, (*at, "to"))
        for before, other in enumerate(chart.routing):
            first = other.weight > rule.weight or (other.weight == rule.weight and before < number)
            if first and other.tags and set(other.tags) <= set(rule.tags):
                detail = f"routing[{before}] matches whatever this rule matches, and comes first"
                fix = f"give it a weight above {other.weight:g}, or remove it"
                yield _odd(at, "never_matches", detail, fix)
                break


def _target(chart: OrgChart, rule: RoutingRule, at: _At) -> Iterator[Finding]:
    to = rule.to
    if to.agent is not None and to.agent not in chart.by_id:
        yield _unknown((*at, "agent"), "agent", to.agent, chart.by_id)
    if to.team is not None and to.team not in chart.teams_by_id:
        yield _unknown((*at, "team"), "team", to.team, chart.teams_by_id)
    if to.role is not None and to.role not in chart.holders:
        yield _unknown((*at, "role"), "role", to.role, chart.holders)
