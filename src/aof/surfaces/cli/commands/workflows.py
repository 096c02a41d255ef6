"""`aof workflow`, `aof job`, and what the agents of a workflow share: `aof context`."""

from __future__ import annotations

from typing import Any

import msgspec

from aof.support import nesting
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError, chosen_action, file_text
from aof.surfaces.cli.screen import Screen

_PROBLEMS, _UNREADABLE = 1, 2
_FORMS = ("text", "mermaid")


def workflow(context: Context, values: dict[str, Any]) -> Answer:
    """`aof workflow check`, `aof workflow show` and `aof workflow attach`."""
    actions = {"check": _check, "show": _show_workflow, "attach": _attach}
    given = dict(values)
    action = chosen_action("workflow", given, actions, "for example: aof workflow check")
    if "format" in given and (action != "show" or given["format"] not in _FORMS):
        raise UsageError("--format is text or mermaid, with show", "for example: aof workflow show --format mermaid")
    return actions[action](context, given)


def _check(context: Context, given: dict[str, Any]) -> Answer:
    reports = context.fabric.workflow_check(given.get("name"))
    ok = all(report.ok for report in reports)
    unreadable = any(finding.code == "unreadable" for report in reports for finding in report.findings)
    problems = [{"file": report.path} | finding.as_dict() for report in reports for finding in report.findings]

    def text(screen: Screen) -> None:
        for report in reports:
            for finding in report.findings:
                place = ":".join(str(part) for part in (report.path, finding.line, finding.column) if part is not None)
                screen.finding(place, finding.severity, finding.detail, finding.code, finding.fix)
            if report.ok:
                screen.line(f"{report.path} can be used")
        if not reports:
            screen.line("there are no workflows; write one to workflows/NAME.yaml")

    data = {"ok": ok, "workflows": [report.name for report in reports], "problems": problems}
    return Answer(data, text, _UNREADABLE if unreadable else 0 if ok else _PROBLEMS)


def _show_workflow(context: Context, given: dict[str, Any]) -> Answer:
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


_BLOCKED = 1
_CONTEXT_ACTIONS = {
    "show": ("context_show", ()),
    "set": ("context_set", ("variables", "scope", "base", "conflicts", "run")),
    "decide": ("context_decide", ("description", "risk", "run")),
    "artifact": ("context_artifact", ("path", "type", "status", "description", "run")),
}


def preflight(context: Context, values: dict[str, Any]) -> Answer:
    """`aof preflight`."""
    asked = context.fabric.preflight(**values)
    blocked = asked.outcome == "blocked"

    def text(screen: Screen) -> None:
        screen.line(f"{screen.paint(asked.outcome, 'error' if blocked else 'good')}  {asked.point}  {asked.reason}")
        for warning in asked.warnings:
            screen.line(f"  {warning}")

    return Answer(asked, text, _BLOCKED if blocked else 0)


def context(context: Context, values: dict[str, Any]) -> Answer:
    """`aof context show|set|decide|artifact`."""
    given = dict(values)
    action = chosen_action("context", given, _CONTEXT_ACTIONS, "aof context show ID")
    operation, takes = _CONTEXT_ACTIONS[action]
    if not given.get("path") and action != "artifact":
        given.pop("path", None)  # required, and so passed on empty where it was not given
    if unknown := sorted(given.keys() - {"task_id", *takes}):
        raise UsageError(f"'aof context {action}' takes no {unknown[0]}", f"aof context {action} --help")
    result = getattr(context.fabric, operation)(**given)
    return Answer(result, lambda screen: _CONTEXT_TEXTS[action](screen, result))


def _show_context(screen: Screen, shown: Any) -> None:
    told = shown.context_variables
    screen.line(f"{told.task_id}  {told.task_status}  {told.task_priority}")
    if shown.variables:
        rows = [
            (name, msgspec.json.encode(one.value).decode(), one.scope, one.writer, str(one.version))
            for name, one in sorted(shown.variables.items())
        ]
        screen.table(("VARIABLE", "VALUE", "SCOPE", "WRITER", "VERSION"), rows)
    for made in told.decisions_made:
        screen.line(f"{made.decision_id}  {made.made_by}: {made.description}")
    for artifact in shown.artifacts:
        screen.line(f"{artifact.path}  {artifact.type}  {artifact.status}  {artifact.created_by}")
    for file in told.files_in_progress:
        screen.line(f"{file.path}  {file.lock_type}  {file.owner}")


def _decided(screen: Screen, made: Any) -> None:
    if made.state == "escalated":
        screen.line(f"escalated as {made.handoff_id}; decide the same again once it has come back")
        return
    screen.line(f"{made.decision_id}  {made.made_by}: {made.description}")


def _artifact(screen: Screen, artifact: Any) -> None:
    screen.line(f"{artifact.path}  {artifact.type}  {artifact.status}  {artifact.id}")


_CONTEXT_TEXTS = {"show": _show_context, "set": _show_context, "decide": _decided, "artifact": _artifact}


_JOB_ACTIONS = ("add", "list", "show", "pause", "resume", "run", "rm")
_JOB_EXAMPLE = "for example: aof job add nightly --cron '0 2 * * *' --title 'Nightly check'"


def job(context: Context, values: dict[str, Any]) -> Answer:
    """Every action of the verb."""
    given = dict(values)
    action = chosen_action("job", given, _JOB_ACTIONS, _JOB_EXAMPLE)
    if (action == "list") == ("job_id" in given):
        raise UsageError(f"'aof job {action}' {'takes no' if action == 'list' else 'needs a'} name", _JOB_EXAMPLE)
    if action != "add" and (wrong := sorted(given.keys() - {"job_id"})):
        raise UsageError(f"'aof job {action}' does not take {wrong[0]}", "see: aof help job")
    if "file" in given:
        given["items"] = [*given.get("items", ()), *_lines(given.pop("file"))]
    result = getattr(context.fabric, f"job_{action}")(**given)
    text = {"list": _listed, "run": _ran, "rm": _removed}.get(action, _shown)
    return Answer(result, lambda screen: text(screen, result))


def _lines(path: str) -> list[Any]:
    """The tasks of a batch, one per line."""
    found: list[Any] = []
    for number, line in enumerate(file_text(path).splitlines(), 1):
        try:
            found += [nesting.decode_json(line, object)] if line.strip() else []
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            message = f"line {number} of {path} is not JSON: {error}"
            raise UsageError(message, 'a line is a task, such as {"title": "First"}') from None
    return found


def _listed(screen: Screen, listed: Any) -> None:
    rows = [(one.job_id, one.state, _when(one), one.next_due or "-", str(one.created)) for one in listed.jobs]
    if rows:
        screen.table(("JOB", "STATE", "WHEN", "NEXT", "CREATED"), rows)
    elif not listed.unusable:
        screen.line("there is no job")
    for why in listed.unusable.values():
        screen.line(why)


def _when(one: Any) -> str:
    if one.items:
        return f"{one.done} of {one.items} items"
    return f"{one.cron} ({one.timezone})" if one.cron is not None else str(one.at)


def _shown(screen: Screen, one: Any) -> None:
    screen.line(f"{one.job_id}: {one.state}, {_when(one)}, by {one.created_by}")
    if one.task is not None:
        screen.line(f"creates: {one.task.title}")
    if one.next_due is not None:
        screen.line(f"next: {one.next_due}")
    _outcomes(screen, one.outcomes or ((one.last,) if one.last is not None else ()))


def _ran(screen: Screen, ran: Any) -> None:
    _outcomes(screen, ran.outcomes)
    if not ran.outcomes:
        screen.line(f"{ran.job_id}: nothing is left to create")


def _outcomes(screen: Screen, outcomes: Any) -> None:
    for one in outcomes:
        screen.line(f"{one.occasion}  {one.task_id or one.error}")


def _removed(screen: Screen, removed: Any) -> None:
    screen.line(f"{removed.job_id}  removed; its tasks stay")
