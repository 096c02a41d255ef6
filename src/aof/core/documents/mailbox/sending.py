"""Whether a message may be sent as it is given, and what it says where the sender left something out.

Must not know how a message is written.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from aof.core.documents.mailbox import payload as payloads
from aof.core.documents.mailbox import receivers
from aof.core.documents.mailbox.message import (
    BODY,
    NEXT_SESSION,
    NONE,
    PRIORITIES,
    SCOPES,
    SUBJECT,
    TYPES,
    MailMessage,
    message_id,
)
from aof.core.documents.mailbox.payload import ReviewPayload
from aof.core.errors.base import AofError, InvalidInput
from aof.core.model.policy import Policy
from aof.core.model.times import day, iso, millis
from aof.core.validation import limits

_RELATED: Final = "Related"
_REFERENCE: Final = re.compile(r"\b[A-Z]{2,}-[A-Za-z0-9-]*[0-9]")


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """What a sender gives; what is None is left to the rules. `payload` is what was found in the body."""

    sender: str
    receiver: str
    type: str = "request"
    priority: str = "P2"
    subject: str
    body: str = ""
    closure_owner: str | None = None
    review_scope: str = NONE
    response_needed_by: str | None = None
    related: str | None = None
    payload: ReviewPayload | None = None


def message(mail: Mail, policy: Policy, number: int, now: int) -> MailMessage | AofError:
    """The message that is sent, or why it is not."""
    if problem := _wording(mail) or receivers.unknown(policy, "from", mail.sender):
        return problem
    receiver = receivers.resolved(mail.receiver, policy)
    if isinstance(receiver, AofError):
        return receiver
    owner, due = _closure_owner(mail, policy), _due(mail)
    if isinstance(owner, AofError):
        return owner
    if isinstance(due, AofError):
        return due
    if problem := _reference(mail) or _payload(mail):
        return problem
    return MailMessage(
        message_id=message_id(day(now), number),
        sender=mail.sender,
        receiver=receiver,
        date=iso(now),
        type=mail.type,
        priority=mail.priority,
        status="unread",
        subject=mail.subject.strip(),
        closure_owner=owner,
        review_scope=mail.review_scope,
        response_needed_by=due,
        body=mail.body,
        fields={} if mail.related is None else {_RELATED: mail.related.strip()},
    )


def _wording(mail: Mail) -> AofError | None:
    return (
        limits.name("from", mail.sender)
        or (_group_as_sender(mail.sender) if receivers.is_group(mail.sender) else None)
        or limits.choice("type", mail.type, TYPES)
        or limits.choice("priority", mail.priority, PRIORITIES)
        or limits.choice("review scope", mail.review_scope, SCOPES)
        or limits.line("subject", mail.subject, SUBJECT, required=True)
        or limits.text("body", mail.body, BODY)
        or limits.line("related", mail.related, limits.ITEM)
    )


def _group_as_sender(name: str) -> InvalidInput:
    return InvalidInput(f"'{name}' stands for several and sends no mail", "give the name of an agent as 'from'")


def _closure_owner(mail: Mail, policy: Policy) -> str | AofError:
    """The sender unless it says otherwise; nobody only where no answer is expected."""
    owner = mail.closure_owner
    if owner in (None, "sender", mail.sender):
        return mail.sender
    if owner == receivers.MAINTAINER or owner in policy.maintainers:
        return owner
    if owner == NONE and mail.type == "notify":
        return NONE
    return InvalidInput(
        f"'{str(owner)[:80]}' cannot be the closure owner of a {mail.type}",
        "leave it out for the sender, or give maintainer" + (" or none" if mail.type == "notify" else ""),
    )


def _due(mail: Mail) -> str | AofError:
    """When an answer is needed: nothing is expected of a notice, and P0 and P1 say so by themselves."""
    given = mail.response_needed_by
    if given is None:
        return NONE if mail.type == "notify" or mail.priority == "P2" else NEXT_SESSION
    if given in (NONE, NEXT_SESSION) or moment(given) is not None:
        return given
    return InvalidInput(
        f"'{given[:80]}' is no time by which an answer is needed",
        f"give a time such as 2026-02-21T17:00:00Z, '{NEXT_SESSION}' or '{NONE}'",
    )


def moment(text: str) -> int | None:
    """The time that the text says, in UTC milliseconds; None where it is no time."""
    try:
        return millis(text)
    except (ValueError, OverflowError):
        return None


def _reference(mail: Mail) -> AofError | None:
    """An objection names what it objects to."""
    if mail.type != "objection" or mail.related or _REFERENCE.search(f"{mail.subject}\n{mail.body}"):
        return None
    return InvalidInput(
        "an objection must name what it objects to",
        "give the message, task or proposal as 'related', such as MSG-20260221-001",
    )


def _payload(mail: Mail) -> AofError | None:
    if mail.payload is None and not payloads.asks_for_review(mail.review_scope):
        return None
    return payloads.refusal(mail.payload)
