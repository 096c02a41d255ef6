"""Verbs about protocol messages and sessions."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from aof.adapters.cli.help import spelling
from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen
from aof.adapters.cli.terminal.streams import complain
from aof.app.operations.results import Sent
from aof.core.errors.base import Call
from aof.protocol import documents

_REFUSED = 1
_COLOURS = {"accepted": "good", "noop": "dim", "rejected": "error", "unknown": "error", "ignored": "dim"}


def send(context: Context, values: dict[str, Any]) -> Answer:
    """`aof send`."""
    results = context.fabric.send(documents.messages_in(_text(values.get("file", "-"))), run=values.get("run"))
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


def _text(path: str) -> str:
    """A file's text; what is not UTF-8 stays recognisable as such."""
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
            return file.read().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name a file, or - for standard input") from None


def session_end(context: Context, values: dict[str, Any]) -> Answer:
    """`aof session-end`."""
    applied = context.fabric.session_end(**values)

    def text(screen: Screen) -> None:
        for one in applied:
            screen.line(
                f"{one.task_id}  {one.from_status} → {screen.paint(one.to_status, one.to_status)}  {one.outcome}"
            )
        if not applied:
            screen.line("nothing was reported that is not carried out already")

    return Answer({"applied": applied}, text)
