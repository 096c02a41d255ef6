"""Operations about mail: send, read, answer, close, check. Must not know which store or surface is in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, UnsetType

from aof.documents import mail_rules, mail_service, mailbox, reading
from aof.documents.charter import PATH as CHARTER
from aof.documents.mail_cards import CLOSED, CardProblem
from aof.documents.mail_rules import MailMessage, OverdueMail
from aof.documents.mailbox import opened
from aof.errors import AofError, Call, InvalidInput, MessageNotFound
from aof.kernel.declarations import Cli, Cursor, Family, Operation, Params, Reason, Spelling, param
from aof.kernel.model import day
from aof.kernel.results import Result
from aof.org import rights
from aof.queries import read_models
from aof.store import port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import Environment, Principal
    from aof.kernel.dispatcher import Dispatcher
    from aof.kernel.model import Policy


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
    problems: tuple[CardProblem, ...]


class ArchivedMail(Result, frozen=True, kw_only=True):
    """The messages whose rows were removed from the closed summary."""

    total: int
    message_ids: tuple[str, ...]


_MAIL = Family(
    verb="mail",
    help="leave a message for an agent, read and answer your own, or check the mailbox",
    example='aof mail send --from ada --to bob --subject "Which port?" --priority P1',
    place="message, or with check: file to read instead of the mailbox",
)
_ORDER = 25

Agent = Annotated[str, param("who acts (default: the caller)", Spelling(metavar="A"))] | UnsetType
Revision = Annotated[str, param("revision of the payload that this answers", Spelling(metavar="REV"))] | UnsetType


class OnMessage(Params, frozen=True, kw_only=True):
    """Which message."""

    message_id: Annotated[str, param("message", Spelling(place="[ID]", target="place"))]


class MailSend(Params, frozen=True, kw_only=True):
    """A message, and what is to be reviewed."""

    to: Annotated[str, param("receiver: an agent, role:NAME, maintainer or all", Spelling(metavar="B"))]
    subject: Annotated[str, param("what it is about, on one line", Spelling(metavar="S"))]
    from_agent: Annotated[str, param("sender (default: the caller)", Spelling(option="--from", metavar="A"))] | (
        UnsetType
    ) = UNSET
    type: Annotated[
        Literal["notify", "request", "decision-required", "objection", "handoff-ready"], param("what it asks for")
    ] = "request"
    priority: Annotated[
        Literal["P0", "P1", "P2"],
        param("acknowledged by the end of the receiver's next turn (P0), of the turn after it (P1), or whenever (P2)"),
    ] = "P2"
    body: Annotated[str, param("the message", Spelling(option="--text", metavar="T", stdin=True, also=("--body",)))] = (
        ""
    )
    related: Annotated[str, param("message, task or proposal that it refers to", Spelling(metavar="REF"))] | (
        UnsetType
    ) = UNSET
    closure_owner: Annotated[str, param("who is reminded to close it: the sender, or maintainer")] | UnsetType = UNSET
    review_scope: Annotated[
        Literal["full", "critical-only", "interface-only", "none"], param("how much of the payload is to be reviewed")
    ] = "none"
    needed_by: Annotated[str, param("time, 'next session' or 'none'", Spelling(metavar="WHEN"))] | UnsetType = UNSET
    payload: Annotated[str, param("content to review", Spelling(metavar="T", stdin=True))] | UnsetType = UNSET
    format: Annotated[Literal["full-text", "unified-diff"], param("what the payload is")] = "full-text"
    ask: Annotated[Literal["apply-or-counter", "review-only", "fyi"], param("what to do with the payload")] = (
        "review-only"
    )
    files: Annotated[list[str], param("file that the payload is about", Spelling(option="--file"))] | UnsetType = UNSET
    topic: Annotated[str, param("topic in the payload's revision (default: the subject)")] | UnsetType = UNSET
    part: Annotated[str, param("which part of the payload this is, such as 1/3", Spelling(metavar="N/M"))] | (
        UnsetType
    ) = UNSET


class MailInbox(Params, frozen=True, kw_only=True):
    """Whose mail."""

    agent: Annotated[str, param("whose mail (default: the caller's)", Spelling(metavar="A"))] | UnsetType = UNSET
    limit: Annotated[int, param("at most this many", ge=0)] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class MailList(Params, frozen=True, kw_only=True):
    """Which messages."""

    agent: Annotated[str, param("only from or for this agent", Spelling(metavar="A"))] | UnsetType = UNSET
    from_agent: Annotated[str, param("only from this agent", Spelling(option="--from", metavar="A"))] | UnsetType = (
        UNSET
    )
    to: Annotated[str, param("only for this receiver", Spelling(metavar="B"))] | UnsetType = UNSET
    status: (
        Annotated[Literal["unread", "acknowledged", "blocked", "actioned", "closed"], param("only in this status")]
        | UnsetType
    ) = UNSET
    closed: Annotated[bool, param("closed ones too, as the closed summary has them")] = False
    limit: Annotated[int, param("at most this many", ge=0)] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class MailAnswer(OnMessage, frozen=True, kw_only=True):
    """An answer by the receiver."""

    reason: Reason
    agent: Agent = UNSET
    revision: Revision = UNSET


class MailBlock(OnMessage, frozen=True, kw_only=True):
    """What the receiver waits for."""

    reason: Annotated[str, param("what it waits for", Spelling(metavar="T"))]
    agent: Agent = UNSET


class MailClose(OnMessage, frozen=True, kw_only=True):
    """How a message is closed."""

    disposition: Annotated[
        Literal["resolved", "superseded", "withdrawn", "abandoned", "deferred"],
        param("how it ends; deferred leaves it open, and its reason is the condition that ends the wait"),
    ]
    reason: Reason
    agent: Agent = UNSET


class MailEscalate(OnMessage, frozen=True, kw_only=True):
    """Why a message is escalated."""

    reason: Reason
    agent: Agent = UNSET


class MailCheck(Params, frozen=True, kw_only=True):
    """What to check."""

    text: (
        Annotated[
            str,
            param(
                "text of a mailbox, instead of the one of the data directory", Spelling(place="[FILE]", target="place")
            ),
        ]
        | UnsetType
    ) = UNSET
    turn_end: Annotated[bool, param("also what an agent must not leave behind at the end of its turn")] = False
    agent: Annotated[str, param("whose turn ends (default: the caller's)", Spelling(metavar="A"))] | UnsetType = UNSET


class MailArchive(Params, frozen=True, kw_only=True):
    """Which closed messages."""

    days: Annotated[int, param("only those closed at least so many days ago", Spelling(metavar="N"), ge=0)] = 7
    agent: Agent = UNSET


def _cli(example: str) -> Cli:
    return Cli(section="team", order=_ORDER, example=example, family=_MAIL)


ROWS: tuple[Operation, ...] = (
    Operation(
        name="mail_send",
        parameters=MailSend,
        result=SentMail,
        help="Leave a message for an agent, a role, the maintainer or all.",
        effect="append",
        tool="aof_mail_send",
        verb="mail send",
        cli=_cli('aof mail send --from ada --to bob --subject "Which port?"'),
        tier="mail",
        worker=True,
        tool_shows=("to", "subject", "body", "type", "priority", "related", "payload", "actor"),
        example=(("body", "The staging key has expired. Which one replaces it?"),),
        acts="from_agent",
    ),
    Operation(
        name="mail_inbox",
        parameters=MailInbox,
        result=Inbox,
        help="Messages that an agent has not acknowledged yet.",
        effect="read",
        tool="aof_mail_inbox",
        verb="mail inbox",
        cli=_cli("aof mail inbox --agent bob"),
        tier="mail",
        worker=True,
    ),
    Operation(
        name="mail_ack",
        parameters=MailAnswer,
        result=MailMessage,
        help="Acknowledge a message, or go on with a blocked one; only its receiver does.",
        effect="write",
        tool="aof_mail_ack",
        verb="mail ack",
        cli=_cli('aof mail ack MSG-20260221-001 --agent bob --reason "will do"'),
        tier="mail",
        worker=True,
        tool_shows=("message_id", "reason", "agent", "actor"),
        acts="agent",
    ),
    Operation(
        name="mail_action",
        parameters=MailAnswer,
        result=MailMessage,
        help="Say that what a message asks for is done; only its receiver does.",
        effect="write",
        tool="aof_mail_action",
        verb="mail action",
        cli=_cli('aof mail action MSG-20260221-001 --agent bob --reason "port 8080"'),
        tier="mail",
        acts="agent",
    ),
    Operation(
        name="mail_block",
        parameters=MailBlock,
        result=MailMessage,
        help="Say what an acknowledged message waits for; only its receiver does.",
        effect="write",
        tool="aof_mail_block",
        verb="mail block",
        cli=_cli('aof mail block MSG-20260221-001 --agent bob --reason "waits for TASK-2026-02-21-004"'),
        tier="mail",
        acts="agent",
    ),
    Operation(
        name="mail_close",
        parameters=MailClose,
        result=MailMessage,
        help="Close a message and archive it; only its sender or a maintainer does.",
        effect="write",
        tool="aof_mail_close",
        verb="mail close",
        cli=_cli("aof mail close MSG-20260221-001 --agent ada --disposition resolved --reason thanks"),
        tier="mail",
        acts="agent",
    ),
    Operation(
        name="mail_escalate",
        parameters=MailEscalate,
        result=MailMessage,
        help="Tell the WORKLOG and the maintainer that a message got no answer; only its sender or a maintainer does.",
        effect="write",
        tool="aof_mail_escalate",
        verb="mail escalate",
        cli=_cli('aof mail escalate MSG-20260221-001 --agent ada --reason "no answer for a week"'),
        tier="mail",
        acts="agent",
    ),
    Operation(
        name="mail_list",
        parameters=MailList,
        result=Mails,
        help="Open messages of everybody, and those that are overdue.",
        effect="read",
        tool="aof_mail_list",
        verb="mail list",
        cli=_cli("aof mail list --from ada"),
        tier="mail",
    ),
    Operation(
        name="mail_show",
        parameters=OnMessage,
        result=MailMessage,
        help="One message with its body and acknowledgements, also when it is closed.",
        effect="read",
        tool="aof_mail_show",
        verb="mail show",
        cli=_cli("aof mail show MSG-20260221-001"),
        tier="mail",
    ),
    Operation(
        name="mail_check",
        parameters=MailCheck,
        result=MailReport,
        help="What is wrong with the mailbox, by line; changes nothing.",
        effect="read",
        tool="aof_mail_check",
        verb="mail check",
        cli=_cli("aof mail check"),
        tier="mail",
    ),
    Operation(
        name="mail_archive",
        parameters=MailArchive,
        result=ArchivedMail,
        help="Remove old rows from the closed summary; only a maintainer does.",
        effect="write",
        tool="aof_mail_archive",
        verb="mail archive",
        cli=_cli("aof mail archive --days 30"),
        acts="agent",
    ),
    Operation(
        name="mail_export",
        parameters=Params,
        result=dict[str, Any],
        help="The mailbox as JSON for programs.",
        effect="read",
        tool="aof_mail_export",
        verb="mail export",
        cli=_cli("aof mail export"),
        tier="mail",
    ),
)


_MILLISECONDS_PER_DAY = 86_400_000


class MailService:
    """Leaves messages for agents, and finds them."""

    def __init__(self, environment: Environment, principal: Principal, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._principal = principal
        self._dispatcher = dispatcher

    def mail_send(
        self,
        to: str,
        subject: str,
        body: str = "",
        *,
        from_agent: str | None = None,
        type: str = "request",  # noqa: A002 - the word of the card
        priority: str = "P2",
        related: str | None = None,
        closure_owner: str | None = None,
        review_scope: str = "none",
        needed_by: str | None = None,
        payload: str | None = None,
        format: str = "full-text",  # noqa: A002 - the word of the payload
        ask: str = "review-only",
        files: Sequence[str] = (),
        topic: str | None = None,
        part: str | None = None,
    ) -> SentMail:
        """Leave a message for an agent, a role, the maintainer or all."""
        command = mail_service.SendMail(
            actor=self._principal.actor,
            agent=from_agent,
            receiver=to,
            subject=subject,
            type=type,
            priority=priority,
            body=body,
            related=related,
            closure_owner=closure_owner,
            review_scope=review_scope,
            response_needed_by=needed_by,
            content=payload,
            format=format,
            ask=ask,
            files=tuple(files),
            topic=topic,
            part=_part(part),
        )
        done = self._dispatcher.dispatch(command)
        return SentMail(message_id=done.events[0].payload["messageId"])

    def mail_inbox(self, *, agent: str | None = None, limit: int | None = None, cursor: str | None = None) -> Inbox:
        """What an agent has still to acknowledge. Reading acknowledges nothing."""
        name = agent or self._principal.actor
        policy = self._policy()
        box = opened(self._text())
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

    def turn_began(self, agent: str, channel: str) -> Inbox:
        """A turn of the agent begins, and this is its mail. Without a mailbox nothing is recorded."""
        try:
            inbox = self.mail_inbox(agent=agent)
        except AofError:  # who cannot get its mail can still work
            return Inbox(agent=agent, unread=0, messages=())
        if self._speaks_for(agent, self._policy()):
            mail_service.turn_began(self._environment, agent, channel)
        return inbox

    def turn_ended(self, agent: str, channel: str) -> LeftOver:
        """The turn of the agent is over; what it has still to do about mail."""
        policy = self._policy()
        try:
            texts = reading.texts(self._environment, mail_rules.DOCUMENT, mail_rules.PATH, CHARTER, policy=policy)
            text = texts[mail_rules.PATH]
            found = mail_service.left_over(opened(text), agent, policy) if text else []
            counts = any(texts.values())
        except AofError:  # the turn ends all the same
            found, counts = [], True
        if counts and self._speaks_for(agent, policy):
            mail_service.turn_ended(self._environment, agent, channel)
        unread, unclosed = (
            tuple(one.detail.partition(" ")[0] for one in found if one.code == code)
            for code in (mail_service.UNREAD, mail_service.UNCLOSED)
        )
        return LeftOver(unread=unread, to_close=unclosed)

    def _speaks_for(self, agent: str, policy: Policy) -> bool:
        """Whether the caller may say that somebody's turn begins or ends."""
        name = self._principal.actor
        trusted = self._principal.known is not None and self._principal.known.trusted
        return trusted or not policy.binds or name == agent or rights.may_act_for(policy, name, agent, None)

    def mail_list(
        self,
        *,
        agent: str | None = None,
        from_agent: str | None = None,
        to: str | None = None,
        status: str | None = None,
        closed: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Mails:
        """All open messages, or those from or for somebody; everybody may read every message."""
        policy = self._policy()
        text = self._text()
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
        late = tuple(mail_service.overdue(self._environment, policy, text))
        ordered = sorted(kept, key=_numbered, reverse=True) if limit is not None or cursor is not None else kept
        page, following = read_models.paged(
            "mail_list", ordered, _numbered, limit=limit, cursor=cursor, newest_first=True
        )
        return Mails(total=len(kept), messages=page, overdue=late, next_cursor=following or UNSET)

    def mail_show(self, message_id: str) -> MailMessage:
        """One message with its body and all acknowledgements, also when it is closed."""
        return self._message(message_id)

    def mail_ack(
        self, message_id: str, reason: str = "", *, agent: str | None = None, revision: str | None = None
    ) -> MailMessage:
        """Acknowledge a message; of a blocked one, say that it goes on."""
        return self._moved(message_id, "acknowledged", reason, agent, revision=revision)

    def mail_action(
        self, message_id: str, reason: str = "", *, agent: str | None = None, revision: str | None = None
    ) -> MailMessage:
        """Say that what a message asks for is done."""
        return self._moved(message_id, "actioned", reason, agent, revision=revision)

    def mail_block(self, message_id: str, reason: str = "", *, agent: str | None = None) -> MailMessage:
        """Say what a message that was acknowledged waits for."""
        return self._moved(message_id, "blocked", reason, agent)

    def mail_close(
        self, message_id: str, *, disposition: str | None = None, reason: str = "", agent: str | None = None
    ) -> MailMessage:
        """Close a message, which moves it to the archive; a maintainer may also defer it."""
        return self._moved(message_id, "closed", reason, agent, disposition=disposition)

    def mail_escalate(self, message_id: str, reason: str = "", *, agent: str | None = None) -> MailMessage:
        """Tell the WORKLOG and the maintainer that a message got no answer."""
        command = mail_service.EscalateMail(
            actor=self._principal.actor, agent=agent, message_id=self._resolved(message_id), reason=reason
        )
        self._dispatcher.dispatch(command)
        return self._message(message_id)

    def mail_check(self, *, text: str | None = None, turn_end: bool = False, agent: str | None = None) -> MailReport:
        """What is wrong with the mailbox, by line: with itself, with the archive and with the log. Changes nothing."""
        policy = self._policy()
        found = mail_service.mailbox_problems(self._environment, policy, text)
        if turn_end:
            name = agent or self._principal.actor
            found += mail_service.left_over(opened(self._text()), name, policy)
        return MailReport(ok=all(one.severity == "warning" for one in found), problems=tuple(found))

    def mail_archive(self, *, days: int = 7, agent: str | None = None) -> ArchivedMail:
        """Remove rows of messages from the closed summary that were closed so many days ago; the archive keeps them."""
        if days < 0:
            raise InvalidInput("'days' must not be negative", "give a number such as 7", Call("mail_archive", {}))
        before = day(self._environment.clock.now() - days * _MILLISECONDS_PER_DAY)
        command = mail_service.ArchiveMail(actor=self._principal.actor, agent=agent, before=before)
        done = self._dispatcher.dispatch(command)
        ids = tuple(one for event in done.events for one in event.payload["messageIds"])
        return ArchivedMail(total=len(ids), message_ids=ids)

    def mail_export(self) -> dict[str, Any]:
        """The mailbox as JSON, for programs. The file is what counts; this is made from it."""
        return mailbox.mailbox_json(opened(self._text()))

    def _moved(
        self,
        message_id: str,
        target: mail_rules.Target,
        reason: str,
        agent: str | None,
        *,
        disposition: str | None = None,
        revision: str | None = None,
    ) -> MailMessage:
        full = self._resolved(message_id)
        unanswered = None
        if disposition == "abandoned":
            unanswered = mail_service.unanswered(self._environment, self._message(full))
        self._dispatcher.dispatch(
            mail_service.ChangeMail(
                actor=self._principal.actor,
                agent=agent,
                message_id=full,
                target=target,
                reason=reason,
                disposition=disposition,
                revision=revision,
                unanswered=unanswered,
            )
        )
        return self._found(full)

    def _message(self, message_id: str) -> MailMessage:
        """A message from the mailbox, else from the archive."""
        reading.texts(self._environment, mail_rules.DOCUMENT)
        return self._found(self._resolved(message_id))

    def _found(self, full: str) -> MailMessage:
        """The same, once the files have caught up."""
        with self._environment.store.unit(port.Scope()) as unit:
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

    def _resolved(self, message_id: str) -> str:
        """The whole ID, of which `MSG-` may be left out."""
        return message_id if message_id.startswith("MSG") else f"MSG-{message_id}"

    def _text(self) -> str:
        return reading.texts(self._environment, mail_rules.DOCUMENT, mail_rules.PATH)[mail_rules.PATH]

    def _policy(self) -> Policy:
        return reading.policy_of(self._environment)


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
