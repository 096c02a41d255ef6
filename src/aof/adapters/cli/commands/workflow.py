"""`aof workflow`: the templates, what is wrong with them, and where a task stands in its own."""

from __future__ import annotations

from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen

_PROBLEMS, _UNREADABLE = 1, 2
_FORMS = ("text", "mermaid")


def workflow(context: Context, values: dict[str, Any]) -> Answer:
    """`aof workflow check`, `aof workflow show` and `aof workflow attach`."""
    actions = {"show": _show, "check": _check, "attach": _attach}
    given = dict(values)
    action = given.pop("action")
    if action not in actions:
        example = "for example: aof workflow check"
        raise UsageError(f"'aof workflow' knows check, show and attach, not '{action}'", example)
    if "format" in given and (action != "show" or given["format"] not in _FORMS):
        raise UsageError("--format is text or mermaid, with show", "for example: aof workflow show --format mermaid")
    return actions[action](context, given)


def _check(context: Context, given: dict[str, Any]) -> Answer:
    reports = context.fabric.workflow_check(given.get("name"))
    ok = all(report.ok for report in reports)
    unreadable = any(finding.code == "unreadable" for report in reports for finding in report.findings)
    problems = [{"file": report.path} | finding.told() for report in reports for finding in report.findings]

    def text(screen: Screen) -> None:
        for report in reports:
            for finding in report.findings:
                place = ":".join(str(part) for part in (report.path, finding.line, finding.column) if part is not None)
                severity = screen.paint(finding.severity, "error" if finding.severity == "error" else "high")
                screen.line(f"{place}: {severity}: {finding.detail} [{finding.code}]")
                screen.line(f"  → {finding.fix}")
            if report.ok:
                screen.line(f"{report.path} can be used")
        if not reports:
            screen.line("there are no workflows; write one to workflows/NAME.yaml")

    data = {"ok": ok, "workflows": [report.name for report in reports], "problems": problems}
    return Answer(data, text, _UNREADABLE if unreadable else 0 if ok else _PROBLEMS)


def _show(context: Context, given: dict[str, Any]) -> Answer:
    fabric = context.fabric
    names = (given["name"],) if "name" in given else fabric.workflows()
    portraits = [fabric.workflow_show(name) for name in names]
    mermaid = given.get("format") == "mermaid"

    def text(screen: Screen) -> None:
        for shown in portraits:
            if mermaid:
                screen.block(shown.mermaid)
                continue
            of_task = f"  {shown.task_id}  {shown.state}" if shown.task_id else ""
            screen.line(f"{screen.paint(shown.name, 'bold')}{of_task}")
            for line in shown.lines:
                screen.line(f"  {line}")
        if not portraits:
            screen.line("there are no workflows; write one to workflows/NAME.yaml")

    return Answer(portraits[0] if "name" in given else {"workflows": portraits}, text)


def _attach(context: Context, given: dict[str, Any]) -> Answer:
    if "name" not in given:
        raise UsageError("'aof workflow attach' needs a task", "for example: aof workflow attach 001")
    moved = context.fabric.workflow_attach(given["name"])
    return Answer(moved, lambda screen: screen.line(f"{moved.task_id}  {screen.paint(moved.status, moved.status)}"))
