"""The commands about mail, each decided under the mailbox's lock.

Overdue mail and its escalation; what is wrong with the mailbox and is repaired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from aof.documents import conflicts, hand_edits, mail_cards, mail_rules, mailbox, projection, reading, worklog_text
from aof.documents.charter import PATH as CHARTER
from aof.documents.mail_cards import CLOSED, cards_of, line_number, read_card, trimmed_body
from aof.documents.mail_rules import BODY, Ack, MailMessage, number_of
from aof.documents.mailbox import Mailbox, opened
from aof.documents.markdown import inline, plain_text
from aof.documents.projection import lock_of
from aof.documents.worklog_rules import posted
from aof.documents.worklog_text import parse_worklog
from aof.errors import AofError, Call, MessageNotFound, MissingPart, NotCloser, UnreadableMessage
from aof.kernel import limits as kernel_limits
from aof.kernel import unit_of_work
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, Numbers, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.findings import DocumentFinding
from aof.kernel.model import OURSELVES, Policy, day, iso
from aof.store import port
from aof.store.directory import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.documents.mail_rules import OverdueMail
    from aof.kernel.context import Environment
    from aof.kernel.events import Event


LOCK = frozenset({lock_of(mail_rules.DOCUMENT)})
_NUMBERED = frozenset({mail_rules.PATH, mail_rules.ARCHIVE})  # what the number of a new message depends on


class MailCommand(projection.DocumentCommand, frozen=True, kw_only=True):
    """A command about the mailbox. What cannot be found or read is refused before who may not speak."""

    document: ClassVar[str] = mail_rules.DOCUMENT
    reads: ClassVar[frozenset[str]] = _NUMBERED


class SendMail(MailCommand, frozen=True, kw_only=True):
    """Leave a message for somebody. `content` is what is to be reviewed; else the body may hold a payload."""

    mail: mail_rules.Mail
    content: str | None = None
    format: str = "full-text"
    ask: str = "review-only"
    files: tuple[str, ...] = ()
    topic: str | None = None
    seq: str = "01"
    part: tuple[int, int] | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The mailbox, and the archive for its numbers; the WORKLOG where the message tells of a handoff."""
        own = super().needs(known, needs)
        if self.mail.type != "handoff-ready":
            return own
        names, paths = own.names | {lock_of(worklog_text.NAME)}, {worklog_text.PATH, worklog_text.ARCHIVE}
        return msgspec.structs.replace(own, names=names, documents=own.documents | paths)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The message under the next number of the day."""
        mail = self._mail(now)
        if isinstance(mail, AofError):
            return mail
        number = next_number(records.documents, records.numbers, now)
        message = mail_rules.message_to_send(mail, records.policy, number, now)
        if isinstance(message, AofError):
            return message
        if refusal := projection.speaker_refusal(records.policy, self) or self._unposted(records, message):
            return refusal
        return Decision(drafts=(mail_rules.sent(message),))

    def _unposted(self, records: Records, message: MailMessage) -> AofError | None:
        """Why a message cannot stand for a handoff: the WORKLOG has none of the sender that it refers to."""
        if self.mail.type != "handoff-ready":
            return None
        texts = (records.documents[path] for path in (worklog_text.ARCHIVE, worklog_text.PATH))
        entries = [entry for text in texts for entry in parse_worklog(text).entries]
        said = "\n".join((message.subject, message.body, self.mail.related or ""))
        if conflicts.handed_over(entries, self.acting, said):
            return None
        return MissingPart(
            f"{self.acting} has posted no handoff in the WORKLOG that this message refers to",
            "post it first, then name its ID or its task in the message",
            Call("worklog_add", {"type": "handoff.posted", "agent": self.acting, "subject": "…", "next_owner": "…"}),
        )

    def _mail(self, now: int) -> mail_rules.Mail | AofError:
        if problem := kernel_limits.text("body", self.mail.body, BODY) or kernel_limits.text(
            "payload", self.content, BODY
        ):
            return problem
        body = trimmed_body(plain_text(self.mail.body))
        if self.content is not None:
            block = self._payload(now)
            if isinstance(block, AofError):
                return block
            body = f"{body}\n\n{mail_cards.payload_block(block)}".strip("\n")
        return msgspec.structs.replace(self.mail, sender=self.acting, body=body, payload=mail_cards.found_in(body))

    def _payload(self, now: int) -> mail_rules.ReviewPayload | AofError:
        assert self.content is not None
        content = plain_text(self.content) + "\n"
        root = mail_rules.token_root(day(now), self.topic or self.mail.subject, self.seq)
        found = mail_rules.ReviewPayload(
            revision=mail_rules.token(root, content, self.part),
            format=self.format,
            scope=self.mail.review_scope,
            ask=self.ask,
            files=self.files,
            content=content,
        )
        return (
            kernel_limits.items("files", self.files, kernel_limits.ITEMS, single_line=True)
            or mail_rules.payload_refusal(found)
            or found
        )


class ChangeMail(MailCommand, frozen=True, kw_only=True):
    """Give a message another status. `unanswered` is how many turns an escalation of it has had no answer."""

    message_id: str
    target: str
    reason: str = ""
    disposition: str | None = None
    revision: str | None = None
    unanswered: int | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The mailbox; where a payload was malformed, also what became of an earlier one."""
        own = super().needs(known, needs)
        only = frozenset({mail_rules.PATH})
        return own if mail_rules.RESEND in self.reason else msgspec.structs.replace(own, documents=only)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The change, with its line."""
        policy, box = records.policy, opened(records.documents[mail_rules.PATH])
        found = message_in(box, self.message_id)
        if isinstance(found, AofError):
            return found
        if refusal := projection.speaker_refusal(policy, self):
            return refusal
        everybody = everybody_in(box, policy)
        standing = mail_rules.standing(found, self.acting, policy, everybody, unanswered=self.unanswered)
        reason = self.reason
        if self.revision is not None and self.revision not in reason:
            reason = f"{self.revision} — {reason}"
        change = mail_rules.move_message(
            found, self.target, self.acting, standing, reason=reason, disposition=self.disposition
        )
        if change is None:
            return Decision()
        if isinstance(change, AofError):
            return change
        if refusal := self._unechoed(box, found, reason):
            return refusal
        told = mail_rules.changed(found, change, Ack(self.acting, iso(now), change.reason))
        return Decision(drafts=(told, *self._escalated(records, box, found, now)))

    def _unechoed(self, box: Mailbox, message: MailMessage, reason: str) -> AofError | None:
        """Why this is no answer to the payload that the message carries."""
        if self.target not in ("acknowledged", "actioned") or message.status == "blocked":
            return None
        own = mail_cards.found_in(message.body)
        if own is None or own.content is None or any(own.revision in ack.reason for ack in message.acks):
            return None
        bodies = (box.card(place).message.body for place in box.outline.cards) if own.part is not None else ()
        return mail_rules.echo_refusal(
            own, reason, [one for body in bodies if (one := mail_cards.found_in(body)) is not None]
        )

    def _escalated(self, records: Records, box: Mailbox, message: MailMessage, now: int) -> tuple[Draft, ...]:
        """What follows where a payload is malformed for the second time."""
        own = mail_cards.found_in(message.body) if mail_rules.RESEND in self.reason else None
        if own is None or not resent(box, records.documents[mail_rules.ARCHIVE], message, own.root):
            return ()
        number = next_number(records.documents, records.numbers, now)
        why = f"payload {own.root} was malformed twice"
        return escalation(message, message.receiver, why, records.policy, number, now)


class EscalateMail(MailCommand, frozen=True, kw_only=True):
    """Tell the WORKLOG and the maintainer of a message; its sender or a maintainer does that by hand."""

    message_id: str
    reason: str = ""

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """An entry, and a message."""
        policy = records.policy
        found = message_in(opened(records.documents[mail_rules.PATH]), self.message_id)
        if isinstance(found, AofError):
            return found
        if refusal := projection.speaker_refusal(policy, self) or kernel_limits.line(
            "reason", self.reason, kernel_limits.REASON, required=True
        ):
            return refusal
        if not found.is_open:
            return mail_rules.closed_refusal(found)
        if self.acting != found.sender and self.acting not in policy.maintainers:
            return NotCloser(
                f"{found.message_id} is from {found.sender}, and {self.acting} cannot escalate it",
                f"only {found.sender} or a maintainer does",
                Call("mail_show", {"message_id": found.message_id}),
            )
        number = next_number(records.documents, records.numbers, now)
        return Decision(drafts=escalation(found, found.receiver, self.reason.strip(), policy, number, now))


class ArchiveMail(MailCommand, frozen=True, kw_only=True):
    """Remove old rows of the closed summary; their messages are in the archive."""

    reads: ClassVar[frozenset[str]] = frozenset({mail_rules.PATH})
    before: str

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The rows of messages that were closed before that day."""
        if refusal := projection.speaker_refusal(records.policy, self) or projection.not_maintainer(
            records.policy, self, "archive mail"
        ):
            return refusal
        table = opened(records.documents[mail_rules.PATH]).table(CLOSED)
        rows = table.rows if table is not None else ()
        today = day(now)
        old = tuple(
            row.cells[0] for row in rows if len(row.cells) > 1 and row.cells[1] < self.before and row.cells[1] < today
        )
        return Decision(drafts=(mail_rules.archived(old),) if old else ())


def next_number(documents: dict[str, str], numbers: Numbers, now: int) -> int:
    """The next free number of the day, over active, closed and archived messages."""
    today = day(now)
    box, archive = opened(documents[mail_rules.PATH]), documents[mail_rules.ARCHIVE]
    if not numbers.alone:
        every = (place.title for place in (*box.outline.cards, *cards_of(archive)))
        return numbers.next({number_of(one, today) for one in (*every, *box.closed_ids)})
    last = box.highest_number(today)
    if _highest_archived(archive, today) > last:
        last = max([last, *(number_of(place.title, today) for place in cards_of(archive))])
    return 1 + last


_archive_seen = ("", "", 0)  # the text, the day that was asked for, and the number


def _highest_archived(archive: str, today: str) -> int:
    """The highest number of the day on lines that look like cards; of one that has grown, only the rest is read."""
    global _archive_seen  # noqa: PLW0603 - exchanged as a whole, so that threads need no lock
    known, when, last = _archive_seen
    if when == today and archive.startswith(known):
        last = max(last, mailbox.highest_looking(archive, "### ", today, max(known.rfind("\n"), 0)))
    else:
        last = mailbox.highest_looking(archive, "### ", today)
    _archive_seen = archive, today, last
    return last


def message_in(box: Mailbox, message_id: str) -> MailMessage | AofError:
    """A message of the mailbox; of a closed one, what the closed summary says."""
    places = box.places(message_id)
    if len(places) > 1:
        return UnreadableMessage(
            f"{message_id} occurs {len(places)} times in {mail_rules.PATH}",
            "give each card an ID of its own; see where they are",
            Call("mail_check", {}),
        )
    if places:
        card = box.card(places[0])
        if card.status_line is None or card.message.status not in (*mail_rules.ANSWERS, "closed"):
            return UnreadableMessage(
                f"the card of {message_id} has no status that can be read",
                "put that right in the file; see what is wrong with it",
                Call("mail_check", {}),
            )
        return card.message
    if (row := box.closed_row(message_id)) is not None:
        return closed_message(row.cells)
    return MessageNotFound(
        f"there is no message {message_id[:80]!r}", "see which messages there are", Call("mail_list", {})
    )


def archived_message(archive: str, message_id: str) -> MailMessage | None:
    """A message of the archive, found without reading all of it."""
    start = archive.find(f"### {message_id}")
    for place in cards_of(archive[start:]) if start >= 0 else ():
        if place.title == message_id:
            return read_card(archive[start:][place.start : place.end]).message
    return None


_UNSAID = ("type", "priority", "subject", "closure_owner", "review_scope", "response_needed_by")  # by such a row


def closed_message(cells: tuple[str, ...]) -> MailMessage:
    """What a row of the closed summary says of its message."""
    given = (*cells, "", "", "", "", "")
    sender, _, receiver = given[2].partition(" -> ")
    unsaid: dict[str, Any] = dict.fromkeys(_UNSAID, "")
    named: dict[str, Any] = {
        "message_id": given[0],
        "date": given[1],
        "sender": sender.strip(),
        "receiver": receiver.strip(),
    }
    return MailMessage(status="closed", disposition=given[3] or None, **named, **unsaid)


def resent(box: Mailbox, archive: str, message: MailMessage, root: str) -> bool:
    """Whether an earlier message with a payload of that root was answered with the wish to have it again."""
    cards = [box.card(place).message for place in box.outline.cards]
    cards += [read_card(archive[place.start : place.end]).message for place in cards_of(archive) if root in archive]
    return any(
        one.message_id != message.message_id
        and any(mail_rules.RESEND in ack.reason for ack in one.acks)
        and (found := mail_cards.found_in(one.body)) is not None
        and found.root == root
        for one in cards
    )


def everybody_in(box: Mailbox, policy: Policy) -> tuple[str, ...]:
    """All names of agents and people in the mailbox and the settings."""
    return mail_rules.roster(policy, box.parties)


def escalation(  # noqa: PLR0917 - what is escalated, to whom, and why
    message: MailMessage, agent: str, why: str, policy: Policy, number: int, now: int
) -> tuple[Draft, ...]:
    """An entry of the WORKLOG, and a message to the maintainers, unless they have sent what it is about.

    `agent` is whom the message waits for, `number` that of the new message.
    """
    text = f"Escalated: {message.message_id} — {message.subject} — {why}"
    drafts = [mail_rules.escalated(message.message_id, agent, text)]
    if policy.maintainers and message.sender not in policy.maintainers:
        drafts.append(mail_rules.sent(mail_rules.escalation_notice(message, text, policy, number, now)))
    subject = f"{message.message_id} for {agent}"
    entry = worklog_text.entry(OURSELVES, subject, iso(now), inline(text))
    return (*drafts, posted("escalation.requested", entry, OURSELVES, subject))


JSON = "MAILBOX.json"
UNREAD, UNCLOSED = "turn_unread", "turn_unclosed"
_FIXED = ("sender", "receiver", "date", "type", "priority", "subject", "body")


def mailbox_problems(here: Environment, policy: Policy, text: str | None) -> list[DocumentFinding]:
    """Everything that is wrong with the mailbox of the data directory, or with a text."""
    if text is not None:
        return mailbox.problems(text, policy)
    texts = reading.foreseen(here, mail_rules.DOCUMENT, mail_rules.PATH, mail_rules.ARCHIVE, JSON, mail_rules.EDITS)
    own, archive, kept = (texts[path] for path in (mail_rules.PATH, mail_rules.ARCHIVE, JSON))
    if not own:
        return []
    ids = frozenset(place.title for place in cards_of(archive))
    found = mailbox.problems(own, policy, ids)
    found += _against_log(opened(own), here, bound=policy.binds)
    found += _stale(own, kept)
    for line, edit in hand_edits.kept_edits(texts[mail_rules.EDITS]):
        how = f"the original stands in {mail_rules.PATH}; say it anew if it is meant, then delete the section"
        found.append(DocumentFinding(1, "changed_text", f"{edit.what}, see {mail_rules.EDITS}:{line}; {how}"))
    found += _beside_worklog(here, Mailbox(own))
    return sorted(found, key=lambda problem: problem.line)


def _beside_worklog(here: Environment, box: Mailbox) -> Iterator[DocumentFinding]:
    """Decisions and handoffs of which the WORKLOG knows nothing."""
    found = reading.texts(here, worklog_text.NAME, worklog_text.PATH, worklog_text.ARCHIVE)
    known, old = parse_worklog(found[worklog_text.PATH]), parse_worklog(found[worklog_text.ARCHIVE])
    cards = [(line_number(box.text, place.start), box.card(place).message) for place in box.outline.cards]
    there = {message.message_id for _, message in cards}
    closed = [message for message in _closed(here) if message.message_id not in there]
    entries, rows = (*old.entries, *known.entries), (*old.decisions, *known.decisions)
    for one in conflicts.only_in_mailbox(cards, closed, entries, rows):
        yield DocumentFinding(one.line, one.code, one.detail, one.severity)


def _closed(here: Environment) -> Iterator[MailMessage]:
    """The messages that the log says were closed, each with its disposition."""
    sent: dict[str, MailMessage] = {}
    for event in here.store.events_of_types((mail_rules.SENT, mail_rules.CLOSED)):
        if event.type == mail_rules.SENT:
            message = mail_rules.message_in(event.payload)
            sent[message.message_id] = message
        elif event.payload["messageId"] in sent:
            disposition = event.payload.get("disposition")
            yield msgspec.structs.replace(sent[event.payload["messageId"]], status="closed", disposition=disposition)


def _against_log(box: Mailbox, here: Environment, *, bound: bool) -> Iterator[DocumentFinding]:
    """Where the cards differ from what the log tells of their messages."""
    sent: dict[str, MailMessage] = {}
    acks: dict[str, list[Ack]] = {}
    status: dict[str, str] = {}
    for event in here.store.events_of_types((mail_rules.MAIL_EVENTS,)):
        if event.type == mail_rules.SENT:
            message = mail_rules.message_in(event.payload)
            sent[message.message_id] = message
        elif event.type in (mail_rules.CHANGED, mail_rules.CLOSED):
            change, ack = mail_rules.change_in(event.payload)
            acks.setdefault(event.payload["messageId"], []).append(ack)
            status[event.payload["messageId"]] = change.status
    seen = set()
    for place in box.outline.cards:
        card = box.card(place)
        message, begin = card.message, line_number(box.text, place.start)
        seen.add(message.message_id)
        original = sent.get(message.message_id)
        if original is None:
            yield DocumentFinding(begin, "not_in_log", f"{message.message_id} was not sent through AOF", "warning")
        else:
            for name in _FIXED:
                if getattr(original, name) != getattr(message, name):
                    what = f"the {name} of {message.message_id} is not what was sent"
                    yield DocumentFinding(begin, "changed_text", what)
        yield from _unknown_acks(begin, message, acks.get(message.message_id, []), bound=bound)
        known = status.get(message.message_id, "unread" if original is not None else None)
        if (
            known is not None
            and known != message.status
            and message.is_open
            and len(message.acks) <= len(acks.get(message.message_id, ()))
        ):
            detail = (
                f"{message.message_id} is {message.status} in the file, and {known} in the log; no Ack line says why"
            )
            yield DocumentFinding(begin + (card.status_line or 0), "status_without_ack", detail)
    gone = [one for one in sent if one not in seen and status.get(one) != "closed"]
    for one in gone:
        yield DocumentFinding(1, "deleted_card", f"{one} was sent and never closed, and its card is gone")


def _unknown_acks(begin: int, message: MailMessage, known: list[Ack], *, bound: bool) -> Iterator[DocumentFinding]:
    for ack in message.acks:
        if ack in known:
            continue
        foreign = ack.actor not in (message.receiver, message.sender) and not mail_rules.is_group(message.receiver)
        detail = f"the log has no such answer to {message.message_id}: {ack.actor} — {ack.date} — {ack.reason}"
        yield DocumentFinding(begin, "unproven_ack", detail, "error" if bound or foreign else "warning")
    for ack in known:
        if ack not in message.acks:
            detail = f"an answer to {message.message_id} is gone: {ack.actor} — {ack.date} — {ack.reason}"
            yield DocumentFinding(begin, "deleted_ack", detail)


def _stale(own: str, kept: str) -> Iterator[DocumentFinding]:
    """A projection that somebody keeps beside the mailbox, and that says something else."""
    if not kept:
        return
    try:
        said = msgspec.json.decode(kept)
    except msgspec.DecodeError:
        said = None
    now = mailbox.mailbox_json(opened(own))
    if not isinstance(said, dict) or any(said.get(name) != value for name, value in now.items()):
        yield DocumentFinding(
            1, "stale_projection", f"{JSON} does not say what {mail_rules.PATH} says; export it again", "warning"
        )


def left_over(box: Mailbox, agent: str, policy: Policy) -> list[DocumentFinding]:
    """What an agent leaves behind at the end of its turn: unread mail, and what it has to close."""
    everybody = (*mail_rules.roster(policy, box.known_names), agent)
    owns = (agent, mail_rules.MAINTAINER) if agent in policy.maintainers else (agent,)
    found = []
    for place, head in zip(box.outline.cards, box.heads, strict=True):
        line = line_number(box.text, place.start)
        if mail_rules.is_unread_by(head, agent, policy, everybody):
            found.append(DocumentFinding(line, UNREAD, f"{head.message_id} is unread by {agent}"))
        elif head.status == "actioned" and head.closure_owner in owns:
            found.append(DocumentFinding(line, UNCLOSED, f"{head.message_id} is actioned, and {agent} has to close it"))
    return found


_FIRST_DAY = 4, 12  # where the day stands in a message's ID
_SCOPE = port.Scope(names=LOCK)


def turn_began(here: Environment, agent: str, channel: str) -> None:
    """A turn of the agent begins; its last one is over."""
    _record(here, mail_rules.TURN_BEGAN, agent, channel)


def turn_ended(here: Environment, agent: str, channel: str) -> None:
    """The turn of the agent is over."""
    _record(here, mail_rules.TURN_ENDED, agent, channel)


def _record(here: Environment, kind: str, agent: str, channel: str) -> None:
    """Record it where somebody counts. An agent that cannot be counted can still work."""
    try:
        with here.store.unit(port.Scope()) as unit:
            if any(unit.document(path) for path in (mail_rules.PATH, CHARTER)):
                draft = mail_rules.turn(kind, agent, channel)
                unit.commit((draft,), actor=agent, agent=None, now=here.clock.now())
    except AofError:
        return


class Turns:
    """The ended turns of every agent: where each began, by its number in the log and by its time."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._open: dict[str, tuple[int, str]] = {}
        self._ended: dict[str, list[tuple[int, str]]] = {}
        for event in events:
            agent = str(event.payload.get("agent", ""))
            begun = self._open.pop(agent, None)
            if begun is not None:
                self._ended.setdefault(agent, []).append(begun)
            if event.type == mail_rules.TURN_BEGAN:
                self._open[agent] = (event.seq, event.timestamp)

    def after(self, agent: str, seq: int | None, date: str) -> list[int]:
        """The turns of the agent that began after a place in the log; where that is unknown, after a time."""
        ended = self._ended.get(agent, [])
        return [begun for begun, when in ended if (begun > seq if seq is not None else when > date)]


def overdue(here: Environment, policy: Policy, text: str) -> list[OverdueMail]:
    """Every message that was not acknowledged in time, oldest first."""
    box = opened(text)
    waiting = [head for head in box.heads if head.status == "unread" and head.type != "notify"]
    if not waiting:
        return []
    everybody, now = everybody_in(box, policy), here.clock.now()
    sent: dict[str, int] = {}
    told = []
    for event in here.store.events_of_types((mail_rules.SENT, "agent.turn."), _since(waiting)):
        if event.type == mail_rules.SENT:
            sent[event.payload["messageId"]] = event.seq
        else:
            told.append(event)
    turns = Turns(told)
    found: list[OverdueMail] = []
    for message in reversed(waiting):
        seq = sent.get(message.message_id)
        for agent in mail_rules.members(message, policy, everybody):
            if mail_rules.is_unread_by(message, agent, policy, everybody):
                after = turns.after(agent, seq, message.date)
                late = mail_rules.overdue(message, agent, -1, after, now)
                if late is not None:
                    found.append(late)
                    break
    return found


def unanswered(here: Environment, message: MailMessage) -> int | None:
    """How many turns the receiver has ended since the message was escalated; None where it was not."""
    since = _since([message])
    found = None
    turns = []
    for event in here.store.events_of_types((mail_rules.ESCALATED, "agent.turn."), since):
        if event.type == mail_rules.ESCALATED and event.payload["messageId"] == message.message_id:
            found = event
        elif event.type != mail_rules.ESCALATED:
            turns.append(event)
    if found is None:
        return None
    return len(Turns(turns).after(found.payload["agent"], found.seq, ""))


def escalate(here: Environment, policy: Policy, late: OverdueMail) -> bool:
    """Escalate a message that is overdue, unless somebody was faster; tells whether that was done."""
    with here.store.unit(_SCOPE) as unit:
        unit_of_work.follow(unit, LOCK, policy)
        texts = {path: unit.document(path) for path in (mail_rules.PATH, mail_rules.ARCHIVE)}
        found = message_in(opened(texts[mail_rules.PATH]), late.message_id)
        if not isinstance(found, MailMessage) or found.status != "unread":
            return False
        told = here.store.events_of_types((mail_rules.ESCALATED,), _since([found]))
        if any(event.payload["messageId"] == found.message_id for event in told):
            return False
        now = here.clock.now()
        number = next_number(texts, unit.numbers(), now)
        why = f"receiver did not ack within {late.tier} window"
        drafts = escalation(found, late.agent, why, policy, number, now)
        unit.commit(drafts, actor=OURSELVES, agent=None, now=now)
        unit_of_work.follow(unit, LOCK, policy)
    return True


def due_escalations(here: Environment, policy: Policy, text: str) -> list[OverdueMail]:
    """The messages of a mailbox that are to be escalated now."""
    late = [one for one in overdue(here, policy, text) if one.escalates]
    if not late:
        return []
    done = {event.payload["messageId"] for event in here.store.events_of_types((mail_rules.ESCALATED,))}
    return [one for one in late if one.message_id not in done]


def next_due(here: Environment, text: str) -> int | None:
    """The earliest time that an unread message of a mailbox names and that is still to come."""
    waiting = (head for head in opened(text).heads if head.status == "unread" and head.type != "notify")
    times = (mail_rules.moment(head.response_needed_by) for head in waiting)
    now = here.clock.now()
    return min((when + 1 for when in times if when is not None and when >= now), default=None)


def _since(messages: list[MailMessage]) -> str:
    """The day of the oldest of them; every day where an ID does not tell."""
    days = sorted(message.message_id[slice(*_FIRST_DAY)] for message in messages)
    first = days[0]
    return f"{first[:4]}-{first[4:6]}-{first[6:]}" if first.isascii() and first.isdigit() else ""


_TABLES = frozenset({"inbox_unread", "inbox_oldest", "inbox_due", "inbox_missing", "queue_missing"})
_FIX = "'aof doctor --fix' writes the tables again from the cards"


def unfaithful_tables(here: Environment) -> tuple[Problem, ...]:
    """The tables that do not follow from the cards."""
    with here.store.unit(port.Scope()) as unit:
        text = unit.document(mail_rules.PATH)
    wrong = mailbox.problems(text, reading.policy_of(here)) if text else []
    return tuple(Problem(one.code, mail_rules.PATH, one.detail, _FIX) for one in wrong if one.code in _TABLES)


def rewrite_tables(here: Environment) -> None:
    """Write them again from the cards."""
    policy = reading.policy_of(here)
    with here.store.unit(port.Scope(names=LOCK)) as unit:
        unit_of_work.follow(unit, LOCK, policy)
        unit.commit((mail_rules.settled(),), actor=OURSELVES, agent=None, now=here.clock.now())
        unit_of_work.follow(unit, LOCK, policy)
