"""What the operations about mail answer, in the names that every surface uses. Must not know any surface."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from aof.app.operations.results import Result
from aof.core.documents.mailbox.message import MailMessage
from aof.core.documents.mailbox.sla import OverdueMail
from aof.documents.mailbox.card import CardProblem


class SentMail(Result, frozen=True, kw_only=True):
    """The message that was sent."""

    message_id: str


class Inbox(Result, frozen=True, kw_only=True):
    """What an agent has not acknowledged yet, newest first."""

    agent: str
    unread: int
    messages: tuple[MailMessage, ...]
    next_cursor: str | UnsetType = UNSET


class LeftOver(Result, frozen=True, kw_only=True):
    """What an agent leaves behind at the end of its turn: what it has not acknowledged, and what it has to close."""

    unread: tuple[str, ...] = ()
    to_close: tuple[str, ...] = ()


class Mails(Result, frozen=True, kw_only=True):
    """Messages, newest first, and those that were not acknowledged in time."""

    total: int
    messages: tuple[MailMessage, ...]
    overdue: tuple[OverdueMail, ...]
    next_cursor: str | UnsetType = UNSET


class MailReport(Result, frozen=True, kw_only=True):
    """What is wrong with a mailbox. Warnings alone leave it in order."""

    ok: bool
    problems: tuple[CardProblem, ...]


class ArchivedMail(Result, frozen=True, kw_only=True):
    """The messages whose rows were removed from the closed summary."""

    total: int
    message_ids: tuple[str, ...]
