"""From a document to a chart: what is wrong with its shape, its values and its names; and where escalations lead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Final

import msgspec

from aof.kernel.findings import Finding, Severity, Step, misshapen, similar
from aof.kernel.limits import ITEM, line
from aof.kernel.model import EXAMPLES, duration_ms, is_agent_name
from aof.org.model import (
    HUMAN,
    SCHEMA_VERSION,
    Agent,
    AutonomyLimits,
    Capability,
    OrgChart,
    Permissions,
    RoutingRule,
    RunnerSettings,
    Target,
)
from aof.support.typed import prepare_type
from aof.tasks.fields import bad_ttl

Migration = Callable[[dict[str, Any]], dict[str, Any]]
# What turns a document of a version into one of the next. The first version needs none.
MIGRATIONS: Final[Mapping[int, Migration]] = {}
LEVELS: Final = (0, 1, 2, 3)
DEPTH: Final = 3  # steps of an escalation
_COMPARISONS: Final = 50_000  # of names with each other in one chart: bounds what many slips of the pen cost
_LISTED: Final = 20  # names that a finding offers, steps of a way that it shows
_NAME: Final = "use up to 128 letters, digits and . _ - @ : +, beginning with a letter or digit"
_ADDRESS: Final = r"https?://[^\s/@?#]+(/[^\s?#]*)?"
_At = tuple[Step, ...]


class Judged(msgspec.Struct, frozen=True):
    """The chart, if it can be used, and what was found."""

    chart: OrgChart | None
    findings: tuple[Finding, ...]


def validate_chart(
    document: Any, migrations: Mapping[int, Migration] = MIGRATIONS, newest: int = SCHEMA_VERSION
) -> Judged:
    """Everything that is wrong with a document, and the chart that it is, if it can be used."""
    if not isinstance(document, dict):
        return Judged(None, tuple(misshapen(document, OrgChart)))
    version = document.get("schemaVersion", SCHEMA_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= newest:
        detail = f"schemaVersion {version!r} is not known; this AOF knows versions up to {newest}"
        fix = "use the AOF that it was written for, or a newer one"
        return Judged(None, (_wrong(("schemaVersion",), detail, fix, "unknown_version"),))
    for number in range(version, newest):
        document = migrations[number](document) | {"schemaVersion": number + 1}
    findings = tuple(_with_agent(finding, document) for finding in misshapen(document, OrgChart))
    if findings:
        return Judged(None, findings)
    chart = msgspec.convert(document, prepare_type(OrgChart))
    findings = (*_unusable(chart), *dangling(chart))
    sound = all(finding.severity != "error" for finding in findings)
    return Judged(chart if sound else None, findings)


def _with_agent(finding: Finding, document: dict[str, Any]) -> Finding:
    """A position in a list does not say which agent is meant."""
    match finding.at:
        case ("agents", int(number), *_) if isinstance(given := document["agents"][number], dict) and "id" in given:
            return msgspec.structs.replace(finding, detail=f"agent '{given['id']}': {finding.detail}")
    return finding


def _unusable(chart: OrgChart) -> Iterator[Finding]:
    """Everything that keeps the chart from being used, though it has the right shape."""
    yield from _names(chart)
    yield from _duplicates("agent", "agents", [agent.id for agent in chart.agents])
    yield from _duplicates("team", "teams", [team.id for team in chart.teams])
    for number, agent in enumerate(chart.agents):
        yield from _agent(agent, ("agents", number))
    for number, team in enumerate(chart.teams):
        at = ("teams", number, "limits", "maxConcurrent")
        yield from _at_least(at, team.limits.max_concurrent, 1, f"team '{team.id}'")
    for number, rule in enumerate(chart.routing):
        yield from _rule(rule, ("routing", number))


def _wrong(at: _At, detail: str, fix: str, code: str = "bad_value") -> Finding:
    return Finding(code=code, severity="error", at=at, detail=detail, fix=fix)


def _names(chart: OrgChart) -> Iterator[Finding]:
    named: list[tuple[_At, str]] = [(("agents", n, "id"), agent.id) for n, agent in enumerate(chart.agents)]
    named += [(("teams", n, "id"), team.id) for n, team in enumerate(chart.teams)]
    named += [(("roles", role), role) for role in chart.roles]
    named += [
        (("agents", n, "roles", m), role) for n, agent in enumerate(chart.agents) for m, role in enumerate(agent.roles)
    ]
    for at, name in named:
        if not is_agent_name(name):
            yield _wrong(at, f"{name[:80]!r} is not a valid name", _NAME, "bad_name")


def _duplicates(what: str, key: str, names: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if name in seen:
            fix = "give each one its own id, or remove one of them"
            yield _wrong((key, number, "id"), f"the {what} '{name}' is there twice", fix, "duplicate_id")
        seen.add(name)


def _agent(agent: Agent, at: _At) -> Iterator[Finding]:
    who = f"agent '{agent.id}'"
    yield from _at_least((*at, "concurrency"), agent.concurrency, 1, who)
    if agent.autonomy.level is not None and agent.autonomy.level not in LEVELS:
        detail = f"{who} has the autonomy level {agent.autonomy.level}"
        yield _wrong((*at, "autonomy", "level"), detail, "use 0, 1, 2 or 3")
    for name, shown in zip(AutonomyLimits.__struct_fields__, AutonomyLimits.__struct_encode_fields__, strict=True):
        yield from _at_least((*at, "autonomy", "limits", shown), getattr(agent.autonomy.limits, name), 0, who)
    for key, given in (("deny", agent.autonomy.deny), ("allow", agent.autonomy.allow)):
        for point in Permissions.__struct_fields__:
            for number, pattern in enumerate(getattr(given, point)):
                if line("pattern", pattern, ITEM, required=True):
                    place = (*at, "autonomy", key, point, number)
                    yield _wrong(place, f"{who} has {pattern[:80]!r} as a pattern", "use one such as src/*")
    yield from _duration((*at, "maxExecutionTime"), agent.max_execution_time, who)
    yield from _duration((*at, "maxLeaseTime"), agent.max_lease_time, who)
    if bad_ttl("maxLeaseTime", agent.max_lease_ms or 1) is not None:
        yield _wrong((*at, "maxLeaseTime"), f"{who} has maxLeaseTime {agent.max_lease_time}", "use 7d or less")
    yield from _capabilities(agent, (*at, "capabilities"))
    yield from _runner(agent.runner, (*at, "runner"), who)


def _capabilities(agent: Agent, at: _At) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, given in enumerate(agent.capabilities):
        capability = Capability(id=given) if isinstance(given, str) else given
        if not capability.id.strip():
            yield _wrong((*at, number), f"agent '{agent.id}' has a capability without a name", "name it or remove it")
        if not 0.0 <= capability.proficiency <= 1.0:
            detail = f"agent '{agent.id}' has the proficiency {capability.proficiency:g} in '{capability.id}'"
            yield _wrong((*at, number, "proficiency"), detail, "use a number from 0.0 to 1.0")
        if capability.id in seen:
            detail = f"agent '{agent.id}' has the capability '{capability.id}' twice"
            yield _wrong((*at, number), detail, "keep one of them", "duplicate_id")
        seen.add(capability.id)


def _runner(runner: RunnerSettings, at: _At, who: str) -> Iterator[Finding]:
    if runner.kind == "process" and not (runner.command and all(word.strip() for word in runner.command[:1])):
        detail = f"{who} is run as a process, and there is no command to start"
        yield _wrong(at, detail, "add 'command: [python, agent.py]', one word an item", "empty_command")
    if runner.kind == "a2a" and not (runner.url or "").strip():
        yield _wrong(at, f"{who} is a remote peer without an address", "add 'url: https://…'", "missing_url")
    elif runner.kind == "a2a" and not re.fullmatch(_ADDRESS, runner.url or ""):
        detail = f"{who} has an address that is no HTTP address: {(runner.url or '')[:80]!r}"
        yield _wrong((*at, "url"), detail, "use one such as https://peer.example.org, without a name or a password")
    if runner.kind != "a2a" and runner.token_env is not None:
        detail = f"{who} has 'tokenEnv', but its runner kind is '{runner.kind}'"
        yield _wrong((*at, "tokenEnv"), detail, "say 'kind: a2a', or remove the line", "unused_token")
    if runner.kind != "process" and runner.command:
        detail = f"{who} has a command, but its runner kind is '{runner.kind}'"
        yield _wrong((*at, "command"), detail, "say 'kind: process', or remove the command", "unused_command")
    if runner.kind != "process" and runner.messages == "plain":
        detail = f"{who} has 'messages: plain', but only a process prints messages"
        yield _wrong((*at, "messages"), detail, "say 'kind: process', or remove the line", "unused_messages")
    named = (*runner.env, *(runner.inherit_env if runner.inherit_env != "all" else ()))
    named += (runner.token_env,) if runner.token_env is not None else ()
    for name in named:
        if not name or "=" in name or "\0" in name:
            key = "env" if name in runner.env else "inheritEnv"
            detail = f"{who}: {name[:80]!r} is not a name of an environment variable"
            yield _wrong((*at, key), detail, "use a name such as OPENAI_API_KEY")
    yield from _duration((*at, "grace"), runner.grace, who)
    yield from _duration((*at, "ackTimeout"), runner.ack_timeout, who)


def _rule(rule: RoutingRule, at: _At) -> Iterator[Finding]:
    given = [name for name in Target.__struct_fields__ if getattr(rule.to, name) is not None]
    if len(given) != 1:
        detail = f"the rule sends to {' and '.join(given) or 'nobody'}"
        yield _wrong((*at, "to"), detail, "give exactly one of agent, role and team", "bad_target")
    if not rule.tags or not all(tag.strip() for tag in rule.tags):
        yield _wrong((*at, "tags"), "a rule without tags can never match", "name at least one tag", "never_matches")
    if not isfinite(rule.weight):
        yield _wrong((*at, "weight"), f"{rule.weight} is not a weight", "use a finite number such as 10")


def _at_least(at: _At, value: int | None, least: int, who: str) -> Iterator[Finding]:
    if value is not None and value < least:
        fix = f"use {least} or more; to give an agent nothing to do, say 'active: false'"
        yield _wrong(at, f"{who} has {at[-1]} {value}", fix)


def _duration(at: _At, text: str | None, who: str) -> Iterator[Finding]:
    if text is not None and duration_ms(text) is None:
        yield _wrong(at, f"{who}: {text[:40]!r} is not a duration", f"write it as {EXAMPLES}", "bad_duration")


def dangling(chart: OrgChart) -> Iterator[Finding]:
    """What does not keep the chart from being used: unknown names, unheld roles, rules that never match, circles."""
    guesses = _Guesses()
    yield from _heads_of_teams(chart, guesses)
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
        return _suspicious(at, f"unknown_{what}", f"there is no {what} '{name[:80]}'", fix)


def _some(known: Collection[str]) -> str:
    first = sorted(known) if len(known) <= _LISTED else [name for name, _ in zip(known, range(_LISTED), strict=False)]
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return ", ".join(first) + more if known else "there is none yet"


def _suspicious(at: _At, code: str, detail: str, fix: str, severity: Severity = "warning") -> Finding:
    return Finding(code=code, severity=severity, at=at, detail=detail, fix=fix)


def _heads_of_teams(chart: OrgChart, guesses: _Guesses) -> Iterator[Finding]:
    for number, team in enumerate(chart.teams):
        for key, name in (("lead", team.lead), ("orchestrator", team.orchestrator)):
            at = ("teams", number, key)
            if name is None:
                continue
            if name not in chart.by_id:
                yield guesses.unknown(at, "agent", name, chart.by_id)
            elif not chart.by_id[name].active:
                detail = f"the {key} of team '{team.id}', '{name}', is not active"
                yield _suspicious(at, "inactive_lead", detail, "name an active agent, or set it active")


def _roles(chart: OrgChart, guesses: _Guesses) -> Iterator[Finding]:
    for role, given in chart.roles.items():
        for number, name in enumerate(given.agents):
            if name not in chart.by_id:
                yield guesses.unknown(("roles", role, "agents", number), "agent", name, chart.by_id)
        if not _held(chart, role):
            detail = f"no active agent has the role '{role}'"
            yield _suspicious(
                ("roles", role), "unheld_role", detail, "list an active agent under it, or remove the role"
            )


def _held(chart: OrgChart, role: str) -> bool:
    return any(chart.by_id[agent].active for agent in chart.holders.get(role, ()))


def _agents(chart: OrgChart, guesses: _Guesses) -> Iterator[Finding]:
    steps, circles = _escalation_steps(chart)
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
            yield _suspicious((*at, "escalatesTo"), "escalation_depth", detail, fix)


def _escalation_steps(chart: OrgChart) -> tuple[dict[str, int | None], dict[str, list[str]]]:
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
    return _suspicious(at, "escalation_cycle", detail, f"end one of these at '{HUMAN}', or remove it")


def _way(chart: OrgChart, start: str, count: int) -> str:
    way = [start]
    while len(way) <= min(count, _LISTED):
        way.append(str(chart.by_id[way[-1]].escalates_to))
    return " → ".join(way if count <= _LISTED else [*way, "…"])


def _escalation(chart: OrgChart) -> Iterator[Finding]:
    if len(chart.escalation) > DEPTH:
        detail = f"the escalation chain has {len(chart.escalation)} steps"
        yield _suspicious(("escalation",), "escalation_depth", detail, f"keep {DEPTH}: the rest is never reached")
    first = {role: number for number, role in reversed(list(enumerate(chart.escalation)))}
    for number, role in enumerate(chart.escalation):
        at = ("escalation", number)
        if first[role] != number:
            yield _suspicious(at, "duplicate_id", f"'{role}' is in the escalation chain twice", "keep one of them")
        elif role != HUMAN and role not in chart.by_id and not _held(chart, role):
            detail = f"no active agent has the role '{role}', so an escalation passes over it"
            yield _suspicious(at, "unheld_role", detail, "give the role to somebody, or leave it out", "note")


def _rules(chart: OrgChart, guesses: _Guesses) -> Iterator[Finding]:
    shadowed = _shadowed(chart.routing)
    for number, rule in enumerate(chart.routing):
        at: _At = ("routing", number)
        yield from _target(chart, rule, (*at, "to"), guesses)
        if (before := shadowed.get(number)) is not None:
            detail = f"routing[{before}] matches whatever this rule matches, and comes first"
            fix = f"give it a weight above {chart.routing[before].weight:g}, or remove it"
            yield _suspicious(at, "never_matches", detail, fix)


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


def escalation_chain(chart: OrgChart, agent: str) -> tuple[str, ...]:
    """The agents that are asked, in order: active ones, each once, and `human` last."""
    asked: list[str] = []
    for target in _targets(chart, agent):
        found = _somebody(chart, target, (agent, *asked))
        if found is not None:
            asked.append(found)
        if found == HUMAN or len(asked) == DEPTH:
            break
    return tuple(asked)


def _targets(chart: OrgChart, agent: str) -> Iterator[str]:
    """The way over the agents' own targets, as far as that goes without a circle, then the roles of the chain."""
    passed = {agent}
    current = chart.by_id.get(agent)
    while current is not None and (target := current.escalates_to) is not None and target not in passed:
        yield target
        passed.add(target)
        current = chart.by_id.get(target)
    yield from chart.escalation


def _somebody(chart: OrgChart, target: str, taken: tuple[str, ...]) -> str | None:
    """The one that a target stands for: a person, an active agent, or the first active holder of a role."""
    if target == HUMAN:
        return HUMAN
    named = (target,) if target in chart.by_id else chart.holders.get(target, ())
    return next((one for one in named if chart.by_id[one].active and one not in taken), None)
