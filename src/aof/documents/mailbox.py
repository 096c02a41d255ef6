"""MAILBOX.md as a whole: what a change makes of it, how it follows the log, what is wrong with it, and its JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, takewhile
from typing import Any, Final

import msgspec

from aof.documents import hand_edits, mail_cards, mail_rules
from aof.documents.hand_edits import HandEdit
from aof.documents.mail_cards import (
    ACTIVE,
    BEGIN,
    CLOSED,
    FIELDS,
    HEADERS,
    INBOX,
    QUEUE,
    SECTIONS,
    Card,
    CardPlace,
    MailboxSection,
    Outline,
    RowPlace,
    TableEdit,
    TablePlace,
    apply_edits,
    closed_edit,
    empty,
    find_table,
    line_number,
    outline,
    queue_edits,
    queue_row,
    snapshot_edits,
)
from aof.documents.mail_rules import NONE, SCOPES, Ack, MailMessage, StatusChange, is_message_id, number_of
from aof.documents.markdown import damage, ending, unix, with_ending
from aof.documents.projection import Facts, Files, PastEvents, Projection, Rewritten
from aof.kernel.events import Event
from aof.kernel.findings import DocumentFinding
from aof.kernel.model import Policy

_BOLD_STATUS: Final = re.compile(r"(\s*\*\*[^*]+\*\*:?[ \t]*)(.*?)([ \t]*)\Z")
_TABLE_STATUS: Final = re.compile(r"(\s*\|[^|]*\|[ \t]*)([^|]*?)([ \t]*\|?[ \t]*)\Z")


class Mailbox:
    """One text, read as far as it is needed.

    Where a change was made in a text whose parts are known, `sections` are given: then each ID has one card, which is
    found without reading the others.
    """

    def __init__(self, text: str, sections: tuple[MailboxSection, ...] | None = None) -> None:
        self.text = text
        self.eol = ending(text)
        self.others: list[CardPlace] = []  # cards that are not in our own form, once the heads have been read
        self.counts: list[Counts] = []  # taken by the one that makes the next text, which they then belong to
        self.numbers: dict[str, int] = {}  # the highest of a day, once it has been asked for
        self._known = sections
        self._tables: dict[str, TablePlace | None] = {}

    @property
    def is_known(self) -> bool:
        """Whether the text was made from one whose parts are known."""
        return self._known is not None

    @property
    def sections(self) -> tuple[MailboxSection, ...]:
        """The sections in order."""
        return self.outline.sections if self._known is None else self._known

    def section(self, name: str) -> MailboxSection | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    @cached_property
    def outline(self) -> Outline:
        """Sections and cards."""
        return outline(self.text)

    @cached_property
    def heads(self) -> tuple[MailMessage, ...]:
        """The messages of all cards, newest first; a body or acknowledgement is read only where it may matter."""
        return tuple(self._head(place) for place in self.outline.cards)

    def _head(self, place: CardPlace) -> MailMessage:
        text = self.text[place.start : place.end]
        message = mail_cards.read_card_quickly(text)
        if message is None:
            self.others.append(place)
        several = message is not None and (message.receiver in ("all", "maintainer") or ":" in message.receiver)
        return self.card(place).message if message is None or several else message

    def card(self, place: CardPlace) -> Card:
        """A card with everything that it says."""
        return mail_cards.read_card(self.text[place.start : place.end])

    def places(self, message_id: str) -> list[CardPlace]:
        """Every card with that ID; more than one is a mistake of somebody."""
        if self._known is not None:
            return [place for place in self._begun(f"### {message_id}") if place.title == message_id]
        found: list[CardPlace] = self._by_id.get(message_id, [])
        return found

    def _begun(self, begin: str) -> Iterator[CardPlace]:
        """The cards whose heading begins so; only in a text whose parts are known nothing else looks like one."""
        text, active = self.text, self.section(ACTIVE)
        assert active is not None
        start = text.find(begin, active.inner, active.end)
        while start >= 0:
            behind = text.find(f"\n{BEGIN}", start, active.end) + 1 or active.end
            yield CardPlace(text[start + 4 : behind].partition("\n")[0].strip(), start, behind)
            start = text.find(begin, behind, active.end)

    @property
    def newest(self) -> CardPlace | None:
        """The card on top."""
        if self._known is not None:
            return next(self._begun(BEGIN), None)
        return self.outline.cards[0] if self.outline.cards else None

    def above(self, place: CardPlace) -> CardPlace | None:
        """The card before another one."""
        if self._known is None:
            at = self.outline.cards.index(place)
            return self.outline.cards[at - 1] if at else None
        start = self.text.rfind(f"\n{BEGIN}", 0, place.start) + 1
        active = self.section(ACTIVE)
        return CardPlace("", start, place.start) if active is not None and start >= active.inner else None

    @cached_property
    def _by_id(self) -> dict[str, list[CardPlace]]:
        found: dict[str, list[CardPlace]] = {}
        for place in self.outline.cards:
            found.setdefault(place.title, []).append(place)
        return found

    def table(self, name: str) -> TablePlace | None:
        """The table of a section."""
        if name not in self._tables:
            section = self.section(name)
            self._tables[name] = None if section is None else find_table(self.text, section)
        return self._tables[name]

    @cached_property
    def known_names(self) -> tuple[str, ...]:
        """The agents that have a row in the snapshot."""
        table = self.table(INBOX)
        return tuple(one.first for one in table.rows if one.first) if table is not None else ()

    def highest_number(self, today: str) -> int:
        """The highest number that a card or a row of the closed summary has of that day."""
        if today not in self.numbers:
            last = max((number_of(place.title, today) for place in self.outline.cards), default=0)
            if highest_looking(self.text, "| ", today) > last:
                last = max([last, *(number_of(one, today) for one in self.closed_ids)])
            self.numbers[today] = last
        return self.numbers[today]

    @property
    def parties(self) -> Iterator[str]:
        """Everybody whom the snapshot or a card names as a receiver; each has a row where the parts are known."""
        return chain(self.known_names, () if self.is_known else (head.receiver for head in self.heads))

    def closed_row(self, message_id: str) -> RowPlace | None:
        """What the closed summary has of the message."""
        section, table = self.section(CLOSED), self.table(CLOSED)
        if section is None or table is None or self.text.find(message_id, section.start, section.end) < 0:
            return None
        return next((row for row in table.from_top() if row.first == message_id), None)

    @cached_property
    def closed_ids(self) -> tuple[str, ...]:
        """The IDs in the closed summary."""
        table = self.table(CLOSED)
        return tuple(one.first for one in table.rows) if table is not None else ()


def highest_looking(text: str, begin: str, today: str, place: int = 0) -> int:
    """The highest number of a day on lines from a place on that begin so, be they what they look like or not."""
    look = re.compile(rf"\n{re.escape(begin)}MSG-{today.replace('-', '')}-([0-9]{{3,9}})\b")
    return max(map(int, look.findall(text, place)), default=0)


_lately: tuple[Mailbox, ...] = ()
_KEPT = 4


def opened(text: str) -> Mailbox:
    """The mailbox that a text is; what was read or made lately is not read again."""
    for box in _lately:
        if box.text is text:
            return box
    found = next((box for box in _lately if box.text == text), None)
    return found if found is not None else _remembered(Mailbox(text))


def _remembered(box: Mailbox) -> Mailbox:
    global _lately  # noqa: PLW0603 - exchanged as a whole, so that threads need no lock
    _lately = (box, *_lately[: _KEPT - 1])
    return box


class Counts:
    """What the tables of a mailbox are made from, kept from one change to the next.

    A change of one message is then as much work in a mailbox of thousands as in an empty one. It is kept only of a
    text in which a search finds what reading would find (`counted`), and does not outlive what could change that.
    """

    def __init__(self, box: Mailbox, policy: Policy) -> None:
        self.policy = policy
        self._inboxes = mail_rules.Inboxes(box.heads, policy, mail_rules.roster(policy, box.known_names))
        self._open = {head.message_id: None for head in reversed(box.heads) if head.is_open}

    def table_edits(self, box: Mailbox, message: MailMessage, *, new: bool) -> list[TableEdit] | None:
        """What a new, changed or closed message changes in the tables; None where that takes reading everything."""
        inbox, queue, message_id = box.table(INBOX), box.table(QUEUE), message.message_id
        assert inbox is not None
        assert queue is not None
        if new == (message_id in self._open) or not self._inboxes.knows(message):
            return None
        own, newest = queue.row_of(message_id), next(reversed(self._open), None)
        top = queue.row_of(newest) if newest is not None else None
        if new:
            if own is not None or (newest is not None and top is None):
                return None
            at = queue.top if top is None else top.start
            rows = [queue_row(box.text, at, message, box.eol)]
            self._open[message_id] = None
        elif own is None:
            return None
        else:
            rows = [] if message.is_open else [TableEdit(own.start, own.end, "")]
            if not message.is_open:
                del self._open[message_id]
        return [*snapshot_edits(box.text, inbox, self._inboxes.put(message), box.eol), *rows]


def counted(box: Mailbox, policy: Policy) -> Counts | None:
    """The counts of a text, which nobody else gets; None where a search would not find what reading finds."""
    with suppress(IndexError):
        counts = box.counts.pop()
        if counts.policy == policy:
            return counts
    names, cards = [section.name for section in box.outline.sections], box.outline.cards
    inbox, queue, active = box.table(INBOX), box.table(QUEUE), box.section(ACTIVE)
    if inbox is None or queue is None or active is None or box.table(CLOSED) is None:
        return None
    plain = (
        box.outline.whole
        and all(names.count(name) == 1 for name in SECTIONS)
        and box.text.count(BEGIN, active.start, active.end) == len(cards)
        and all(box.text.startswith(BEGIN, place.start) for place in cards)
        and len({place.title for place in cards}) == len(cards)
        and queue.is_plain
    )
    return Counts(box, policy) if plain and settled(box, policy, box.heads, []) == box.text else None


def _made(box: Mailbox, edits: list[TableEdit]) -> Mailbox:
    """The text with the edits, of which the parts are known as well."""
    text = apply_edits(box.text, edits)

    def moved(place: int) -> int:
        return place + sum(len(edit.text) - (edit.end - edit.start) for edit in edits if edit.end <= place)

    sections = []
    for section in box.sections:
        start = moved(section.start)
        sections.append(MailboxSection(section.name, start, start + section.inner - section.start, moved(section.end)))
    return Mailbox(text, tuple(sections))


def new_mailbox(title: str) -> str:
    """A mailbox without messages."""
    lines = [f"# {title}", ""]
    for name in SECTIONS:
        lines += empty(name)
    return "\n".join(lines)


def render(message: MailMessage) -> str:
    """The card of a message as we write it."""
    named = (f"**{name}:** {getattr(message, part)}" for name, part in FIELDS.items())
    lines = [f"### {message.message_id}", "", *named]
    lines += [f"**{name}:** {value}" for name, value in message.fields.items()]
    if message.body:
        lines += ["", mail_cards.contained_body(message.body)]
    if message.acks:
        lines += ["", *map(ack_line, message.acks)]
    return "\n".join(lines) + "\n"


def ack_line(ack: Ack) -> str:
    """The line of an acknowledgement."""
    return f"**Ack:** {_shown_ack(ack)}"


def _shown_ack(ack: Ack) -> str:
    return f"{ack.actor} — {ack.date} — {ack.reason}"


def complete(text: str, title: str) -> str:
    """The text with every section that it lacks; one that has all of them stays as it is."""
    if _is_blank(text):
        return new_mailbox(title)
    there = {section.name for section in opened(text).sections}
    missing = [name for name in SECTIONS if name not in there]
    if not missing:
        return text
    eol = ending(text)
    lines = [line for name in missing for line in empty(name)]
    return text.rstrip("\r\n") + with_ending("\n\n" + "\n".join(lines), eol)


def with_message(text: str, message: MailMessage, policy: Policy) -> str:
    """The text with a new card on top."""
    box = opened(text)
    active = box.section(ACTIVE)
    assert active is not None
    written = with_ending(unix(render(message)), box.eol)
    if (newest := box.newest) is not None:
        edit = TableEdit(newest.start, newest.start, f"{written}{box.eol}---{box.eol}{box.eol}")
    else:
        before = text[active.inner : active.end].rstrip()
        start = active.inner + len(before)
        head = box.eol * (2 if before else 1) if active.inner and text[active.inner - 1] == "\n" else box.eol * 2
        edit = TableEdit(start, active.end, head + written + box.eol)
    done = _quickly(box, policy, message, [edit], written, new=message.is_open)
    return done or settled(box, policy, (message, *box.heads), [edit])


def _quickly(
    box: Mailbox, policy: Policy, message: MailMessage, edits: list[TableEdit], card: str | None, *, new: bool = False
) -> str | None:
    """The text with those edits and what they change in the tables; None where that takes reading everything.

    `card` is what the message's card becomes.
    """
    if card is not None and not mail_cards.is_one_card(card, message.message_id):
        return None
    counts = counted(box, policy)
    more = counts.table_edits(box, message, new=new) if counts is not None else None
    if counts is None or more is None:
        return None
    made = _made(box, [*edits, *more])
    made.counts.append(counts)
    made.numbers = {day: max(last, number_of(message.message_id, day)) for day, last in box.numbers.items()}
    return _remembered(made).text


def with_change(text: str, message_id: str, change: StatusChange, ack: Ack, policy: Policy) -> str:
    """The text with a card's new status and one acknowledgement more."""
    box = opened(text)
    place = box.places(message_id)[0]
    card = box.card(place)
    edits = _card_edits(box, place, card, change.status, ack)
    after = msgspec.structs.replace(card.message, status=change.status, acks=(*card.message.acks, ack))
    own = [TableEdit(edit.start - place.start, edit.end - place.start, edit.text) for edit in edits]
    changed = apply_edits(text[place.start : place.end], own)
    if after.is_open and (done := _quickly(box, policy, after, edits, changed)) is not None:
        return done
    heads = tuple(
        after if one.start == place.start else head for one, head in zip(box.outline.cards, box.heads, strict=True)
    )
    return settled(box, policy, heads, edits, own=place)


def without_card(text: str, message_id: str, change: StatusChange, ack: Ack, policy: Policy) -> tuple[str, str]:
    """The text without a card that is closed, with its row in the summary; and the card, for the archive."""
    box = opened(text)
    place = box.places(message_id)[0]
    card = box.card(place)
    own = [
        TableEdit(edit.start - place.start, edit.end - place.start, edit.text)
        for edit in _card_edits(box, place, card, change.status, ack)
    ]
    archived = apply_edits(text[place.start : _content_end(text, place)], own)
    edits = [_removal(box, place)]
    if (table := box.table(CLOSED)) is not None:
        message = card.message
        values = (
            message.message_id,
            ack.date[:10],
            message.parties,
            change.disposition or "closed",
            ack.reason.partition(": ")[2] or ack.reason,
        )
        edits.append(closed_edit(text, table, values, box.eol))
    gone = msgspec.structs.replace(card.message, status="closed")
    if (done := _quickly(box, policy, gone, edits, None)) is not None:
        return done, archived
    heads = tuple(head for one, head in zip(box.outline.cards, box.heads, strict=True) if one.start != place.start)
    return settled(box, policy, heads, edits, own=place, gone=message_id), archived


def with_originals(text: str, originals: dict[str, MailMessage], policy: Policy) -> tuple[str, list[tuple[str, str]]]:
    """The text with these cards as they were sent and answered, and the cards that people had changed.

    Whether an answer that nobody gave through AOF is a person's word or a forgery, `_words_of_people` decides.
    """
    box, changed, edits = opened(text), [], []
    heads = list(box.heads)
    for number, place in enumerate(box.outline.cards):
        original = originals.get(place.title)
        if original is None or len(box.places(place.title)) > 1:
            continue
        there, end = box.card(place).message, _content_end(text, place)
        words = _words_of_people(there, original, policy)
        wanted = msgspec.structs.replace(
            original, acks=(*original.acks, *words), status=there.status if words and there.is_open else original.status
        )
        card = render(wanted)
        same = len(there.acks) == len(wanted.acks) and set(there.acks) == set(wanted.acks)  # in whatever order
        as_wanted = msgspec.structs.replace(there, acks=wanted.acks) if same else there
        if mail_cards.read_card(card).message != as_wanted:
            changed.append((place.title, text[place.start : end]))
            edits.append(TableEdit(place.start, end, with_ending(card, box.eol)))
            heads[number] = wanted
    return (settled(box, policy, tuple(heads), edits) if edits else text), changed


def _words_of_people(there: MailMessage, original: MailMessage, policy: Policy) -> tuple[Ack, ...]:
    """Answers by hand that count: where callers are not bound, of those whose answer it is."""
    group = mail_rules.is_group(original.receiver)
    return tuple(
        ack
        for ack in there.acks
        if ack not in original.acks
        and not policy.binds
        and (group or ack.actor in (original.receiver, original.sender))
    )


def settled(
    box: Mailbox,
    policy: Policy,
    heads: tuple[MailMessage, ...],
    edits: list[TableEdit],
    *,
    own: CardPlace | None = None,
    gone: str | None = None,
) -> str:
    """The text with those edits, and with tables that say what the cards then say. `new` becomes `unread`.

    `own` is the card that the edits are about.
    """
    edits = [*edits, *_renamed(box, own)]
    waiting = [message for message in heads if message.is_open]
    if (table := box.table(INBOX)) is not None:
        rows = mail_rules.inbox(heads, policy, box.known_names)
        edits += snapshot_edits(box.text, table, rows, box.eol)
    if (table := box.table(QUEUE)) is not None:
        edits += queue_edits(box.text, table, waiting, gone, box.eol)
    return apply_edits(box.text, edits)


def _renamed(box: Mailbox, own: CardPlace | None) -> list[TableEdit]:
    """The edits that write `unread` where a person wrote `new`, in all other cards."""
    found = []
    for place in box.others:
        if own is not None and place.start == own.start:
            continue
        card = box.card(place)
        if card.raw_status.lower() == "new" and card.status_line is not None:
            found.append(_status_edit(box.text, place, card, "unread"))
    return found


def _card_edits(box: Mailbox, place: CardPlace, card: Card, status: str, ack: Ack) -> list[TableEdit]:
    edits = []
    if status != card.raw_status and card.status_line is not None:
        edits.append(_status_edit(box.text, place, card, status))
    behind = _line_start(box.text, place.start, card.ack_after + 1)
    last = box.text[_line_start(box.text, place.start, card.ack_after) : behind].strip()
    if card.listed:
        line = f"- {_shown_ack(ack)}"
    else:
        line = ack_line(ack) if last.lower().startswith("**ack") else f"\n{ack_line(ack)}"
    begin = "" if box.text[behind - 1 : behind] == "\n" else box.eol
    return [*edits, TableEdit(behind, behind, begin + with_ending(line + "\n", box.eol))]


def _status_edit(text: str, place: CardPlace, card: Card, status: str) -> TableEdit:
    assert card.status_line is not None
    start = _line_start(text, place.start, card.status_line)
    line = text[start : place.end].partition("\n")[0].rstrip("\r")
    found = (_BOLD_STATUS if card.form == "bold" else _TABLE_STATUS).match(line)
    assert found is not None
    return TableEdit(start + found.start(2), start + found.end(2), status)


def _line_start(text: str, place: int, lines: int) -> int:
    """Where a line begins that is so many lines below a place."""
    for _ in range(lines):
        place = text.find("\n", place) + 1 or len(text)
    return place


def _content_end(text: str, place: CardPlace) -> int:
    """The place behind the last line of a card that is neither blank nor the separator."""
    end = place.end
    while end > place.start:
        start = text.rfind("\n", place.start, end - 1) + 1
        if start <= place.start or text[start:end].strip() not in ("", "---"):
            break
        end = start
    return end


def _removal(box: Mailbox, place: CardPlace) -> TableEdit:
    """The edit that takes a card and one separator away."""
    active, above = box.section(ACTIVE), box.above(place)
    assert active is not None
    if above is None or place.end < active.end:
        return TableEdit(place.start, place.end, "")
    return TableEdit(_content_end(box.text, above), place.end, box.eol)


_OWN = "own"  # nobody but AOF has written the files since they were made: the log has all that they say
_UNTOLD = (mail_rules.ESCALATED, mail_rules.SETTLED)  # nothing in these files tells of it


class MailboxDocument(Projection):
    """The mailbox as a document: its file, its archive, and the file of edits by hand.

    New messages go on top, so nothing is ever appended.
    """

    name, path, types = mail_rules.DOCUMENT, mail_rules.PATH, (mail_rules.MAIL_EVENTS,)
    files = (mail_rules.PATH, mail_rules.ARCHIVE)

    def updated(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:  # noqa: ARG002 - the contract
        """The mailbox and its archive with what the events say."""
        writer = _Writer(files, self._policy)
        if past is not None and not past.applied and "\0" in writer.text:
            writer.text = ""  # a power cut has taken what only we had written
        begun = _is_blank(writer.text) and _is_blank(writer.archive)
        read = writer.read(past.events) if past is not None else []
        if past is not None and not (past.applied and writer.text.strip()):
            # They were written in order, so that everything before one that is there is there as well.
            visible = (event for event in chain(read, past.events) if event.type not in _UNTOLD)
            unwritten = takewhile(lambda event: not (writer.text.strip() and writer.has(event)), visible)
            for event in [*unwritten][::-1]:
                writer.apply(event)
        writer.restore(_as_logged(reversed(read)))
        for event in fresh:
            writer.apply(event)
        own = begun or files.note == _OWN
        return Rewritten(writer.texts(), _OWN if own else "", flushed=not own)

    def with_hand_written(
        self, from_log: dict[str, str], sides: Sequence[Files], events: Sequence[Event]
    ) -> dict[str, str]:
        """Messages that people wrote as cards of their own, under IDs that the log never gave."""
        text, archive = from_log.get(mail_rules.PATH, ""), from_log.get(mail_rules.ARCHIVE, "")
        given = {event.payload["messageId"] for event in events if event.type == mail_rules.SENT}
        for side in sides:
            box = opened(side.text(mail_rules.PATH))
            for place in reversed(box.outline.cards):
                message = box.card(place).message
                if message.message_id not in given and f"### {message.message_id}" not in text:
                    text = complete(text, f"Mailbox — {self._policy.project}")
                    text = with_message(text, message, self._policy)
            for card in side.text(mail_rules.ARCHIVE).split("\n### ")[1:]:
                title = card.split("\n", 1)[0].strip()
                if title not in given and f"### {title}" not in archive:
                    archive = f"{archive.rstrip()}\n\n### {card.rstrip()}\n"
        return {mail_rules.ARCHIVE: archive, mail_rules.PATH: text}


class _Writer:
    """The two texts, while events are applied to them."""

    def __init__(self, files: Files, policy: Policy) -> None:
        self._files = files
        self._policy = policy
        self.text = self._before = files.text(mail_rules.PATH)
        self._archive: str | None = None
        self._kept = ""

    def read(self, events: Iterable[Event]) -> list[Event]:
        """The events about the cards that are there, newest first."""
        ids = (place.title for place in opened(self.text).outline.cards if is_message_id(place.title))
        first = min((f"{one[4:8]}-{one[8:10]}-{one[10:12]}" for one in ids), default="")
        found: list[Event] = []
        for event in events if first else ():
            found.append(event)
            if event.timestamp[:10] < first:
                break
        return found

    def restore(self, logged: dict[str, MailMessage]) -> None:
        """Put back what a person has changed in cards that the log has, and keep what it was made to be."""
        if not logged:
            return
        self.text, changed = with_originals(self.text, logged, self._policy)
        by_hand = [
            HandEdit(f"a person changed {one} from {logged[one].sender} to {logged[one].receiver}", card.rstrip())
            for one, card in changed
        ]
        if by_hand:
            self._kept = hand_edits.with_kept(self._files.text(mail_rules.EDITS), mail_rules.PATH, by_hand)

    @property
    def archive(self) -> str:
        """The archive, read when it is first needed."""
        if self._archive is None:
            self._archive = self._files.text(mail_rules.ARCHIVE)
        return self._archive

    def texts(self) -> dict[str, str]:
        """What has changed; the mailbox last, so that no message and no word of a person is ever nowhere."""
        changed = {mail_rules.EDITS: self._kept} if self._kept else {}
        if self._archive is not None and self._archive != self._files.text(mail_rules.ARCHIVE):
            changed[mail_rules.ARCHIVE] = self._archive
        if self.text != self._before:
            changed[mail_rules.PATH] = self.text
        return changed

    def has(self, event: Event) -> bool:
        """Whether the texts tell of the event already."""
        payload = event.payload
        if event.type == mail_rules.SENT:
            return self._knows(payload["messageId"])
        if event.type == mail_rules.ARCHIVED:
            return not set(payload["messageIds"]) & set(opened(self.text).closed_ids)
        _, ack = mail_rules.change_in(payload)
        if event.type == mail_rules.CLOSED and opened(self.text).places(payload["messageId"]):
            return False  # the archive was written, and then the writer died
        return (event.type == mail_rules.CHANGED and _has_ack(self.text, ack)) or _has_ack(self.archive, ack)

    def apply(self, event: Event) -> None:
        """Write what the event says, unless it is written."""
        payload = event.payload
        if event.type == mail_rules.SENT:
            message = mail_rules.message_in(payload)
            if not self._knows(message.message_id):
                self.text = complete(self.text, f"Mailbox — {self._policy.project}")
                self.text = with_message(self.text, message, self._policy)
        elif event.type == mail_rules.ARCHIVED:
            self.text = without_rows(self.text, frozenset(payload["messageIds"]))
        elif event.type == mail_rules.SETTLED:
            box = opened(self.text)
            self.text = settled(box, self._policy, box.heads, [])
        elif event.type in (mail_rules.CHANGED, mail_rules.CLOSED) and (
            places := opened(self.text).places(payload["messageId"])
        ):
            message_id = payload["messageId"]
            change, ack = mail_rules.change_in(payload)
            if event.type == mail_rules.CLOSED:
                self.text, card = without_card(self.text, message_id, change, ack, self._policy)
                if not any(f"### {message_id}{end}" in self.archive for end in ("\n", "\r\n")):
                    self._archive = _added(self.archive, card, f"Mailbox archive — {self._policy.project}")
            elif ack not in opened(self.text).card(places[0]).message.acks:
                self.text = with_change(self.text, message_id, change, ack, self._policy)

    def _knows(self, message_id: str) -> bool:
        box = opened(self.text)
        return bool(box.places(message_id)) or box.closed_row(message_id) is not None


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _as_logged(events: Iterable[Event]) -> dict[str, MailMessage]:
    """Messages as they were sent and answered through AOF; without those that were closed."""
    messages: dict[str, MailMessage] = {}
    for event in events:
        if event.type == mail_rules.SENT:
            message = mail_rules.message_in(event.payload)
            messages[message.message_id] = message
        elif event.type == mail_rules.CHANGED and event.payload["messageId"] in messages:
            before = messages[event.payload["messageId"]]
            change, ack = mail_rules.change_in(event.payload)
            after = msgspec.structs.replace(before, status=change.status, acks=(*before.acks, ack))
            messages[before.message_id] = after
        elif event.type == mail_rules.CLOSED:
            messages.pop(event.payload["messageId"], None)
    return messages


def _has_ack(text: str, ack: Ack) -> bool:
    return ack_line(ack) in text or f"- {_shown_ack(ack)}" in text


def _added(archive: str, card: str, title: str) -> str:
    """The archive with a card at its end."""
    eol = ending(archive) if archive else ending(card)
    before = archive.rstrip("\r\n") if archive.strip() else f"# {title}"
    between = f"{eol}{eol}---{eol}{eol}" if "### MSG-" in before else eol * 2
    return before + between + with_ending(card.replace("\r\n", "\n"), eol)


def without_rows(text: str, ids: frozenset[str]) -> str:
    """The text without these rows of the closed summary."""
    table = opened(text).table(CLOSED)
    rows = table.rows if table is not None else ()
    return apply_edits(text, [TableEdit(row.start, row.end, "") for row in rows if row.cells and row.cells[0] in ids])


def problems(text: str, policy: Policy, archived: frozenset[str] | None = None) -> list[DocumentFinding]:
    """Everything that is wrong, in the order of the lines. `archived` are the IDs in the archive, where it is known."""
    box = opened(text)
    cards = [(place, box.card(place)) for place in box.outline.cards]
    found = [
        *damage(text),
        *_of_sections(box),
        *_of_tables(box),
        *_of_cards(box, cards),
        *_of_queue(box, cards),
        *_of_closed(box, cards, archived),
        *_of_inbox(box, [card.message for _, card in cards], policy),
    ]
    return sorted(found, key=lambda problem: problem.line)


def _of_sections(box: Mailbox) -> Iterator[DocumentFinding]:
    seen: set[str] = set()
    for section in box.sections:
        line = line_number(box.text, section.start)
        if section.name in seen and section.name in SECTIONS:
            yield DocumentFinding(line, "duplicate_section", f"a second section {section.name!r}; the first one counts")
        seen.add(section.name)
    for name in SECTIONS:
        if name not in seen:
            yield DocumentFinding(1, "missing_section", f"there is no section '## {name}'")


def _of_tables(box: Mailbox) -> Iterator[DocumentFinding]:
    for name in HEADERS:
        named, table = box.section(name), box.table(name)
        if named is None:
            continue
        start = line_number(box.text, named.start)
        if table is None:
            yield DocumentFinding(start, "missing_table", f"the section {name!r} has no table")
        elif table.header != HEADERS[name]:
            yield DocumentFinding(start, "table_header", f"the columns of {name!r} are {' | '.join(HEADERS[name])}")
        elif name != CLOSED:
            for row in table.rows:
                if len(row.cells) != len(table.header):
                    detail = f"a row of {name!r} has {len(table.header)} cells, this one has {len(row.cells)}"
                    yield DocumentFinding(line_number(box.text, row.start), "row_cells", detail)


def _of_cards(box: Mailbox, cards: list[tuple[CardPlace, Card]]) -> Iterator[DocumentFinding]:
    seen: set[str] = set()
    for place, card in cards:
        begin = line_number(box.text, place.start)
        message = card.message
        for problem in card.problems:
            yield DocumentFinding(begin + problem.line, problem.code, problem.detail, problem.severity)
        if message.message_id in seen:
            yield DocumentFinding(begin, "duplicate_id", f"{message.message_id} occurs twice among the active messages")
        seen.add(message.message_id)
        if message.status == "closed":
            detail = f"{message.message_id} is closed and still among the active messages"
            yield DocumentFinding(begin, "closed_card", detail)
        if message.status not in ("unread", "closed") and not message.acks and message.is_open:
            detail = f"{message.message_id} is {message.status}, and no Ack line says by whom"
            yield DocumentFinding(begin + (card.status_line or 0), "status_without_ack", detail)
        if message.review_scope not in SCOPES:
            detail = f"Review scope {message.review_scope[:40]!r} is none of {', '.join(SCOPES)}"
            yield DocumentFinding(begin, "unknown_scope", detail)
        payload = mail_cards.found_in(message.body)
        if payload is None and message.review_scope in SCOPES and message.review_scope != NONE:
            payload = mail_rules.ReviewPayload(scope=message.review_scope)
        for defect in mail_rules.payload_defects(payload) if payload is not None else ():
            yield DocumentFinding(begin, "malformed_payload", f"{message.message_id}: {defect}")


def _of_queue(box: Mailbox, cards: list[tuple[CardPlace, Card]]) -> Iterator[DocumentFinding]:
    by_id = {card.message.message_id: card.message for _, card in cards}
    table = box.table(QUEUE)
    rows = table.rows if table is not None else ()
    listed: set[str] = set()
    for row in rows:
        name = row.first
        line = line_number(box.text, row.start)
        if name in listed:
            yield DocumentFinding(line, "duplicate_row", f"{name} is twice in the open queue")
        listed.add(name)
        if name not in by_id:
            yield DocumentFinding(
                line, "queue_unknown", f"the open queue has {name or 'a row'}, and no active card does"
            )
        elif by_id[name].status == "closed":
            yield DocumentFinding(line, "queue_closed", f"the open queue has {name}, which is closed")
    for place, card in cards:
        message = card.message
        if message.is_open and message.message_id not in listed:
            detail = f"{message.message_id} is {message.status} and missing from the open queue"
            yield DocumentFinding(line_number(box.text, place.start), "queue_missing", detail)


def _of_closed(
    box: Mailbox, cards: list[tuple[CardPlace, Card]], archived: frozenset[str] | None
) -> Iterator[DocumentFinding]:
    active = {card.message.message_id for _, card in cards}
    table = box.table(CLOSED)
    seen: set[str] = set()
    for row in table.rows if table is not None else ():
        line = line_number(box.text, row.start)
        name = row.first
        given = dict(zip(HEADERS[CLOSED], row.cells, strict=False))
        if missing := [column for column in HEADERS[CLOSED] if not given.get(column)]:
            detail = f"the closed row of {name or 'a message'} has no {', '.join(missing)}"
            yield DocumentFinding(line, "closed_cells", detail)
        if not name:
            continue
        if not is_message_id(name):
            yield DocumentFinding(line, "malformed_id", f"{name[:80]!r} is no message ID such as MSG-20260221-001")
        if name in seen or name in active:
            where = "in the closed summary" if name in seen else "active and closed"
            yield DocumentFinding(line, "duplicate_id", f"{name} occurs twice: {where}")
        seen.add(name)
        if archived is not None and name not in archived:
            yield DocumentFinding(line, "not_archived", f"no archive has the full text of {name}")


def _of_inbox(box: Mailbox, messages: list[MailMessage], policy: Policy) -> Iterator[DocumentFinding]:
    table = box.table(INBOX)
    if table is None:
        return
    wanted = {row.agent: row for row in mail_rules.inbox(messages, policy, box.known_names)}
    there = {row.first: row for row in reversed(table.rows)}
    for agent, row in wanted.items():
        if agent not in there and row.unread:
            detail = f"{agent} has {row.unread} unread and no row in the snapshot"
            yield DocumentFinding(line_number(box.text, table.top), "inbox_missing", detail)
    seen: set[str] = set()
    for one in table.rows:
        line, agent = line_number(box.text, one.start), one.cells[0] if one.cells else ""
        if agent in seen:
            yield DocumentFinding(line, "duplicate_row", f"{agent} has two rows in the snapshot")
        seen.add(agent)
        expected = wanted.get(agent)
        if expected is None or len(one.cells) != len(HEADERS[INBOX]):
            continue
        yield from _compared(line, one.cells, expected)


def _compared(line: int, there: tuple[str, ...], wanted: mail_rules.InboxRow) -> Iterator[DocumentFinding]:
    if there[1] != str(wanted.unread):
        detail = f"the snapshot says {there[1]} unread for {wanted.agent}, and the cards say {wanted.unread}"
        yield DocumentFinding(line, "inbox_unread", detail)
    if there[2] != wanted.oldest_unread:
        detail = f"the snapshot says {there[2]} is the oldest unread of {wanted.agent}"
        yield DocumentFinding(line, "inbox_oldest", f"{detail}, and it is {wanted.oldest_unread}")
    if wanted.unread == 0 and there[3] != NONE:
        yield DocumentFinding(
            line, "inbox_due", f"{wanted.agent} has nothing unread, and an answer by {there[3]}", "warning"
        )


FORMAT: Final = "mailbox-compact-v1"
_INBOX: Final = ("agent", "unread", "oldest_unread", "needs_response_by")
_ROW: Final = (
    "id", "date", "from_to", "type", "priority", "due", "status", "subject", "final_status", "outcome",
)  # fmt: skip


def mailbox_json(box: Mailbox) -> dict[str, Any]:
    """Everything that the mailbox says, table by table and card by card."""
    return {
        "format_version": FORMAT,
        "inbox_snapshot": [
            {name: row.get(name, "") for name in _INBOX} | {"unread": _number(row.get("unread", ""))}
            for row in _rows(box.table(INBOX))
        ],
        "open_queue": [_listed(row) for row in _rows(box.table(QUEUE))],
        "active_messages": [_active(box.card(place)) for place in box.outline.cards],
        "closed_summary": [_listed(row) for row in _rows(box.table(CLOSED))],
    }


def _rows(table: TablePlace | None) -> list[dict[str, str]]:
    if table is None:
        return []
    keys = [json_key(name) for name in table.header]
    return [dict(zip(keys, row.cells, strict=True)) for row in table.rows if len(row.cells) == len(keys)]


def json_key(name: str) -> str:
    """The key of a column or a field: lower case, with underscores."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def _listed(row: dict[str, str]) -> dict[str, str]:
    return {name: row.get(name, "") for name in _ROW} | {"priority": row.get("pri") or row.get("priority", "")}


def _active(card: Card) -> dict[str, Any]:
    message = card.message
    lines = [line.strip() for line in message.body.split("\n")]
    named = {
        "from": message.sender,
        "to": message.receiver,
        "date": message.date,
        "type": message.type,
        "priority": message.priority,
        "status": message.status,
        "subject": message.subject,
        "closure_owner": message.closure_owner,
        "review_scope": message.review_scope,
        "response_needed_by": message.response_needed_by,
    }
    return {
        "id": message.message_id,
        "fields": {json_key(name): value for name, value in message.fields.items()} | named,
        "summary": [line[2:].strip() for line in lines if line.startswith("- ")],
        "body": message.body,
        "ack": [_shown_ack(ack) for ack in message.acks],
    }
