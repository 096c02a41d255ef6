"""`aof conflict`: open proposals and disagreements, and what settles them."""

from __future__ import annotations

from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen

_LEVELS = {1: "countered", 2: "rebutted", 3: "default in force", 4: "decided"}
_TAKES = {"list": {"settled"}, "show": {"conflict_id"}}
_OUTCOME = {"conflict_id", "text", "agent", "reasons"}


def conflict(context: Context, values: dict[str, Any]) -> Answer:
    """`aof conflict list`, `show`, `settle` and `default`."""
    given = dict(values)
    action = given.pop("action", None) or "list"
    if action not in ("list", "show", "settle", "default"):
        raise UsageError(f"'aof conflict' knows list, show, settle and default, not '{action}'", "aof conflict list")
    takes = _TAKES.get(action, _OUTCOME)
    if wrong := [name for name in given if name not in takes]:
        raise UsageError(f"'aof conflict {action}' does not take {wrong[0]}", "see: aof help conflict")
    needed = {"show": ("conflict_id",), "list": ()}.get(action, ("conflict_id", "text"))
    if missing := [name for name in needed if name not in given]:
        raise UsageError(f"'aof conflict {action}' needs {missing[0]}", "aof conflict settle PROP-001 'we do it'")
    result = getattr(context.fabric, f"conflict_{action}")(**given)
    text = {"list": _listed, "show": _shown}.get(action, _posted)
    return Answer(result, lambda screen: text(screen, result))


def _listed(screen: Screen, found: Any) -> None:
    rows = [(one.id, one.state, one.author, one.subject) for one in found.proposals]
    rows += [
        (one.id, _LEVELS[one.level] if one.settled_by is None else "settled", f"{one.agent} / {one.other}", one.subject)
        for one in found.disputes
    ]
    rows += [(one.id, f"waits for {one.decides}", one.agent, one.subject) for one in found.reviews]
    if rows:
        screen.table(("ID", "STATE", "BY", "SUBJECT"), rows)
    else:
        screen.line("nothing is open")


def _shown(screen: Screen, shown: Any) -> None:
    screen.line(f"{shown.conflict_id}: {shown.kind}, {shown.state}")
    for one in shown.entries:
        screen.line()
        screen.line(f"{one['event_id']}  {one['timestamp']}  {one['actor']}: {one['subject']}")
        for name, value in one["payload"].items():
            if name not in ("form", "session") and value:
                screen.line(f"  {name}: {value}")


def _posted(screen: Screen, posted: Any) -> None:
    screen.line(f"{posted.event_id}  {posted.event_type}  {posted.actor}: {posted.subject}")
