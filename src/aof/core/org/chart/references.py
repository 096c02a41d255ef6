"""What one part of a chart says of another, and whether that leads anywhere.

None of it keeps a chart from being used: a name that leads nowhere is passed over. Must not know shapes or figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from aof.core.model.org_chart import HUMAN, OrgChart, RoutingRule
from aof.core.validation.findings import Finding, Severity, Step, similar

DEPTH = 3
_COMPARISONS = 50_000  # of names with each other in one chart: bounds what many slips of the pen cost
_LISTED = 20  # names that a finding offers, steps of a way that it shows
_At = tuple[Step, ...]


def dangling(chart: OrgChart) -> Iterator[Finding]:
    """Unknown names, roles and rules that lead nowhere, escalations that never end."""
    guesses = _Guesses()
    yield from _teams(chart, guesses)
    yield from _roles(chart, guesses)
    yield from _agents(chart, guesses)
    yield from _escalation(chart)
    yield from _rules(chart, guesses)


class _Guesses:
    """Finds the name that was probably meant, within bounds: each wrong name is compared with all that there are."""

    def __init__(self) -> None:
        self._left = _COMPARISONS
        self._known: dict[tuple[str, str], str | None] = {}

    def similar(self, what: str, name: str, known: Collection[str]) -> str | None:
        """The known name that is like this one, as long as there is time to look."""
        if (what, name) not in self._known:
            self._left -= len(known)
            self._known[what, name] = similar(name, known) if self._left >= 0 else None
        return self._known[what, name]

    def unknown(self, at: _At, what: str, name: str, known: Collection[str]) -> Finding:
        """The finding for an unknown name."""
        close = self.similar(what, name, known)
        fix = f"did you mean '{close}'?" if close is not None else f"add the {what}, or use one of: {_some(known)}"
        return _odd(at, f"unknown_{what}", f"there is no {what} '{name[:80]}'", fix)


def _some(known: Collection[str]) -> str:
    first = sorted(known) if len(known) <= _LISTED else [name for name, _ in zip(known, range(_LISTED), strict=False)]
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return ", ".join(first) + more if known else "there is none yet"


def _odd(at: _At, code: str, detail: str, fix: str, severity: Severity = "warning") -> Finding:
    return Finding(code=code, severity=severity, at=at, detail=detail, fix=fix)


def _teams(chart: OrgChart, guesses: _Guesses) -> Iterator[Finding]:
    for number, team in enumerate(chart.teams):
        for key, name in (("lead", team.lead), ("orchestrator", team.orchestrator)):
            at = ("teams", number, key)
            if name is None:
                continue
            if name not in chart.by_id:
                yield guesses.unknown(at, "agent", name, chart.by_id)
            elif not chart.by_id[name].active:
                detail = f"the {key} of team '{team.id}', '{name}', is not active"
                yield _odd(at, "inactive_lead", detail, "name an active agent, or set it active")


def _roles(chart: OrgChart, guesses: _Guesses) -> Iterator[Finding]:
    for role, given in chart.roles.items():
        for number, name in enumerate(given.agents):
            if name not in chart.by_id:
                yield guesses.unknown(("roles", role, "agents", number), "agent", name, chart.by_id)
        if not _held(chart, role):
            detail = f"no active agent has the role '{role}'"
            yield _odd(("roles", role), "unheld_role", detail, "list an active agent under it, or remove the role")


def _held(chart: OrgChart, role: str) -> bool:
    return any(chart.by_id[agent].active for agent in chart.holders.get(role, ()))


def _agents(chart: OrgChart, guesses: _Guesses) -> Iterator[Finding]:
    steps, circles = _steps(chart)
    for number, agent in enumerate(chart.agents):
        at: _At = ("agents", number)
        if agent.team is not None and agent.team not in chart.teams_by_id:
            yield guesses.unknown((*at, "team"), "team", agent.team, chart.teams_by_id)
        for place, role in enumerate(agent.roles):
            # An agent may bring a role into being, so only what looks like a slip of the pen is one.
            if chart.roles and role not in chart.roles and guesses.similar("role", role, chart.roles) is not None:
                yield guesses.unknown((*at, "roles", place), "role", role, chart.roles)
        target = agent.escalates_to
        if target is not None and target not in chart.by_id and target not in chart.holders and target != HUMAN:
            yield guesses.unknown((*at, "escalatesTo"), "agent", target, chart.by_id)
        if agent.id in circles:
            yield _circle(circles[agent.id], (*at, "escalatesTo"))
        elif (count := steps[agent.id]) is not None and count > DEPTH:
            detail = f"an escalation from '{agent.id}' takes {count} steps: {_way(chart, agent.id, count)}"
            fix = f"at most {DEPTH} are followed; let '{agent.id}' escalate further up"
            yield _odd((*at, "escalatesTo"), "escalation_depth", detail, fix)


def _steps(chart: OrgChart) -> tuple[dict[str, int | None], dict[str, list[str]]]:
    """How many steps an escalation from each agent takes, None where it never ends; and the circles, by their first.

    Each agent is passed once.
    """
    steps: dict[str, int | None] = {}
    circles: dict[str, list[str]] = {}
    for start in chart.by_id:
        way: dict[str, None] = {}
        here = start
        while here in chart.by_id and here not in steps and here not in way:
            way[here] = None
            here = chart.by_id[here].escalates_to or ""
        rest = None if here in way else steps.get(here, 0 if here else -1)
        if here in way:
            members = list(way)[list(way).index(here) :]
            first = members.index(min(members))
            circles[members[first]] = members[first:] + members[:first]
        for one in reversed(way):
            rest = None if rest is None else rest + 1
            steps[one] = rest
    return steps, circles


def _circle(members: list[str], at: _At) -> Finding:
    """A cycle is reported once, by its first member; agents that only lead into it report nothing."""
    shown = members if len(members) <= _LISTED else [*members[:_LISTED], "…"]
    detail = f"escalations go round in a circle: {' → '.join((*shown, members[0]))}"
    return _odd(at, "escalation_cycle", detail, f"end one of these at '{HUMAN}', or remove it")


def _way(chart: OrgChart, start: str, count: int) -> str:
    way = [start]
    while len(way) <= min(count, _LISTED):
        way.append(str(chart.by_id[way[-1]].escalates_to))
    return " → ".join(way if count <= _LISTED else [*way, "…"])


def _escalation(chart: OrgChart) -> Iterator[Finding]:
    if len(chart.escalation) > DEPTH:
        detail = f"the escalation chain has {len(chart.escalation)} steps"
        yield _odd(("escalation",), "escalation_depth", detail, f"keep {DEPTH}: the rest is never reached")
    first = {role: number for number, role in reversed(list(enumerate(chart.escalation)))}
    for number, role in enumerate(chart.escalation):
        at = ("escalation", number)
        if first[role] != number:
            yield _odd(at, "duplicate_id", f"'{role}' is in the escalation chain twice", "keep one of them")
        elif role != HUMAN and role not in chart.by_id and not _held(chart, role):
            detail = f"no active agent has the role '{role}', so an escalation passes over it"
            yield _odd(at, "unheld_role", detail, "give the role to somebody, or leave it out", "note")


def _rules(chart: OrgChart, guesses: _Guesses) -> Iterator[Finding]:
    shadowed = _shadowed(chart.routing)
    for number, rule in enumerate(chart.routing):
        at: _At = ("routing", number)
        yield from _target(chart, rule, (*at, "to"), guesses)
        if (before := shadowed.get(number)) is not None:
            detail = f"routing[{before}] matches whatever this rule matches, and comes first"
            fix = f"give it a weight above {chart.routing[before].weight:g}, or remove it"
            yield _odd(at, "never_matches", detail, fix)


def _shadowed(rules: tuple[RoutingRule, ...]) -> dict[int, int]:
    """The rules that never match, each with one that always matches before it.

    Each rule is looked for under its rarest tag only: a task with all its tags has that one too. A rule that never
    matches needs no place there, for the one before it stands for both.
    """
    often = Counter(tag for rule in rules for tag in set(rule.tags))
    found: dict[int, int] = {}
    by_rarest: dict[str, list[tuple[int, frozenset[str]]]] = {}
    for number in sorted(range(len(rules)), key=lambda one: (-rules[one].weight, one)):
        tags = frozenset(rules[number].tags)
        earlier = (one for tag in tags for one in by_rarest.get(tag, ()))
        before = next((one for one, needed in earlier if needed <= tags), None)
        if before is not None:
            found[number] = before
        elif tags:
            by_rarest.setdefault(min(tags, key=lambda tag: (often[tag], tag)), []).append((number, tags))
    return found


def _target(chart: OrgChart, rule: RoutingRule, at: _At, guesses: _Guesses) -> Iterator[Finding]:
    to = rule.to
    if to.agent is not None and to.agent not in chart.by_id:
        yield guesses.unknown((*at, "agent"), "agent", to.agent, chart.by_id)
    if to.team is not None and to.team not in chart.teams_by_id:
        yield guesses.unknown((*at, "team"), "team", to.team, chart.teams_by_id)
    if to.role is not None and to.role not in chart.holders:
        yield guesses.unknown((*at, "role"), "role", to.role, chart.holders)
