"""Operations about mail: send, read, answer, close, check. Must not know which store or surface is in use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import UNSET, UnsetType

from aof.documents import mail_rules, mail_service, mailbox, reading
from aof.documents.charter import PATH as CHARTER
from aof.documents.mail_cards import CLOSED
from aof.documents.mail_rules import MailMessage, OverdueMail
from aof.documents.mailbox import opened
from aof.errors import AofError, Call, InvalidInput, MessageNotFound
from aof.kernel.declarations import Cursor, Reason, param
from aof.kernel.findings import DocumentFinding
from aof.kernel.model import day
from aof.kernel.operation import Family, Spelling, method, operation
from aof.kernel.results import Result
from aof.org import rights
from aof.queries import read_models
from aof.store import port
from aof.store.lists import DictAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext
    from aof.kernel.model import Policy


class MailboxExport(DictAnswer):
    """The mailbox as JSON for programs, in the names of its format."""

    __slots__ = ()

    @property
    def format_version(self) -> str:
        """The version of the format."""
        return str(self["format_version"])

    @property
    def inbox_snapshot(self) -> list[dict[str, Any]]:
        """What each agent has not read."""
        inbox_snapshot: list[dict[str, Any]] = self["inbox_snapshot"]
        return inbox_snapshot

    @property
    def open_queue(self) -> list[dict[str, Any]]:
        """The open messages, row by row."""
        open_queue: list[dict[str, Any]] = self["open_queue"]
        return open_queue

    @property
    def active_messages(self) -> list[dict[str, Any]]:
        """The open messages as they are, card by card."""
        active_messages: list[dict[str, Any]] = self["active_messages"]
        return active_messages

    @property
    def closed_summary(self) -> list[dict[str, Any]]:
        """The closed messages."""
        closed_summary: list[dict[str, Any]] = self["closed_summary"]
        return closed_summary


class SentMail(Result, frozen=True, kw_only=True):
    """The message that was sent."""

    message_id: str


class Inbox(Result, frozen=True, kw_only=True):
    """What an agent has not acknowledged yet, newest first."""

    agent: str
    unread: int
    messages: tuple[MailMessage, ...]
    next_cursor: str | UnsetType = UNSET


class LeftOver(Result, frozen=True, kw_only=True):
    """What an agent leaves behind at the end of its turn: what it has not acknowledged, and what it has to close."""

    unread: tuple[str, ...] = ()
    to_close: tuple[str, ...] = ()


class Mails(Result, frozen=True, kw_only=True):
    """Messages, newest first, and those that were not acknowledged in time."""

    total: int
    messages: tuple[MailMessage, ...]
    overdue: tuple[OverdueMail, ...]
    next_cursor: str | UnsetType = UNSET


class MailReport(Result, frozen=True, kw_only=True):
    """What is wrong with a mailbox. Warnings alone leave it in order."""

    ok: bool
    problems: tuple[DocumentFinding, ...]


class ArchivedMail(Result, frozen=True, kw_only=True):
    """The messages whose rows were removed from the closed summary."""

    total: int
    message_ids: tuple[str, ...]


Agent = Annotated[str, param("who acts (default: the caller)", Spelling(metavar="A"))]
Revision = Annotated[str, param("revision of the payload that this answers", Spelling(metavar="REV"))]


_MILLISECONDS_PER_DAY = 86_400_000


_FAMILY = Family(
    verb="mail",
    help="leave a message for an agent, read and answer your own, or check the mailbox",
    example='aof mail send --from ada --to bob --subject "Which port?" --priority P1',
    place="message, or with check: file to read instead of the mailbox",
    section="team",
    order=25,
)
_mail = partial(operation, family=_FAMILY, tier="mail")
_Message = Annotated[str, param("message", Spelling(place="[ID]", target="place"))]


@_mail(
    effect="append",
    example='aof mail send --from ada --to bob --subject "Which port?"',
    worker=True,
    tool_shows=("to", "subject", "body", "type", "priority", "related", "payload", "actor"),
    tool_example=(("body", "The staging key has expired. Which one replaces it?"),),
    acts="from_agent",
    shows_defaults=("body", "type", "priority", "review_scope", "format", "ask"),
)
def mail_send(
    context: CallContext,
    to: Annotated[str, param("receiver: an agent, role:NAME, maintainer or all", Spelling(metavar="B"))],
    subject: Annotated[str, param("what it is about, on one line", Spelling(metavar="S"))],
    body: Annotated[
        str, param("the message", Spelling(option="--text", metavar="T", stdin=True, also=("--body",)))
    ] = "",
    *,
    from_agent: Annotated[str, param("sender (default: the caller)", Spelling(option="--from", metavar="A"))]
    | None = None,
    type: Annotated[  # noqa: A002 - the word of the card
        Literal["notify", "request", "decision-required", "objection", "handoff-ready"], param("what it asks for")
    ] = "request",
    priority: Annotated[
        Literal["P0", "P1", "P2"],
        param("acknowledged by the end of the receiver's next turn (P0), of the turn after it (P1), or whenever (P2)"),
    ] = "P2",
    related: Annotated[str, param("message, task or proposal that it refers to", Spelling(metavar="REF"))]
    | None = None,
    closure_owner: Annotated[str, param("who is reminded to close it: the sender, or maintainer")] | None = None,
    review_scope: Annotated[
        Literal["full", "critical-only", "interface-only", "none"], param("how much of the payload is to be reviewed")
    ] = "none",
    needed_by: Annotated[str, param("time, 'next session' or 'none'", Spelling(metavar="WHEN"))] | None = None,
    payload: Annotated[str, param("content to review", Spelling(metavar="T", stdin=True))] | None = None,
    format: Annotated[  # noqa: A002 - the word of the payload
        Literal["full-text", "unified-diff"], param("what the payload is")
    ] = "full-text",
    ask: Annotated[
        Literal["apply-or-counter", "review-only", "fyi"], param("what to do with the payload")
    ] = "review-only",
    files: Annotated[Sequence[str], param("file that the payload is about", Spelling(option="--file"))] = (),
    topic: Annotated[str, param("topic in the payload's revision (default: the subject)")] | None = None,
    part: Annotated[str, param("which part of the payload this is, such as 1/3", Spelling(metavar="N/M"))]
    | None = None,
) -> SentMail:
    """Leave a message for an agent, a role, the maintainer or all."""
    mail = mail_rules.Mail(
        receiver=to,
        subject=subject,
        type=type,
        priority=priority,
        body=body,
        related=related,
        closure_owner=closure_owner,
        review_scope=review_scope,
        response_needed_by=needed_by,
    )
    command = mail_service.SendMail(
        actor=context.actor,
        agent=from_agent,
        mail=mail,
        content=payload,
        format=format,
        ask=ask,
        files=tuple(files),
        topic=topic,
        part=_part(part),
    )
    done = context.dispatch(command)
    return SentMail(message_id=done.events[0].payload["messageId"])


@_mail(effect="read", example="aof mail inbox --agent bob", worker=True)
def mail_inbox(
    context: CallContext,
    *,
    agent: Annotated[str, param("whose mail (default: the caller's)", Spelling(metavar="A"))] | None = None,
    limit: Annotated[int, param("at most this many", ge=0)] | None = None,
    cursor: Cursor | None = None,
) -> Inbox:
    """Messages that an agent has not acknowledged yet."""
    name = agent or context.actor
    policy = reading.policy_of(context.environment)
    box = opened(_text(context))
    everybody = (*mail_service.everybody_in(box, policy), name)
    unread = [
        (place, head)
        for place, head in zip(box.outline.cards, box.heads, strict=True)
        if mail_rules.is_unread_by(head, name, policy, everybody)
    ]
    page, following = read_models.paged(
        "mail_inbox", unread, lambda one: _numbered(one[1]), limit=limit, cursor=cursor, newest_first=True
    )
    shown = tuple(box.card(place).message for place, _ in page)
    return Inbox(agent=name, unread=len(unread), messages=shown, next_cursor=following or UNSET)


@method
def turn_began(context: CallContext, agent: str, channel: str) -> Inbox:
    """A turn of the agent begins, and this is its mail. Without a mailbox nothing is recorded."""
    try:
        inbox = mail_inbox(context, agent=agent)
    except AofError:  # who cannot get its mail can still work
        return Inbox(agent=agent, unread=0, messages=())
    if _speaks_for(context, agent, reading.policy_of(context.environment)):
        mail_service.turn_began(context.environment, agent, channel)
    return inbox


@method
def turn_ended(context: CallContext, agent: str, channel: str) -> LeftOver:
    """The turn of the agent is over; what it has still to do about mail."""
    policy = reading.policy_of(context.environment)
    try:
        texts = reading.texts(context.environment, mail_rules.DOCUMENT, mail_rules.PATH, CHARTER, policy=policy)
        text = texts[mail_rules.PATH]
        found = mail_service.left_over(opened(text), agent, policy) if text else []
        counts = any(texts.values())
    except AofError:  # the turn ends all the same
        found, counts = [], True
    if counts and _speaks_for(context, agent, policy):
        mail_service.turn_ended(context.environment, agent, channel)
    unread, unclosed = (
        tuple(one.detail.partition(" ")[0] for one in found if one.code == code)
        for code in (mail_service.UNREAD, mail_service.UNCLOSED)
    )
    return LeftOver(unread=unread, to_close=unclosed)


def _speaks_for(context: CallContext, agent: str, policy: Policy) -> bool:
    """Whether the caller may say that somebody's turn begins or ends."""
    name = context.actor
    trusted = context.principal.known is not None and context.principal.known.trusted
    return trusted or not policy.binds or name == agent or rights.may_act_for(policy, name, agent, None)


@_mail(
    effect="write",
    example='aof mail ack MSG-20260221-001 --agent bob --reason "will do"',
    worker=True,
    tool_shows=("message_id", "reason", "agent", "actor"),
    acts="agent",
    always=("reason",),
)
def mail_ack(
    context: CallContext,
    message_id: _Message,
    reason: Reason = "",
    *,
    agent: Agent | None = None,
    revision: Revision | None = None,
) -> MailMessage:
    """Acknowledge a message, or go on with a blocked one; only its receiver does."""
    return _moved(context, message_id, "acknowledged", reason, agent, revision=revision)


@_mail(
    effect="write",
    example='aof mail action MSG-20260221-001 --agent bob --reason "port 8080"',
    acts="agent",
    always=("reason",),
)
def mail_action(
    context: CallContext,
    message_id: _Message,
    reason: Reason = "",
    *,
    agent: Agent | None = None,
    revision: Revision | None = None,
) -> MailMessage:
    """Say that what a message asks for is done; only its receiver does."""
    return _moved(context, message_id, "actioned", reason, agent, revision=revision)


@_mail(
    effect="write",
    example='aof mail block MSG-20260221-001 --agent bob --reason "waits for TASK-2026-02-21-004"',
    acts="agent",
    always=("reason",),
)
def mail_block(
    context: CallContext,
    message_id: _Message,
    reason: Annotated[str, param("what it waits for", Spelling(metavar="T"))] = "",
    *,
    agent: Agent | None = None,
) -> MailMessage:
    """Say what an acknowledged message waits for; only its receiver does."""
    return _moved(context, message_id, "blocked", reason, agent)


@_mail(
    effect="write",
    example="aof mail close MSG-20260221-001 --agent ada --disposition resolved --reason thanks",
    acts="agent",
    always=("disposition", "reason"),
)
def mail_close(
    context: CallContext,
    message_id: _Message,
    *,
    disposition: Annotated[
        Literal["resolved", "superseded", "withdrawn", "abandoned", "deferred"],
        param("how it ends; deferred leaves it open, and its reason is the condition that ends the wait"),
    ]
    | None = None,
    reason: Reason = "",
    agent: Agent | None = None,
) -> MailMessage:
    """Close a message and archive it; only its sender or a maintainer does."""
    return _moved(context, message_id, "closed", reason, agent, disposition=disposition)


@_mail(
    effect="write",
    example='aof mail escalate MSG-20260221-001 --agent ada --reason "no answer for a week"',
    acts="agent",
    always=("reason",),
)
def mail_escalate(
    context: CallContext,
    message_id: _Message,
    reason: Reason = "",
    *,
    agent: Agent | None = None,
) -> MailMessage:
    """Tell the WORKLOG and the maintainer that a message got no answer; only its sender or a maintainer does."""
    command = mail_service.EscalateMail(
        actor=context.actor, agent=agent, message_id=_resolved(message_id), reason=reason
    )
    context.dispatch(command)
    return _message(context, message_id)


@_mail(effect="read", example="aof mail list --from ada", shows_defaults=("closed",))
def mail_list(
    context: CallContext,
    *,
    agent: Annotated[str, param("only from or for this agent", Spelling(metavar="A"))] | None = None,
    from_agent: Annotated[str, param("only from this agent", Spelling(option="--from", metavar="A"))] | None = None,
    to: Annotated[str, param("only for this receiver", Spelling(metavar="B"))] | None = None,
    status: Annotated[Literal["unread", "acknowledged", "blocked", "actioned", "closed"], param("only in this status")]
    | None = None,
    closed: Annotated[bool, param("closed ones too, as the closed summary has them")] = False,
    limit: Annotated[int, param("at most this many", ge=0)] | None = None,
    cursor: Cursor | None = None,
) -> Mails:
    """Open messages of everybody, and those that are overdue."""
    policy = reading.policy_of(context.environment)
    text = _text(context)
    box = opened(text)
    found = [box.card(place).message for place in box.outline.cards]
    if closed or status == "closed":
        table = box.table(CLOSED)
        found += [mail_service.closed_message(row.cells) for row in (table.rows if table is not None else ())]
    everybody = mail_service.everybody_in(box, policy)
    kept = tuple(
        one
        for one in found
        if from_agent in (None, one.sender)
        and to in (None, one.receiver)
        and status in (None, one.status)
        and (agent is None or agent == one.sender or agent in mail_rules.members(one, policy, everybody))
    )
    late = tuple(mail_service.overdue(context.environment, policy, text))
    ordered = sorted(kept, key=_numbered, reverse=True) if limit is not None or cursor is not None else kept
    page, following = read_models.paged("mail_list", ordered, _numbered, limit=limit, cursor=cursor, newest_first=True)
    return Mails(total=len(kept), messages=page, overdue=late, next_cursor=following or UNSET)


@_mail(effect="read", example="aof mail show MSG-20260221-001")
def mail_show(context: CallContext, message_id: _Message) -> MailMessage:
    """One message with its body and acknowledgements, also when it is closed."""
    return _message(context, message_id)


@_mail(effect="read", example="aof mail check", shows_defaults=("turn_end",))
def mail_check(
    context: CallContext,
    *,
    text: Annotated[
        str,
        param("text of a mailbox, instead of the one of the data directory", Spelling(place="[FILE]", target="place")),
    ]
    | None = None,
    turn_end: Annotated[bool, param("also what an agent must not leave behind at the end of its turn")] = False,
    agent: Annotated[str, param("whose turn ends (default: the caller's)", Spelling(metavar="A"))] | None = None,
) -> MailReport:
    """What is wrong with the mailbox, by line; changes nothing."""
    policy = reading.policy_of(context.environment)
    found = mail_service.mailbox_problems(context.environment, policy, text)
    if turn_end:
        name = agent or context.actor
        found += mail_service.left_over(opened(_text(context)), name, policy)
    return MailReport(ok=all(one.severity == "warning" for one in found), problems=tuple(found))


@_mail(effect="write", example="aof mail archive --days 30", tier="all", acts="agent", shows_defaults=("days",))
def mail_archive(
    context: CallContext,
    *,
    days: Annotated[int, param("only those closed at least so many days ago", Spelling(metavar="N"), ge=0)] = 7,
    agent: Agent | None = None,
) -> ArchivedMail:
    """Remove old rows from the closed summary; only a maintainer does."""
    if days < 0:
        raise InvalidInput("'days' must not be negative", "give a number such as 7", Call("mail_archive", {}))
    before = day(context.environment.clock.now() - days * _MILLISECONDS_PER_DAY)
    command = mail_service.ArchiveMail(actor=context.actor, agent=agent, before=before)
    done = context.dispatch(command)
    ids = tuple(one for event in done.events for one in event.payload["messageIds"])
    return ArchivedMail(total=len(ids), message_ids=ids)


@_mail(effect="read", example="aof mail export")
def mail_export(context: CallContext) -> MailboxExport:
    """The mailbox as JSON for programs."""
    return MailboxExport(mailbox.mailbox_json(opened(_text(context))))


def _moved(
    context: CallContext,
    message_id: str,
    target: mail_rules.Target,
    reason: str,
    agent: str | None,
    *,
    disposition: str | None = None,
    revision: str | None = None,
) -> MailMessage:
    full = _resolved(message_id)
    unanswered = None
    if disposition == "abandoned":
        unanswered = mail_service.unanswered(context.environment, _message(context, full))
    context.dispatch(
        mail_service.ChangeMail(
            actor=context.actor,
            agent=agent,
            message_id=full,
            target=target,
            reason=reason,
            disposition=disposition,
            revision=revision,
            unanswered=unanswered,
        )
    )
    return _found(context, full)


def _message(context: CallContext, message_id: str) -> MailMessage:
    """A message from the mailbox, else from the archive."""
    reading.texts(context.environment, mail_rules.DOCUMENT)
    return _found(context, _resolved(message_id))


def _found(context: CallContext, full: str) -> MailMessage:
    """The message, once the files have caught up."""
    with context.environment.store.unit(port.Scope()) as unit:
        found = mail_service.message_in(opened(unit.document(mail_rules.PATH)), full)
        if isinstance(found, AofError) and not isinstance(found, MessageNotFound):
            raise found
        if isinstance(found, MailMessage) and found.is_open:
            return found
        archived = mail_service.archived_message(unit.document(mail_rules.ARCHIVE), full)
    if archived is not None:
        return archived
    if isinstance(found, AofError):
        raise found
    return found


def _resolved(message_id: str) -> str:
    """The whole ID, of which `MSG-` may be left out."""
    return message_id if message_id.startswith("MSG") else f"MSG-{message_id}"


def _text(context: CallContext) -> str:
    return reading.texts(context.environment, mail_rules.DOCUMENT, mail_rules.PATH)[mail_rules.PATH]


def _numbered(message: MailMessage) -> tuple[str, ...]:
    """The place of a message in the order of their numbers."""
    day, _, number = message.message_id.removeprefix("MSG-").partition("-")
    return day, number.zfill(9)


def _part(text: str | None) -> tuple[int, int] | None:
    """Which part of how many, from a text such as 1/3."""
    if text is None:
        return None
    number, _, total = text.partition("/")
    if not (number.isascii() and number.isdigit() and total.isascii() and total.isdigit()):
        raise InvalidInput(f"'{text[:40]}' is no part", "give it as in 1/3")
    return int(number), int(total)
