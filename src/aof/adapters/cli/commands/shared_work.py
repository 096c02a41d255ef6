"""`aof lock`, `aof lock release`, `aof lock list` and `aof context`: what the agents of a workflow share."""

from __future__ import annotations

from typing import Any

import msgspec

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen

_BLOCKED = 1
_ACTIONS = {
    "show": ("context_show", ()),
    "set": ("context_set", ("variables", "scope", "base", "conflicts", "run")),
    "decide": ("context_decide", ("description", "risk", "run")),
    "artifact": ("context_artifact", ("path", "type", "status", "description", "run")),
}


def lock(context: Context, values: dict[str, Any]) -> Answer:
    """`aof lock`."""
    locked = context.fabric.lock(**values)
    return Answer(locked, lambda screen: _table(screen, locked.locks))


def unlock(context: Context, values: dict[str, Any]) -> Answer:
    """`aof lock release`."""
    unlocked = context.fabric.unlock(**values)
    said = ", ".join(unlocked.released) or "nothing was locked"
    return Answer(unlocked, lambda screen: screen.line(f"{unlocked.task_id}  {said}"))


def locks(context: Context, values: dict[str, Any]) -> Answer:
    """`aof lock list`."""
    found = context.fabric.locks(**values)
    return Answer(found, lambda screen: _table(screen, found.locks))


def _table(screen: Screen, found: Any) -> None:
    if not found:
        screen.line("nothing is locked")
        return
    rows = [
        (
            one["path"],
            one["lockType"],
            one["owner"],
            one["taskId"],
            one["since"],
            "lost" if one["state"] == "lost" else "",
        )
        for one in found
    ]
    screen.table(("PATH", "TYPE", "OWNER", "TASK", "SINCE", ""), rows)


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
    action = given.pop("action")
    if action not in _ACTIONS:
        raise UsageError(f"'aof context' knows {', '.join(_ACTIONS)}, not '{action}'", "aof context show ID")
    operation, takes = _ACTIONS[action]
    if not given.get("path") and action != "artifact":
        given.pop("path", None)  # required, and so passed on empty where it was not given
    if unknown := sorted(given.keys() - {"task_id", *takes}):
        raise UsageError(f"'aof context {action}' takes no {unknown[0]}", f"aof context {action} --help")
    result = getattr(context.fabric, operation)(**given)
    return Answer(result, lambda screen: _TEXTS[action](screen, result))


def _show(screen: Screen, shown: Any) -> None:
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


_TEXTS = {"show": _show, "set": _show, "decide": _decided, "artifact": _artifact}
