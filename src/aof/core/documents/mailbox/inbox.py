"""What each agent has still to read, as the inbox snapshot shows it. Must not know how the table is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from aof.core.documents.mailbox import receivers
from aof.core.documents.mailbox.message import NEXT_SESSION, NONE, MailMessage
from aof.core.documents.mailbox.sending import moment
from aof.core.model.policy import Policy


class InboxRow(msgspec.Struct, frozen=True):
    """One agent's row: how many messages it has not acknowledged, the oldest of them, and the earliest due time."""

    agent: str
    unread: int = 0
    oldest_unread: str = NONE
    needs_response_by: str = NONE


def names(messages: Iterable[MailMessage]) -> tuple[str, ...]:
    """Everybody that messages are from or for, in the order of the messages."""
    parties: dict[str, None] = {}
    for message in messages:
        parties[message.receiver] = parties[message.sender] = None
    return tuple(name for name in parties if name and not receivers.is_group(name))


def inbox(messages: Sequence[MailMessage], policy: Policy, known: Iterable[str] = ()) -> tuple[InboxRow, ...]:
    """A row for everybody. The messages are newest first; `known` are names that the table already has."""
    everybody = receivers.roster(policy, (*known, *names(messages)))
    waiting: dict[str, list[MailMessage]] = {name: [] for name in everybody}
    for message in messages:
        if message.status != "unread":
            continue
        if message.receiver in waiting:  # most mail is for one agent, and groups have no row
            waiting[message.receiver].append(message)
            continue
        for agent in receivers.members(message, policy, everybody):
            if agent in waiting and not (receivers.is_group(message.receiver) and message.acknowledged_by(agent)):
                waiting[agent].append(message)
    return tuple(_row(agent, unread) for agent, unread in waiting.items())


def _row(agent: str, unread: list[MailMessage]) -> InboxRow:
    if not unread:
        return InboxRow(agent)
    return InboxRow(agent, len(unread), unread[-1].message_id, _earliest(unread))


def _earliest(unread: list[MailMessage]) -> str:
    due = {message.response_needed_by for message in unread} - {NONE}
    dates = sorted((when, text) for text in due if (when := moment(text)) is not None)
    if dates:
        return dates[0][1]
    return NEXT_SESSION if NEXT_SESSION in due else NONE
