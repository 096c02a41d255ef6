"""`aof mail`: messages between agents, and whether the mailbox is in order."""

from __future__ import annotations

from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen

_PROBLEMS, _UNREADABLE = 1, 2
_LARGEST = 16 << 20
_ON_MESSAGE = ("ack", "action", "block", "close", "escalate", "show")
_COLOURS = {"unread": "high", "blocked": "blocked", "actioned": "good", "closed": "dim"}


def mail(context: Context, values: dict[str, Any]) -> Answer:
    """`aof mail send`, `aof mail inbox` and the others."""
    given = dict(values)
    action, place = given.pop("action"), given.pop("place", None)
    if action == "check":
        return _check(context, place, given)
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


def _check(context: Context, path: str | None, given: dict[str, Any]) -> Answer:
    """Exit 0: in order; 1: something is wrong; 2: the file cannot be read."""
    if path is not None:
        try:
            text = _read(path)
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

    return Answer(report, text_of, 0 if report.ok else _PROBLEMS)


def _read(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
        return file.read(_LARGEST).decode()


def _sent(screen: Screen, sent: Any) -> None:
    screen.line(sent.message_id)


def _message(screen: Screen, message: Any) -> None:
    status = screen.paint(message.status, _COLOURS.get(message.status, "bold"))
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
