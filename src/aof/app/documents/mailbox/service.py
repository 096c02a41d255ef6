"""Operations about mail: send, read, answer, close, check. Must not know which store or surface is in use."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from aof.app.documents import reading
from aof.app.documents.mailbox import commands, examination, response_times
from aof.app.documents.mailbox.results import ArchivedMail, Inbox, LeftOver, MailReport, Mails, SentMail
from aof.app.queries import cursors
from aof.core.documents.mailbox import facts, lifecycle, receivers
from aof.core.documents.mailbox.message import MailMessage
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.mail import MessageNotFound
from aof.core.model.times import day
from aof.core.org import rights
from aof.documents.charter.projection import PATH as CHARTER
from aof.documents.mailbox import json_view
from aof.documents.mailbox.mailbox import opened
from aof.documents.mailbox.outline import CLOSED
from aof.ports import store as ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.context import Environment, Principal
    from aof.app.commands.dispatcher import Dispatcher
    from aof.core.model.policy import Policy

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
        command = commands.SendMail(
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
        everybody = (*commands.everybody_in(box, policy), name)
        unread = [
            (place, head)
            for place, head in zip(box.outline.cards, box.heads, strict=True)
            if receivers.is_unread_by(head, name, policy, everybody)
        ]
        page, following = cursors.paged(
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
            response_times.turn_began(self._environment, agent, channel)
        return inbox

    def turn_ended(self, agent: str, channel: str) -> LeftOver:
        """The turn of the agent is over; what it has still to do about mail."""
        policy = self._policy()
        try:
            texts = reading.texts(self._environment, facts.DOCUMENT, facts.PATH, CHARTER, policy=policy)
            text = texts[facts.PATH]
            found = examination.left_over(opened(text), agent, policy) if text else []
            counts = any(texts.values())
        except AofError:  # the turn ends all the same
            found, counts = [], True
        if counts and self._speaks_for(agent, policy):
            response_times.turn_ended(self._environment, agent, channel)
        unread, unclosed = (
            tuple(one.detail.partition(" ")[0] for one in found if one.code == code)
            for code in (examination.UNREAD, examination.UNCLOSED)
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
            found += [commands.closed_message(row.cells) for row in (table.rows if table is not None else ())]
        everybody = commands.everybody_in(box, policy)
        kept = tuple(
            one
            for one in found
            if from_agent in (None, one.sender)
            and to in (None, one.receiver)
            and status in (None, one.status)
            and (agent is None or agent == one.sender or agent in receivers.members(one, policy, everybody))
        )
        late = tuple(response_times.overdue(self._environment, policy, text))
        ordered = sorted(kept, key=_numbered, reverse=True) if limit is not None or cursor is not None else kept
        page, following = cursors.paged("mail_list", ordered, _numbered, limit=limit, cursor=cursor, newest_first=True)
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
        command = commands.EscalateMail(
            actor=self._principal.actor, agent=agent, message_id=self._resolved(message_id), reason=reason
        )
        self._dispatcher.dispatch(command)
        return self._message(message_id)

    def mail_check(self, *, text: str | None = None, turn_end: bool = False, agent: str | None = None) -> MailReport:
        """What is wrong with the mailbox, by line: with itself, with the archive and with the log. Changes nothing."""
        policy = self._policy()
        found = examination.problems(self._environment, policy, text)
        if turn_end:
            name = agent or self._principal.actor
            found += examination.left_over(opened(self._text()), name, policy)
        return MailReport(ok=all(one.severity == "warning" for one in found), problems=tuple(found))

    def mail_archive(self, *, days: int = 7, agent: str | None = None) -> ArchivedMail:
        """Remove rows of messages from the closed summary that were closed so many days ago; the archive keeps them."""
        if days < 0:
            raise InvalidInput("'days' must not be negative", "give a number such as 7", Call("mail_archive", {}))
        before = day(self._environment.clock.now() - days * _MILLISECONDS_PER_DAY)
        command = commands.ArchiveMail(actor=self._principal.actor, agent=agent, before=before)
        done = self._dispatcher.dispatch(command)
        ids = tuple(one for event in done.events for one in event.payload["messageIds"])
        return ArchivedMail(total=len(ids), message_ids=ids)

    def mail_export(self) -> dict[str, Any]:
        """The mailbox as JSON, for programs. The file is what counts; this is made from it."""
        return json_view.projected(opened(self._text()))

    def _moved(
        self,
        message_id: str,
        target: lifecycle.Target,
        reason: str,
        agent: str | None,
        *,
        disposition: str | None = None,
        revision: str | None = None,
    ) -> MailMessage:
        full = self._resolved(message_id)
        unanswered = None
        if disposition == "abandoned":
            unanswered = response_times.unanswered(self._environment, self._message(full))
        self._dispatcher.dispatch(
            commands.ChangeMail(
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
        reading.texts(self._environment, facts.DOCUMENT)
        return self._found(self._resolved(message_id))

    def _found(self, full: str) -> MailMessage:
        """The same, once the files have caught up."""
        with self._environment.store.unit(ports.Scope()) as unit:
            found = commands.message_in(opened(unit.document(facts.PATH)), full)
            if isinstance(found, AofError) and not isinstance(found, MessageNotFound):
                raise found
            if isinstance(found, MailMessage) and found.is_open:
                return found
            archived = commands.archived_message(unit.document(facts.ARCHIVE), full)
        if archived is not None:
            return archived
        if isinstance(found, AofError):
            raise found
        return found

    def _resolved(self, message_id: str) -> str:
        """The whole ID, of which `MSG-` may be left out."""
        return message_id if message_id.startswith("MSG") else f"MSG-{message_id}"

    def _text(self) -> str:
        return reading.texts(self._environment, facts.DOCUMENT, facts.PATH)[facts.PATH]

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
