"""An agent's unread mail, as it is told when its turn begins. Reading it acknowledges nothing.

Must not know where the text goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from aof.app.runs.fenced_text import quoted
from aof.core.documents.mailbox.message import MailMessage

_MOST = 5
_LONGEST = 4_000
_HOW = "Acknowledge each: `aof mail ack ID --reason T` (tool `aof_mail_ack`); done: `aof mail action ID --reason T`."


def mail_brief(messages: Sequence[MailMessage]) -> list[str]:
    """The section about mail; nothing where there is none. Oldest first, and of many only the first."""
    if not messages:
        return []
    shown = list(reversed(messages))[:_MOST]
    more = [f"And {len(messages) - len(shown)} more: `aof mail inbox`."] if len(messages) > len(shown) else []
    return ["## Unread mail", *map(_one, shown), *more, _HOW]


def _one(message: MailMessage) -> str:
    body = message.body if len(message.body) <= _LONGEST else f"{message.body[:_LONGEST]}…"
    text = f"{message.subject}\n\n{body}".strip()
    return quoted(text, f"{message.message_id}, {message.type}, {message.priority}, from {message.sender}")
