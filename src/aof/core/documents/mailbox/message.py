"""A message as the rules see it, and the words that it may use. Must not know how a message is written or kept."""

from __future__ import annotations

import re
from typing import Final

import msgspec

TYPES: Final = ("notify", "request", "decision-required", "objection", "handoff-ready")
PRIORITIES: Final = ("P0", "P1", "P2")
OPEN: Final = ("unread", "acknowledged", "blocked", "actioned")
STATUSES: Final = (*OPEN, "closed")
DISPOSITIONS: Final = ("resolved", "superseded", "withdrawn", "abandoned")
DEFERRED: Final = "deferred"
SCOPES: Final = ("full", "critical-only", "interface-only", "none")
NONE: Final = "none"
NEXT_SESSION: Final = "next session"

SUBJECT: Final = 200
BODY: Final = 65_536

_ID: Final = re.compile(r"MSG-([0-9]{8})-([0-9]{3,9})", re.ASCII)


class Ack(msgspec.Struct, frozen=True):
    """One line that tells of a change: by whom, when and why."""

    actor: str
    date: str
    reason: str


class MailMessage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One message. `fields` are further lines of its card; `disposition` and `outcome` say how it was closed."""

    message_id: str
    sender: str = msgspec.field(name="from")
    receiver: str = msgspec.field(name="to")
    date: str
    type: str
    priority: str
    status: str
    subject: str
    closure_owner: str
    review_scope: str
    response_needed_by: str
    body: str = ""
    acks: tuple[Ack, ...] = ()
    fields: dict[str, str] = {}
    disposition: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether somebody may still have to do something about it."""
        return self.status in OPEN

    def acknowledged_by(self, agent: str) -> bool:
        """Whether the agent has answered it in any way."""
        return any(ack.actor == agent for ack in self.acks)


def message_id(day: str, number: int) -> str:
    """The ID of a day's nth message; the day as in 2026-02-21."""
    return f"MSG-{day.replace('-', '')}-{number:03d}"


def is_message_id(text: str) -> bool:
    """Whether the text is a whole ID: three digits or more, and no leading zero beyond three."""
    found = _ID.fullmatch(text)
    return found is not None and (len(found[2]) == 3 or found[2][0] != "0")  # noqa: PLR2004 - the form of an ID


def number_of(text: str, day: str) -> int:
    """The number of a message of that day; 0 where it is of another one, or no ID."""
    found = _ID.fullmatch(text)
    return int(found[2]) if found is not None and found[1] == day.replace("-", "") else 0
