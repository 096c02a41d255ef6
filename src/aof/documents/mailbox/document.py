"""MAILBOX.md as a document that follows the log, with the archive of closed messages beside it.

What an event says is written once: a message is recognised by its ID, a change by its line. Must not know where files
lie, nor who may send what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from aof.core.documents.mailbox import facts
from aof.core.documents.mailbox.message import Ack, MailMessage, is_message_id
from aof.core.model.events import Event
from aof.core.model.policy import Policy
from aof.documents import edits
from aof.documents.edits import HandEdit
from aof.documents.mailbox import mailbox
from aof.documents.mailbox.mailbox import ack_line, opened
from aof.documents.mailbox.outline import CLOSED
from aof.documents.mailbox.tables import TableEdit, edited
from aof.documents.markdown import ending, with_ending
from aof.documents.projection import Extension, Facts, Files, PastEvents, Rewritten

_OWN = "own"  # nobody but AOF has written the files since they were made: the log has all that they say
_UNTOLD = (facts.ESCALATED, facts.SETTLED)  # nothing in these files tells of it


class MailboxDocument:
    """Keeps the contract of `documents.projection.Projection`."""

    name = facts.DOCUMENT
    path = facts.PATH
    types = (facts.TYPES,)

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:  # noqa: ARG002 - the contract
        """New messages go on top: nothing is ever added at the end."""
        return None

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, known: Facts) -> Rewritten:  # noqa: ARG002 - the contract
        """The mailbox and its archive with what the events say."""
        writing = _Writing(files, self._policy)
        if past is not None and not past.applied and "\0" in writing.text:
            writing.text = ""  # a power cut has taken what only we had written
        begun = not writing.text.strip() and not writing.archive.strip()
        read = writing.read(past) if past is not None else []
        if past is not None:
            past = PastEvents(chain(read, past.events), past.applied)
        for event in _missing(writing, past):
            writing.apply(event)
        writing.restore(_told(reversed(read)))
        for event in fresh:
            writing.apply(event)
        own = begun or files.note == _OWN
        return Rewritten(writing.texts(), _OWN if own else "", flushed=not own)


def _missing(writing: _Writing, past: PastEvents | None) -> list[Event]:
    """The events, oldest first, that were not written yet.

    They were written in order, so that everything before one that is there is there as well. Where each was written
    once, what is gone was removed by a person; unless the whole file is.
    """
    if past is None or (past.applied and writing.text.strip()):
        return []
    found: list[Event] = []
    for event in past.events:
        if event.type in _UNTOLD:
            continue
        if writing.text.strip() and writing.has(event):
            break
        found.append(event)
    return found[::-1]


class _Writing:
    """The two texts, while events are applied to them."""

    def __init__(self, files: Files, policy: Policy) -> None:
        self._files = files
        self._policy = policy
        self.text = self._before = files.text(facts.PATH)
        self._archive: str | None = None
        self._kept = ""

    def read(self, past: PastEvents) -> list[Event]:
        """The events about the cards that are there, newest first."""
        ids = (place.title for place in opened(self.text).outline.cards if is_message_id(place.title))
        first = min((f"{one[4:8]}-{one[8:10]}-{one[10:12]}" for one in ids), default="")
        found: list[Event] = []
        for event in past.events if first else ():
            found.append(event)
            if event.timestamp[:10] < first:
                break
        return found

    def restore(self, told: dict[str, MailMessage]) -> None:
        """Put back what a person has changed in cards that the log has, and keep what it was made to be."""
        self.text, changed = mailbox.with_originals(self.text, told, self._policy)
        by_hand = [
            HandEdit(f"a person changed {one} from {told[one].sender} to {told[one].receiver}", card.rstrip())
            for one, card in changed
        ]
        if by_hand:
            self._kept = edits.with_kept(self._files.text(facts.EDITS), facts.PATH, by_hand)

    @property
    def archive(self) -> str:
        """The archive, read when it is first needed."""
        if self._archive is None:
            self._archive = self._files.text(facts.ARCHIVE)
        return self._archive

    def texts(self) -> dict[str, str]:
        """What has changed; the mailbox last, so that no message and no word of a person is ever nowhere."""
        changed = {facts.EDITS: self._kept} if self._kept else {}
        if self._archive is not None and self._archive != self._files.text(facts.ARCHIVE):
            changed[facts.ARCHIVE] = self._archive
        if self.text != self._before:
            changed[facts.PATH] = self.text
        return changed

    def has(self, event: Event) -> bool:
        """Whether the texts tell of the event already."""
        payload = event.payload
        if event.type == facts.SENT:
            return self._knows(payload["messageId"])
        if event.type == facts.ARCHIVED:
            return not set(payload["messageIds"]) & set(opened(self.text).closed_ids)
        _, ack = facts.change_in(payload)
        if event.type == facts.CLOSED and opened(self.text).places(payload["messageId"]):
            return False  # the archive was written, and then the writer died
        return (event.type == facts.CHANGED and _said(ack, self.text)) or _said(ack, self.archive)

    def apply(self, event: Event) -> None:
        """Write what the event says, unless it is written."""
        payload = event.payload
        if event.type == facts.SENT:
            self._send(event)
        elif event.type == facts.ARCHIVED:
            self.text = without_rows(self.text, frozenset(payload["messageIds"]))
        elif event.type == facts.SETTLED:
            box = opened(self.text)
            self.text = mailbox.settled(box, self._policy, box.heads, [])
        elif event.type in (facts.CHANGED, facts.CLOSED) and opened(self.text).places(payload["messageId"]):
            self._change(event)

    def _send(self, event: Event) -> None:
        message = facts.message_in(event.payload)
        if self._knows(message.message_id):
            return
        self.text = mailbox.complete(self.text, f"Mailbox — {self._policy.project}")
        self.text = mailbox.with_message(self.text, message, self._policy)

    def _change(self, event: Event) -> None:
        message_id = event.payload["messageId"]
        change, ack = facts.change_in(event.payload)
        if event.type == facts.CHANGED:
            box = opened(self.text)
            if ack not in box.card(box.places(message_id)[0]).message.acks:
                self.text = mailbox.with_change(self.text, message_id, change, ack, self._policy)
            return
        self.text, card = mailbox.without(self.text, message_id, change, ack, self._policy)
        if not _has_card(self.archive, message_id):
            self._archive = _added(self.archive, card, f"Mailbox archive — {self._policy.project}")

    def _knows(self, message_id: str) -> bool:
        box = opened(self.text)
        return bool(box.places(message_id)) or box.is_closed(message_id)


def _told(events: Iterable[Event]) -> dict[str, MailMessage]:
    """Messages as they were sent and answered through AOF; without those that were closed."""
    told: dict[str, MailMessage] = {}
    for event in events:
        if event.type == facts.SENT:
            message = facts.message_in(event.payload)
            told[message.message_id] = message
        elif event.type == facts.CHANGED and event.payload["messageId"] in told:
            before = told[event.payload["messageId"]]
            change, ack = facts.change_in(event.payload)
            told[before.message_id] = msgspec.structs.replace(before, status=change.status, acks=(*before.acks, ack))
        elif event.type == facts.CLOSED:
            told.pop(event.payload["messageId"], None)
    return told


def _said(ack: Ack, text: str) -> bool:
    return ack_line(ack) in text or f"- {ack.actor} — {ack.date} — {ack.reason}" in text


def _has_card(archive: str, message_id: str) -> bool:
    return f"### {message_id}\n" in archive or f"### {message_id}\r\n" in archive


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
    return edited(text, [TableEdit(row.start, row.end, "") for row in rows if row.cells and row.cells[0] in ids])
