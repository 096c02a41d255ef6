"""Mail between agents, as the rules see it: a message, its payload, status, receivers, times and escalation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from aof.errors import (
    AofError,
    Call,
    InvalidInput,
    MalformedPayload,
    MessageClosed,
    MissingPart,
    NotCloser,
    NotReceiver,
    RevisionMismatch,
    StatusNotAllowed,
)
from aof.kernel import limits as kernel_limits
from aof.kernel.events import Draft
from aof.kernel.findings import suggestion
from aof.kernel.model import OURSELVES, Policy, day, iso, millis
from aof.support.answer import StructAnswer
from aof.support.hashing import hexdigest
from aof.support.typed import prepare_type

MAIL_TYPES: Final = ("notify", "request", "decision-required", "objection", "handoff-ready")
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


class MailMessage(StructAnswer, frozen=True, kw_only=True, rename="camel"):
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
    fields: dict[str, str] = msgspec.field(default_factory=dict)
    disposition: str | None = None

    @property
    def parties(self) -> str:
        """Who sent it to whom, as cards and tables say it."""
        return f"{self.sender} -> {self.receiver}"

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


def move_message(
    message: MailMessage,
    target: str,
    actor: str,
    standing: MailStanding,
    *,
    reason: str,
    disposition: str | None = None,
) -> StatusChange | AofError | None:
    """The change that the actor asks for, the refusal of it, or None where there is nothing to change."""
    if problem := kernel_limits.line("reason", reason, kernel_limits.REASON, required=message.status != target):
        return problem
    if target == "closed":
        return _close(message, actor, standing, reason.strip(), disposition)
    if message.status == "closed":
        return closed_refusal(message)
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
    listed = ", ".join(allowed)
    call = Call("mail_close", {"message_id": message.message_id, "disposition": allowed[0], "reason": "…"})
    if given is None or given not in (*DISPOSITIONS, DEFERRED):
        what = "needs a disposition" if given is None else f"cannot be closed as {given[:40]!r}"
        return InvalidInput(f"{message.message_id} {what}", f"give one of {listed}", call)
    why = {
        "withdrawn": "only its sender withdraws a message",
        DEFERRED: "only a maintainer defers a message",
        "abandoned": "only a maintainer abandons a message, after two turns of its receiver since it was escalated",
    }[given]
    if given == "abandoned" and standing.maintainer:
        turns = standing.unanswered
        why += "; it was not escalated" if turns is None else f"; so far there were {turns}"
    return StatusNotAllowed(why, f"close it as one of {listed}", call)


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


def closed_refusal(message: MailMessage) -> MessageClosed:
    """The refusal to do anything about a closed message."""
    return MessageClosed(
        f"{message.message_id} is closed and is not opened again",
        "send a new message that refers to it",
        Call("mail_send", {"to": message.sender, "subject": "…", "related": message.message_id}),
    )


DOCUMENT: Final = "MAILBOX"
PATH: Final = "MAILBOX.md"
ARCHIVE: Final = "MAILBOX_ARCHIVE.md"
EDITS: Final = "MAILBOX_EDITS.md"
MAIL_EVENTS: Final = "document.mail."
SENT: Final = "document.mail.sent"
CHANGED: Final = "document.mail.changed"
CLOSED: Final = "document.mail.closed"
ESCALATED: Final = "document.mail.escalated"
ARCHIVED: Final = "document.mail.archived"
SETTLED: Final = "document.mail.settled"
TURN_BEGAN: Final = "agent.turn.began"
TURN_ENDED: Final = "agent.turn.ended"


def sent(message: MailMessage) -> Draft:
    """A message was sent; everything that its card says is in the event."""
    return _draft(SENT, messageId=message.message_id, message=msgspec.to_builtins(message))


def changed(message: MailMessage, change: StatusChange, ack: Ack) -> Draft:
    """A message has got another status, or only another line."""
    kind = CLOSED if change.status == "closed" else CHANGED
    more = {"disposition": change.disposition} if change.disposition is not None else {}
    return _draft(
        kind,
        messageId=message.message_id,
        before=message.status,
        status=change.status,
        ack=msgspec.to_builtins(ack),
        **more,
    )


def escalated(message_id: str, agent: str, text: str) -> Draft:
    """A message was not answered as it should have been: the WORKLOG gets this text as an entry."""
    return _draft(ESCALATED, messageId=message_id, agent=agent, text=text)


def archived(ids: tuple[str, ...]) -> Draft:
    """Rows of the closed summary were removed; the archive has the messages."""
    return _draft(ARCHIVED, messageIds=list(ids))


def settled() -> Draft:
    """The tables were written again from the cards."""
    return _draft(SETTLED)


def turn(kind: str, agent: str, channel: str) -> Draft:
    """A turn of an agent has begun or ended."""
    return Draft(type=kind, task_id="", payload={"agent": agent, "channel": channel})


def message_in(payload: dict[str, Any]) -> MailMessage:
    """The message of an event that tells of its sending."""
    return msgspec.convert(payload["message"], prepare_type(MailMessage))


def change_in(payload: dict[str, Any]) -> tuple[StatusChange, Ack]:
    """What an event tells of a change."""
    ack = msgspec.convert(payload["ack"], prepare_type(Ack))
    return StatusChange(payload["status"], ack.reason, payload.get("disposition")), ack


def _draft(kind: str, **payload: Any) -> Draft:
    return Draft(type=kind, task_id="", payload={"document": DOCUMENT} | payload)


ALL: Final = "all"
MAINTAINER: Final = "maintainer"
ROLE: Final = "role:"
_SHOWN: Final = 10


def roster(policy: Policy, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Everybody who may get mail: the agents of the chart, the maintainers, and names that the mailbox has."""
    listed = [agent.id for agent in policy.org.agents if agent.active] if policy.org is not None else []
    return tuple(dict.fromkeys((*listed, *(name for name in known if not is_group(name)), *policy.maintainers)))


def is_group(receiver: str) -> bool:
    """Whether the receiver is no single agent."""
    return receiver in (ALL, MAINTAINER) or receiver.startswith(ROLE)


def members(message: MailMessage, policy: Policy, everybody: Iterable[str]) -> tuple[str, ...]:
    """The agents that the message is for; its sender is not among those of a group."""
    receiver = message.receiver
    if receiver == ALL:
        meant = tuple(everybody)
    elif receiver == MAINTAINER:
        meant = policy.maintainers
    elif receiver.startswith(ROLE):
        holders = policy.org.holders if policy.org is not None else {}
        meant = tuple(holders.get(receiver.removeprefix(ROLE), ()))
    else:
        return (receiver,)
    return tuple(name for name in meant if name != message.sender)


def is_unread_by(message: MailMessage, agent: str, policy: Policy, everybody: Iterable[str]) -> bool:
    """Whether the agent has still to acknowledge the message."""
    if message.status != "unread":
        return False
    if not is_group(message.receiver):
        return message.receiver == agent
    return agent in members(message, policy, everybody) and not message.acknowledged_by(agent)


def standing(
    message: MailMessage, actor: str, policy: Policy, everybody: Iterable[str], *, unanswered: int | None = None
) -> MailStanding:
    """What the actor is to the message. Without a chart nobody can tell who all are, and everybody may answer."""
    meant = members(message, policy, everybody if policy.org is not None else (*everybody, actor))
    others = is_group(message.receiver) and any(name != actor and not message.acknowledged_by(name) for name in meant)
    return MailStanding(
        sender=actor == message.sender,
        receiver=actor in meant,
        maintainer=actor in policy.maintainers,
        others=others,
        unanswered=unanswered,
    )


def resolved(receiver: str, policy: Policy) -> str | AofError:
    """The receiver as a card names it; the only maintainer by name, a role with `role:` in front."""
    if receiver == ALL:
        return receiver
    if receiver == MAINTAINER and policy.maintainers:
        return policy.maintainers[0] if len(policy.maintainers) == 1 else MAINTAINER
    if problem := kernel_limits.name("to", receiver):
        return problem
    chart, role = policy.org, receiver.removeprefix(ROLE)
    if chart is None and receiver.startswith(ROLE):
        what = f"there is no org chart that says who has the role '{role[:80]}'"
        return InvalidInput(what, "name an agent, all or maintainer")
    listed = chart is None or receiver in chart.by_id or receiver in policy.maintainers
    if chart is not None and not listed and role in chart.holders:
        return f"{ROLE}{role}"
    return unknown_receiver(policy, "to", receiver) or receiver


def unknown_receiver(policy: Policy, field: str, name: str) -> AofError | None:
    """The refusal of a name that the chart does not list: its mail would wait for ever."""
    chart = policy.org
    if chart is None or name in chart.by_id or name in policy.maintainers:
        return None
    there = sorted({*chart.by_id, *policy.maintainers})
    listed = ", ".join(there[:_SHOWN])
    return InvalidInput(
        f"the org chart has no agent '{name[:80]}'",
        f"{suggestion(name[:80], there, f'give one of {listed}')} for '{field}', or all, maintainer or role:NAME",
        Call("org_show", {}),
    )


FORMATS: Final = ("full-text", "unified-diff")
ASKS: Final = ("apply-or-counter", "review-only", "fyi")
BYTES: Final = 16 * 1024
LINES: Final = 300
RESEND: Final = "needs-resend"
_TOKEN: Final = re.compile(r"(REV-[0-9]{8}-[a-z0-9]+(?:-[a-z0-9]+)*)-h([0-9a-f]{8})(?:-p([0-9]{1,3})of([0-9]{1,3}))?")
_TOPIC: Final = 40
_WORD: Final = re.compile(r"REV-[0-9]{8}-[A-Za-z0-9-]+")
_BLOCK: Final = """Revision: REV-YYYYMMDD-<topic>-01-h<8 hex digits of the content's SHA-256>
Format: full-text | unified-diff
Review scope: full | critical-only | interface-only
Ask: apply-or-counter | review-only | fyi
Files:
  - path/of/a/file

```text
the content
```"""


class ReviewPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The block as it stands in a body; what is missing is empty, and `content` is None where there is no fence."""

    revision: str = ""
    format: str = ""
    scope: str = ""
    ask: str = ""
    files: tuple[str, ...] = ()
    content: str | None = None

    @property
    def root(self) -> str:
        """What all parts and all versions of one payload share."""
        found = _TOKEN.fullmatch(self.revision)
        return found[1] if found is not None else self.revision

    @property
    def part(self) -> tuple[int, int] | None:
        """Which part of how many."""
        found = _TOKEN.fullmatch(self.revision)
        return (int(found[3]), int(found[4])) if found is not None and found[3] else None


def digest_digits(content: str) -> str:
    """The digits that belong to a content: of its bytes with plain line feeds, and one at the end."""
    text = content.replace("\r\n", "\n")
    return hexdigest((text if text.endswith("\n") else text + "\n").encode())[:8]


def token_root(day: str, topic: str, seq: str) -> str:
    """What the tokens of a topic begin with: the day, the topic in plain letters, and a number."""
    words, number = ("-".join(re.findall(r"[a-z0-9]+", text.lower())) for text in (topic, seq))
    return f"REV-{day.replace('-', '')}-{words[:_TOPIC].strip('-') or 'payload'}-{number or '01'}"


def token(root: str, content: str, part: tuple[int, int] | None = None) -> str:
    """The revision of a content; the root is `REV-<day>-<topic>-<seq>`."""
    suffix = "" if part is None else f"-p{part[0]}of{part[1]}"
    return f"{root}-h{digest_digits(content)}{suffix}"


def payload_defects(payload: ReviewPayload) -> Iterator[str]:
    """Everything that is wrong with a payload, each in one sentence."""
    found = _TOKEN.fullmatch(payload.revision)
    if not payload.revision:
        yield "the payload has no Revision"
    elif found is None:
        yield f"the Revision {payload.revision[:80]!r} is not of the form REV-YYYYMMDD-<topic>-<seq>-h<8 hex digits>"
    for name, value, allowed in (
        ("Format", payload.format, FORMATS),
        ("Review scope", payload.scope, SCOPES[:-1]),
        ("Ask", payload.ask, ASKS),
    ):
        if value not in allowed:
            what = f"the {name} cannot be {value[:40]!r}" if value else f"the payload has no {name}"
            yield f"{what}; it is one of {', '.join(allowed)}"
    if not payload.files:
        yield "the payload has no Files"
    yield from _of_content(payload, found)


def _of_content(payload: ReviewPayload, found: re.Match[str] | None) -> Iterator[str]:
    if payload.content is None:
        if payload.ask != "fyi":
            yield "the payload has no content in a fenced block; paths alone are enough only where Ask is fyi"
        return
    if found is not None and found[2] != (right := digest_digits(payload.content)):
        yield f"the Revision says h{found[2]}, and the content is h{right}: changed content needs a new token"
    if found is not None and found[3] and not 1 <= int(found[3]) <= int(found[4]):
        yield f"there is no part {found[3]} of {found[4]}"
    size, lines = len(payload.content.encode()), payload.content.rstrip("\n").count("\n") + 1
    if size > BYTES or lines > LINES:
        yield (
            f"the content has {size:,} bytes in {lines:,} lines, and a block holds {BYTES:,} bytes and {LINES} lines: "
            "send it in parts whose Revisions end in -p1ofN … -pNofN"
        )


def payload_refusal(payload: ReviewPayload | None) -> AofError | None:
    """Why a message that asks for a review cannot be sent with this."""
    first = "paths alone are no review" if payload is None else next(payload_defects(payload), None)
    if first is None:
        return None
    return MalformedPayload(first, f"put this block into the body, or give the content as 'payload':\n{_BLOCK}")


def echo_refusal(payload: ReviewPayload, reason: str, others: Iterable[ReviewPayload]) -> AofError | None:
    """The refusal of an answer to a payload that does not repeat its revision, or while parts are missing."""
    if RESEND in reason:
        return None
    named = _WORD.findall(reason)
    if payload.revision not in named:
        instead = f"it names {named[0]}" if named else "it names none"
        return RevisionMismatch(
            f"the answer to a payload repeats its revision, and {instead}",
            f"begin the reason with {payload.revision}; where the payload is malformed, with {RESEND}",
        )
    if payload.part is None:
        return None
    there = {other.part[0] for other in (payload, *others) if other.root == payload.root and other.part is not None}
    missing = [str(number) for number in range(1, payload.part[1] + 1) if number not in there]
    if not missing:
        return None
    return MissingPart(
        f"of {payload.root} part {', '.join(missing)} of {payload.part[1]} is missing",
        f"wait for it, or answer with {RESEND}",
    )


_REFERENCE: Final = re.compile(r"\b[A-Z]{2,}-[A-Za-z0-9-]*[0-9]")


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """What a sender gives; what is None is left to the rules. `payload` is what was found in the body."""

    sender: str = ""
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


def message_to_send(mail: Mail, policy: Policy, number: int, now: int) -> MailMessage | AofError:
    """The message that is sent, or why it is not."""
    if problem := _wording(mail) or unknown_receiver(policy, "from", mail.sender):
        return problem
    receiver = resolved(mail.receiver, policy)
    if isinstance(receiver, AofError):
        return receiver
    owner, due = _closure_owner(mail, policy), _due(mail)
    if isinstance(owner, AofError):
        return owner
    if isinstance(due, AofError):
        return due
    if problem := _incomplete(mail):
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
        fields={} if mail.related is None else {"Related": mail.related.strip()},
    )


def _wording(mail: Mail) -> AofError | None:
    if problem := kernel_limits.name("from", mail.sender):
        return problem
    if is_group(mail.sender):
        what = f"'{mail.sender}' stands for several and sends no mail"
        return InvalidInput(what, "give the name of an agent as 'from'")
    return (
        kernel_limits.choice("type", mail.type, MAIL_TYPES)
        or kernel_limits.choice("priority", mail.priority, PRIORITIES)
        or kernel_limits.choice("review scope", mail.review_scope, SCOPES)
        or kernel_limits.line("subject", mail.subject, SUBJECT, required=True)
        or kernel_limits.text("body", mail.body, BODY)
        or kernel_limits.line("related", mail.related, kernel_limits.ITEM)
    )


def _incomplete(mail: Mail) -> AofError | None:
    """Why an objection names nothing, or a request for a review has nothing to review."""
    if mail.type == "objection" and not (mail.related or _REFERENCE.search(f"{mail.subject}\n{mail.body}")):
        return InvalidInput(
            "an objection must name what it objects to",
            "give the message, task or proposal as 'related', such as MSG-20260221-001",
        )
    asks = mail.payload is not None or mail.review_scope != NONE
    return payload_refusal(mail.payload) if asks else None


def _closure_owner(mail: Mail, policy: Policy) -> str | AofError:
    """The sender unless it says otherwise; nobody only where no answer is expected."""
    owner = mail.closure_owner
    if owner in (None, "sender", mail.sender):
        return mail.sender
    if owner == MAINTAINER or owner in policy.maintainers:
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
    ended = sum(begun > sent for begun in turns)
    windows = {message.priority} & _TURNS.keys() | ({"P1"} if message.response_needed_by == NEXT_SESSION else set())
    due = moment(message.response_needed_by)
    missed = next((tier for tier in sorted(windows) if ended >= _TURNS[tier]), None)
    if missed is None and due is not None and now > due:
        missed = "due date"
    if missed is None:
        return None
    by_date = message.type == "decision-required" and missed == "due date"
    return OverdueMail(message.message_id, agent, missed, escalates=by_date or message.priority in _TURNS)


class InboxRow(msgspec.Struct, frozen=True):
    """One agent's row: how many messages it has not acknowledged, the oldest of them, and the earliest due time."""

    agent: str
    unread: int = 0
    oldest_unread: str = NONE
    needs_response_by: str = NONE


def inbox(messages: Sequence[MailMessage], policy: Policy, known: Iterable[str] = ()) -> tuple[InboxRow, ...]:
    """A row for everybody. The messages are newest first; `known` are names that the table already has."""
    parties: dict[str, None] = {}  # everybody that messages are from or for, in the order of the messages
    for message in messages:
        parties[message.receiver] = parties[message.sender] = None
    everybody = roster(policy, (*known, *filter(None, parties)))
    waiting: dict[str, list[MailMessage]] = {name: [] for name in everybody}
    for message in messages:
        if message.status != "unread":
            continue
        if message.receiver in waiting:  # most mail is for one agent, and groups have no row
            waiting[message.receiver].append(message)
            continue
        for agent in members(message, policy, everybody):
            if agent in waiting and not (is_group(message.receiver) and message.acknowledged_by(agent)):
                waiting[agent].append(message)
    return tuple(
        InboxRow(agent, len(unread), unread[-1].message_id, _earliest({one.response_needed_by for one in unread}))
        if unread
        else InboxRow(agent)
        for agent, unread in waiting.items()
    )


def _earliest(due: set[str]) -> str:
    """The earliest of the times that messages name."""
    dates = sorted((when, text) for text in due - {NONE} if (when := moment(text)) is not None)
    return dates[0][1] if dates else NEXT_SESSION if NEXT_SESSION in due else NONE


class Inboxes:
    """The same kept from one change to the next, for messages that all have IDs of their own, newest first.

    `agents` are all that have a row, and everybody that a message is from or for is one of them.
    """

    def __init__(self, messages: Sequence[MailMessage], policy: Policy, agents: Iterable[str]) -> None:
        self._policy = policy
        self._waiting: dict[str, dict[str, str]] = {agent: {} for agent in agents}  # oldest first, with due times
        for message in reversed(messages):
            self.put(message)

    def knows(self, message: MailMessage) -> bool:
        """Whether the message is from and for somebody with a row. Mail for all is also for everybody who gets one."""
        return all(not name or is_group(name) or name in self._waiting for name in (message.sender, message.receiver))

    def put(self, message: MailMessage) -> tuple[InboxRow, ...]:
        """Count a message that is the newest, or not what it was; the rows of those whom it concerns."""
        meant = members(message, self._policy, self._waiting)
        return tuple(self._put(message, agent) for agent in dict.fromkeys(meant) if agent in self._waiting)

    def _put(self, message: MailMessage, agent: str) -> InboxRow:
        unread = self._waiting[agent]
        if is_unread_by(message, agent, self._policy, self._waiting):
            unread[message.message_id] = message.response_needed_by
        else:
            unread.pop(message.message_id, None)
        if not unread:
            return InboxRow(agent)
        return InboxRow(agent, len(unread), next(iter(unread)), _earliest(set(unread.values())))


def escalation_notice(message: MailMessage, text: str, policy: Policy, number: int, now: int) -> MailMessage:
    """What the maintainers are told of a message that is escalated."""
    return MailMessage(
        message_id=message_id(day(now), number),
        sender=OURSELVES,
        receiver=MAINTAINER if len(policy.maintainers) > 1 else policy.maintainers[0],
        date=iso(now),
        type="decision-required",
        priority="P0",
        status="unread",
        subject=text[:SUBJECT],
        closure_owner=MAINTAINER,
        review_scope=NONE,
        response_needed_by=NEXT_SESSION,
        body=f"{text}.\n\nDecide: send it to somebody else, send it again, close it, or answer it yourself.",
        fields={"Related": message.message_id},
    )
