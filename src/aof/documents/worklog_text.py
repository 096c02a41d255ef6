"""A WORKLOG as text: its parts, the forms of its entries, reading them and writing them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from aof.documents import markdown
from aof.documents.markdown import (
    Line,
    bold_field,
    contained,
    inline,
    inline_original,
    opens_code,
    original,
    plain_field,
    plain_text,
)
from aof.kernel.findings import Finding, Severity

NAME: Final = "WORKLOG"
PATH: Final = "WORKLOG.md"
ARCHIVE: Final = "WORKLOG_ARCHIVE.md"
EDITS: Final = "WORKLOG_EDITS.md"
CHARTER: Final = "SESSION_CHARTER.md"
UNKNOWN: Final = "unknown"
IDLE: Final = "idle"
FOCUS, CHECKPOINT = "Maintainer Focus", "Next Review Checkpoint"

EventType = Literal[
    "task.claimed",
    "task.completed",
    "handoff.posted",
    "proposal.created",
    "proposal.amended",
    "objection.raised",
    "decision.recorded",
    "escalation.requested",
]
Form = Literal["quick", "handoff", "counter", "proposal", "decision", "escalation", "none"]


class StatusLine(msgspec.Struct, frozen=True):
    """One line of the pinned block: `key` is an agent, or the name of one of the maintainer's lines."""

    number: int
    key: str
    text: str
    agent: bool


class Decided(msgspec.Struct, frozen=True):
    """One row of the decision index."""

    number: int
    decision: str
    owner: str
    timestamp: str
    section: str


class Archived(msgspec.Struct, frozen=True):
    """One row of the table of archived sessions."""

    number: int
    session: str
    date: str
    summary: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry: where it stands, what it says of itself, and its text with plain line feeds and no blank ends.

    `fields` are what its form names; `body` is the rest. `time` is `HH:MM`, `date` a day; either may be unknown.
    """

    line: int
    session: int
    form: Form
    actor: str
    subject: str
    text: str
    date: str = ""
    time: str = ""
    owner: str = ""
    fields: dict[str, Any] = {}
    body: str = ""

    @property
    def anchor(self) -> tuple[str, str, str, str]:
        """What an entry is recognised by, also where somebody has changed what it says."""
        return self.date, self.time, self.actor, "" if self.form == "quick" else self.subject


class WorklogSession(msgspec.Struct, frozen=True, kw_only=True):
    """A section of entries: its lines reach from `begin` to before `end`."""

    number: int
    date: str
    begin: int
    end: int
    entries: tuple[Entry, ...]


class Worklog(msgspec.Struct, frozen=True, kw_only=True):
    """A whole file. `index` is the number of the line behind the decision table, `status_end` behind the block."""

    title: str
    status: tuple[StatusLine, ...] = ()
    status_end: int = 0
    decisions: tuple[Decided, ...] = ()
    index_end: int = 0
    archived: tuple[Archived, ...] = ()
    archived_end: int = 0
    sessions: tuple[WorklogSession, ...] = ()
    last_is_session: bool = False
    lines: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry, oldest first."""
        return tuple(entry for session in self.sessions for entry in session.entries)


STATUSES: Final = ("In progress", "Ready for review", "Ready for merge", "Complete")
HANDOFF_KEYS: Final = (
    "Handoff",
    "Owner",
    "Status",
    "Changed files",
    "Tests run",
    "Risks/assumptions",
    "Blocking items",
    "Next owner",
)
LISTS: Final = ("Changed files", "Tests run", "Risks/assumptions", "Blocking items")
PROPOSAL_KEYS: Final = (
    "ID",
    "Author",
    "Date",
    "Scope",
    "Proposal",
    "Risks",
    "Rollback",
    "Objection deadline",
    "Status",
)
PROPOSAL_STATUSES: Final = ("open", "accepted", "rejected", "superseded")
NONE: Final = "none"
# Lines of somebody's text that would begin an entry or a form.
RESERVED: Final = r"\d\d:\d\d[ \t]*[—\u2013-]|\*\*[^*\n]{1,160}:\*\*|(?:Handoff|Escalated):"

QUICK: Final = re.compile(
    r"(?P<time>[0-2]\d:[0-5]\d)(?: ?UTC| ?Z)?[ \t]*[—\u2013-]+[ \t]*"
    r"(?P<owner>[^:\s][^:]{0,127}?(?::[^:\s]+)*):[ \t]+(?P<rest>.+)\Z"
)
_REST: Final = re.compile(
    r"(?P<what>.*?)(?:[ \t]+\((?P<result>[^()]*(?:\([^()]*\)[^()]*)*)\))?\."
    r"(?:[ \t]+Next:[ \t]+(?P<next>\S+?)(?:[ \t]+(?P<task>.*?))?\.)?[ \t]*\Z"
)
_QUICK: Final = 2_000  # characters; a longer line is not looked at in detail
_NOTED: Final = re.compile(r"(?P<name>[^()]*?)(?:[ \t]+\((?P<note>.*)\))?[ \t]*\Z")
_RECOMMENDED: Final = re.compile(r"(?P<who>.+?) recommended\Z")
_COUNTER: Final = re.compile(r"(?P<who>.+?)['\u2019]s counter-recommendation\Z")


def quick_line(time: str, owner: str, what: str, result: str = "", following: tuple[str, str] = ("", "")) -> str:
    """`HH:MM — <owner>: <what> (<result>). Next: <owner> <task>.`."""
    line = f"{time} — {owner}: {inline(what).rstrip('.')}"
    if result:
        line += f" ({inline(result)})"
    if following[0]:
        line += f". Next: {' '.join(inline(part) for part in following if part)}"
    return f"{line}."


def quick_fields(line: str) -> dict[str, str] | None:
    """The values of such a line, or None where it is none."""
    found = QUICK.match(line.rstrip())
    if found is None:
        return None
    fields = {"time": found["time"], "owner": found["owner"].strip()}
    rest = _REST.match(found["rest"]) if len(found["rest"]) <= _QUICK else None
    if rest is None:
        return fields | {"what": found["rest"]}
    named = {"what": rest["what"], "result": rest["result"], "nextOwner": rest["next"], "next": rest["task"]}
    return fields | {name: inline_original(value) for name, value in named.items() if value}


def block(fields: Mapping[str, Any]) -> str:
    """A full handoff, with its keys in order, in a fence so that its lines stay lines."""
    lines = ["```"]
    for key in HANDOFF_KEYS:
        value = fields.get(key, NONE)
        if isinstance(value, str):
            lines.append(f"{key}: {inline(value)}")
        elif not value:
            lines.append(f"{key}: {NONE}")
        else:
            lines += [f"{key}:", *(f"  - {inline(str(item))}" for item in value)]
    return "\n".join([*lines, "```"])


def bold(fields: Iterable[tuple[str, str]]) -> str:
    """Bold lines, a paragraph each; text of several lines goes on below its key."""
    paragraphs: list[str] = []
    for key, given in fields:
        plain = plain_text(given)
        # Blanks between a key and a text on its line are not read back, so nothing may be escaped as if they were.
        text = contained(plain if "\n" in plain else plain.lstrip(" \t"), RESERVED)
        below = "\n" in text or text.startswith("- ")
        paragraphs.append(f"**{key}:**\n\n{text}" if below else f"**{key}:** {text}")
    return "\n\n".join(paragraphs)


def read_form(lines: Sequence[str]) -> tuple[Form, dict[str, Any], str]:
    """What form the lines of an entry have, the values that it names, and the rest of the text."""
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return "none", {}, ""
    if (found := _read_block(lines, first)) is not None:
        fields, end = found
        return "handoff", fields, _text(lines[end:])
    pairs = _read_bold(lines[first:])
    form = _bold_form(pairs) if pairs else None
    if form is not None:
        return form, dict(pairs) if form != "counter" else _counter(pairs), ""
    if (field := plain_field(lines[first])) is not None and field[0] == "Escalated":
        return "escalation", {"Escalation": field[1]}, _text(lines[first + 1 :])
    return "none", {}, _text(lines)


def _text(lines: Sequence[str]) -> str:
    return original("\n".join(lines).strip("\n"), RESERVED)


def _read_block(lines: Sequence[str], first: int) -> tuple[dict[str, Any], int] | None:
    """A handoff block, with or without a fence, and where it ends."""
    fenced = opens_code(lines[first]) is not None
    place = first + fenced
    if place >= len(lines) or (plain_field(lines[place]) or ("",))[0] != HANDOFF_KEYS[0]:
        return None
    fields: dict[str, Any] = {}
    key = ""
    while place < len(lines):
        line = lines[place]
        found = plain_field(line)
        if found is not None and found[0] in HANDOFF_KEYS:
            key = found[0]
            none = not found[1] or found[1].lower().rstrip(".") == NONE
            items = [] if none else [item.strip() for item in found[1].split(",") if item.strip()]
            fields[key] = found[1] if key not in LISTS else items
        elif key in LISTS and (item := re.match(r"[ \t]*[-*][ \t]+(.*)\Z", line.rstrip())):
            fields[key] = [*fields[key], item[1]]
        elif fenced and opens_code(line) is not None:
            return fields, place + 1
        elif not line.strip() and not fenced:
            break
        elif line.strip():
            if not fenced:
                break
            fields.setdefault("", []).append(line.strip())
        place += 1
    return fields, place


def _read_bold(lines: Sequence[str]) -> list[tuple[str, str]]:
    """The bold keys, each with the text up to the next one; none where the first line is not bold."""
    pairs: list[tuple[str, list[str]]] = []
    for line in lines if bold_field(lines[0]) is not None else ():
        found = bold_field(line)
        if found is not None:
            pairs.append((found[0], [found[1]]))
        else:
            pairs[-1][1].append(line)
    return [(key, _text(texts)) for key, texts in pairs]


def _bold_form(pairs: Sequence[tuple[str, str]]) -> Form | None:
    keys = [key for key, _ in pairs]
    if _RECOMMENDED.match(keys[0]) or any(map(_COUNTER.match, keys)):
        return "counter"
    return {"ID": "proposal", "Decision": "decision", "Escalation": "escalation"}.get(keys[0])  # type: ignore[return-value]


def _counter(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, text in pairs:
        if other := _RECOMMENDED.match(key):
            fields |= {"other": other["who"], "recommended": text}
        elif this := _COUNTER.match(key):
            fields |= {"this": this["who"], "counter": text}
        else:
            fields[key] = text
    return fields


def noted(value: str) -> tuple[str, str]:
    """An owner and the note in brackets behind it."""
    found = _NOTED.match(value) if len(value) <= _QUICK else None
    return (found["name"].strip(), found["note"] or "") if found is not None else (value, "")


TITLE: Final = "Worklog"
INDEX: Final = "Decision Index"
ARCHIVED: Final = "Archived Sessions"
INDEX_HEADER: Final = ("Decision", "Owner", "Timestamp", "Section")
_HEADERS: Final = {INDEX: INDEX_HEADER, ARCHIVED: ("Session", "Date", "Summary")}

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


def parse_worklog(text: str) -> Worklog:
    """Everything that a file says, and what is odd about it."""
    return _Reading(markdown.scan(text.removeprefix("\ufeff"))).worklog()


def pinned_part(text: str) -> str:
    """Title and pinned lines without the sections; the whole text where what stands above them may hide one."""
    place = text.find("\n## ") + 1
    above = text[:place]
    titled = above.startswith("# ") or "\n# " in above
    return above if titled and not any(opens in above for opens in ("```", "~~~", "<!--")) else text


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
        decisions, index_end = self._table(INDEX, sections, ends)
        archived, archived_end = self._table(ARCHIVED, sections, ends)
        sessions = tuple(self._sessions(sections, ends))
        self._order(title, sections, sessions)
        return Worklog(
            title=title,
            status=status,
            status_end=status_end,
            decisions=tuple(Decided(row.number, *_padded(row.cells, 4)) for row in decisions),
            index_end=index_end,
            archived=tuple(Archived(row.number, *_padded(row.cells, 3)) for row in archived),
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
        self, name: str, sections: Sequence[tuple[int, str]], ends: Sequence[int]
    ) -> tuple[list[markdown.MarkdownRow], int]:
        """The rows of the one table of a section, and the number of the line behind it; 0 where there is none."""
        header = _HEADERS[name]
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
    return "quick" if QUICK.match(line.text.rstrip()) else ""


def _is_rule(line: Line) -> bool:
    return re.fullmatch(r" {0,3}([-*_][ \t]*){3,}", line.text) is not None


def _entry(lines: Sequence[Line], session: int, date: str, kind: str) -> Entry:
    texts = [line.text for line in lines]
    while texts and (not texts[-1].strip() or _is_rule(Line(0, texts[-1]))):
        texts.pop()
    shown = [line.text for line in lines[: len(texts)] if line.kind != "comment"]
    text, number = "\n".join(texts), lines[0].number
    if kind == "quick":
        fields = quick_fields(shown[0]) or {}
        owner = fields.get("owner", "")
        return Entry(
            line=number,
            session=session,
            form="quick",
            actor=owner,
            subject=fields.get("what", ""),
            text=text,
            date=date,
            time=fields.get("time", ""),
            owner=owner,
            fields=fields,
            body="\n".join(shown[1:]).strip("\n"),
        )
    if kind == "paragraph":
        return Entry(line=number, session=session, form="none", actor="", subject="", text=text, date=date, body=text)
    head = ((_ENTRY.match(shown[0].rstrip()) or ["", ""])[1] or "").strip()
    found = _HEADING.match(head[:_LONGEST])
    assert found is not None
    rest = shown[1:]
    when = _when(rest)
    if when is not None:
        rest = rest[when[2] :]
    form, values, body = read_form(rest)
    owner = noted(str(values.get("Owner") or values.get("Author") or values.get("this") or ""))[0]
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
        fields=values,
        body=body,
    )


def _when(lines: Sequence[str]) -> tuple[str, str, int] | None:
    """The date and time that stand first below a heading, and how many lines that took."""
    for place, line in enumerate(lines):
        if line.strip():
            found = _WHEN.match(line.strip())
            return None if found is None else (found["date"] or "", found["time"] or "", place + 1)
    return None


def entry(actor: str, subject: str, moment: str, form: str, body: str = "") -> str:
    """An entry with a heading. `moment` is ISO-8601 in UTC; `form` is written already, `body` is somebody's text."""
    parts = [f"### {actor}: {inline(subject)}", shown_moment(moment), form]
    if body.strip():
        parts.append(contained(body, RESERVED))
    return "\n\n".join(part for part in parts if part)


def shown_moment(moment: str) -> str:
    """A moment as entries and rows show it."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def new_worklog(project: str, agents: Iterable[str] = ()) -> str:
    """A file without sessions."""
    status = [status_line(agent, IDLE) for agent in agents]
    lines = [
        f"# {TITLE} — {inline(project)}",
        "",
        *status,
        f"{FOCUS}: {NONE}",
        f"{CHECKPOINT}: {NONE}",
        "",
        f"## {INDEX}",
        "",
        *markdown.table(INDEX_HEADER),
    ]
    return "\n".join(lines) + "\n"


def status_line(key: str, text: str) -> str:
    """One line of the pinned block."""
    name = key if key in (FOCUS, CHECKPOINT) else f"Now Working ({key})"
    return f"{name}: {inline(text) or NONE}"


def with_status(text: str, statuses: Mapping[str, str]) -> str:
    """The file with pinned lines changed, by their keys, or added where there are none for them."""
    if not statuses:
        return text
    above = pinned_part(text)
    rest = text[len(above) :]
    lines, left = markdown.split_lines(above), dict(statuses)
    for one in parse_worklog(above).status:
        status = left.pop(one.key, None)
        if status is not None and one.text != inline(status):
            old = lines[one.number - 1]
            lines[one.number - 1] = status_line(one.key, status) + old[len(old.rstrip("\r\n")) :]
    above = "".join(lines)
    for key, status in left.items():
        above = _with_new_status(above, key, status_line(key, status))
    return above + rest


def _with_new_status(text: str, key: str, line: str) -> str:
    end, lines, known = markdown.ending(text), markdown.split_lines(text), parse_worklog(text)
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


def with_row(text: str, section: str, cells: Iterable[str]) -> str:
    """The file with a row added at the end of a section's table; section and table are made where they are missing."""
    end, lines, known = markdown.ending(text), markdown.split_lines(text), parse_worklog(text)
    behind = known.index_end if section == INDEX else known.archived_end
    row = markdown.row(cells)
    if behind:
        _ended(lines, behind - 1, end)
        lines.insert(behind - 1, f"{row}{end}")
        return "".join(lines)
    place = _place_of_section(known, lines, section)
    made = markdown.with_ending("\n".join([f"## {section}", "", *markdown.table(_HEADERS[section]), row, "", ""]), end)
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


def without_sessions(text: str, sessions: Iterable[WorklogSession], rows: Iterable[Iterable[str]]) -> str:
    """The file without some sessions, and with a row for each of them in the table of archived ones."""
    lines = markdown.split_lines(text)
    for session in sorted(sessions, key=lambda one: -one.begin):
        del lines[session.begin - 1 : session.end - 1]
    shorter = "".join(lines)
    for cells in rows:
        shorter = with_row(shorter, ARCHIVED, cells)
    return shorter


def text_of(text: str, session: WorklogSession) -> str:
    """A session as it stands in the file."""
    return "".join(markdown.split_lines(text)[session.begin - 1 : session.end - 1])


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
            self._added.append(f"## Session {self.session} — {self.date}\n")
        self._added.append(f"{text}\n")

    def text(self) -> str:
        """What is added, with a blank line before each entry."""
        return markdown.with_ending("".join(f"\n{one}" for one in self._added), self.end)


_KEY = "session id"


def session_id(charter: str) -> str:
    """The session's ID as the charter has it, in a table or in a field line; unknown where it has none."""
    lines = markdown.scan(charter)
    for table in markdown.tables(lines):
        for row in table.rows:
            if len(row.cells) > 1 and row.cells[0].strip("*: ").lower() == _KEY:
                return row.cells[1].strip("`* ") or UNKNOWN
    for line in lines:
        text = line.text.lstrip("-* ") if not line.text.startswith("**") else line.text
        found = markdown.bold_field(text) or markdown.plain_field(text)
        if line.kind == "text" and found is not None and found[0].lower() == _KEY:
            return found[1].strip("`* ") or UNKNOWN
    return UNKNOWN
