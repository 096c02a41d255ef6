"""What an agent cannot have read: agents read when their turn begins. Must not change anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aof.core.documents.mailbox.facts import TURN_BEGAN, TURN_ENDED
from aof.documents.worklog.envelope import EntryEnvelope, envelopes
from aof.documents.worklog.parser import parse_entry
from aof.documents.worklog.restoration import ENTRY

if TYPE_CHECKING:
    from aof.app.commands.context import Environment

_MINUTE = 16  # characters of a moment up to its minute, which is as exact as the file is


def unseen_by(environment: Environment, agent: str) -> Callable[[EntryEnvelope], bool]:
    """Says of an entry whether it was posted after the agent's latest turn began; everything is, before its first."""
    return _after(environment, agent, in_turn=False)


def since_previous_turn(environment: Environment, agent: str) -> Callable[[EntryEnvelope], bool]:
    """Says of an entry whether others posted it after the agent's previous turn began: the last one that has ended.

    That stays the same during a turn, however often the agent asks, and after one that broke off.
    """
    unseen = _after(environment, agent, in_turn=True)
    return lambda one: one.actor != agent and unseen(one)


def _after(environment: Environment, agent: str, *, in_turn: bool) -> Callable[[EntryEnvelope], bool]:
    latest, ended, posted = (0, ""), (0, ""), dict[str, int]()
    for event in environment.store.told((ENTRY, TURN_BEGAN, TURN_ENDED)):
        if event.type == ENTRY:
            (one,) = envelopes([parse_entry(event.payload["text"], event.timestamp[:10])])
            posted[one.event_id] = event.seq
        elif event.payload.get("agent") != agent:
            continue
        elif event.type == TURN_BEGAN:
            latest = event.seq, event.timestamp
        else:
            ended = latest
    turn, moment = ended if in_turn else latest

    def unseen(one: EntryEnvelope) -> bool:
        seq = posted.get(one.event_id)
        return seq > turn if seq is not None else one.timestamp[:_MINUTE] >= moment[:_MINUTE]

    return unseen
