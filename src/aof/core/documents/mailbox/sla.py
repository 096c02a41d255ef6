"""By when a message must be acknowledged, counted in turns of its receiver and not by the clock.

P0: by the end of the receiver's next turn. P1: by the end of the turn after it. A time in `Response needed by` holds as
well; the stricter counts. Only unread messages expire. Must not know how turns are recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from aof.core.documents.mailbox.message import NEXT_SESSION, MailMessage
from aof.core.documents.mailbox.sending import moment

_TURNS: Final = {"P0": 1, "P1": 2}


class OverdueMail(msgspec.Struct, frozen=True, rename="camel"):
    """A message that was not acknowledged in time, the one that it waits for, and which window it missed."""

    message_id: str
    agent: str
    tier: str
    escalates: bool


def overdue(message: MailMessage, agent: str, sent: int, turns: Sequence[int], now: int) -> OverdueMail | None:
    """Whether the agent's time for the message is over.

    `sent` is the place of the message in the log, `turns` are the places where each ended turn of the agent began.
    """
    if message.status != "unread" or message.type == "notify":
        return None
    missed = _missed(message, sum(1 for begun in turns if begun > sent), now)
    if missed is None:
        return None
    by_date = message.type == "decision-required" and missed == "due date"
    return OverdueMail(message.message_id, agent, missed, escalates=by_date or message.priority in _TURNS)


def _missed(message: MailMessage, ended: int, now: int) -> str | None:
    windows = [message.priority] if message.priority in _TURNS else []
    if message.response_needed_by == NEXT_SESSION:
        windows.append("P1")
    for tier in sorted(windows):
        if ended >= _TURNS[tier]:
            return tier
    due = moment(message.response_needed_by)
    return "due date" if due is not None and now > due else None
