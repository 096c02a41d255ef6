"""The commands about mail: each reads the mailbox under its lock, asks the rules, and says what is recorded.

Must not know any surface or store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from aof.app.documents.mailbox.worklog_entries import with_entries
from aof.core.documents import speakers
from aof.core.documents.mailbox import escalation, facts, lifecycle, receivers, sending
from aof.core.documents.mailbox import payload as payloads
from aof.core.documents.mailbox.message import BODY, Ack, MailMessage, number_of
from aof.core.errors.base import AofError, Call
from aof.core.errors.mail import MessageNotFound, MissingPart, NotCloser, UnreadableMessage
from aof.core.model.commands import Decide, NeedsOf, OnDocument
from aof.core.model.events import Draft
from aof.core.model.numbers import Numbers
from aof.core.model.policy import Policy
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.times import day, iso
from aof.core.validation import limits
from aof.documents.conflicts import anti_patterns
from aof.documents.escaping import plain
from aof.documents.mailbox import payload as blocks
from aof.documents.mailbox.body import trimmed
from aof.documents.mailbox.card import read
from aof.documents.mailbox.mailbox import Mailbox, opened
from aof.documents.mailbox.outline import CLOSED, cards_of
from aof.documents.projection import lock_of
from aof.documents.worklog import model as worklog
from aof.documents.worklog.parser import parse

LOCK = frozenset({lock_of(facts.DOCUMENT)})


class OnMailbox(OnDocument, frozen=True, kw_only=True):
    """A command about the mailbox, which is read under its lock."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The mailbox."""
        return Needs(names=LOCK, documents=frozenset({facts.PATH}))


class SendMail(OnMailbox, frozen=True, kw_only=True):
    """Leave a message for somebody. `content` is what is to be reviewed; else the body may hold a payload."""

    receiver: str
    type: str
    priority: str
    subject: str
    body: str = ""
    closure_owner: str | None = None
    review_scope: str = "none"
    response_needed_by: str | None = None
    related: str | None = None
    content: str | None = None
    format: str = "full-text"
    ask: str = "review-only"
    files: tuple[str, ...] = ()
    topic: str | None = None
    seq: str = "01"
    part: tuple[int, int] | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The mailbox, and the archive for its numbers; the WORKLOG where the message tells of a handoff."""
        own = _with_archive(OnMailbox.needs(self, known, needs))
        if self.type != "handoff-ready":
            return own
        names, paths = own.names | {lock_of(worklog.NAME)}, own.documents | {worklog.PATH, worklog.ARCHIVE}
        return msgspec.structs.replace(own, names=names, documents=paths)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The message under the next number of the day."""
        mail = self._mail(now)
        if isinstance(mail, AofError):
            return mail
        number = next_number(records.documents, records.numbers, now)
        message = sending.message(mail, records.policy, number, now)
        if isinstance(message, AofError):
            return message
        if refusal := speakers.refused(records.policy, self) or self._unposted(records, message):
            return refusal
        return Decision(drafts=(facts.sent(message),))

    def _unposted(self, records: Records, message: MailMessage) -> AofError | None:
        """Why a message cannot stand for a handoff: the WORKLOG has none of the sender that it refers to."""
        if self.type != "handoff-ready":
            return None
        texts = (records.documents[path] for path in (worklog.ARCHIVE, worklog.PATH))
        entries = [entry for text in texts for entry in parse(text).entries]
        said = "\n".join((message.subject, message.body, self.related or ""))
        if anti_patterns.handed_over(entries, self.acting, said):
            return None
        return MissingPart(
            f"{self.acting} has posted no handoff in the WORKLOG that this message refers to",
            "post it first, then name its ID or its task in the message",
            Call("worklog_add", {"type": "handoff.posted", "agent": self.acting, "subject": "…", "next_owner": "…"}),
        )

    def _mail(self, now: int) -> sending.Mail | AofError:
        if problem := limits.text("body", self.body, BODY) or limits.text("payload", self.content, BODY):
            return problem
        body = trimmed(plain(self.body))
        if self.content is not None:
            block = self._payload(now)
            if isinstance(block, AofError):
                return block
            body = f"{body}\n\n{blocks.block(block)}".strip("\n")
        return sending.Mail(
            sender=self.acting,
            receiver=self.receiver,
            type=self.type,
            priority=self.priority,
            subject=self.subject,
            body=body,
            closure_owner=self.closure_owner,
            review_scope=self.review_scope,
            response_needed_by=self.response_needed_by,
            related=self.related,
            payload=blocks.found_in(body),
        )

    def _payload(self, now: int) -> payloads.ReviewPayload | AofError:
        assert self.content is not None
        content = plain(self.content) + "\n"
        root = payloads.root(day(now), self.topic or self.subject, self.seq)
        found = payloads.ReviewPayload(
            revision=payloads.token(root, content, self.part),
            format=self.format,
            scope=self.review_scope,
            ask=self.ask,
            files=self.files,
            content=content,
        )
        return limits.items("files", self.files, limits.ITEMS, single_line=True) or payloads.refusal(found) or found


class ChangeMail(OnMailbox, frozen=True, kw_only=True):
    """Give a message another status. `unanswered` is how many turns an escalation of it has had no answer."""

    message_id: str
    target: str
    reason: str = ""
    disposition: str | None = None
    revision: str | None = None
    unanswered: int | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The mailbox; where a payload was malformed, also what became of an earlier one."""
        base = OnMailbox.needs(self, known, needs)
        return _with_archive(base) if payloads.RESEND in self.reason else base

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The change, with its line."""
        policy, box = records.policy, opened(records.documents[facts.PATH])
        found = message_in(box, self.message_id)
        if isinstance(found, AofError):
            return found
        if refusal := speakers.refused(policy, self):
            return refusal
        everybody = everybody_in(box, policy)
        standing = receivers.standing(found, self.acting, policy, everybody, unanswered=self.unanswered)
        reason = self._reason()
        change = lifecycle.move(found, self.target, self.acting, standing, reason=reason, disposition=self.disposition)
        if change is None:
            return Decision()
        if isinstance(change, AofError):
            return change
        if refusal := self._unechoed(box, found, reason):
            return refusal
        told = facts.changed(found, change, Ack(self.acting, iso(now), change.reason))
        return Decision(drafts=(told, *self._escalated(records, box, found, now)))

    def _reason(self) -> str:
        if self.revision is None or self.revision in self.reason:
            return self.reason
        return f"{self.revision} — {self.reason}"

    def _unechoed(self, box: Mailbox, message: MailMessage, reason: str) -> AofError | None:
        """Why this is no answer to the payload that the message carries."""
        if self.target not in ("acknowledged", "actioned") or message.status == "blocked":
            return None
        own = blocks.found_in(message.body)
        if own is None or own.content is None or any(own.revision in ack.reason for ack in message.acks):
            return None
        return payloads.echo(own, reason, payloads_in(box) if own.part is not None else ())

    def _escalated(self, records: Records, box: Mailbox, message: MailMessage, now: int) -> tuple[Draft, ...]:
        """What follows where a payload is malformed for the second time."""
        own = blocks.found_in(message.body) if payloads.RESEND in self.reason else None
        if own is None or not resent(box, records.documents[facts.ARCHIVE], message, own.root):
            return ()
        number = next_number(records.documents, records.numbers, now)
        return with_entries(escalation.of_payload(message, own.root, records.policy, number, now), now)


class EscalateMail(OnMailbox, frozen=True, kw_only=True):
    """Tell the WORKLOG and the maintainer of a message; its sender or a maintainer does that by hand."""

    message_id: str
    reason: str = ""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The mailbox, and the archive for its numbers."""
        return _with_archive(OnMailbox.needs(self, known, needs))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """An entry, and a message."""
        policy = records.policy
        found = message_in(opened(records.documents[facts.PATH]), self.message_id)
        if isinstance(found, AofError):
            return found
        if refusal := speakers.refused(policy, self) or limits.line(
            "reason", self.reason, limits.REASON, required=True
        ):
            return refusal
        if not found.is_open:
            return lifecycle.over(found)
        if self.acting != found.sender and self.acting not in policy.maintainers:
            return NotCloser(
                f"{found.message_id} is from {found.sender}, and {self.acting} cannot escalate it",
                f"only {found.sender} or a maintainer does",
                Call("mail_show", {"message_id": found.message_id}),
            )
        number = next_number(records.documents, records.numbers, now)
        drafts = escalation.by_hand(found, self.reason.strip(), policy, number, now)
        return Decision(drafts=with_entries(drafts, now))


class ArchiveMail(OnMailbox, frozen=True, kw_only=True):
    """Remove old rows of the closed summary; their messages are in the archive."""

    before: str

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The rows of messages that were closed before that day."""
        if refusal := speakers.refused(records.policy, self) or speakers.not_maintainer(
            records.policy, self, "archive mail"
        ):
            return refusal
        table = opened(records.documents[facts.PATH]).table(CLOSED)
        rows = table.rows if table is not None else ()
        today = day(now)
        old = tuple(
            row.cells[0] for row in rows if len(row.cells) > 1 and row.cells[1] < self.before and row.cells[1] < today
        )
        return Decision(drafts=(facts.archived(old),) if old else ())


def next_number(documents: dict[str, str], numbers: Numbers, now: int) -> int:
    """The next free number of the day, over active, closed and archived messages."""
    today = day(now)
    box, archive = opened(documents[facts.PATH]), documents[facts.ARCHIVE]
    active = (place.title for place in box.outline.cards)
    if not numbers.alone:
        every = (*active, *box.closed_ids, *(place.title for place in cards_of(archive)))
        return numbers.next({number_of(one, today) for one in every})
    last = max((number_of(one, today) for one in active), default=0)
    last = _last(box.text, "| ", today, last, lambda: box.closed_ids)
    return 1 + _last(archive, "### ", today, last, lambda: (place.title for place in cards_of(archive)))


def _last(text: str, begin: str, today: str, known: int, ids: Callable[[], Iterable[str]]) -> int:
    """The greatest number of the day; what only looks like an ID is looked at only where it would be greater."""
    found = re.findall(rf"\n{re.escape(begin)}MSG-{today.replace('-', '')}-([0-9]{{3,9}})\b", text)
    if max(map(int, found), default=0) <= known:
        return known
    return max([known, *(number_of(one, today) for one in ids())])


def message_in(box: Mailbox, message_id: str) -> MailMessage | AofError:
    """A message of the mailbox; of a closed one, what the closed summary says."""
    places = box.places(message_id)
    if len(places) > 1:
        return UnreadableMessage(
            f"{message_id} occurs {len(places)} times in {facts.PATH}",
            "give each card an ID of its own; see where they are",
            Call("mail_check", {}),
        )
    if places:
        card = box.card(places[0])
        if card.status_line is None or card.message.status not in (*lifecycle.ANSWERS, "closed"):
            return UnreadableMessage(
                f"the card of {message_id} has no status that can be read",
                "put that right in the file; see what is wrong with it",
                Call("mail_check", {}),
            )
        return card.message
    table = box.table(CLOSED)
    for row in table.rows if table is not None else ():
        if row.cells[:1] == (message_id,):
            return closed_message(row.cells)
    return MessageNotFound(
        f"there is no message {message_id[:80]!r}", "see which messages there are", Call("mail_list", {})
    )


def archived_message(archive: str, message_id: str) -> MailMessage | None:
    """A message of the archive, found without reading all of it."""
    start = archive.find(f"### {message_id}")
    for place in cards_of(archive[start:]) if start >= 0 else ():
        if place.title == message_id:
            return read(archive[start:][place.start : place.end]).message
    return None


def closed_message(cells: tuple[str, ...]) -> MailMessage:
    """What a row of the closed summary says of its message."""
    given = (*cells, "", "", "", "", "")
    sender, _, receiver = given[2].partition(" -> ")
    return MailMessage(
        message_id=given[0],
        sender=sender.strip(),
        receiver=receiver.strip(),
        date=given[1],
        type="",
        priority="",
        status="closed",
        subject="",
        closure_owner="",
        review_scope="",
        response_needed_by="",
        disposition=given[3] or None,
    )


def resent(box: Mailbox, archive: str, message: MailMessage, root: str) -> bool:
    """Whether an earlier message with a payload of that root was answered with the wish to have it again."""
    cards = [box.card(place).message for place in box.outline.cards]
    cards += [read(archive[place.start : place.end]).message for place in cards_of(archive) if root in archive]
    return any(
        one.message_id != message.message_id
        and any(payloads.RESEND in ack.reason for ack in one.acks)
        and (found := blocks.found_in(one.body)) is not None
        and found.root == root
        for one in cards
    )


def _with_archive(needs: Needs) -> Needs:
    return msgspec.structs.replace(needs, documents=needs.documents | {facts.ARCHIVE})


def payloads_in(box: Mailbox) -> list[payloads.ReviewPayload]:
    """The payloads of all cards."""
    found = (blocks.found_in(box.card(place).message.body) for place in box.outline.cards)
    return [one for one in found if one is not None]


def everybody_in(box: Mailbox, policy: Policy) -> tuple[str, ...]:
    """All names that the mailbox and the settings know."""
    return receivers.roster(policy, (*box.known_names, *(head.receiver for head in box.heads)))
