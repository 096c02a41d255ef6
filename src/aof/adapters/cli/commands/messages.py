"""Verbs about protocol messages and sessions."""

from __future__ import annotations

from typing import Any

import msgspec

from aof.adapters.cli.help import spelling
from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.values import file_text
from aof.adapters.cli.terminal.screen import Screen, complain
from aof.app.documents.mailbox.results import LeftOver
from aof.app.operations.results import Sent
from aof.core.errors.base import Call
from aof.protocol import documents

_REFUSED = 1
_COLOURS = {"accepted": "good", "noop": "dim", "rejected": "error", "unknown": "error", "ignored": "dim"}


def send(context: Context, values: dict[str, Any]) -> Answer:
    """`aof send`."""
    results = context.fabric.send(documents.messages_in(file_text(values.get("file", "-"))), run=values.get("run"))
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
        spelled = spelling.spell(sent.call, options)
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
