"""The comments of a task as its body holds them: who said what when, one entry each. Must not know who may comment.

An entry is `- <moment> <author>: <text>`, its further lines indented by two spaces. A person may write to the section,
too: what has no moment or author is a comment all the same.
"""

from __future__ import annotations

import re

import msgspec

from aof.core.evolve import work_log

_SIGNED = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z) ([^\n]{1,128}?): (.*)\Z", re.ASCII | re.DOTALL)


class TaskComment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody said of a task; without `at` and `by`, somebody wrote it into the file."""

    text: str
    at: str | None = None
    by: str | None = None


def add(body: str, timestamp: str, author: str, text: str) -> str:
    """The body with one more comment."""
    return work_log.append(body, timestamp, f"{author}: {text.strip()}", work_log.COMMENTS)


def comments_of(body: str) -> tuple[TaskComment, ...]:
    """All comments, oldest first."""
    place = work_log.section(body, work_log.COMMENTS)
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
