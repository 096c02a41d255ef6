"""The body of a message inside of its card: no line of it poses as a field, a heading or an acknowledgement.

Beyond what every document escapes, a card gives meaning to bold fields and to its table, at any indentation. Must not
know what a card is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aof.documents import escaping
from aof.documents.markdown import code_blocks

# Bold text, headings and rules deeper than Markdown looks for them, and the first row of a card's table.
_OWN: Final = re.compile(r"(\s*)(\\*)(?=\*\*|\|\s*Field\s*\|)|((?: {4}|\s*[^\S ])\s*)(\\*)(?=#{1,6}(?:\s|\Z)|---)")


def trimmed(text: str) -> str:
    """The text without blank lines around it; spaces at its end are no text either."""
    lines = text.rstrip().split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    return "\n".join(lines[first:])


def contained(body: str) -> str:
    """The body as it stands in a card."""
    lines = escaping.contained(body).split("\n")
    for place in _outside_code(lines):
        if found := _OWN.match(lines[place]):
            lines[place] = f"{lines[place][: found.end()]}\\{lines[place][found.end() :]}"
    return "\n".join(lines)


def original(text: str) -> str:
    """What `contained` was made from."""
    lines = text.split("\n")
    for place in _outside_code(lines):
        found = _OWN.match(lines[place])
        if found is not None and (found[2] or found[4]):
            lines[place] = lines[place][: found.end() - 1] + lines[place][found.end() :]
    return escaping.original("\n".join(lines))


def _outside_code(lines: list[str]) -> Iterator[int]:
    """The places of lines that are in no fenced block; a fence that is never closed is none."""
    place = 0
    blocks = code_blocks(lines)
    while place < len(lines):
        if place in blocks:
            place = blocks[place]
        else:
            yield place
            place += 1
