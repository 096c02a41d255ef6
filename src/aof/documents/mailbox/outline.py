"""Where the headings of a mailbox are, and with them its sections and cards. One pass in C over the whole text.

Headings within fenced blocks and comments are none; a fence or a comment that is never closed hides nothing. Must not
know what a section or a card says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from aof.documents.markdown import closes_code, heading, opens_code

INBOX: Final = "Inbox Snapshot"
QUEUE: Final = "Open Queue (Newest First)"
ACTIVE: Final = "Active Messages (Newest First)"
CLOSED: Final = "Closed Summary"
SECTIONS: Final = (INBOX, QUEUE, ACTIVE, CLOSED)
_ALSO: Final = {"Closed Summary (Newest First)": CLOSED}
_MARK: Final = re.compile(r"\n(?= {0,3}(?:#{2,3}[ \t]|`{3}|~{3})|[ \t]*<!--)")
_UNUSUAL: Final = ("```", "~~~", "<!--", "\n #", "\n  #", "\n   #")
_SECTION, _CARD = 2, 3


class MailboxSection(msgspec.Struct, frozen=True):
    """A section by the name that we give it, from its heading to the next; `inner` is behind the heading's line."""

    name: str
    start: int
    inner: int
    end: int


class CardPlace(msgspec.Struct, frozen=True):
    """A card from its heading to where the next one begins, with its separator."""

    title: str
    start: int
    end: int


class Outline(msgspec.Struct, frozen=True):
    """The sections in order, and the cards of the active one."""

    sections: tuple[MailboxSection, ...]
    cards: tuple[CardPlace, ...]

    def section(self, name: str) -> MailboxSection | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)


def outline(text: str) -> Outline:
    """The sections and cards of a text."""
    found = list(_headings(text))
    tops = [(start, title) for start, level, title in found if level == _SECTION]
    sections = tuple(
        MailboxSection(_ALSO.get(title, title), start, _line_end(text, start), end)
        for start, title, end in _spans(tops, len(text))
    )
    active = next((section for section in sections if section.name == ACTIVE), None)
    if active is None:
        return Outline(sections, ())
    inside = [one for one in found if active.start < one[0] < active.end]
    return Outline(sections, _cards(inside, active.end))


def cards_of(text: str) -> tuple[CardPlace, ...]:
    """Every card of a text without sections, such as an archive."""
    return _cards(list(_headings(text)), len(text))


def _cards(headings: list[tuple[int, int, str]], end: int) -> tuple[CardPlace, ...]:
    begins = [(start, title) for start, level, title in headings if level == _CARD and title.startswith("MSG")]
    return tuple(CardPlace(title, start, behind) for start, title, behind in _spans(begins, end))


def _spans(begins: list[tuple[int, str]], end: int) -> Iterator[tuple[int, str, int]]:
    """Each beginning with the next one, the last with the end of all."""
    for step, (start, title) in enumerate(begins, 1):
        yield start, title, begins[step][0] if step < len(begins) else end


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """The start, level and title of each heading of the second or third level."""
    marks = _marks(text)
    step = 0
    while step < len(marks):
        start = marks[step]
        step += 1
        line = text[start : _line_end(text, start)].rstrip("\r\n")
        if line.startswith("### MSG-"):
            yield start, _CARD, line[4:].strip()
        elif (found := heading(line)) is not None:
            if found[0] in (_SECTION, _CARD):
                yield start, *found
        elif (behind := _hidden_until(text, start, line, marks, step)) is not None:
            while step < len(marks) and marks[step] < behind:
                step += 1


def _marks(text: str) -> list[int]:
    """The beginnings of all lines that may matter. Where nothing can hide a heading, only headings do."""
    if any(one in text for one in _UNUSUAL):
        return [0, *(mark.end() for mark in _MARK.finditer(text))]
    found, place = [0], text.find("\n##")
    while place >= 0:
        found.append(place + 1)
        place = text.find("\n##", place + 1)
    return found


def _hidden_until(text: str, start: int, line: str, marks: list[int], step: int) -> int | None:
    """Where the fenced block or the comment that begins here ends; None where nothing is hidden."""
    if (opened := opens_code(line)) is not None:
        for later in range(step, len(marks)):
            place = marks[later]
            end = _line_end(text, place)
            if closes_code(text[place:end].rstrip("\r\n"), opened):
                return end
    elif line.lstrip().startswith("<!--"):
        closed = text.find("-->", start)
        return None if closed < 0 else _line_end(text, closed)
    return None


def _line_end(text: str, start: int) -> int:
    """The place behind the line that holds this place."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def line_number(text: str, place: int) -> int:
    """The number of the line that holds this place."""
    return text.count("\n", 0, place) + 1
