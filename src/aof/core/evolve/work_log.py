"""The one `## Work Log` section of a task's body, and the part around it. Must not know what an entry says."""

from __future__ import annotations

import re
from typing import Final

HEADING: Final = "## Work Log"
_HEADING_LINE = re.compile(r"## Work Log[ \t]*\Z")
_SECTION_LINE = re.compile(r"#{1,2}[ \t]")
_FENCE = re.compile(r" ?(`{3,}|~{3,})(.*)\Z")


def _section(body: str) -> tuple[int, int] | None:
    """Where the section's heading begins and where the section ends, outside of code."""
    start: int | None = None
    for position, line in _outside_code(body):
        if start is not None and _SECTION_LINE.match(line):
            return start, position
        if start is None and _HEADING_LINE.match(line):
            start = position
    return None if start is None else (start, len(body))


def _outside_code(body: str) -> list[tuple[int, str]]:
    """The lines that are not within a code fence, each with its place.

    A fence that is never closed hides nothing, and neither does one that is indented, as the lines of an entry are.
    """
    found: list[tuple[int, str]] = []
    hidden: list[tuple[int, str]] = []
    fence = ""
    position = 0
    for whole in body.split("\n"):
        line = whole.rstrip("\r")
        mark = _FENCE.match(line)
        if fence:
            hidden.append((position, line))
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence, hidden = "", []
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence, hidden = mark[1], [(position, line)]
        else:
            found.append((position, line))
        position += len(whole) + 1
    return found + hidden


def append(body: str, timestamp: str, text: str) -> str:
    """Add an entry at the end of the section, making the section where there is none."""
    end = "\r\n" if "\r\n" in body else "\n"
    entry = f"- {timestamp} " + f"{end}  ".join(text.strip().splitlines()) + end
    place = _section(body)
    if place is None:
        gap = "" if not body else end if body.endswith("\n") else end * 2
        return f"{body}{gap}{HEADING}{end}{end}{entry}"
    kept, after = body[: place[1]].rstrip("\r\n"), body[place[1] :]
    gap = end * 2 if _HEADING_LINE.match(kept[place[0] :]) else end
    return f"{kept}{gap}{entry}" + (f"{end}{after}" if after else "")


def description(body: str) -> str:
    """The body without its work log."""
    place = _section(body)
    return body if place is None else body[: place[0]] + body[place[1] :]


def with_description(body: str, text: str) -> str:
    """Replace everything but the work log, whose bytes stay as they are; a work log in the new text is not taken."""
    place = _section(body)
    text = ended(description(text).rstrip("\r\n"))
    if place is None:
        return text
    return f"{text}\n{body[place[0] : place[1]]}" if text else body[place[0] : place[1]]


def ended(text: str) -> str:
    """A body ends with a newline, as a text file does."""
    return text if not text or text.endswith("\n") else f"{text}\n"
