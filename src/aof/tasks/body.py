"""The sections of a task's body that entries are appended to: the work log and the comments."""

from __future__ import annotations

import re
from typing import Final

import msgspec

HEADING: Final = "## Work Log"
COMMENTS: Final = "## Comments"
_SECTION_LINE = re.compile(r"#{1,2}[ \t]")
_FENCE = re.compile(r" ?(`{3,}|~{3,})(.*)\Z")


def section(body: str, heading: str = HEADING) -> tuple[int, int] | None:
    """Where the section's heading begins and where the section ends, outside of code."""
    if heading not in body:  # as in most
        return None
    start: int | None = None
    for position, line in _outside_code(body):
        if start is not None and _SECTION_LINE.match(line):
            return start, position
        if start is None and line.rstrip(" \t") == heading:
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


def append(body: str, timestamp: str, text: str, heading: str = HEADING) -> str:
    """Add an entry at the end of the section, making the section where there is none."""
    end = "\r\n" if "\r\n" in body else "\n"
    entry = f"- {timestamp} " + f"{end}  ".join(text.strip().splitlines()) + end
    place = section(body, heading)
    if place is None:
        gap = "" if not body else end if body.endswith("\n") else end * 2
        return f"{body}{gap}{heading}{end}{end}{entry}"
    kept, after = body[: place[1]].rstrip("\r\n"), body[place[1] :]
    gap = end * 2 if kept[place[0] :].rstrip(" \t") == heading else end
    return f"{kept}{gap}{entry}" + (f"{end}{after}" if after else "")


def description(body: str) -> str:
    """The body without its work log and its comments."""
    for start, end in reversed(_sections(body)):
        body = body[:start] + body[end:]
    return body


def parts(body: str) -> tuple[str, str, str]:
    """Description, comments and work log, each without its heading."""
    said = (section(body, heading) for heading in (COMMENTS, HEADING))
    inside = [body[place[0] : place[1]].partition("\n")[2] if place is not None else "" for place in said]
    return description(body), inside[0], inside[1]


def with_description(body: str, text: str) -> str:
    """Replace all but work log and comments, whose bytes stay as they are; such a section of `text` is not taken."""
    text = ended(description(text).rstrip("\r\n"))
    kept = "".join(body[start:end] for start, end in _sections(body))
    return f"{text}\n{kept}" if text and kept else text or kept


def with_comments_of(body: str, text: str) -> str:
    """A new body with the comments of the old one: they are not its author's to change."""
    old = section(body, COMMENTS)
    if old is None:
        return text
    new = section(text, COMMENTS)
    text = (text if new is None else text[: new[0]] + text[new[1] :]).rstrip("\r\n")
    return f"{text}\n\n{ended(body[old[0] : old[1]].rstrip())}" if text else body[old[0] : old[1]]


def _sections(body: str) -> list[tuple[int, int]]:
    return sorted(place for heading in (HEADING, COMMENTS) if (place := section(body, heading)) is not None)


def ended(text: str) -> str:
    """A body ends with a newline, as a text file does."""
    return text if not text or text.endswith("\n") else f"{text}\n"


_SIGNED = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z) ([^\n]{1,128}?): (.*)\Z", re.ASCII | re.DOTALL)


class TaskComment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody said of a task; without `at` and `by`, somebody wrote it into the file."""

    text: str
    at: str | None = None
    by: str | None = None


def add_comment(body: str, timestamp: str, author: str, text: str) -> str:
    """The body with one more comment."""
    return append(body, timestamp, f"{author}: {text.strip()}", COMMENTS)


def comments_of(body: str) -> tuple[TaskComment, ...]:
    """All comments, oldest first."""
    place = section(body, COMMENTS)
    if place is None:
        return ()
    entries: list[list[str]] = []
    for line in body[place[0] : place[1]].splitlines()[1:]:
        if entries and (line.startswith("  ") or not line.strip()):
            entries[-1].append(line[2:])
        elif line.strip():
            entries.append([line.removeprefix("- ")])
    return tuple(_read("\n".join(lines).strip()) for lines in entries)


def _read(entry: str) -> TaskComment:
    signed = _SIGNED.match(entry)
    return TaskComment(text=entry) if signed is None else TaskComment(at=signed[1], by=signed[2], text=signed[3])
