"""A mailbox as JSON, for programs. The file is the source, this is never read back. Must not know any rule."""

from __future__ import annotations

import re
from typing import Any, Final

from aof.core.documents.mailbox.message import MailMessage
from aof.documents.mailbox.card import Card
from aof.documents.mailbox.mailbox import Mailbox
from aof.documents.mailbox.outline import CLOSED, INBOX, QUEUE
from aof.documents.mailbox.tables import TablePlace

FORMAT: Final = "mailbox-compact-v1"
_ROW: Final = (
    "id", "date", "from_to", "type", "priority", "due", "status", "subject", "final_status", "outcome",
)  # fmt: skip


def projected(box: Mailbox) -> dict[str, Any]:
    """Everything that the mailbox says, table by table and card by card."""
    return {
        "format_version": FORMAT,
        "inbox_snapshot": [_inbox(row) for row in _rows(box.table(INBOX))],
        "open_queue": [_listed(row) for row in _rows(box.table(QUEUE))],
        "active_messages": [_active(box.card(place)) for place in box.outline.cards],
        "closed_summary": [_listed(row) for row in _rows(box.table(CLOSED))],
    }


def _rows(table: TablePlace | None) -> list[dict[str, str]]:
    if table is None:
        return []
    keys = [key(name) for name in table.header]
    return [dict(zip(keys, row.cells, strict=True)) for row in table.rows if len(row.cells) == len(keys)]


def key(name: str) -> str:
    """The key of a column or a field: lower case, with underscores."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def _inbox(row: dict[str, str]) -> dict[str, Any]:
    unread = row.get("unread", "")
    return {
        "agent": row.get("agent", ""),
        "unread": int(unread) if unread.isascii() and unread.isdigit() else unread,
        "oldest_unread": row.get("oldest_unread", ""),
        "needs_response_by": row.get("needs_response_by", ""),
    }


def _listed(row: dict[str, str]) -> dict[str, str]:
    return {name: row.get(name, "") for name in _ROW} | {"priority": row.get("pri") or row.get("priority", "")}


def _active(card: Card) -> dict[str, Any]:
    message = card.message
    lines = message.body.split("\n")
    return {
        "id": message.message_id,
        "fields": _fields(message),
        "summary": [line.strip()[2:].strip() for line in lines if line.strip().startswith("- ")],
        "body": message.body,
        "ack": [f"{ack.actor} — {ack.date} — {ack.reason}" for ack in message.acks],
    }


def _fields(message: MailMessage) -> dict[str, str]:
    named = {
        "from": message.sender,
        "to": message.receiver,
        "date": message.date,
        "type": message.type,
        "priority": message.priority,
        "status": message.status,
        "subject": message.subject,
        "closure_owner": message.closure_owner,
        "review_scope": message.review_scope,
        "response_needed_by": message.response_needed_by,
    }
    return {key(name): value for name, value in message.fields.items()} | named
