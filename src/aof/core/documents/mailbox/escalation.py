"""What follows when a message was not acknowledged in time, or its payload came malformed twice.

One entry in the WORKLOG and one P0 message to the maintainer, unless the maintainer sent the message itself, which
stays as it is. Must not know how either is written.
"""

from __future__ import annotations

from aof.core.documents.mailbox import facts, receivers
from aof.core.documents.mailbox.message import NEXT_SESSION, NONE, SUBJECT, MailMessage, message_id
from aof.core.documents.mailbox.sla import OverdueMail
from aof.core.model.events import Draft
from aof.core.model.ids import OURSELVES
from aof.core.model.policy import Policy
from aof.core.model.times import day, iso


def of_overdue(message: MailMessage, late: OverdueMail, policy: Policy, number: int, now: int) -> tuple[Draft, ...]:
    """A message that its receiver did not acknowledge in time."""
    text = f"Escalated: {message.message_id} — {message.subject} — receiver did not ack within {late.tier} window"
    return _drafts(message, late.agent, text, policy=policy, number=number, now=now)


def of_payload(message: MailMessage, root: str, policy: Policy, number: int, now: int) -> tuple[Draft, ...]:
    """A payload that was malformed again when it was sent once more."""
    text = f"Escalated: {message.message_id} — {message.subject} — payload {root} was malformed twice"
    return _drafts(message, message.receiver, text, policy=policy, number=number, now=now)


def by_hand(message: MailMessage, reason: str, policy: Policy, number: int, now: int) -> tuple[Draft, ...]:
    """What its sender wants the maintainer to know about."""
    text = f"Escalated: {message.message_id} — {message.subject} — {reason}"
    return _drafts(message, message.receiver, text, policy=policy, number=number, now=now)


def _drafts(message: MailMessage, agent: str, text: str, *, policy: Policy, number: int, now: int) -> tuple[Draft, ...]:
    told = facts.escalated(message.message_id, agent, text)
    if message.sender in policy.maintainers or not policy.maintainers:
        return (told,)
    several = len(policy.maintainers) > 1
    notice = MailMessage(
        message_id=message_id(day(now), number),
        sender=OURSELVES,
        receiver=receivers.MAINTAINER if several else policy.maintainers[0],
        date=iso(now),
        type="decision-required",
        priority="P0",
        status="unread",
        subject=text[:SUBJECT],
        closure_owner=receivers.MAINTAINER,
        review_scope=NONE,
        response_needed_by=NEXT_SESSION,
        body=f"{text}.\n\nDecide: send it to somebody else, send it again, close it, or answer it yourself.",
        fields={"Related": message.message_id},
    )
    return (told, facts.sent(notice))
