"""Verbs about protocol messages, sessions and handoffs."""

from __future__ import annotations

from typing import Any

import msgspec

from aof.adapters.cli.help import spelling
from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.spec.values import file_text
from aof.adapters.cli.terminal.screen import Screen
from aof.adapters.cli.terminal.streams import complain
from aof.app.documents.mailbox.results import LeftOver
from aof.app.operations.results import Sent
from aof.core.errors.base import Call
from aof.core.model.handoff import Handoff
from aof.protocol import documents

_REFUSED = 1
_COLOURS = {"accepted": "good", "noop": "dim", "rejected": "error", "unknown": "error", "ignored": "dim"}


def send(context: Context, values: dict[str, Any]) -> Answer:
    """`aof send`."""
    results = context.fabric.send(documents.messages_in(file_text(values.get("file", "-"))), run=values.get("run"))
    rows = [_row(sent) for sent in results]
    refused = next((row for row in rows if row["outcome"] == "rejected"), None)
    if refused is None:
        return Answer({"results": rows}, lambda screen: _tell(screen, rows))
    error = {"code": refused["reason"], "message": refused.get("detail", ""), "hint": refused.get("hint", "")}
    return Answer({"results": rows}, lambda screen: _tell(screen, rows), _REFUSED, error)


def _row(sent: Sent) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(sent)
    row.pop("call", None)
    if isinstance(sent.call, Call):
        spelled = spelling.spell(sent.call)
        row["hint"] = f"{row['hint']}: {spelled}" if "hint" in row else spelled
    return row


def _tell(screen: Screen, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        words = (row["type"], row["taskId"], row["reason"], row.get("runId"))
        screen.line("  ".join([screen.paint(row["outcome"], _COLOURS[row["outcome"]]), *filter(None, words)]))
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


def handoff(context: Context, values: dict[str, Any]) -> Answer:
    """`aof handoff list|show`."""
    given = dict(values)
    action, handoff_id = given.pop("action"), given.pop("handoff_id", None)
    if action == "show" and handoff_id is not None and not given:
        one = context.fabric.handoff(handoff_id)
        return Answer(one, lambda screen: _describe(screen, one))
    if action != "list" or handoff_id is not None:
        raise UsageError(
            f"'aof handoff {action}' makes no call", "aof handoff list [--task ID], or: aof handoff show HANDOFF"
        )
    found = context.fabric.handoffs(**given)

    def text(screen: Screen) -> None:
        head = ("HANDOFF", "KIND", "STATE", "FROM", "TO", "TASK")
        body = [(one.id, one.kind, one.state, one.from_agent, one.to_agent, one.task_id) for one in found]
        if body:
            screen.table(head, body)
        else:
            screen.line("there is no such handoff")

    return Answer({"total": len(found), "handoffs": found}, text)


def _describe(screen: Screen, handoff: Handoff) -> None:
    screen.line(f"{handoff.id}  {handoff.kind}  {handoff.state}" + (f"  {handoff.reason}" if handoff.reason else ""))
    screen.line(f"{handoff.from_agent} → {handoff.to_agent}  {handoff.task_id} (part of {handoff.parent_task_id})")
    request = handoff.request
    lists = (
        ("acceptance criteria", request.acceptance_criteria),
        ("expected outputs", request.expected_outputs),
        ("context", request.context_refs),
        ("constraints", request.constraints),
        ("due", (request.due_by,) if request.due_by else ()),
    )
    for title, items in lists:
        for item in items:
            screen.line(f"{title}: {item}")
