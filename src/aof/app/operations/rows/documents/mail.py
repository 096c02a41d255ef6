"""Operations about mail between agents. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, UnsetType

from aof.app.documents.mailbox.results import ArchivedMail, Inbox, MailReport, Mails, SentMail
from aof.app.operations.rows.fields import Cursor, Reason
from aof.app.operations.spec import Cli, Family, Operation, Params, Spelling, param
from aof.core.documents.mailbox.message import MailMessage

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
    cursor: Cursor = UNSET


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
    cursor: Cursor = UNSET


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
