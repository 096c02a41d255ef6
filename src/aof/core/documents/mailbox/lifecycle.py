"""Which status a message may go to, and by whom. Each pair of status, actor and target has one answer.

Only a receiver acknowledges, blocks and actions; only the sender or a maintainer closes; nothing is opened again.
Must not know how a message is written, or how its receivers are found.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from aof.core.documents.mailbox.message import DEFERRED, DISPOSITIONS, NONE, MailMessage
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.mail import MessageClosed, NotCloser, NotReceiver, StatusNotAllowed
from aof.core.validation import limits

Target = Literal["unread", "acknowledged", "blocked", "actioned", "closed"]

ANSWERS: Final[dict[str, tuple[str, ...]]] = {
    "unread": ("acknowledged", "actioned"),
    "acknowledged": ("actioned", "blocked"),
    "blocked": ("acknowledged", "actioned"),
    "actioned": (),
}
_VERBS: Final = {"acknowledged": "mail_ack", "actioned": "mail_action", "blocked": "mail_block", "closed": "mail_close"}
_WAIT: Final = 2  # turns of the receiver that an escalation must stay unanswered before the message is abandoned


class MailStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What the actor is to a message.

    `others` are receivers that have not answered yet, where a message has several. `unanswered` is how many turns the
    receiver has ended since the message was escalated; None where it was not.
    """

    sender: bool = False
    receiver: bool = False
    maintainer: bool = False
    others: bool = False
    unanswered: int | None = None


class StatusChange(msgspec.Struct, frozen=True):
    """The status that a message gets (the one it has: only a line is added), and what the line says."""

    status: str
    reason: str
    disposition: str | None = None


def move(
    message: MailMessage,
    target: str,
    actor: str,
    standing: MailStanding,
    *,
    reason: str,
    disposition: str | None = None,
) -> StatusChange | AofError | None:
    """The change that the actor asks for, the refusal of it, or None where there is nothing to change."""
    if problem := limits.line("reason", reason, limits.REASON, required=message.status != target):
        return problem
    if target == "closed":
        return _close(message, actor, standing, reason.strip(), disposition)
    if message.status == "closed":
        return over(message)
    if target not in _VERBS:
        return _impossible(message, target)
    if not standing.receiver:
        return NotReceiver(
            f"{message.message_id} is for {message.receiver}, and {actor} cannot answer it",
            f"only {message.receiver} acknowledges, blocks or actions it",
            Call(_VERBS[target], {"message_id": message.message_id, "agent": message.receiver, "reason": "…"}),
        )
    return _answer(message, target, actor, standing, reason.strip())


def _answer(
    message: MailMessage, target: str, actor: str, standing: MailStanding, reason: str
) -> StatusChange | AofError | None:
    if message.status == "unread" and target == "acknowledged" and standing.others:
        if message.acknowledged_by(actor):
            return None
        return StatusChange("unread", reason)  # the others have still to read it
    if message.status == target:
        return None if message.acks or not reason else StatusChange(target, reason)  # by hand, and nobody said so yet
    if target not in ANSWERS[message.status]:
        return _impossible(message, target)
    return StatusChange(target, reason)


def _close(
    message: MailMessage, actor: str, standing: MailStanding, reason: str, disposition: str | None
) -> StatusChange | AofError | None:
    if not (standing.sender or standing.maintainer):
        return NotCloser(
            f"{message.message_id} is from {message.sender}, and {actor} cannot close it",
            f"only {message.sender} or a maintainer closes it; tell them that it is done",
            Call("mail_action", {"message_id": message.message_id, "agent": actor, "reason": "…"}),
        )
    if message.status == "closed":
        return None
    allowed = _dispositions(standing)
    if disposition not in allowed:
        return _no_disposition(message, disposition, allowed, standing)
    if disposition == DEFERRED:
        return StatusChange(message.status, f"Deferred: {reason}")
    return StatusChange("closed", f"Closed ({disposition}): {reason}", disposition)


def _dispositions(standing: MailStanding) -> tuple[str, ...]:
    """How the actor may close the message, or put it off."""
    allowed = ["resolved", "superseded"]
    if standing.sender:
        allowed.append("withdrawn")
    if standing.maintainer:
        allowed.append(DEFERRED)
        if standing.unanswered is not None and standing.unanswered >= _WAIT:
            allowed.append("abandoned")
    return tuple(allowed)


def _no_disposition(
    message: MailMessage, given: str | None, allowed: tuple[str, ...], standing: MailStanding
) -> AofError:
    there = ", ".join(allowed)
    call = Call("mail_close", {"message_id": message.message_id, "disposition": allowed[0], "reason": "…"})
    if given is None or given not in (*DISPOSITIONS, DEFERRED):
        said = "needs a disposition" if given is None else f"cannot be closed as {given[:40]!r}"
        return InvalidInput(f"{message.message_id} {said}", f"give one of {there}", call)
    why = {
        "withdrawn": "only its sender withdraws a message",
        DEFERRED: "only a maintainer defers a message",
        "abandoned": "only a maintainer abandons a message, after two turns of its receiver since it was escalated",
    }[given]
    if given == "abandoned" and standing.maintainer:
        turns = standing.unanswered
        why += "; it was not escalated" if turns is None else f"; so far there were {turns}"
    return StatusNotAllowed(why, f"close it as one of {there}", call)


def _impossible(message: MailMessage, target: str) -> AofError:
    there = ", ".join(ANSWERS[message.status]) or NONE
    verb = next((_VERBS[one] for one in ANSWERS[message.status]), "mail_show")
    given = {"message_id": message.message_id}
    if verb != "mail_show":
        given |= {"agent": message.receiver, "reason": "…"}
    return StatusNotAllowed(
        f"{message.message_id} is {message.status} and cannot become {target[:40]}",
        f"its receiver may make it: {there}; its sender or a maintainer may close it",
        Call(verb, given),
    )


def over(message: MailMessage) -> MessageClosed:
    """The refusal to do anything about a closed message."""
    return MessageClosed(
        f"{message.message_id} is closed and is not opened again",
        "send a new message that refers to it",
        Call("mail_send", {"to": message.sender, "subject": "…", "related": message.message_id}),
    )
