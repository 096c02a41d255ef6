"""Which messages are overdue, counted in turns, and their escalation: one WORKLOG entry and one message, once.

The message goes to the maintainer. A turn begins when an agent is told its work and ends with its session, or when its
next turn begins. Turns are recorded only where there is a mailbox or a charter. Must not know which surface an agent
uses.
"""

from __future__ import annotations

from collections.abc import Iterable

from aof.app.commands import unit_of_work
from aof.app.documents.mailbox import commands
from aof.app.documents.mailbox.worklog_entries import with_entries
from aof.core.documents.mailbox import escalation, facts, receivers, sending, sla
from aof.core.documents.mailbox.message import MailMessage
from aof.core.errors.base import AofError
from aof.core.model.ids import OURSELVES
from aof.documents.charter.projection import PATH as CHARTER
from aof.documents.mailbox.mailbox import opened
from aof.ports import store as ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.core.documents.mailbox.sla import OverdueMail
    from aof.core.model.events import Event
    from aof.core.model.policy import Policy

_FIRST_DAY = 4, 12  # where the day stands in a message's ID
_SCOPE = ports.Scope(names=commands.LOCK)


def turn_began(here: Environment, agent: str, channel: str) -> None:
    """A turn of the agent begins; its last one is over."""
    _record(here, facts.TURN_BEGAN, agent, channel)


def turn_ended(here: Environment, agent: str, channel: str) -> None:
    """The turn of the agent is over."""
    _record(here, facts.TURN_ENDED, agent, channel)


def _record(here: Environment, kind: str, agent: str, channel: str) -> None:
    """Record it where somebody counts. An agent that cannot be counted can still work."""
    try:
        with here.store.unit(ports.Scope()) as unit:
            if any(unit.document(path) for path in (facts.PATH, CHARTER)):
                draft = facts.turn(kind, agent, channel)
                unit.commit((draft,), actor=agent, agent=None, now=here.clock.now())
    except AofError:
        return


class Turns:
    """The ended turns of every agent: where each began, by its number in the log and by its time."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._open: dict[str, tuple[int, str]] = {}
        self._ended: dict[str, list[tuple[int, str]]] = {}
        for event in events:
            agent = str(event.payload.get("agent", ""))
            begun = self._open.pop(agent, None)
            if begun is not None:
                self._ended.setdefault(agent, []).append(begun)
            if event.type == facts.TURN_BEGAN:
                self._open[agent] = (event.seq, event.timestamp)

    def after(self, agent: str, seq: int | None, date: str) -> list[int]:
        """The turns of the agent that began after a place in the log; where that is unknown, after a time."""
        ended = self._ended.get(agent, [])
        return [begun for begun, when in ended if (begun > seq if seq is not None else when > date)]


def overdue(here: Environment, policy: Policy, text: str) -> list[OverdueMail]:
    """Every message that was not acknowledged in time, oldest first."""
    box = opened(text)
    waiting = [head for head in box.heads if head.status == "unread" and head.type != "notify"]
    if not waiting:
        return []
    everybody, now = commands.everybody_in(box, policy), here.clock.now()
    sent: dict[str, int] = {}
    told = []
    for event in here.store.told((facts.SENT, "agent.turn."), _since(waiting)):
        if event.type == facts.SENT:
            sent[event.payload["messageId"]] = event.seq
        else:
            told.append(event)
    turns = Turns(told)
    found: list[OverdueMail] = []
    for message in reversed(waiting):
        seq = sent.get(message.message_id)
        for agent in receivers.members(message, policy, everybody):
            if receivers.is_unread_by(message, agent, policy, everybody):
                after = turns.after(agent, seq, message.date)
                late = sla.overdue(message, agent, -1, after, now)
                if late is not None:
                    found.append(late)
                    break
    return found


def unanswered(here: Environment, message: MailMessage) -> int | None:
    """How many turns the receiver has ended since the message was escalated; None where it was not."""
    since = _since([message])
    found = None
    turns = []
    for event in here.store.told((facts.ESCALATED, "agent.turn."), since):
        if event.type == facts.ESCALATED and event.payload["messageId"] == message.message_id:
            found = event
        elif event.type != facts.ESCALATED:
            turns.append(event)
    if found is None:
        return None
    return len(Turns(turns).after(found.payload["agent"], found.seq, ""))


def escalate(here: Environment, policy: Policy, late: OverdueMail) -> bool:
    """Escalate a message that is overdue, unless somebody was faster; tells whether that was done."""
    with here.store.unit(_SCOPE) as unit:
        unit_of_work.follow(unit, commands.LOCK, policy)
        texts = {path: unit.document(path) for path in (facts.PATH, facts.ARCHIVE)}
        found = commands.message_in(opened(texts[facts.PATH]), late.message_id)
        if not isinstance(found, MailMessage) or found.status != "unread" or _is_escalated(here, found):
            return False
        now = here.clock.now()
        number = commands.next_number(texts, unit.numbers(), now)
        drafts = escalation.of_overdue(found, late, policy, number, now)
        unit.commit(with_entries(drafts, now), actor=OURSELVES, agent=None, now=now)
        unit_of_work.follow(unit, commands.LOCK, policy)
    return True


def due(here: Environment, policy: Policy, text: str) -> list[OverdueMail]:
    """The messages of a mailbox that are to be escalated now."""
    late = [one for one in overdue(here, policy, text) if one.escalates]
    if not late:
        return []
    done = {event.payload["messageId"] for event in here.store.told((facts.ESCALATED,))}
    return [one for one in late if one.message_id not in done]


def next_due(here: Environment, text: str) -> int | None:
    """The earliest time that an unread message of a mailbox names and that is still to come."""
    waiting = (head for head in opened(text).heads if head.status == "unread" and head.type != "notify")
    times = (sending.moment(head.response_needed_by) for head in waiting)
    now = here.clock.now()
    return min((when + 1 for when in times if when is not None and when >= now), default=None)


def _is_escalated(here: Environment, message: MailMessage) -> bool:
    told = here.store.told((facts.ESCALATED,), _since([message]))
    return any(event.payload["messageId"] == message.message_id for event in told)


def _since(messages: list[MailMessage]) -> str:
    """The day of the oldest of them; every day where an ID does not tell."""
    days = sorted(message.message_id[slice(*_FIRST_DAY)] for message in messages)
    first = days[0]
    return f"{first[:4]}-{first[4:6]}-{first[6:]}" if first.isascii() and first.isdigit() else ""
