"""A WORKLOG as people and AOF write it, read into its parts.

Nothing makes reading fail: what is odd is reported by its line. Must not change anything, nor know who may write what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from aof.core.validation.findings import Finding, Severity
from aof.documents import markdown
from aof.documents.escaping import inline_original
from aof.documents.markdown import Line
from aof.documents.worklog import forms
from aof.documents.worklog.model import PATH, Archived, Decided, Entry, StatusLine, Worklog, WorklogSession

TITLE: Final = "Worklog"
INDEX: Final = "Decision Index"
ARCHIVED: Final = "Archived Sessions"
INDEX_HEADER: Final = ("Decision", "Owner", "Timestamp", "Section")
ARCHIVED_HEADER: Final = ("Session", "Date", "Summary")

_SESSION: Final = re.compile(r"Session[ \t]+(\d{1,9})(?:[ \t]*[—\u2013:-]+[ \t]*(.*))?\Z")
_DATE: Final = re.compile(r"\d{4}-[01]\d-[0-3]\d")
_STATUS: Final = re.compile(
    r"(?:[-*][ \t]+)?(?:\*\*)?"
    r"(?:Now Working \((?P<agent>[^()\n]{1,128})\)|(?P<key>Maintainer Focus|Next Review Checkpoint))"
    r"(?:\*\*)?:(?:\*\*)?[ \t]*(?P<text>.*)\Z"
)
_WHEN: Final = re.compile(
    r"(?P<date>\d{4}-[01]\d-[0-3]\d)?(?:[ \tT]*(?P<time>[0-2]\d:[0-5]\d)(?::\d\d)?)?[ \t]*(?:UTC|Z)?\Z"
)
_HEADING: Final = re.compile(
    r"(?:(?P<date>\d{4}-[01]\d-[0-3]\d)?[ \tT]*(?P<time>[0-2]\d:[0-5]\d)?(?:[ \t]*(?:UTC|Z))?[ \t]*[—\u2013-]+[ \t]*)?"
    r"(?:(?P<actor>[^\s:][^:]{0,127}?(?::[^:\s]+)*):[ \t]+)?(?P<subject>.*)\Z"
)
_ENTRY: Final = re.compile(r" {0,3}###(?:[ \t]+(.*))?\Z")
_SECTION: Final = "\n## "
_LONGEST: Final = 400  # characters of a heading that are looked at in detail


def parse(text: str) -> Worklog:
    """Everything that a file says, and what is odd about it."""
    return _Reading(markdown.scan(text.removeprefix("\ufeff"))).worklog()


def last_session(text: str) -> int:
    """The number of the session that stands last; 0 where there is none. Looks from the end, for files are long."""
    end = len(text)
    while (place := text.rfind(_SECTION, 0, end)) >= 0:
        heading = text[place + len(_SECTION) : place + _LONGEST].splitlines()
        found = _SESSION.match(heading[0].strip()) if heading else None
        if found is not None:
            return int(found[1])
        end = place
    return 0


def parse_entry(text: str, date: str, session: int = 0) -> Entry:
    """One entry that stands for itself, as it would stand in the session of that day."""
    lines = markdown.scan(text)
    found = next(_entries(lines, session, date), None)
    assert found is not None, "an entry has text"
    return found


class _Reading:
    """One pass over the lines of a file."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._findings: list[Finding] = []
        self._heads = markdown.headings(lines, deepest=2)

    def worklog(self) -> Worklog:
        lines = self._lines
        for number in markdown.conflict_marks(lines):
            self._find("conflict_mark", number, "a failed merge left this mark", "merge the lines by hand")
        for number in markdown.unclosed(lines):
            self._find("unclosed", number, "a code block or comment begins here and never ends", "close it", "warning")
        title = next((text for _, level, text in self._heads if level == 1), "")
        sections = [(place, text) for place, level, text in self._heads if level == 2]  # noqa: PLR2004 - sections
        ends = [*(place for place, _ in sections[1:]), len(lines)][: len(sections)]
        first = sections[0][0] if sections else len(lines)
        status, status_end = self._status(first)
        decisions, index_end = self._decisions(sections, ends)
        archived, archived_end = self._archived(sections, ends)
        sessions = tuple(self._sessions(sections, ends))
        self._order(title, sections, sessions)
        return Worklog(
            title=title,
            status=status,
            status_end=status_end,
            decisions=decisions,
            index_end=index_end,
            archived=archived,
            archived_end=archived_end,
            sessions=sessions,
            last_is_session=bool(sections) and _SESSION.match(sections[-1][1]) is not None,
            lines=len(lines),
            findings=tuple(sorted(self._findings, key=lambda one: one.line or 0)),
        )

    def _find(self, code: str, line: int, detail: str, fix: str, severity: Severity = "error") -> None:
        self._findings.append(Finding(code=code, severity=severity, at=(PATH,), detail=detail, fix=fix, line=line))

    def _status(self, end: int) -> tuple[tuple[StatusLine, ...], int]:
        """The pinned lines above the first section, and where the block ends; a second line for one key is named."""
        found: list[StatusLine] = []
        after = 0
        for line in self._lines[:end]:
            mark = _STATUS.match(line.text.rstrip()) if line.kind == "text" else None
            if mark is None:
                continue
            key = (mark["agent"] or mark["key"]).strip()
            if any(one.key == key for one in found):
                self._find("status_line_doubled", line.number, f"a second line for {key}", "keep one of them")
            found.append(StatusLine(line.number, key, mark["text"], agent=mark["agent"] is not None))
            after = line.number
        for line in self._lines[end:]:
            mark = _STATUS.match(line.text.rstrip()) if line.kind == "text" else None
            if mark is not None and line.text.startswith("Now Working ("):
                self._find(
                    "status_line_misplaced",
                    line.number,
                    f"a status line of {mark['agent']} below the pinned block",
                    "keep one pinned block, at the top",
                    "warning" if found else "error",
                )
        return tuple(found), after

    def _table(
        self, name: str, header: tuple[str, ...], sections: Sequence[tuple[int, str]], ends: Sequence[int]
    ) -> tuple[list[markdown.MarkdownRow], int]:
        """The rows of the one table of a section, and the number of the line behind it; 0 where there is none."""
        rows: list[markdown.MarkdownRow] = []
        end = 0
        for (place, text), stop in zip(sections, ends, strict=True):
            if text != name:
                continue
            if end:
                self._find("section_doubled", place + 1, f"a second '## {name}'", "move its rows to the first one")
            table = next(markdown.tables(self._lines[place:stop]), None)
            if table is None:
                self._find(
                    "table_missing", place + 1, f"'## {name}' has no table", f"begin it with {markdown.row(header)}"
                )
                continue
            if table.header != header:
                self._find("table_header", table.begin, f"the columns are not {', '.join(header)}", "name them so")
            for row in table.uneven():
                self._find(
                    "table_cells",
                    row.number,
                    f"the row has {len(row.cells)} cells and not {len(table.header)}",
                    "write a pipe inside of a cell as \\|",
                )
            rows += table.rows
            end = end or table.end
        return rows, end

    def _decisions(self, sections: Sequence[tuple[int, str]], ends: Sequence[int]) -> tuple[tuple[Decided, ...], int]:
        rows, end = self._table(INDEX, INDEX_HEADER, sections, ends)
        return tuple(Decided(row.number, *_padded(row.cells, 4)) for row in rows), end

    def _archived(self, sections: Sequence[tuple[int, str]], ends: Sequence[int]) -> tuple[tuple[Archived, ...], int]:
        rows, end = self._table(ARCHIVED, ARCHIVED_HEADER, sections, ends)
        return tuple(Archived(row.number, *_padded(row.cells, 3)) for row in rows), end

    def _sessions(self, sections: Sequence[tuple[int, str]], ends: Sequence[int]) -> Iterator[WorklogSession]:
        last = 0
        for (place, text), stop in zip(sections, ends, strict=True):
            found = _SESSION.match(text)
            if found is None:
                continue
            number, named = int(found[1]), _DATE.search(found[2] or "")
            date = named.group() if named is not None else ""
            if number <= last:
                what = "twice" if number == last else f"after session {last}"
                self._find("session_number", place + 1, f"session {number} stands {what}", "give it the next number")
            if not date:
                self._find("session_date", place + 1, f"session {number} has no date", "add one: YYYY-MM-DD", "warning")
            last = max(last, number)
            entries = tuple(_entries(self._lines[place + 1 : stop], number, date))
            yield WorklogSession(number=number, date=date, begin=place + 1, end=stop + 1, entries=entries)

    def _order(self, title: str, sections: Sequence[tuple[int, str]], sessions: Sequence[WorklogSession]) -> None:
        """Title, index, archived sessions, sessions: each once and in this order."""
        if not self._lines:
            return
        if re.match(rf"{TITLE}\b", title) is None:
            self._find("title_missing", 1, f"the file does not begin with '# {TITLE} — <project>'", "add that line")
        places = {text: place for place, text in reversed(sections)}
        if INDEX not in places:
            fix = f"add '## {INDEX}' with {markdown.row(INDEX_HEADER)}"
            self._find("section_missing", 1, f"there is no '## {INDEX}'", fix)
        first = sessions[0].begin - 1 if sessions else len(self._lines)
        for name in (INDEX, ARCHIVED):
            if places.get(name, -1) > first:
                self._find("section_misplaced", places[name] + 1, f"'## {name}' stands below a session", "move it up")
        if places.get(ARCHIVED, len(self._lines)) < places.get(INDEX, -1):
            self._find(
                "section_misplaced", places[ARCHIVED] + 1, f"'## {ARCHIVED}' stands above '## {INDEX}'", "move it"
            )


def _padded(cells: tuple[str, ...], count: int) -> tuple[str, ...]:
    return (*cells, *[""] * count)[:count]


def _entries(lines: Sequence[Line], session: int, date: str) -> Iterator[Entry]:
    """The entries among the lines of a session."""
    begin, kind = None, ""
    for place, line in enumerate(lines):
        starts = _starts(lines, place)
        apart = kind != "heading" and not line.text.strip()
        if begin is not None and (starts or (apart and line.kind == "text")):
            yield _entry(lines[begin:place], session, date, kind)
            begin, kind = None, ""
        if starts or (begin is None and line.text.strip() and line.kind != "comment" and not _is_rule(line)):
            begin, kind = place, starts or "paragraph"
    if begin is not None:
        yield _entry(lines[begin:], session, date, kind)


def _starts(lines: Sequence[Line], place: int) -> str:
    """Whether a line begins an entry, and of which kind."""
    line = lines[place]
    if line.kind != "text":
        return ""
    if _ENTRY.match(line.text):
        return "heading"
    return "quick" if forms.QUICK.match(line.text.rstrip()) else ""


def _is_rule(line: Line) -> bool:
    return re.fullmatch(r" {0,3}([-*_][ \t]*){3,}", line.text) is not None


def _entry(lines: Sequence[Line], session: int, date: str, kind: str) -> Entry:
    said = [line.text for line in lines]
    while said and (not said[-1].strip() or _is_rule(Line(0, said[-1]))):
        said.pop()
    shown = [line.text for line in lines[: len(said)] if line.kind != "comment"]
    text, number = "\n".join(said), lines[0].number
    if kind == "quick":
        return _quick(shown, text, number, session, date)
    if kind == "paragraph":
        return Entry(line=number, session=session, form="none", actor="", subject="", text=text, date=date, body=text)
    head = ((_ENTRY.match(shown[0].rstrip()) or ["", ""])[1] or "").strip()
    found = _HEADING.match(head[:_LONGEST])
    assert found is not None
    rest = shown[1:]
    when = _when(rest)
    if when is not None:
        rest = rest[when[2] :]
    form, fields, body = forms.read_form(rest)
    owner = str(fields.get("Owner") or fields.get("Author") or fields.get("this") or "") if form != "none" else ""
    owner = forms.noted(owner)[0]
    return Entry(
        line=number,
        session=session,
        form=form,
        actor=(found["actor"] or owner).strip(),
        subject=inline_original((found["subject"] + head[_LONGEST:]).strip()),
        text=text,
        date=(when[0] if when else "") or found["date"] or date,
        time=(when[1] if when else "") or found["time"] or "",
        owner=owner,
        fields=fields,
        body=body,
    )


def _quick(shown: Sequence[str], text: str, number: int, session: int, date: str) -> Entry:
    fields = forms.quick_fields(shown[0]) or {}
    return Entry(
        line=number,
        session=session,
        form="quick",
        actor=fields.get("owner", ""),
        subject=fields.get("what", ""),
        text=text,
        date=date,
        time=fields.get("time", ""),
        owner=fields.get("owner", ""),
        fields=fields,
        body="\n".join(shown[1:]).strip("\n"),
    )


def _when(lines: Sequence[str]) -> tuple[str, str, int] | None:
    """The date and time that stand first below a heading, and how many lines that took."""
    for place, line in enumerate(lines):
        if line.strip():
            found = _WHEN.match(line.strip())
            return None if found is None else (found["date"] or "", found["time"] or "", place + 1)
    return None
