"""SESSION_CHARTER.md: how it reads, how it follows the log, and the commands that create, amend and sign it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from aof.documents import charter_rules, hand_edits, markdown, projection, worklog_rules, worklog_text
from aof.documents.hand_edits import HandEdit
from aof.documents.markdown import (
    Line,
    bold_field,
    ending,
    heading,
    headings,
    plain_field,
    plain_text,
    row,
    scan,
    split_lines,
    table,
    tables,
)
from aof.documents.projection import DocumentCommand, Facts, Files, PastEvents, Projection, Rewritten, lock_of
from aof.errors import AofError, Call, CharterExists, NoCharter, NotAllowed
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Decision, Needs, NeedsOf, Records, Verdict
from aof.kernel.events import Draft, Event
from aof.kernel.model import iso
from aof.org import rights
from aof.support.typed import prepare_type

FIELDS: Final = ("Field", "Value")
SETTINGS: Final = ("Setting", "Value")
GATES: Final = ("Band", "Scope")
LEVELS: Final = ("Level", "Step", "Window")
UNSIGNED: Final = "(not signed yet)"
_HEADERS: Final = {
    1: FIELDS,
    2: charter_rules.ROSTER,
    3: charter_rules.LANES,
    4: FIELDS,
    5: SETTINGS,
    6: GATES,
    7: LEVELS,
}
_BAND_NAMES: Final[Mapping[charter_rules.Band, str]] = {
    "auto": charter_rules.BANDS[0],
    "delay": charter_rules.BANDS[1],
    "approval": charter_rules.BANDS[2],
}
_BANDS: Final = {name.casefold(): band for band, name in _BAND_NAMES.items()}
_SECTION, _SUBSECTION = 2, 3
_NUMBERS: Final = {title.casefold(): number for number, title in charter_rules.TITLES.items()}
_NUMBERED_TITLE: Final = re.compile(r"(\d{1,2})[).:]?[ \t]*(.*)\Z")
_BULLET: Final = re.compile(r"[ \t]*[-*+][ \t]+(.*)\Z")
_NUMBERED_LINE: Final = re.compile(r"[ \t]*\d{1,4}[.)][ \t]+(.*?)[ \t]*\Z")
_CHECKBOX: Final = re.compile(r"[ \t]*[-*+][ \t]+\[([ xX])\][ \t]*(.*?)[ \t]*\Z")
_BOXES: Final = ("- [", "* [", "+ [")
_DELAY: Final = re.compile(r"\(([^()]*)\)[ \t]*\Z|\bafter ([^,;]*)\Z", re.IGNORECASE)
_DURATION: Final = re.compile(r"(\d{1,6})[ \t]*(s|m|min|h|d)[a-z]*\b", re.IGNORECASE)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_LONGEST_DELAY: Final = 30 * 86_400
_COUNT: Final = re.compile(r"(\d{1,4})")
_COUNT_WORDS: Final = {"one": 1, "two": 2, "three": 3, "four": 4}
_ROLE: Final = re.compile(r"(.*?)(?:[ \t]+\(lane[ \t]+(.*)\))?\Z")
_NOBODY: Final = frozenset({"", "-", "–", "—", "none", "n/a"})  # noqa: RUF001 - dashes that people type
_REBUTTAL: Final = 2  # the level of the escalation that has a window


class CharterSection(msgspec.Struct, frozen=True):
    """A section from its heading to the next: its number (0 for an unknown one), and its lines without the heading."""

    number: int
    title: str
    line: int
    lines: Sequence[Line]

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return not any(line.text.strip() and line.kind != "comment" for line in self.lines)


def sections(text: str) -> tuple[CharterSection, ...]:
    """The sections of a charter in the order of the file."""
    return tuple(
        CharterSection(_number_of(title), title, line, lines) for title, line, lines in _parts(scan(text), _SECTION)
    )


def _parts(lines: Sequence[Line], level: int) -> Iterator[tuple[str, int, Sequence[Line]]]:
    """The title of each heading of a level, the number of its line, and the lines up to the next one."""
    begins = [(place, title) for place, depth, title in headings(lines, level) if depth == level and title]
    for (place, title), (end, _) in zip(begins, [*begins[1:], (len(lines), "")], strict=False):
        yield title, lines[place].number, lines[place + 1 : end]


def _number_of(title: str) -> int:
    """The number of a section by its heading: by the title that we know, else by the number that it has."""
    found = _NUMBERED_TITLE.match(title)
    name = (found[2] if found else title).strip().casefold()
    if name in _NUMBERS:
        return _NUMBERS[name]
    number = int(found[1]) if found else 0
    return number if number in charter_rules.TITLES else 0


def _fields(lines: Sequence[Line]) -> Iterator[tuple[str, str, int]]:
    """Key, value and line of every field, in tables of two columns, bold lines, plain lines and bullets."""
    inside: set[int] = set()
    for grid in tables(lines):
        inside |= set(range(grid.begin, grid.end))
        for one in grid.rows:
            if one.cells:
                yield one.cells[0], one.cells[1] if len(one.cells) > 1 else "", one.number
    for line in lines:
        if line.kind == "text" and line.number not in inside:
            bullet = _BULLET.match(line.text)
            text = bullet[1] if bullet else line.text
            if found := bold_field(text) or plain_field(text):
                yield *found, line.number


# Reading


def parse_charter(text: str) -> charter_rules.Charter:
    """The charter that a text holds; the first section of a number counts."""
    there: dict[int, Sequence[Line]] = {}
    for section in sections(text):
        there.setdefault(section.number, section.lines)
    found: dict[int, Sequence[Line]] = {number: there.get(number, ()) for number in charter_rules.TITLES}
    about, contract, rules = (_values(found[number]) for number in (1, 4, 5))
    shared = {name: named(contract.get(key.casefold(), "")) for key, name in charter_rules.CONTRACT.items()}
    settings = {name: rules.get(key.casefold(), "") for key, name in charter_rules.GOVERNANCE.items()}
    metadata: dict[str, Any] = {name: about.get(key.casefold(), "") for key, name in charter_rules.METADATA.items()}
    return charter_rules.Charter(
        **metadata,
        roster=tuple(
            charter_rules.Participant(role=role, agent=named(agent), model=named(kind), lane=named(lane), line=line)
            for (role, agent, kind, lane, *_), line in _rows(found[2], 4)
        ),
        lanes=tuple(
            charter_rules.CharterLane(name=named(lane), owner=named(owner), patterns=items(scope), line=line)
            for (lane, owner, scope, *_), line in _rows(found[3], 3)
        ),
        contract=charter_rules.Contract(**shared | {"status": contract.get("status", "") or "Not started"}),
        governance=charter_rules.Governance(**{name: value for name, value in settings.items() if value}),
        gates=_parse_gates(found[6]),
        escalation=_parse_escalation(found[7]) if 7 in there else charter_rules.Escalation(),  # noqa: PLR2004 - the section
        acceptance=tuple(_numbered(found[8])),
        handshakes=tuple(_parse_handshakes(found[9])),
        checklist=tuple(
            charter_rules.Item(text=box[2], done=box[1] != " ", line=line.number)
            for line in found[10]
            if line.kind == "text" and (box := _CHECKBOX.match(line.text))
        ),
    )


def named(value: str) -> str:
    """The value without the marks of code around it; empty where it says that there is none."""
    plain = value.strip().strip("`").strip()
    return "" if plain.casefold() in _NOBODY else plain


def items(value: str) -> tuple[str, ...]:
    """The items of a list in one cell: separated by commas, semicolons or line breaks."""
    return tuple(item for part in re.split(r"[,;\n]", value) if (item := named(part)))


def seconds(value: str) -> int:
    """How long a duration such as `30m` is; 0 where there is none."""
    found = _DURATION.search(value)
    return min(int(found[1]) * _SECONDS[found[2].casefold()], _LONGEST_DELAY) if found else 0


def _values(lines: Sequence[Line]) -> dict[str, str]:
    """The values of fields by their keys in lower case; the first of a key counts."""
    values: dict[str, str] = {}
    for key, value, _ in _fields(lines):
        values.setdefault(key.casefold(), value.strip().strip("`"))
    return values


def _rows(lines: Sequence[Line], least: int) -> list[tuple[tuple[str, ...], int]]:
    """The rows of all tables in a section, filled up with empty cells, each with its line."""
    return [
        ((*row.cells, *[""] * (least - len(row.cells))), row.number)
        for grid in tables(lines)
        for row in grid.rows
        if any(row.cells)
    ]


def _parse_gates(lines: Sequence[Line]) -> tuple[charter_rules.Gate, ...]:
    found: list[charter_rules.Gate] = []
    for key, value, line in _fields(lines):
        name, _, inside = key.partition("(")
        band = _BANDS.get(name.strip().casefold())
        if band is None:
            continue
        wait = _DELAY.search(value) if band == "delay" else None
        scope = value[: wait.start()] if wait and seconds(wait.group()) else value
        delay = seconds(inside) or (seconds(wait.group()) if wait else 0)
        found.append(charter_rules.Gate(band=band, scope=items(scope), delay_seconds=delay, line=line))
    return tuple(found)


def _parse_escalation(lines: Sequence[Line]) -> charter_rules.Escalation:
    """The levels from a table or a numbered list, and the window of the rebuttal."""
    levels = {
        int(level): (name, window)
        for (level, name, window, *_), _ in _rows(lines, 3)
        if level.isascii() and level.isdigit() and len(level) == 1
    }
    for place, text in enumerate(_numbered(lines), 1):
        name, _, window = text.partition("(")
        levels[place] = name.strip().rstrip(":").strip(), window.rstrip(")")
    values = _values(lines)
    name, window = levels.get(_REBUTTAL, ("", ""))
    return charter_rules.Escalation(
        levels=tuple(name for _, (name, _) in sorted(levels.items())),
        rebuttal_cycles=_cycles(window or name),
        tie_break=values.get("tie-break condition", "") or values.get("tie-break", ""),
    )


def _cycles(value: str) -> int:
    """How many WORKLOG cycles a window has; one where that cannot be read."""
    found = _COUNT.search(value)
    if found:
        return max(int(found[1]), 1)
    return next((count for word, count in _COUNT_WORDS.items() if word in value.casefold().split()), 1)


def _numbered(lines: Sequence[Line]) -> Iterator[str]:
    """The texts of a numbered list."""
    found = (_NUMBERED_LINE.match(line.text) for line in lines if line.kind == "text")
    return (one[1] for one in found if one is not None)


def _parse_handshakes(lines: Sequence[Line]) -> Iterator[charter_rules.Signature]:
    for title, line, inside in _parts(lines, _SUBSECTION):
        values: dict[str, str] = {}
        for key, value, _ in _fields(inside):
            values.setdefault(key.casefold(), value)
        role = _ROLE.match(values.get("role", ""))
        yield charter_rules.Signature(
            agent=named(title),
            signed=named(values.get("signed", "")),
            role=role[1] if role else "",
            lane=named((role[2] or "") if role else ""),
            status=values.get("handshake status", ""),
            notes=named(values.get("notes", "")),
            timestamp=named(values.get("timestamp", "")),
            line=line,
        )


# Writing


def render_charter(charter: charter_rules.Charter) -> str:
    """The whole file; read again it is the same charter."""
    contract, rules, escalation = charter.contract, charter.governance, charter.escalation
    levels = [
        (str(number), one_line(name), _window(escalation.rebuttal_cycles) if number == _REBUTTAL else "")
        for number, name in enumerate(escalation.levels, 1)
    ]
    handshakes: list[str] = []
    for one in charter.handshakes:
        handshakes += [f"### {one_line(one.agent)}", "", *_signature_lines(one), ""]
    bodies = (
        table(FIELDS, _said(charter, charter_rules.METADATA)),
        table(charter_rules.ROSTER, map(_participant_cells, charter.roster)),
        table(charter_rules.LANES, map(_lane_cells, charter.lanes)),
        table(FIELDS, ((key, value or charter_rules.NONE) for key, value in _said(contract, charter_rules.CONTRACT))),
        table(SETTINGS, _said(rules, charter_rules.GOVERNANCE)),
        table(GATES, ((_BAND_NAMES[gate.band], _gate_scope(gate)) for gate in charter.gates)),
        [
            *table(LEVELS, levels),
            "",
            f"**Tie-break condition:** {one_line(escalation.tie_break) or 'the maintainer decides'}",
        ],
        [f"{number}. {one_line(text)}" for number, text in enumerate(charter.acceptance, 1)],
        handshakes[:-1],
        [f"- [{'x' if item.done else ' '}] {one_line(item.text)}" for item in charter.checklist],
    )
    lines = [f"# Session Charter — {one_line(charter.project or 'unnamed')}", ""]
    for number, body in enumerate(bodies, 1):
        lines += [_heading_of(number), "", *body, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _said(part: object, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(key, one_line(getattr(part, name))) for key, name in fields.items()]


def one_line(text: str) -> str:
    """The text on one line, with nothing hidden."""
    return " ".join(plain_text(text).split())


def _heading_of(number: int) -> str:
    return f"## {number}) {charter_rules.TITLES[number]}"


def _gate_scope(gate: charter_rules.Gate) -> str:
    """What a band covers, with its delay."""
    if not gate.scope:
        return charter_rules.NONE
    scope = ", ".join(map(one_line, gate.scope))
    return f"{scope} ({_duration(gate.delay_seconds)})" if gate.delay_seconds else scope


def _duration(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _window(cycles: int) -> str:
    return "1 cycle" if cycles == 1 else f"{cycles} cycles"


def _participant_cells(one: charter_rules.Participant) -> tuple[str, ...]:
    return tuple(map(one_line, (one.role, one.agent, one.model, one.lane or charter_rules.NONE)))


def _lane_cells(lane: charter_rules.CharterLane) -> tuple[str, ...]:
    patterns = ", ".join(f"`{one_line(pattern)}`" for pattern in lane.patterns)
    return (one_line(lane.name), one_line(lane.owner), patterns)


def _signature_lines(one: charter_rules.Signature) -> list[str]:
    """A handshake below its heading."""
    values = {
        "Signed": one.signed or UNSIGNED,
        "Role": f"{one.role} (lane {one.lane})" if one.lane else one.role,
        "Handshake status": one.status or "open",
        "Notes": one.notes or charter_rules.NONE,
        "Timestamp": one.timestamp or charter_rules.NONE,
    }
    return [f"- **{key}:** {one_line(value)}" for key, value in values.items()]


# Changing

_Matches = Callable[[tuple[str, ...]], bool]  # whether a row, by its cells, is the one that is meant


def apply_changes(text: str, changes: Iterable[charter_rules.Change]) -> str:
    """The text after these changes; applied once more, nothing changes."""
    for change in changes:
        text = _changed(text, change)
    return text


def _changed(text: str, change: charter_rules.Change) -> str:  # noqa: C901, PLR0911 - one case per kind of change
    match change:
        case charter_rules.SetField(section=number, key=key, value=value):
            return _with_field(text, number, key, value, lambda found: found.casefold() == key.casefold())
        case charter_rules.SetParticipant(participant=one) if one.is_maintainer:
            return _with_row(text, 2, _participant_cells(one), lambda cells: cells[0].casefold() == "maintainer")
        case charter_rules.SetParticipant(participant=one):
            return _with_row(text, 2, _participant_cells(one), lambda cells: _cell(cells, 1) == one.agent)
        case charter_rules.DropParticipant(agent=agent):
            return _without_row(text, 2, lambda cells: _cell(cells, 1) == agent)
        case charter_rules.SetLane(lane=lane):
            return _with_row(text, 3, _lane_cells(lane), lambda cells: _cell(cells, 0) == lane.name)
        case charter_rules.DropLane(name=name):
            return _without_row(text, 3, lambda cells: _cell(cells, 0) == name)
        case charter_rules.SetGate(gate=gate):
            band = _BAND_NAMES[gate.band]
            same_band = band.casefold()
            return _with_field(
                text, 6, band, _gate_scope(gate), lambda found: found.partition("(")[0].strip().casefold() == same_band
            )
        case charter_rules.SetWindow(cycles=cycles):
            row_of_level = (str(_REBUTTAL), charter_rules.LEVELS[1], _window(cycles))
            return _with_row(text, 7, row_of_level, lambda cells: cells[0] == str(_REBUTTAL))
        case charter_rules.SetAcceptance(criteria=criteria):
            return _with_acceptance(text, criteria)
        case charter_rules.TickItem(number=number, done=done):
            return _ticked(text, number, done=done)
        case charter_rules.Sign(signature=signature):
            return _signed(text, signature)


def _with_field(text: str, number: int, key: str, value: str, matches: Callable[[str], bool]) -> str:
    """A field of a section with a value, in the form that it has; a row of the section's table where it is missing."""
    text, section = _present(text, number)
    shown = one_line(value)
    for found, _, line in _fields(section.lines):
        if matches(found):
            old = split_lines(text)[line - 1].rstrip("\r\n")
            if old.lstrip().startswith("|"):
                return _spliced(text, line, line + 1, [row((found, shown))])
            before = old[: old.index(found)]
            bold = "**" if before.endswith("**") else ""
            return _spliced(text, line, line + 1, [f"{before}{found}:{bold} {shown}"])
    return _with_row(text, number, (key, shown), lambda _cells: False)


def _with_acceptance(text: str, criteria: Sequence[str]) -> str:
    text, section = _present(text, 8)
    old = [line.number for line in section.lines if line.kind == "text" and _is_numbered(line.text)]
    for place in reversed(old[1:]):
        text = _spliced(text, place, place + 1, [])
    begin = old[0] if old else _behind(section)
    wanted = [f"{number}. {one_line(criterion)}" for number, criterion in enumerate(criteria, 1)]
    return _spliced(text, begin, begin + (1 if old else 0), wanted)


def _is_numbered(line: str) -> bool:
    number, dot, _ = line.lstrip().replace(")", ".", 1).partition(". ")
    return bool(dot) and number.isascii() and number.isdigit()


def _ticked(text: str, number: int, *, done: bool) -> str:
    text, section = _present(text, 10)
    boxes = [line for line in section.lines if line.kind == "text" and line.text.lstrip()[:3] in _BOXES]
    if not 1 <= number <= len(boxes):
        return text
    line = boxes[number - 1]
    head, _, rest = line.text.partition("[")
    return _spliced(text, line.number, line.number + 1, [f"{head}[{'x' if done else ' '}]{rest[2:]}"])


def _signed(text: str, one: charter_rules.Signature) -> str:
    """A handshake in the place of the agent's own, among whatever else a person has written there, else at the end."""
    text, section = _present(text, 9)
    lines = _signature_lines(one)
    for title, line, inside in _parts(section.lines, _SUBSECTION):
        if named(title) != one.agent:
            continue
        there = {key.casefold(): number for key, _, number in _fields(inside)}
        filled = [other.number for other in inside if other.text.strip()]
        if len(there) == len(filled):  # nothing but fields
            begin, end = (filled[0], filled[-1] + 1) if filled else (line + 1, line + 1)
            return _spliced(text, begin, end, lines if filled else ["", *lines])
        missing: list[str] = []
        for new in lines:
            key = new.split("**")[1].rstrip(":").casefold()
            if key in there:
                text = _spliced(text, there[key], there[key] + 1, [new])
            else:
                missing.append(new)
        return _spliced(text, line + 1, line + 1, ["", *missing]) if missing else text
    begin = _behind(section)
    return _spliced(text, begin, begin, ["", f"### {one_line(one.agent)}", "", *lines])


def _cell(cells: Sequence[str], place: int) -> str:
    return named(cells[place]) if place < len(cells) else ""


def _present(text: str, number: int) -> tuple[str, CharterSection]:
    """The section with that number, made where it is missing: before the next one, else at the end."""
    known = sections(text)
    found = next((section for section in known if section.number == number), None)
    if found is not None:
        return text, found
    later = next((section for section in known if section.number > number), None)
    begin = later.line if later is not None else len(split_lines(text)) + 1
    header = _HEADERS.get(number)
    body = [*table(header), ""] if header else []
    text = _spliced(text, begin, begin, [_heading_of(number), "", *body])
    return text, next(section for section in sections(text) if section.number == number)


def _with_row(text: str, number: int, cells: Sequence[str], matches: _Matches) -> str:
    """A row in the place of the one that matches, else below the last one; a table is made where there is none."""
    text, section = _present(text, number)
    known = list(tables(section.lines))
    for found in (one for grid in known for one in grid.rows):
        if found.cells and matches(found.cells):
            same = found.cells == tuple(cells)
            return text if same else _spliced(text, found.number, found.number + 1, [row(cells)])
    if known:
        return _spliced(text, known[0].end, known[0].end, [row(cells)])
    begin = _behind(section)
    return _spliced(text, begin, begin, ["", *table(_HEADERS[number], [cells])])


def _without_row(text: str, number: int, matches: _Matches) -> str:
    section = next((one for one in sections(text) if one.number == number), None)
    for found in (one for grid in tables(section.lines) for one in grid.rows) if section else ():
        if found.cells and matches(found.cells):
            return _spliced(text, found.number, found.number + 1, [])
    return text


def _behind(section: CharterSection) -> int:
    """The number of the line behind the last one of a section that says something."""
    return max((line.number for line in section.lines if line.text.strip()), default=section.line) + 1


def _spliced(text: str, begin: int, end: int, lines: Sequence[str]) -> str:
    """Other lines in the place of some, by number, with the line ending of the file."""
    mark, raw = ending(text), split_lines(text)
    if raw and not raw[-1].endswith("\n") and begin > len(raw):
        raw[-1] += mark
    new = [f"{line}{mark}" for line in lines]
    if raw and new and end - 1 == len(raw) and begin <= len(raw) and not raw[-1].endswith("\n"):
        new[-1] = lines[-1]  # the file ends as it did
    follows = raw[end - 1] if end - 1 < len(raw) else ""
    if new and begin == end and heading(follows.rstrip("\r\n")):
        new.append(mark)
    raw[begin - 1 : end - 1] = new
    return "".join(raw)


NAME: Final = "CHARTER"
PATH: Final = "SESSION_CHARTER.md"
EDITS: Final = "SESSION_CHARTER_EDITS.md"
WORKLOG: Final = "WORKLOG.md"
TYPES: Final = ("document.charter.",)
CREATED: Final = "document.charter.created"
AMENDED: Final = "document.charter.amended"
SIGNED: Final = "document.charter.signed"


class CharterDocument(Projection):
    """The charter, and the file of edits by hand."""

    name, path, types, files = NAME, PATH, TYPES, (PATH,)

    def updated(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:  # noqa: ARG002 - the contract
        """What a person has changed since stays, but for gates and owners; what may not be written is looked for."""
        text = files.text(PATH)
        missing: list[Event] = []
        known = list(past.events)[::-1] if past is not None and text else []
        if past is not None and not past.applied:
            for event in reversed(known) if text else past.events:
                if text and text_after(text, event) == text:
                    break
                missing.insert(0, event)
                if event.type == CREATED:
                    break
        new, by_hand = text, list[HandEdit]()
        for event in missing:
            new = text_after(new, event)
        if known:
            new, by_hand = _with_logged_rights(new, known, files)
        for event in fresh:
            new = text_after(new, event)
        kept = {EDITS: hand_edits.with_kept(files.text(EDITS), PATH, by_hand)} if by_hand else {}
        return Rewritten(kept | ({PATH: new} if new != text else {}))

    def with_hand_written(
        self, from_log: dict[str, str], sides: Sequence[Files], events: Sequence[Event]
    ) -> dict[str, str]:
        """The charter with lines that only people wrote, each behind the line that stood before it."""
        text = from_log.get(PATH, "")
        if not text:
            return {PATH: next((side.text(PATH) for side in sides if side.text(PATH)), "")}
        logged: set[str] = set()
        step = ""
        for event in events:
            step = text_after("" if event.type == CREATED else step, event)
            logged.update(markdown.unix(step).split("\n"))
        end, lines = markdown.ending(text), markdown.unix(text).split("\n")
        for side in sides:
            before = ""
            for line in markdown.unix(side.text(PATH)).split("\n"):
                if line.strip() and line not in logged and line not in lines:
                    lines.insert(lines.index(before) + 1 if before in lines else len(lines), line)
                before = line if line in lines else before
        return {PATH: end.join(lines)}


def _with_logged_rights(text: str, events: Sequence[Event], files: Files) -> tuple[str, list[HandEdit]]:
    """The text with the gates and the owners of lanes that the log has, unless the maintainer decided on an owner."""
    logged, there = parse_charter(replayed(events)), parse_charter(text)
    lines, owners = text.splitlines(), {lane.name: lane.owner for lane in logged.lanes}
    changes, by_hand = list[charter_rules.Change](), list[HandEdit]()
    if scopes(logged) != scopes(there) and there.gates:
        changes += [charter_rules.SetGate(gate=gate) for gate in logged.gates]
        gates = "\n".join(lines[gate.line - 1] for gate in there.gates if gate.line)
        by_hand.append(HandEdit("a person changed the approval gates", gates))
    decided = decisions(files.text(WORKLOG))
    for lane in there.lanes:
        owner = owners.get(lane.name, lane.owner)
        if owner == lane.owner or any(lane.name in one and lane.owner in one for one in decided):
            continue
        changes.append(charter_rules.SetLane(lane=msgspec.structs.replace(lane, owner=owner)))
        what = f"a person changed the owner of the lane {lane.name!r} from {owner} to {lane.owner} without a decision"
        by_hand.append(HandEdit(what, lines[lane.line - 1]))
    return (apply_changes(text, changes), by_hand) if changes else (text, [])


def scopes(charter: charter_rules.Charter) -> dict[str, tuple[str, ...]]:
    """What each gate that holds something up covers, and for how long."""
    return {
        gate.band: (*gate.scope, str(gate.delay_seconds))
        for gate in charter.gates
        if gate.scope and gate.band != "auto"
    }


def decisions(worklog: str) -> list[str]:
    """The texts of the decisions in the index of a WORKLOG."""
    lines, index = scan(worklog), worklog_text.INDEX.casefold()
    titles = ((place, heading(line.text)) for place, line in enumerate(lines))
    begin = next((place for place, title in titles if title is not None and title[1].casefold() == index), None)
    if begin is None:
        return []
    end = next(
        (place for place in range(begin + 1, len(lines)) if (found := heading(lines[place].text)) and found[0] <= 2),  # noqa: PLR2004 - the level of sections
        len(lines),
    )
    return [row.cells[0] for table in tables(lines[begin:end]) for row in table.rows if row.cells]


def text_after(text: str, event: Event) -> str:
    """The text after an event; one that cannot be read changes nothing."""
    try:
        if event.type == CREATED:
            return text or render_charter(
                msgspec.convert(event.payload["charter"], prepare_type(charter_rules.Charter))
            )
        return apply_changes(text, charter_rules.unpacked(event.payload["changes"])) if text else text
    except (KeyError, msgspec.ValidationError):
        return text


def replayed(events: Sequence[Event]) -> str:
    """The last charter as the log alone has it: from its creation on, without what people did by hand."""
    begins = [place for place, event in enumerate(events) if event.type == CREATED]
    text = ""
    for event in events[begins[-1] :] if begins else ():
        text = text_after(text, event)
    return text


_REASON, _DECISION = 512, 400


class CharterCommand(DocumentCommand, frozen=True, kw_only=True):
    """A command about the charter."""

    document: ClassVar[str] = NAME
    reads: ClassVar[frozenset[str]] = frozenset({PATH})


class CreateCharter(CharterCommand, frozen=True, kw_only=True):
    """Begin a session."""

    charter: charter_rules.Charter

    def settle(self, records: Records, now: int) -> Verdict:  # noqa: ARG002 - the rule's signature
        """The event of a new charter; refused where the session has one."""
        refused = projection.not_maintainer(
            records.policy, self, "create the charter"
        ) or charter_rules.unwritable_charter(self.charter)
        if refused is not None:
            return refused
        if (text := records.documents[PATH]).strip():
            return CharterExists(
                f"there is a charter already, of session {parse_charter(text).session_id[:80] or 'unknown'}",
                f"amend it, or move {PATH} away to begin a new session",
                Call("charter_amend", {"reason": "…"}),
            )
        payload = {"document": NAME, "charter": msgspec.to_builtins(self.charter)}
        return Decision(drafts=(Draft(type=CREATED, task_id="", payload=payload),))


class AmendCharter(CharterCommand, frozen=True, kw_only=True):
    """Change what was agreed, by decision of the maintainer."""

    changes: tuple[charter_rules.Change, ...]
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The WORKLOG gets the decision in the same commit."""
        own = super().needs(known, needs)
        return msgspec.structs.replace(own, names=own.names | {lock_of(worklog_text.NAME)})

    def settle(self, records: Records, now: int) -> Verdict:
        """The changes that have an effect, and the decision in the index of the WORKLOG; none where nothing changes."""
        text = records.documents[PATH]
        refused = (
            projection.not_maintainer(records.policy, self, "amend the charter")
            or kernel_limits.line("reason", self.reason, _REASON, required=True)
            or _absent(text)
            or charter_rules.unwritable_charter(parse_charter(new := apply_changes(text, self.changes)))
        )
        if refused is not None:
            return refused
        if new == text:
            return Decision()
        payload = {"document": NAME, "changes": charter_rules.packed(self.changes), "reason": self.reason}
        decided = worklog_rules.Wording(
            subject=f"Charter amended: {charter_rules.described(self.changes)}"[:_DECISION], reasons=(self.reason,)
        )
        entry = worklog_rules.worded("decision.recorded", decided, self.acting, iso(now))
        if isinstance(entry, AofError):
            return entry
        row = worklog_rules.posted("decision.recorded", entry, self.acting, decided.subject)
        return Decision(drafts=(Draft(type=AMENDED, task_id="", payload=payload), row), agent=self.acting)


class SignCharter(CharterCommand, frozen=True, kw_only=True):
    """An agent accepts its role and lane."""

    status: str = charter_rules.HANDSHAKE_STATUSES[0]
    notes: str = ""

    def settle(self, records: Records, now: int) -> Verdict:
        """An agent signs for itself; signing again what holds changes nothing."""
        text = records.documents[PATH]
        refused = (
            _absent(text)
            or kernel_limits.choice("status", self.status, charter_rules.HANDSHAKE_STATUSES)
            or kernel_limits.line("notes", self.notes, _REASON)
        )
        if refused is not None:
            return refused
        charter, agent = parse_charter(text), self.acting
        if agent != self.actor and not projection.is_maintainer(records.policy, self.actor):
            return rights.mismatch(self.actor, agent)
        seat = charter.participant(agent)
        if seat is None or seat.is_observer:
            return NotAllowed(
                f"{agent[:80]} has no seat in the roster to sign for",
                "let a maintainer add it to the roster",
                Call("charter_amend", {"participants": [f"{agent}:Developer:LANE"], "reason": "…"}),
            )
        before = charter.signature(agent)
        if before is not None and (before.status, before.notes) == (self.status, self.notes):
            return Decision()
        signature = charter_rules.Signature(
            agent=agent,
            signed=agent,
            role=seat.role,
            lane=seat.lane,
            status=self.status,
            notes=self.notes,
            timestamp=iso(now),
        )
        payload = {"document": NAME, "changes": charter_rules.packed((charter_rules.Sign(signature=signature),))}
        return Decision(drafts=(Draft(type=SIGNED, task_id="", payload=payload),))


def _absent(text: str) -> AofError | None:
    if text.strip():
        return None
    return NoCharter("there is no session charter", "let a maintainer create one", Call("charter_init", {}))
