"""What agents tell each other and their team, and what they have agreed on.

Protocol messages, the end of a session, `aof mail`, `aof worklog`, `aof charter` and `aof conflict`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from aof.documents.mail_operations import LeftOver
from aof.errors import Call, InvalidInput, Unavailable
from aof.kernel.results import Sent
from aof.messages import protocol
from aof.support import git
from aof.surfaces.cli import hints, operations
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError, chosen_action, file_text
from aof.surfaces.cli.screen import Screen, complain

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
    method = getattr(context.fabric, f"mail_{action}", None)
    if method is None:
        raise UsageError(f"'aof mail' has no '{action}'", "for example: aof mail inbox --agent bob")
    result = method(**({"to": "", "subject": ""} | given if action == "send" else given))
    text = _MAIL_TEXTS.get(action, _message)
    return Answer(result, lambda screen: text(screen, result))


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
            screen.finding(f"{name}:{one.line}", one.severity, one.detail, one.code)
        if not report.problems:
            screen.line(f"{name} is in order")

    return Answer(report, text_of, 0 if report.ok else _MAIL_PROBLEMS)


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
    screen.table(("MESSAGE", "STATUS", "PRIO", "FROM → TO", "SUBJECT"), rows, none="there is no such message")


_MAIL_TEXTS: dict[str, Callable[[Screen, Any], None]] = {
    "send": lambda screen, sent: screen.line(sent.message_id),
    "inbox": _inbox,
    "list": _list,
    "archive": lambda screen, done: screen.line(f"{done.total} rows were removed; MAILBOX_ARCHIVE.md has the messages"),
    "export": lambda screen, exported: screen.block(json.dumps(exported, indent=2, ensure_ascii=False)),
}
_SHOWN = 20
_WORKLOG_NEEDS = {
    "now": ("text", "a text is missing", 'for example: aof worklog now --agent ada "the parser"'),
    "decide": ("text", "a text is missing", 'for example: aof worklog decide --owner ada "use SQLite"'),
    "add": ("type", "'aof worklog add' needs --type", "for example: aof worklog add --type handoff.posted …"),
}


def worklog(context: Context, values: dict[str, Any]) -> Answer:
    """`aof worklog now|add|decide|show|check|compact`."""
    given = dict(values)
    known = ("now", "add", "decide", "show", "check", "compact")
    action = chosen_action("worklog", given, known, "for example: aof worklog show")
    needed, message, hint = _WORKLOG_NEEDS.get(action, ("", "", ""))
    if needed and needed not in given:
        raise UsageError(message, hint)
    if action == "check":
        return _worklog_check(context, given)
    result, text = getattr(context.fabric, f"worklog_{action}")(**given), _WORKLOG_TEXTS[action]
    return Answer(result, lambda screen: text(screen, result))


def _posted(screen: Screen, one: Any) -> None:
    screen.line(f"{one.event_id}  {one.event_type}  {one.actor}: {one.subject}")


def _worklog_shown(screen: Screen, view: Any) -> None:
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


def _compacted(screen: Screen, done: Any) -> None:
    moved = ", ".join(f"session {number}" for number in done.moved)
    screen.line(f"moved to {done.archive}: {moved}" if moved else "there is no finished session to move")


_WORKLOG_TEXTS: dict[str, Callable[[Screen, Any], None]] = {
    "now": lambda screen, pinned: screen.line(f"{pinned.key}: {pinned.text}"),
    "add": _posted,
    "decide": _posted,
    "show": _worklog_shown,
    "compact": _compacted,
}


def _worklog_check(context: Context, given: dict[str, Any]) -> Answer:
    """What a check of the document found; exit 1 where it is invalid."""
    path = given.pop("text", None)
    found = context.fabric.worklog_check(**given | ({"text": file_text(path)} if path is not None else {}))
    if path is not None:
        found = type(found)(ok=found.ok, problems=[one | {"path": path} for one in found.problems])
    name = path or "WORKLOG.md"

    def text(screen: Screen) -> None:
        for one in found.problems:
            where = one.get("path") or name
            place = f"{where}:{one['line']}" if one["line"] else where
            screen.finding(place, one["severity"], one["detail"], one["code"], one["fix"])
        screen.line(f"{name} is fine" if not found.problems else f"{name} is {'valid' if found.ok else 'not valid'}")

    return Answer(found, text, 0 if found.ok else 1)


_ACTIONS = ("init", "amend", "sign", "show", "check")
_DIGITS = 3
_QUESTIONS = (
    ("session_id", "Session ID", "today's date and a word"),
    ("milestone", "What does the session work towards?", ""),
    ("risk_tier", "Risk tier (Low, Medium, High)", "Medium"),
    ("decision_mode", "How are decisions made? (consent, quorum, maintainer-adjudicated)", "consent"),
)


def charter(context: Context, values: dict[str, Any]) -> Answer:
    """`aof charter init`, `amend`, `sign`, `show` and `check`."""
    given = dict(values)
    action = chosen_action("charter", given, _ACTIONS, "for example: aof charter show")
    options = next(one.options for one in operations.VERBS if one.name == "charter")
    known = {one.target for one in options if not one.actions or action in one.actions}
    if wrong := [name for name in given if name not in known]:
        option = wrong[0].replace("_", "-")
        raise UsageError(f"'aof charter {action}' does not take --{option}", "see: aof help charter")
    if action == "amend" and "reason" not in given:
        raise UsageError("an amendment needs a reason", "aof charter amend --risk High --reason 'new data'")
    if action == "init" and not given and not context.options.get("json") and sys.stdin.isatty():
        given = _charter_asked(_question)
    if (since := given.pop("git", None)) is not None:
        folder = context.service("bootstrap").find_data_dir(context.options.get("data_dir"))
        given["changed"] = [*given.get("changed", ()), *changed_files(folder, since)]
    for name in ("done", "undone"):
        if name in given:
            given[name] = [_number(word) for word in given[name]]
    result = getattr(context.fabric, f"charter_{action}")(**given)
    if action == "check":
        return Answer(result, lambda screen: _findings(screen, result), 0 if result.ok else 1)
    return Answer(result, lambda screen: _charter_shown(screen, result))


def _number(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= _DIGITS):
        raise UsageError("an item of the checklist goes by its number", "aof charter amend --done 1 --reason 'agreed'")
    return int(word)


def _question(text: str, usual: str) -> str:
    sys.stdout.write(f"{text}{f' [{usual}]' if usual else ''}: ")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise UsageError("nobody answered", "give the charter with options: aof help charter")
    return line.strip()


def _charter_asked(ask: Callable[[str, str], str]) -> dict[str, Any]:
    """What a person answers; an empty answer leaves it as usual."""
    given: dict[str, Any] = {name: said for name, text, usual in _QUESTIONS if (said := ask(text, usual))}
    for name, text in (
        ("participants", "A participant as NAME:ROLE:LANE (empty: no more)"),
        ("lanes", "A lane as LANE:OWNER:FILES, such as api:ada:src/api/** (empty: no more)"),
        ("approval", "What must a person approve, such as tag:release or cancel? (empty: no more)"),
        ("acceptance", "An acceptance criterion (empty: no more)"),
    ):
        while said := ask(text, ""):
            given.setdefault(name, []).append(said)
    return given


def _charter_shown(screen: Screen, shown: Any) -> None:
    towards = shown.milestone or "no milestone"
    screen.line(f"{shown.path}: session {shown.session_id}, {towards}, risk {shown.risk_tier}")
    screen.line(f"decisions by {shown.governance.decision_mode}, objections within {shown.governance.objection_window}")
    screen.line()
    rows = [
        (one.agent, one.role, one.lane or "-", "missing" if one.agent in shown.unsigned else "-")
        for one in shown.roster
    ]
    signed = {one.agent: one.status for one in shown.handshakes if one.signed and one.agent not in shown.unsigned}
    rows = [(agent, role, lane, signed.get(agent, mark)) for agent, role, lane, mark in rows]
    screen.table(("AGENT", "ROLE", "LANE", "HANDSHAKE"), rows)
    screen.line()
    screen.table(("LANE", "OWNER", "FILES"), [(one.name, one.owner, ", ".join(one.patterns)) for one in shown.lanes])
    screen.line()
    names = {"auto": "Auto", "delay": "Notify + Delay", "approval": "Approval Required"}
    screen.table(("GATE", "SCOPE"), [(names[gate.band], ", ".join(gate.scope) or "none") for gate in shown.gates])


def _findings(screen: Screen, checked: Any) -> None:
    for one in checked.problems:
        screen.finding(f"{one.file}:{one.line}", one.severity, one.detail, one.code)
    if checked.ok:
        screen.line(f"{checked.path} is ready: work can start")


_LEVELS = {1: "countered", 2: "rebutted", 3: "default in force", 4: "decided"}
_TAKES = {"list": {"settled"}, "show": {"conflict_id"}}
_OUTCOME = {"conflict_id", "text", "agent", "reasons"}


def conflict(context: Context, values: dict[str, Any]) -> Answer:
    """`aof conflict list`, `show`, `settle` and `default`."""
    given = dict(values)
    action = chosen_action("conflict", given, ("list", "show", "settle", "default"), "aof conflict list", "list")
    takes = _TAKES.get(action, _OUTCOME)
    if wrong := [name for name in given if name not in takes]:
        raise UsageError(f"'aof conflict {action}' does not take {wrong[0]}", "see: aof help conflict")
    needed = {"show": ("conflict_id",), "list": ()}.get(action, ("conflict_id", "text"))
    if missing := [name for name in needed if name not in given]:
        raise UsageError(f"'aof conflict {action}' needs {missing[0]}", "aof conflict settle PROP-001 'we do it'")
    result = getattr(context.fabric, f"conflict_{action}")(**given)
    text = {"list": _listed, "show": _conflict_shown}.get(action, _posted)
    return Answer(result, lambda screen: text(screen, result))


def _listed(screen: Screen, found: Any) -> None:
    rows = [(one.id, one.state, one.author, one.subject) for one in found.proposals]
    rows += [
        (one.id, _LEVELS[one.level] if one.settled_by is None else "settled", f"{one.agent} / {one.other}", one.subject)
        for one in found.disputes
    ]
    rows += [(one.id, f"waits for {one.decides}", one.agent, one.subject) for one in found.reviews]
    screen.table(("ID", "STATE", "BY", "SUBJECT"), rows, none="nothing is open")


def _conflict_shown(screen: Screen, shown: Any) -> None:
    screen.line(f"{shown.conflict_id}: {shown.kind}, {shown.state}")
    for one in shown.entries:
        screen.line()
        screen.line(f"{one['event_id']}  {one['timestamp']}  {one['actor']}: {one['subject']}")
        for name, value in one["payload"].items():
            if name not in ("form", "session") and value:
                screen.line(f"  {name}: {value}")


_MOST = 5_000  # files
_MOST_BYTES = 32 * 1024 * 1024


def changed_files(data_dir: str, since: str) -> list[str]:
    """What differs between a revision and the files as they are, and new files, relative to the project."""
    if since.startswith("-"):
        raise InvalidInput(f"{since[:40]!r} is no revision", "name a commit, a branch or HEAD")
    project, _, inside = data_dir.rpartition("/")
    try:
        told = git.changed_files(project, since, most=_MOST_BYTES)
    except OSError:
        raise Unavailable("git could not be asked", "name the files with --changed") from None
    if told is None:
        raise InvalidInput("git cannot tell what has changed", "name the files with --changed, or another revision")
    found = [name for name in told if not name.startswith(f"{inside}/")]
    if len(found) > _MOST:
        raise InvalidInput(f"{len(found)} files have changed, more than {_MOST}", "name some with --changed")
    return found
