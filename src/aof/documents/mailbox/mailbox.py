"""A mailbox as it was read, and what a change makes of its text. Only the lines that must change do.

Each change is one pass: the card, and then the tables that follow from all cards. Must not know who may change what.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from aof.core.documents.mailbox import inbox, receivers
from aof.core.documents.mailbox.lifecycle import StatusChange
from aof.core.documents.mailbox.message import Ack, MailMessage
from aof.core.model.policy import Policy
from aof.documents.mailbox import body as bodies
from aof.documents.mailbox import card as cards
from aof.documents.mailbox.card import FIELDS, Card
from aof.documents.mailbox.outline import ACTIVE, CLOSED, INBOX, QUEUE, SECTIONS, CardPlace, Outline, outline
from aof.documents.mailbox.tables import (
    TableEdit,
    TablePlace,
    closed_edit,
    edited,
    empty,
    find,
    queue_edits,
    snapshot_edits,
)
from aof.documents.markdown import ending, unix, with_ending

_BOLD_STATUS: Final = re.compile(r"(\s*\*\*[^*]+\*\*:?[ \t]*)(.*?)([ \t]*)\Z")
_TABLE_STATUS: Final = re.compile(r"(\s*\|[^|]*\|[ \t]*)([^|]*?)([ \t]*\|?[ \t]*)\Z")


class Mailbox:
    """One text, read as far as it is needed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.eol = ending(text)
        self.others: list[CardPlace] = []  # cards that are not in our own form, once the heads have been read
        self._tables: dict[str, TablePlace | None] = {}

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
        message = cards.quick(text)
        if message is None:
            self.others.append(place)
        several = message is not None and (message.receiver in ("all", "maintainer") or ":" in message.receiver)
        return self.card(place).message if message is None or several else message

    def card(self, place: CardPlace) -> Card:
        """A card with everything that it says."""
        return cards.read(self.text[place.start : place.end])

    def places(self, message_id: str) -> list[CardPlace]:
        """Every card with that ID; more than one is a mistake of somebody."""
        found: list[CardPlace] = self._by_id.get(message_id, [])
        return found

    @cached_property
    def _by_id(self) -> dict[str, list[CardPlace]]:
        found: dict[str, list[CardPlace]] = {}
        for place in self.outline.cards:
            found.setdefault(place.title, []).append(place)
        return found

    def table(self, name: str) -> TablePlace | None:
        """The table of a section."""
        if name not in self._tables:
            section = self.outline.section(name)
            self._tables[name] = None if section is None else find(self.text, section)
        return self._tables[name]

    @cached_property
    def known_names(self) -> tuple[str, ...]:
        """The agents that have a row in the snapshot."""
        table = self.table(INBOX)
        return tuple(one.first for one in table.rows if one.first) if table is not None else ()

    def is_closed(self, message_id: str) -> bool:
        """Whether the closed summary has the message."""
        section = self.outline.section(CLOSED)
        if section is None or message_id not in self.text[section.start : section.end]:
            return False
        return message_id in self.closed_ids

    @cached_property
    def closed_ids(self) -> tuple[str, ...]:
        """The IDs in the closed summary."""
        table = self.table(CLOSED)
        return tuple(one.first for one in table.rows) if table is not None else ()


@lru_cache(maxsize=4)
def opened(text: str) -> Mailbox:
    """The mailbox that a text is; what was read lately is not read again."""
    return Mailbox(text)


def new(title: str) -> str:
    """A mailbox without messages."""
    lines = [f"# {title}", ""]
    for name in SECTIONS:
        lines += empty(name)
    return "\n".join(lines)


def render(message: MailMessage) -> str:
    """The card of a message as we write it."""
    values = {
        "From": f"{message.sender} -> {message.receiver}",
        "Date": message.date,
        "Type": message.type,
        "Priority": message.priority,
        "Status": message.status,
        "Subject": message.subject,
        "Closure owner": message.closure_owner,
        "Review scope": message.review_scope,
        "Response needed by": message.response_needed_by,
    }
    lines = [f"### {message.message_id}", "", *(f"**{name}:** {values[name]}" for name in FIELDS)]
    lines += [f"**{name}:** {value}" for name, value in message.fields.items()]
    if message.body:
        lines += ["", bodies.contained(message.body)]
    if message.acks:
        lines += ["", *map(ack_line, message.acks)]
    return "\n".join(lines) + "\n"


def ack_line(ack: Ack) -> str:
    """The line of an acknowledgement."""
    return f"**Ack:** {ack.actor} — {ack.date} — {ack.reason}"


def complete(text: str, title: str) -> str:
    """The text with every section that it lacks; one that has all of them stays as it is."""
    if not text.strip():
        return new(title)
    there = {section.name for section in opened(text).outline.sections}
    missing = [name for name in SECTIONS if name not in there]
    if not missing:
        return text
    eol = ending(text)
    lines = [line for name in missing for line in empty(name)]
    return text.rstrip("\r\n") + with_ending("\n\n" + "\n".join(lines), eol)


def with_message(text: str, message: MailMessage, policy: Policy) -> str:
    """The text with a new card on top."""
    box = opened(text)
    active = box.outline.section(ACTIVE)
    assert active is not None
    written = with_ending(unix(render(message)), box.eol)
    if box.outline.cards:
        at = box.outline.cards[0].start
        edit = TableEdit(at, at, f"{written}{box.eol}---{box.eol}{box.eol}")
    else:
        before = text[active.inner : active.end].rstrip()
        start = active.inner + len(before)
        head = box.eol * (2 if before else 1) if active.inner and text[active.inner - 1] == "\n" else box.eol * 2
        edit = TableEdit(start, active.end, head + written + box.eol)
    return settled(box, policy, (message, *box.heads), [edit])


def with_change(text: str, message_id: str, change: StatusChange, ack: Ack, policy: Policy) -> str:
    """The text with a card's new status and one acknowledgement more."""
    box = opened(text)
    place = box.places(message_id)[0]
    card = box.card(place)
    edits = _card_edits(box, place, card, change.status, ack)
    after = msgspec.structs.replace(card.message, status=change.status, acks=(*card.message.acks, ack))
    heads = tuple(after if one is place else head for one, head in zip(box.outline.cards, box.heads, strict=True))
    return settled(box, policy, heads, edits, own=place)


def without(text: str, message_id: str, change: StatusChange, ack: Ack, policy: Policy) -> tuple[str, str]:
    """The text without a card that is closed, with its row in the summary; and the card, for the archive."""
    box = opened(text)
    place = box.places(message_id)[0]
    card = box.card(place)
    index = box.outline.cards.index(place)
    own = [
        TableEdit(edit.start - place.start, edit.end - place.start, edit.text)
        for edit in _card_edits(box, place, card, change.status, ack)
    ]
    archived = edited(text[place.start : _content_end(text, place)], own)
    heads = box.heads[:index] + box.heads[index + 1 :]
    edits = [_removal(box, index)]
    if (table := box.table(CLOSED)) is not None:
        message = card.message
        values = (
            message.message_id,
            ack.date[:10],
            f"{message.sender} -> {message.receiver}",
            change.disposition or "closed",
            ack.reason.partition(": ")[2] or ack.reason,
        )
        edits.append(closed_edit(text, table, values, box.eol))
    return settled(box, policy, heads, edits, own=place, gone=message_id), archived


def with_originals(text: str, originals: dict[str, MailMessage], policy: Policy) -> tuple[str, list[tuple[str, str]]]:
    """The text with these cards as they were sent and answered, and each one that said something else.

    Whether an answer that nobody gave through AOF is a person's word or a forgery, says `_words_of_people`.
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
        if cards.read(card).message != msgspec.structs.replace(there, acks=_ordered(there.acks, wanted.acks)):
            changed.append((place.title, text[place.start : end]))
            edits.append(TableEdit(place.start, end, with_ending(card, box.eol)))
            heads[number] = wanted
    return (settled(box, policy, tuple(heads), edits) if edits else text), changed


def _ordered(there: tuple[Ack, ...], wanted: tuple[Ack, ...]) -> tuple[Ack, ...]:
    """The same answers in the wanted order; anything else as it is."""
    return wanted if len(there) == len(wanted) and set(there) == set(wanted) else there


def _words_of_people(there: MailMessage, original: MailMessage, policy: Policy) -> tuple[Ack, ...]:
    """Answers by hand that count: where callers are not bound, of those whose answer it is."""
    group = receivers.is_group(original.receiver)
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
        rows = inbox.inbox(heads, policy, box.known_names)
        edits += snapshot_edits(box.text, table, rows, box.eol)
    if (table := box.table(QUEUE)) is not None:
        edits += queue_edits(box.text, table, waiting, gone, box.eol)
    return edited(box.text, edits)


def _renamed(box: Mailbox, own: CardPlace | None) -> list[TableEdit]:
    """The edits that write `unread` where a person wrote `new`, in all other cards."""
    found = []
    for place in box.others:
        if place is own:
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
        line = f"- {ack.actor} — {ack.date} — {ack.reason}"
    else:
        line = ack_line(ack) if last.lower().startswith("**ack") else f"\n{ack_line(ack)}"
    begin = "" if box.text[behind - 1 : behind] == "\n" else box.eol
    return [*edits, TableEdit(behind, behind, begin + with_ending(line + "\n", box.eol))]


def _status_edit(text: str, place: CardPlace, card: Card, status: str) -> TableEdit:
    assert card.status_line is not None
    start = _line_start(text, place.start, card.status_line)
    line = text[start : text.find("\n", start) if "\n" in text[start:] else len(text)].rstrip("\r")
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


def _removal(box: Mailbox, index: int) -> TableEdit:
    """The edit that takes a card and one separator away."""
    places = box.outline.cards
    place = places[index]
    if index + 1 < len(places):
        return TableEdit(place.start, place.end, "")
    if index == 0:
        return TableEdit(place.start, place.end, "")
    return TableEdit(_content_end(box.text, places[index - 1]), place.end, box.eol)
