"""Which messages are overdue, and their escalation: one entry in the WORKLOG and one message to the maintainer, once.

Must not know any surface.
"""

from __future__ import annotations

from aof.app.commands import unit_of_work
from aof.app.documents.mailbox import commands
from aof.app.documents.mailbox.turns import Turns
from aof.app.documents.mailbox.worklog_entries import with_entries
from aof.core.documents.mailbox import escalation, facts, receivers, sending, sla
from aof.core.documents.mailbox.message import MailMessage
from aof.core.model.ids import OURSELVES
from aof.documents.mailbox.mailbox import opened
from aof.ports import store as ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment
    from aof.core.documents.mailbox.sla import OverdueMail
    from aof.core.model.policy import Policy

_FIRST_DAY = 4, 12  # where the day stands in a message's ID
_SCOPE = ports.Scope(names=commands.LOCK)


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
        drafts = escalation.of_overdue(found, late, policy, commands.next_number(texts, now), now)
        unit.commit(with_entries(drafts, now), actor=OURSELVES, agent=None, now=now)
        unit_of_work.follow(unit, commands.LOCK, policy)
    return True


def due(here: Environment, policy: Policy) -> list[OverdueMail]:
    """The messages that are to be escalated now."""
    with here.store.unit(ports.Scope()) as unit:
        text = unit.document(facts.PATH)
    late = [one for one in overdue(here, policy, text) if one.escalates] if text else []
    if not late:
        return []
    done = {event.payload["messageId"] for event in here.store.told((facts.ESCALATED,))}
    return [one for one in late if one.message_id not in done]


def next_due(here: Environment) -> int | None:
    """The earliest time that an unread message names and that is still to come."""
    with here.store.unit(ports.Scope()) as unit:
        text = unit.document(facts.PATH)
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
