"""From a document to a chart: older versions are brought up to date, then shape, values and references are looked at.

Values are impossible where a figure, a name or a duration cannot be, or where the same ID is there twice. Must not know
where the document comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.ids import is_agent_name
from aof.core.model.org_chart import (
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
from aof.core.model.times import EXAMPLES, duration_ms
from aof.core.org.chart.references import dangling
from aof.core.validation.findings import Finding
from aof.core.validation.findings import Step as Place
from aof.core.validation.limits import ITEM, line
from aof.core.validation.shape import misshapen
from aof.core.validation.task_fields import bad_ttl

Step = Callable[[dict[str, Any]], dict[str, Any]]
# What turns a document of a version into one of the next. The first version needs none.
MIGRATIONS: Final[Mapping[int, Step]] = {}
LEVELS = (0, 1, 2, 3)
_NAME = "use up to 128 letters, digits and . _ - @ : +, beginning with a letter or digit"
_ADDRESS = r"https?://[^\s/@?#]+(/[^\s?#]*)?"
_At = tuple[Place, ...]


class Judged(msgspec.Struct, frozen=True):
    """The chart, if it can be used, and what was found."""

    chart: OrgChart | None
    findings: tuple[Finding, ...]


def judge(document: Any, migrations: Mapping[int, Step] = MIGRATIONS, newest: int = SCHEMA_VERSION) -> Judged:
    """Everything that is wrong with a document, and the chart that it is."""
    if not isinstance(document, dict):
        return Judged(None, tuple(misshapen(document, OrgChart)))
    version = document.get("schemaVersion", SCHEMA_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= newest:
        return Judged(None, (_unknown_version(version, newest),))
    for number in range(version, newest):
        document = migrations[number](document) | {"schemaVersion": number + 1}
    findings = tuple(_with_agent(finding, document) for finding in misshapen(document, OrgChart))
    if findings:
        return Judged(None, findings)
    chart = msgspec.convert(document, prepare_type(OrgChart))
    findings = (*_impossible(chart), *dangling(chart))
    usable = all(finding.severity != "error" for finding in findings)
    return Judged(chart if usable else None, findings)


def _with_agent(finding: Finding, document: dict[str, Any]) -> Finding:
    """A position in a list does not say which agent is meant."""
    match finding.at:
        case ("agents", int(number), *_) if isinstance(given := document["agents"][number], dict) and "id" in given:
            return msgspec.structs.replace(finding, detail=f"agent '{given['id']}': {finding.detail}")
    return finding


def _unknown_version(version: object, newest: int) -> Finding:
    return Finding(
        code="unknown_version",
        severity="error",
        at=("schemaVersion",),
        detail=f"schemaVersion {version!r} is not known; this AOF knows versions up to {newest}",
        fix="use the AOF that it was written for, or a newer one",
    )


def _impossible(chart: OrgChart) -> Iterator[Finding]:
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
