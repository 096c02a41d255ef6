"""Where the numbered sections of a charter are, and the fields in each. Must not know what a section means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from aof.core.documents.charter.model import TITLES
from aof.documents.markdown import Line, bold_field, heading, plain_field, scan, tables

_NUMBERED: Final = re.compile(r"(\d{1,2})[).:]?[ \t]*(.*)\Z")
_NUMBER_OF: Final = {title.casefold(): number for number, title in TITLES.items()}
_SECTION, _SUBSECTION = 2, 3
_BULLET: Final = re.compile(r"[ \t]*[-*+][ \t]+(.*)\Z")


class CharterSection(msgspec.Struct, frozen=True):
    """A section from its heading to the next: its number (0 for an unknown one), and its lines without the heading."""

    number: int
    title: str
    line: int
    lines: tuple[Line, ...]

    @property
    def end(self) -> int:
        """The number of the line behind it."""
        return self.line + 1 + len(self.lines)

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return not any(line.text.strip() and line.kind != "comment" for line in self.lines)


def sections(text: str) -> tuple[CharterSection, ...]:
    """The sections of a charter in the order of the file."""
    lines = scan(text)
    begins = [
        (place, title)
        for place, line in enumerate(lines)
        if line.kind == "text" and (found := heading(line.text)) and found[0] == _SECTION and (title := found[1])
    ]
    ends = [place for place, _ in begins[1:]] + [len(lines)]
    return tuple(
        CharterSection(number_of(title), title, lines[place].number, tuple(lines[place + 1 : end]))
        for (place, title), end in zip(begins, ends, strict=False)
    )


def number_of(title: str) -> int:
    """The number of a section by its heading: by the title that we know, else by the number that it has."""
    found = _NUMBERED.match(title)
    name = (found[2] if found else title).strip().casefold()
    if name in _NUMBER_OF:
        return _NUMBER_OF[name]
    number = int(found[1]) if found else 0
    return number if number in TITLES else 0


def fields(lines: Sequence[Line]) -> Iterator[tuple[str, str, int]]:
    """Key, value and line of every field, in tables of two columns, bold lines, plain lines and bullets."""
    inside: set[int] = set()
    for table in tables(lines):
        inside |= set(range(table.begin, table.end))
        for row in table.rows:
            if row.cells:
                yield row.cells[0], row.cells[1] if len(row.cells) > 1 else "", row.number
    for line in lines:
        if line.kind == "text" and line.number not in inside:
            bullet = _BULLET.match(line.text)
            said = bullet[1] if bullet else line.text
            if found := bold_field(said) or plain_field(said):
                yield *found, line.number


def subsections(section: CharterSection) -> Iterator[tuple[str, int, tuple[Line, ...]]]:
    """Title, line and lines of each subsection."""
    begins = [
        (place, found[1])
        for place, line in enumerate(section.lines)
        if line.kind == "text" and (found := heading(line.text)) and found[0] == _SUBSECTION
    ]
    ends = [place for place, _ in begins[1:]] + [len(section.lines)]
    for (place, title), end in zip(begins, ends, strict=False):
        yield title, section.lines[place].number, section.lines[place + 1 : end]
