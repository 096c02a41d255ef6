"""Writing a WORKLOG: entries, and the few lines of a file that a change concerns. All other lines stay as they are.

Texts that are made here have plain line feeds; a file keeps its own line ending. Must not know who may write what.
"""

from __future__ import annotations

from collections.abc import Iterable

from aof.documents import markdown
from aof.documents.escaping import contained, inline
from aof.documents.worklog import forms
from aof.documents.worklog.model import CHECKPOINT, FOCUS, IDLE, Worklog, WorklogSession
from aof.documents.worklog.parser import (
    ARCHIVED,
    ARCHIVED_HEADER,
    INDEX,
    INDEX_HEADER,
    TITLE,
    parse,
)


def entry(actor: str, subject: str, moment: str, form: str, body: str = "") -> str:
    """An entry with a heading. `moment` is ISO-8601 in UTC; `form` is written already, `body` is somebody's text."""
    parts = [f"### {actor}: {inline(subject)}", when(moment), form]
    if body.strip():
        parts.append(contained(body, forms.RESERVED))
    return "\n\n".join(part for part in parts if part)


def when(moment: str) -> str:
    """A moment as entries and rows show it."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def session_heading(number: int, date: str) -> str:
    """What a session begins with."""
    return f"## Session {number} — {date}"


def new(project: str, agents: Iterable[str] = ()) -> str:
    """A file without sessions."""
    status = [status_line(agent, IDLE) for agent in agents]
    lines = [
        f"# {TITLE} — {inline(project)}",
        "",
        *status,
        f"{FOCUS}: {forms.NONE}",
        f"{CHECKPOINT}: {forms.NONE}",
        "",
        f"## {INDEX}",
        "",
        *markdown.table(INDEX_HEADER),
    ]
    return "\n".join(lines) + "\n"


def new_archive(project: str) -> str:
    """An archive without sessions."""
    return f"# {TITLE} archive — {inline(project)}\n"


def status_line(key: str, text: str) -> str:
    """One line of the pinned block."""
    name = key if key in (FOCUS, CHECKPOINT) else f"Now Working ({key})"
    return f"{name}: {inline(text) or forms.NONE}"


def with_status(text: str, key: str, said: str) -> str:
    """The file with one pinned line changed, or added where there is none for that key."""
    end, lines, known = markdown.ending(text), markdown.split(text), parse(text)
    line = status_line(key, said)
    for one in known.status:
        if one.key == key:
            old = lines[one.number - 1]
            fresh = line + old[len(old.rstrip("\r\n")) :]
            lines[one.number - 1] = fresh if one.text != inline(said) else old
            return "".join(lines)
    place = _place_of_status(known, key)
    if place:
        _ended(lines, place, end)
        lines.insert(place, f"{line}{end}")
    else:
        title = next((at for at, own in enumerate(lines, 1) if own.startswith("# ")), 0)
        _ended(lines, title, end)
        lines[title:title] = [f"{end}{line}{end}"] if title else [f"{line}{end}{end}"]
    return "".join(lines)


def _ended(lines: list[str], count: int, end: str) -> None:
    """The last line of a file may have no end; what is put behind it needs one."""
    if count and not lines[count - 1].endswith("\n"):
        lines[count - 1] += end


def _place_of_status(known: Worklog, key: str) -> int:
    """Behind the last line of an agent; the maintainer's lines follow those of the agents."""
    agents = [one.number for one in known.status if one.agent]
    if key in (FOCUS, CHECKPOINT):
        return max((one.number for one in known.status), default=0)
    if agents:
        return max(agents)
    return min((one.number for one in known.status), default=1) - 1


def with_row(text: str, section: str, header: tuple[str, ...], cells: Iterable[str]) -> str:
    """The file with a row added at the end of a section's table; section and table are made where they are missing."""
    end, lines, known = markdown.ending(text), markdown.split(text), parse(text)
    behind = known.index_end if section == INDEX else known.archived_end
    row = markdown.row(cells)
    if behind:
        _ended(lines, behind - 1, end)
        lines.insert(behind - 1, f"{row}{end}")
        return "".join(lines)
    place = _place_of_section(known, lines, section)
    made = markdown.with_ending("\n".join([f"## {section}", "", *markdown.table(header), row, "", ""]), end)
    _ended(lines, place, end)
    lines.insert(place, made if not place or not lines[place - 1].strip() else f"{end}{made}")
    return "".join(lines)


def _place_of_section(known: Worklog, lines: list[str], section: str) -> int:
    """The index comes above the archived sessions, and both above the sessions."""
    first = known.sessions[0].begin - 1 if known.sessions else len(lines)
    if section == ARCHIVED:
        return first
    heads = (place for place, line in enumerate(lines) if line.rstrip() == f"## {ARCHIVED}")
    return min(next(heads, first), first)


def with_decision(text: str, cells: Iterable[str]) -> str:
    """The file with a further row in the decision index."""
    return with_row(text, INDEX, INDEX_HEADER, cells)


def without(text: str, sessions: Iterable[WorklogSession], rows: Iterable[Iterable[str]]) -> str:
    """The file without some sessions, and with a row for each of them in the table of archived ones."""
    lines = markdown.split(text)
    for session in sorted(sessions, key=lambda one: -one.begin):
        del lines[session.begin - 1 : session.end - 1]
    shorter = "".join(lines)
    for cells in rows:
        shorter = with_row(shorter, ARCHIVED, ARCHIVED_HEADER, cells)
    return shorter


def text_of(text: str, session: WorklogSession) -> str:
    """A session as it stands in the file."""
    return "".join(markdown.split(text)[session.begin - 1 : session.end - 1])


class Appender:
    """Adds entries at the end of a file, and begins a session for each new day."""

    def __init__(self, end: str, session: int, date: str) -> None:
        self.end = end
        self.session = session
        self.date = date
        self._added: list[str] = []

    def add(self, text: str, date: str) -> None:
        """Add an entry that was written on that day."""
        if not self.session or date > self.date or not self.date:
            self.session, self.date = self.session + 1, max(date, self.date)
            self._added.append(f"{session_heading(self.session, self.date)}\n")
        self._added.append(f"{text}\n")

    def text(self) -> str:
        """What is added, with a blank line before each entry."""
        return markdown.with_ending("".join(f"\n{one}" for one in self._added), self.end)
