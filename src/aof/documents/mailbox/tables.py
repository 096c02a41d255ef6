"""The tables of a mailbox: inbox snapshot, open queue and closed summary, as edits of the lines that must change.

What a person wrote beside our rows stays. Must not know cards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

import msgspec

from aof.core.documents.mailbox.inbox import InboxRow
from aof.core.documents.mailbox.message import MailMessage
from aof.documents.mailbox.outline import CLOSED, INBOX, QUEUE, MailboxSection
from aof.documents.markdown import cells, row

_DELIMITER: Final = frozenset(":-| \t\r\n")
HEADERS: Final[dict[str, tuple[str, ...]]] = {
    INBOX: ("Agent", "Unread", "Oldest unread", "Needs response by"),
    QUEUE: ("ID", "From -> To", "Priority", "Subject"),
    CLOSED: ("ID", "Date", "From -> To", "Final status", "Outcome"),
}


class TableEdit(msgspec.Struct, frozen=True):
    """A part of a text and what stands in its place."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[TableEdit]) -> str:
    """The text with all edits made; they do not overlap."""
    parts, last = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += [text[last : edit.start], edit.text]
        last = edit.end
    return "".join((*parts, text[last:]))


class RowPlace:
    """A row of a table: where its line is, and what its first cell says; most rows are looked for by that."""

    __slots__ = ("_line", "end", "first", "start")

    def __init__(self, start: int, end: int, line: str) -> None:
        self.start = start
        self.end = end
        self._line = line
        self.first = line.strip()[1:].partition("|")[0].strip() if "\\" not in line else next(iter(cells(line)), "")

    @property
    def cells(self) -> tuple[str, ...]:
        """What each cell says."""
        return cells(self._line)


class TablePlace:
    """The first table of a section; `top` is where its first row goes. The rows are read when they are asked for."""

    def __init__(self, text: str, header: tuple[str, ...], top: int, end: int) -> None:
        self._text = text
        self._end = end
        self.header = header
        self.top = top

    @cached_property
    def rows(self) -> tuple[RowPlace, ...]:
        """Every line that follows and begins with a bar."""
        found: list[RowPlace] = []
        place, text = self.top, self._text
        while place < self._end:
            end = text.find("\n", place) + 1 or len(text)
            line = text[place : min(end, self._end)]
            if not (line.startswith("|") or line.lstrip().startswith("|")):
                break
            found.append(RowPlace(place, end, line))
            place = end
        return tuple(found)

    @property
    def bottom(self) -> int:
        """Where a row is added at the end."""
        return self.rows[-1].end if self.rows else self.top


def find(text: str, section: MailboxSection) -> TablePlace | None:
    """The table of a section, half-edited or not."""
    place = section.inner
    while place < section.end:
        end = text.find("\n", place) + 1 or len(text)
        line = text[place : min(end, section.end)]
        if line.lstrip().startswith("|"):
            below = text[end : text.find("\n", end) + 1 or len(text)] if end < section.end else ""
            dashes = "-" in below and set(below) <= _DELIMITER
            return TablePlace(text, cells(line), end + len(below) if dashes else end, section.end)
        place = end
    return None


def snapshot_cells(one: InboxRow) -> tuple[str, ...]:
    """The cells of an agent's row."""
    return (one.agent, str(one.unread), one.oldest_unread, one.needs_response_by)


def queue_cells(message: MailMessage) -> tuple[str, ...]:
    """The cells of a message's row in the queue."""
    return (message.message_id, f"{message.sender} -> {message.receiver}", message.priority, cell(message.subject))


def cell(text: str) -> str:
    """A text for a table that every reader splits alike: a bar that is no separator looks like one."""
    return text.replace("|", "¦")


def snapshot_edits(text: str, table: TablePlace, wanted: Sequence[InboxRow], eol: str) -> list[TableEdit]:
    """What makes the rows say what the cards say; only rows that differ are written."""
    there = {place.first: place for place in reversed(table.rows)}
    edits, new = [], []
    for one in wanted:
        place = there.get(one.agent)
        if place is None:
            new.append(row(snapshot_cells(one)) + eol)
        elif place.cells != snapshot_cells(one):
            edits.append(TableEdit(place.start, place.end, row(snapshot_cells(one)) + eol))
    if new:
        edits.append(_insert(text, table.bottom, "".join(new), eol))
    return edits


def queue_edits(
    text: str, table: TablePlace, wanted: Sequence[MailMessage], gone: str | None, eol: str
) -> list[TableEdit]:
    """What gives every open card its row, newest first, and takes away the row of the one that is gone."""
    there = {place.first: place for place in reversed(table.rows)}
    edits = [TableEdit(place.start, place.end, "") for place in table.rows if gone is not None and place.first == gone]
    at, waiting = table.top, []
    for message in wanted:
        place = there.get(message.message_id)
        if place is None:
            waiting.append(row(queue_cells(message)) + eol)
            continue
        if waiting:
            edits.append(_insert(text, place.start, "".join(waiting), eol))
            waiting = []
        at = place.end
    if waiting:
        edits.append(_insert(text, at, "".join(waiting), eol))
    return edits


def closed_edit(text: str, table: TablePlace, values: Iterable[str], eol: str) -> TableEdit:
    """A row on top of the closed summary."""
    return _insert(text, table.top, row(map(cell, values)) + eol, eol)


def _insert(text: str, place: int, lines: str, eol: str) -> TableEdit:
    """New lines at a place; what stands before it without a line end gets one."""
    begin = "" if place == 0 or text[place - 1] == "\n" else eol
    return TableEdit(place, place, begin + lines)


def empty(name: str) -> list[str]:
    """The lines of a section that has no rows yet."""
    lines = [f"## {name}", ""]
    if name in HEADERS:
        lines += [row(HEADERS[name]), "|" + " --- |" * len(HEADERS[name]), ""]
    return lines
