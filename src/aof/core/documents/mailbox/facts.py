"""What the log says of mail: the types of its events, and what each of them holds.

Must not know how mail is written.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.documents.mailbox.lifecycle import StatusChange
from aof.core.documents.mailbox.message import Ack, MailMessage
from aof.core.model.events import Draft

DOCUMENT: Final = "MAILBOX"
PATH: Final = "MAILBOX.md"
ARCHIVE: Final = "MAILBOX_ARCHIVE.md"
EDITS: Final = "MAILBOX_EDITS.md"
TYPES: Final = "document.mail."
SENT: Final = "document.mail.sent"
CHANGED: Final = "document.mail.changed"
CLOSED: Final = "document.mail.closed"
ESCALATED: Final = "document.mail.escalated"
ARCHIVED: Final = "document.mail.archived"
SETTLED: Final = "document.mail.settled"
TURN_BEGAN: Final = "agent.turn.began"
TURN_ENDED: Final = "agent.turn.ended"


def sent(message: MailMessage) -> Draft:
    """A message was sent; everything that its card says is in the event."""
    said: dict[str, Any] = msgspec.to_builtins(message)
    return _draft(SENT, messageId=message.message_id, message=said)


def changed(message: MailMessage, change: StatusChange, ack: Ack) -> Draft:
    """A message has got another status, or only another line."""
    kind = CLOSED if change.status == "closed" else CHANGED
    more = {"disposition": change.disposition} if change.disposition is not None else {}
    return _draft(
        kind,
        messageId=message.message_id,
        before=message.status,
        status=change.status,
        ack=msgspec.to_builtins(ack),
        **more,
    )


def escalated(message_id: str, agent: str, text: str) -> Draft:
    """A message was not answered as it should have been: the WORKLOG gets this text as an entry."""
    return _draft(ESCALATED, messageId=message_id, agent=agent, text=text)


def archived(ids: tuple[str, ...]) -> Draft:
    """Rows of the closed summary were removed; the archive has the messages."""
    return _draft(ARCHIVED, messageIds=list(ids))


def settled() -> Draft:
    """The tables were written again from the cards."""
    return _draft(SETTLED)


def turn(kind: str, agent: str, channel: str) -> Draft:
    """A turn of an agent has begun or ended."""
    return Draft(type=kind, task_id="", payload={"agent": agent, "channel": channel})


def message_in(payload: dict[str, Any]) -> MailMessage:
    """The message of an event that tells of its sending."""
    return msgspec.convert(payload["message"], prepare_type(MailMessage))


def change_in(payload: dict[str, Any]) -> tuple[StatusChange, Ack]:
    """What an event tells of a change."""
    ack = msgspec.convert(payload["ack"], prepare_type(Ack))
    return StatusChange(payload["status"], ack.reason, payload.get("disposition")), ack


def _draft(kind: str, **payload: Any) -> Draft:
    return Draft(type=kind, task_id="", payload={"document": DOCUMENT} | payload)
