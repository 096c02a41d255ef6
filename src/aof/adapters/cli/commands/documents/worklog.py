"""`aof worklog`: what the team's documents say, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.spec.values import file_text
from aof.adapters.cli.terminal.screen import Screen

_PROBLEMS = 1
_SHOWN = 20


def worklog(context: Context, values: dict[str, Any]) -> Answer:
    """`aof worklog now|add|decide|show|check|compact`."""
    actions: dict[str, Callable[[Context, dict[str, Any]], Answer]] = {
        "now": _now,
        "add": _add,
        "decide": _decide,
        "show": _show,
        "check": _check,
        "compact": _compact,
    }
    given = dict(values)
    action = given.pop("action")
    if action not in actions:
        raise UsageError(f"'aof worklog' knows {', '.join(actions)}, not '{action}'", "for example: aof worklog show")
    return actions[action](context, given)


def _text_of(given: dict[str, Any], example: str) -> str:
    if "text" not in given:
        raise UsageError("a text is missing", f"for example: {example}")
    return str(given.pop("text"))


def _now(context: Context, given: dict[str, Any]) -> Answer:
    text = _text_of(given, 'aof worklog now --agent ada "the parser"')
    pinned = context.fabric.worklog_now(text, **given)
    return Answer(pinned, lambda screen: screen.line(f"{pinned.key}: {pinned.text}"))


def _decide(context: Context, given: dict[str, Any]) -> Answer:
    text = _text_of(given, 'aof worklog decide --owner ada "use SQLite"')
    return _posted(context.fabric.worklog_decide(text, **given))


def _add(context: Context, given: dict[str, Any]) -> Answer:
    if "type" not in given:
        raise UsageError("'aof worklog add' needs --type", "for example: aof worklog add --type handoff.posted …")
    return _posted(context.fabric.worklog_add(given.pop("type"), **given))


def _posted(one: Any) -> Answer:
    return Answer(one, lambda screen: screen.line(f"{one.event_id}  {one.event_type}  {one.actor}: {one.subject}"))


def _show(context: Context, given: dict[str, Any]) -> Answer:
    view = context.fabric.worklog_show(**given)

    def text(screen: Screen) -> None:
        for line in view.status:
            screen.line(f"{line['key']}: {line['text']}")
        if view.decisions:
            screen.line()
            rows = [
                (" ".join(one["decision"].split()), one["owner"], one["timestamp"], one["section"])
                for one in view.decisions
            ]
            screen.table(("DECISION", "OWNER", "WHEN", "SECTION"), rows)
        if view.entries:
            screen.line()
            told = [(one["timestamp"], one["event_type"], one["actor"], one["subject"]) for one in view.entries]
            screen.table(("WHEN", "TYPE", "WHO", "WHAT"), told[-_SHOWN:])
            if len(told) > _SHOWN:
                screen.line(f"{len(told) - _SHOWN} earlier ones; all of them: aof worklog show --json")
        if not view.status and not view.entries:
            screen.line("nothing stands in the WORKLOG yet")

    return Answer(view, text)


def _check(context: Context, given: dict[str, Any]) -> Answer:
    path = given.pop("text", None)
    if path is None:
        return checked(context.fabric.worklog_check(**given), "WORKLOG.md")
    found = context.fabric.worklog_check(file_text(path), **given)
    return checked(type(found)(ok=found.ok, problems=[one | {"path": path} for one in found.problems]), path)


def checked(found: Any, name: str) -> Answer:
    """What a check of a document found; exit 1 where it is invalid."""

    def text(screen: Screen) -> None:
        for one in found.problems:
            where = one.get("path") or name
            place = f"{where}:{one['line']}" if one["line"] else where
            severity = screen.paint(one["severity"], "error" if one["severity"] == "error" else "high")
            screen.line(f"{place}: {severity}: {one['detail']} [{one['code']}]")
            screen.line(f"  → {one['fix']}")
        screen.line(f"{name} is fine" if not found.problems else f"{name} is {'valid' if found.ok else 'not valid'}")

    return Answer(found, text, 0 if found.ok else _PROBLEMS)


def _compact(context: Context, given: dict[str, Any]) -> Answer:
    done = context.fabric.worklog_compact(**given)

    def text(screen: Screen) -> None:
        if done.moved:
            screen.line(f"moved to {done.archive}: {', '.join(f'session {number}' for number in done.moved)}")
        else:
            screen.line("there is no finished session to move")

    return Answer(done, text)
