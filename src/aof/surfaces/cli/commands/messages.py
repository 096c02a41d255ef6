"""What agents tell each other and their team.

Protocol messages, the end of a session, `aof mail` and `aof worklog`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from aof.documents.mail_operations import LeftOver
from aof.errors import Call
from aof.kernel.results import Sent
from aof.messages import protocol
from aof.surfaces.cli import hints
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError
from aof.surfaces.cli.screen import Screen, complain
from aof.surfaces.cli.values import file_text

_REFUSED = 1
_SEND_COLOURS = {"accepted": "good", "noop": "dim", "rejected": "error", "unknown": "error", "ignored": "dim"}


def send(context: Context, values: dict[str, Any]) -> Answer:
    """`aof send`."""
    results = context.fabric.send(protocol.messages_in(file_text(values.get("file", "-"))), run=values.get("run"))
    rows = [_row(sent, context.options) for sent in results]
    refused = next((row for row in rows if row["outcome"] == "rejected"), None)
    if refused is None:
        return Answer({"results": rows}, lambda screen: _tell(screen, rows))
    error = {"code": refused["reason"], "message": refused.get("detail", ""), "hint": refused.get("hint", "")}
    return Answer({"results": rows}, lambda screen: _tell(screen, rows), _REFUSED, error)


def _row(sent: Sent, options: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(sent)
    row.pop("call", None)
    if isinstance(sent.call, Call):
        spelled = hints.spell(sent.call, options)
        row["hint"] = f"{row['hint']}: {spelled}" if "hint" in row else spelled
    return row


def _tell(screen: Screen, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        words = (row["type"], row["taskId"], row["reason"], row.get("runId"))
        screen.line("  ".join([screen.paint(row["outcome"], _SEND_COLOURS[row["outcome"]]), *filter(None, words)]))
        if row["outcome"] == "rejected":
            complain(f"{row.get('detail', row['reason'])} [{row['reason']}]", row.get("hint", ""))
    if not rows:
        screen.line("there was no message")


def session_end(context: Context, values: dict[str, Any]) -> Answer:
    """`aof session-end`."""
    fabric = context.fabric
    applied = fabric.session_end(**values)
    agent = values.get("agent") or (fabric.actor if "run" not in values else None)
    mail = fabric.turn_ended(agent, "session-end") if agent else None
    left = (("unread", mail.unread), ("to close", mail.to_close)) if mail is not None else ()

    def text(screen: Screen) -> None:
        for one in applied:
            screen.line(
                f"{one.task_id}  {one.from_status} → {screen.paint(one.to_status, one.to_status)}  {one.outcome}"
            )
        if not applied:
            screen.line("nothing was reported that is not carried out already")
        for what, ids in left:
            if ids:
                screen.line(f"mail {what}: {', '.join(ids)}")

    return Answer({"applied": applied, "mail": mail or LeftOver()}, text)


_MAIL_PROBLEMS, _UNREADABLE = 1, 2
_LARGEST = 16 << 20
_ON_MESSAGE = ("ack", "action", "block", "close", "escalate", "show")
_MAIL_COLOURS = {"unread": "high", "blocked": "blocked", "actioned": "good", "closed": "dim"}


def mail(context: Context, values: dict[str, Any]) -> Answer:
    """`aof mail send`, `aof mail inbox` and the others."""
    given = dict(values)
    action, place = given.pop("action"), given.pop("place", None)
    if action == "check":
        return _mail_check(context, place, given)
    if (action in _ON_MESSAGE) != (place is not None):
        example = f"for example: aof mail {action} " + ("MSG-20260221-001" if action in _ON_MESSAGE else "--help")
        raise UsageError(f"'aof mail {action}' {'needs' if place is None else 'takes no'} message", example)
    if place is not None:
        given["message_id"] = place
    told = {"send": _sent, "inbox": _inbox, "list": _list, "archive": _archived, "export": _exported}
    result = _asked(context, action, given)
    return Answer(result, lambda screen: told.get(action, _message)(screen, result))


def _asked(context: Context, action: str, given: dict[str, Any]) -> Any:
    """Ask the fabric; an option that belongs to another action is a mistake in the call."""
    method = getattr(context.fabric, f"mail_{action}", None)
    if method is None:
        raise UsageError(f"'aof mail' has no '{action}'", "for example: aof mail inbox --agent bob")
    if action == "send":
        given = {"to": "", "subject": ""} | given
    return method(**given)


def _mail_check(context: Context, path: str | None, given: dict[str, Any]) -> Answer:
    """Exit 0: in order; 1: something is wrong; 2: the file cannot be read."""
    if path is not None:
        try:
            with open(path, "rb") as file:
                text = file.read(_LARGEST).decode()
        except (OSError, UnicodeDecodeError) as error:
            detail = f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}"
            data = {"ok": False, "problems": [{"line": 0, "code": "unreadable", "detail": detail}]}
            return Answer(data, lambda screen: screen.line(detail), _UNREADABLE)
        given["text"] = text
    report = context.fabric.mail_check(**given)
    name = path or "MAILBOX.md"

    def text_of(screen: Screen) -> None:
        for one in report.problems:
            severity = screen.paint(one.severity, "error" if one.severity == "error" else "high")
            screen.line(f"{name}:{one.line}: {severity}: {one.detail} [{one.code}]")
        if not report.problems:
            screen.line(f"{name} is in order")

    return Answer(report, text_of, 0 if report.ok else _MAIL_PROBLEMS)


def _sent(screen: Screen, sent: Any) -> None:
    screen.line(sent.message_id)


def _message(screen: Screen, message: Any) -> None:
    status = screen.paint(message.status, _MAIL_COLOURS.get(message.status, "bold"))
    ended = f" ({message.disposition})" if message.disposition else ""
    screen.line(f"{message.message_id}  {status}{ended}  {message.priority}  {message.type}")
    screen.line(f"{message.sender} → {message.receiver}  {message.date}")
    screen.line(screen.paint(message.subject, "bold"))
    if message.body:
        screen.line()
        screen.block(message.body)
    if message.acks:
        screen.line()
    for ack in message.acks:
        screen.line(f"{ack.date}  {ack.actor}: {ack.reason}")


def _inbox(screen: Screen, inbox: Any) -> None:
    if not inbox.messages:
        screen.line(f"{inbox.agent} has nothing unread")
    for place, message in enumerate(inbox.messages):
        if place:
            screen.line()
        _message(screen, message)


def _list(screen: Screen, found: Any) -> None:
    late = {one.message_id for one in found.overdue}
    rows = [
        (
            one.message_id,
            one.status + (" (overdue)" if one.message_id in late else ""),
            one.priority,
            f"{one.sender} → {one.receiver}",
            one.subject,
        )
        for one in found.messages
    ]
    if rows:
        screen.table(("MESSAGE", "STATUS", "PRIO", "FROM → TO", "SUBJECT"), rows)
    else:
        screen.line("there is no such message")


def _archived(screen: Screen, archived: Any) -> None:
    screen.line(f"{archived.total} rows were removed; MAILBOX_ARCHIVE.md has the messages")


def _exported(screen: Screen, exported: Any) -> None:
    import json

    screen.block(json.dumps(exported, indent=2, ensure_ascii=False))


_WORKLOG_PROBLEMS = 1
_SHOWN = 20


def worklog(context: Context, values: dict[str, Any]) -> Answer:
    """`aof worklog now|add|decide|show|check|compact`."""
    actions: dict[str, Callable[[Context, dict[str, Any]], Answer]] = {
        "now": _now,
        "add": _add,
        "decide": _decide,
        "show": _show,
        "check": _worklog_check,
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


def _worklog_check(context: Context, given: dict[str, Any]) -> Answer:
    path = given.pop("text", None)
    if path is None:
        return checked_documents(context.fabric.worklog_check(**given), "WORKLOG.md")
    found = context.fabric.worklog_check(file_text(path), **given)
    return checked_documents(type(found)(ok=found.ok, problems=[one | {"path": path} for one in found.problems]), path)


def checked_documents(found: Any, name: str) -> Answer:
    """What a check of a document found; exit 1 where it is invalid."""

    def text(screen: Screen) -> None:
        for one in found.problems:
            where = one.get("path") or name
            place = f"{where}:{one['line']}" if one["line"] else where
            severity = screen.paint(one["severity"], "error" if one["severity"] == "error" else "high")
            screen.line(f"{place}: {severity}: {one['detail']} [{one['code']}]")
            screen.line(f"  → {one['fix']}")
        screen.line(f"{name} is fine" if not found.problems else f"{name} is {'valid' if found.ok else 'not valid'}")

    return Answer(found, text, 0 if found.ok else _WORKLOG_PROBLEMS)


def _compact(context: Context, given: dict[str, Any]) -> Answer:
    done = context.fabric.worklog_compact(**given)

    def text(screen: Screen) -> None:
        if done.moved:
            screen.line(f"moved to {done.archive}: {', '.join(f'session {number}' for number in done.moved)}")
        else:
            screen.line("there is no finished session to move")

    return Answer(done, text)
