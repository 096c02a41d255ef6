"""`aof org`: the chart, what is wrong with it, and who would get a task."""

from __future__ import annotations

from typing import Any

import msgspec

from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError
from aof.surfaces.cli.screen import Screen

_PROBLEMS, _UNREADABLE, _NO_ROUTE = 1, 2, 1
_IN_FORCE = {
    "absent": "there is no org chart, so nothing is checked against one",
    "last_good": "the chart cannot be used; the last version that could is in force",
    "unusable": "the chart cannot be used, and there is no earlier version",
    "unreadable": "the chart cannot be read, and there is no earlier version",
}


def org(context: Context, values: dict[str, Any]) -> Answer:
    """`aof org show`, `aof org check` and `aof org route`."""
    actions = {"show": _show, "check": _check, "route": _route}
    given = dict(values)
    action = given.pop("action")
    if action not in actions:
        raise UsageError(f"'aof org' knows show, check and route, not '{action}'", "for example: aof org check")
    if given and action != "route":
        raise UsageError(f"'aof org {action}' takes nothing else", f"for example: aof org {action}")
    return actions[action](context, given)


def _check(context: Context, _given: dict[str, Any]) -> Answer:
    report = context.fabric.org_report()
    problems = [finding.told() for finding in report.findings]
    ok = all(finding.severity == "note" for finding in report.findings)
    unreadable = any(finding.code == "unreadable" for finding in report.findings)

    def text(screen: Screen) -> None:
        for finding in report.findings:
            place = ":".join(str(part) for part in (report.path, finding.line, finding.column) if part is not None)
            severity = screen.paint(finding.severity, "error" if finding.severity == "error" else "high")
            screen.line(f"{place}: {severity}: {finding.where}: {finding.detail} [{finding.code}]")
            screen.line(f"  → {finding.fix}")
        screen.line(_IN_FORCE.get(report.state) or (f"{report.path} is fine" if ok else f"{report.path} is in force"))

    data = {"ok": ok, "path": report.path, "state": report.state, "problems": problems}
    return Answer(data, text, _UNREADABLE if unreadable else 0 if ok else _PROBLEMS)


def _show(context: Context, _given: dict[str, Any]) -> Answer:
    shown = context.fabric.org_show()

    def text(screen: Screen) -> None:
        if shown["state"] != "current":
            screen.line(f"{_IN_FORCE[shown['state']]}{'' if shown['state'] == 'absent' else '; see: aof org check'}")
        if shown["agents"]:
            _tables(screen, shown)

    return Answer(shown, text)


def _tables(screen: Screen, shown: dict[str, Any]) -> None:
    screen.table(
        ("AGENT", "KIND", "TEAM", "LOAD", "RUNNER", "ESCALATES TO", "ROLES", "CAPABILITIES"),
        [
            (
                agent["id"] + _state(agent),
                agent["kind"],
                agent["team"] or "-",
                _of(agent["load"], agent["concurrency"]),
                agent["runner"],
                " → ".join(agent["escalatesTo"]) or "-",
                ", ".join(agent["roles"]) or "-",
                ", ".join(_skill(*skill) for skill in agent["capabilities"].items()) or "-",
            )
            for agent in shown["agents"]
        ],
    )
    if shown["teams"]:
        screen.line()
        rows = [
            (
                team["id"],
                _of(team["load"], team["maxConcurrent"]),
                team["orchestrator"] or "-",
                team["lead"] or "-",
                ", ".join(team["members"]) or "-",
            )
            for team in shown["teams"]
        ]
        screen.table(("TEAM", "LOAD", "ORCHESTRATOR", "LEAD", "MEMBERS"), rows)
    if shown["roles"]:
        screen.line()
        screen.table(("ROLE", "AGENTS"), [(role, ", ".join(who) or "-") for role, who in shown["roles"].items()])


def _state(agent: dict[str, Any]) -> str:
    return " (inactive)" if not agent["active"] else "" if agent["available"] else " (unavailable)"


def _of(load: int, most: int | None) -> str:
    return f"{load}/{most}" if most is not None else str(load)


def _skill(name: str, proficiency: float) -> str:
    return name if proficiency == 1.0 else f"{name}:{proficiency:g}"


def _route(context: Context, given: dict[str, Any]) -> Answer:
    if not given:
        raise UsageError("'aof org route' needs a task, or what one would ask for", "for example: aof org route 001")
    if "task_id" in given and len(given) > 1:
        raise UsageError("a task says itself whom it is for", f"for example: aof org route {given['task_id']}")
    route = context.fabric.org_route(given.pop("task_id", None), **given)

    def text(screen: Screen) -> None:
        for number, step in enumerate(route.steps, start=1):
            screen.line(f"{number}. {step.looked_for}: {step.outcome}")
        shown = {"routed": "good", "waits": "high", "no_route": "error"}[route.state]
        screen.line(screen.paint(route.agent or route.state, shown))
        if route.others:
            screen.line()
            screen.table(("NOT", "BECAUSE"), list(route.others.items()), whole=True)

    data = msgspec.to_builtins(route) | {"agent": route.agent}
    if route.state != "no_route":
        return Answer(data, text)
    hint = "change what the task asks for, or the org chart: aof org show"
    return Answer(data, text, _NO_ROUTE, {"code": "no_route", "message": route.reason, "hint": hint})
