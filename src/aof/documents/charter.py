"""SESSION_CHARTER.md: read, written, changed line by line; how it follows the log; and what can be asked about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from aof.documents import charter_rules, markdown, projection, worklog_rules, worklog_text
from aof.documents.charter_rules import TITLES, Change, Charter, SetGate, SetLane, unpacked
from aof.documents.markdown import (
    Line,
    bold_field,
    ending,
    heading,
    plain_field,
    plain_text,
    row,
    scan,
    split_lines,
    table,
    tables,
)
from aof.documents.projection import Extension, Facts, Files, PastEvents, Rewritten, lock_of
from aof.documents.worklog_rules import posted
from aof.errors import AofError, Call, CharterExists, NoCharter, NotAllowed
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, OnDocument, Records, Verdict
from aof.kernel.model import Draft, Event, Policy, iso
from aof.org import rights
from aof.support.typed import prepare_type

_OUTLINE_NUMBERED: Final = re.compile(r"(\d{1,2})[).:]?[ \t]*(.*)\Z")
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
    found = _OUTLINE_NUMBERED.match(title)
    name = (found[2] if found else title).strip().casefold()
    if name in _NUMBER_OF:
        return _NUMBER_OF[name]
    number = int(found[1]) if found else 0
    return number if number in TITLES else 0


def fields(lines: Sequence[Line]) -> Iterator[tuple[str, str, int]]:
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


_NOBODY: Final = frozenset({"", "-", "–", "—", "none", "n/a"})  # noqa: RUF001 - dashes that people type
_PARSE_NUMBERED: Final = re.compile(r"[ \t]*\d{1,4}[.)][ \t]+(.*?)[ \t]*\Z")
_CHECKED: Final = re.compile(r"[ \t]*[-*+][ \t]+\[([ xX])\][ \t]*(.*?)[ \t]*\Z")
_DELAY: Final = re.compile(r"\(([^()]*)\)[ \t]*\Z|\bafter ([^,;]*)\Z", re.IGNORECASE)
_DURATION: Final = re.compile(r"(\d{1,6})[ \t]*(s|m|min|h|d)[a-z]*\b", re.IGNORECASE)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_COUNT: Final = re.compile(r"(\d{1,4})")
_WORDS: Final = {"one": 1, "two": 2, "three": 3, "four": 4}
_ROLE: Final = re.compile(r"(.*?)(?:[ \t]+\(lane[ \t]+(.*)\))?\Z")
_PARSE_BAND: Final[Mapping[str, charter_rules.Band]] = {
    "auto": "auto",
    "notify + delay": "delay",
    "approval required": "approval",
}
_LONGEST_DELAY: Final = 30 * 86_400


def parse_charter(text: str) -> Charter:
    """The charter that a text holds; the first section of a number counts."""
    found: dict[int, CharterSection] = {}
    for section in sections(text):
        found.setdefault(section.number, section)
    facts = {number: _fields(section) for number, section in found.items()}
    about, contract, governance = (facts.get(number, {}) for number in (1, 4, 5))
    return Charter(
        session_id=about.get("session id", ""),
        date=about.get("date", ""),
        project=about.get("project", ""),
        milestone=about.get("milestone", ""),
        risk_tier=about.get("risk tier", ""),
        roster=_parse_roster(found.get(2)),
        lanes=_parse_lanes(found.get(3)),
        contract=charter_rules.Contract(
            location=named(contract.get("contract location", "")),
            owner=named(contract.get("contract owner", "")),
            tests=named(contract.get("validation tests", "")),
            status=contract.get("status", "") or "Not started",
        ),
        governance=_parse_governance(governance),
        gates=_parse_gates(found.get(6)),
        escalation=_parse_escalation(found.get(7)),
        acceptance=_numbered(found.get(8)),
        handshakes=_parse_handshakes(found.get(9)),
        checklist=_parse_checklist(found.get(10)),
    )


def named(value: str) -> str:
    """The value without the marks of code around it; empty where it says that there is none."""
    plain = value.strip().strip("`").strip()
    return "" if plain.casefold() in _NOBODY else plain


def items(value: str) -> tuple[str, ...]:
    """The items of a list in one cell: separated by commas, semicolons or line breaks."""
    return tuple(item for part in re.split(r"[,;\n]", value) if (item := named(part)))


def cycles(value: str) -> int:
    """How many WORKLOG cycles a window has; one where that cannot be read."""
    found = _COUNT.search(value)
    if found:
        return max(int(found[1]), 1)
    return next((count for word, count in _WORDS.items() if word in value.casefold().split()), 1)


def seconds(value: str) -> int:
    """How long a duration such as `30m` is; 0 where there is none."""
    found = _DURATION.search(value)
    return min(int(found[1]) * _SECONDS[found[2].casefold()], _LONGEST_DELAY) if found else 0


def _fields(section: CharterSection | None) -> dict[str, str]:
    told: dict[str, str] = {}
    for key, value, _ in fields(section.lines) if section else ():
        told.setdefault(key.casefold(), value.strip().strip("`"))
    return told


def _rows(section: CharterSection | None, least: int) -> list[tuple[tuple[str, ...], int]]:
    """The rows of all tables in a section, filled up with empty cells."""
    if section is None:
        return []
    return [
        ((*row.cells, *[""] * (least - len(row.cells))), row.number)
        for table in tables(section.lines)
        for row in table.rows
        if any(row.cells)
    ]


def _parse_roster(section: CharterSection | None) -> tuple[charter_rules.Participant, ...]:
    return tuple(
        charter_rules.Participant(role=role, agent=named(agent), model=named(kind), lane=named(lane), line=line)
        for (role, agent, kind, lane, *_), line in _rows(section, 4)
    )


def _parse_lanes(section: CharterSection | None) -> tuple[charter_rules.CharterLane, ...]:
    return tuple(
        charter_rules.CharterLane(name=named(lane), owner=named(owner), patterns=items(scope), line=line)
        for (lane, owner, scope, *_), line in _rows(section, 3)
    )


def _parse_governance(told: Mapping[str, str]) -> charter_rules.Governance:
    return charter_rules.Governance(
        decision_mode=told.get("decision mode", "") or "consent",
        objection_window=told.get("objection window", "") or charter_rules.ONE_CYCLE,
        cross_review_mode=told.get("cross-review mode", "") or "aspirational",
        merge_policy=told.get("merge policy", ""),
        test_policy=told.get("test policy", ""),
    )


def _parse_gates(section: CharterSection | None) -> tuple[charter_rules.Gate, ...]:
    found: list[charter_rules.Gate] = []
    for key, value, line in fields(section.lines) if section else ():
        name, _, inside = key.partition("(")
        band = _PARSE_BAND.get(name.strip().casefold())
        if band is None:
            continue
        wait = _DELAY.search(value) if band == "delay" else None
        scope = value[: wait.start()] if wait and seconds(wait.group()) else value
        delay = seconds(inside) or (seconds(wait.group()) if wait else 0)
        found.append(charter_rules.Gate(band=band, scope=items(scope), delay_seconds=delay, line=line))
    return tuple(found)


def _parse_escalation(section: CharterSection | None) -> charter_rules.Escalation:
    if section is None:
        return charter_rules.Escalation()
    told = _fields(section)
    tie_break = told.get("tie-break condition", "") or told.get("tie-break", "")
    levels = {number: (name, window) for number, name, window in _levels(section)}
    window = levels.get(2, ("", ""))
    return charter_rules.Escalation(
        levels=tuple(name for _, (name, _) in sorted(levels.items())),
        rebuttal_cycles=cycles(window[1] or window[0]),
        tie_break=tie_break,
    )


def _levels(section: CharterSection) -> list[tuple[int, str, str]]:
    """Number, name and window of each level, from a table or a numbered list."""
    found = [
        (int(level), name, window)
        for (level, name, window, *_), _ in _rows(section, 3)
        if level.isascii() and level.isdigit() and len(level) == 1
    ]
    listed = [(line, said) for line in section.lines if (said := _said(line)) is not None]
    for place, (_, said) in enumerate(listed, 1):
        name, _, window = said.partition("(")
        found.append((place, name.strip().rstrip(":").strip(), window.rstrip(")")))
    return found


def _said(line: Line) -> str | None:
    found = _PARSE_NUMBERED.match(line.text) if line.kind == "text" else None
    return found[1] if found else None


def _numbered(section: CharterSection | None) -> tuple[str, ...]:
    return tuple(said for line in section.lines if (said := _said(line))) if section else ()


def _parse_handshakes(section: CharterSection | None) -> tuple[charter_rules.Signature, ...]:
    found: list[charter_rules.Signature] = []
    for title, line, lines in subsections(section) if section else ():
        told: dict[str, str] = {}
        for key, value, _ in fields(lines):
            told.setdefault(key.casefold(), value)
        role = _ROLE.match(told.get("role", ""))
        found.append(
            charter_rules.Signature(
                agent=named(title),
                signed=named(told.get("signed", "")),
                role=role[1] if role else "",
                lane=named((role[2] or "") if role else ""),
                status=told.get("handshake status", ""),
                notes=named(told.get("notes", "")),
                timestamp=named(told.get("timestamp", "")),
                line=line,
            )
        )
    return tuple(found)


def _parse_checklist(section: CharterSection | None) -> tuple[charter_rules.Item, ...]:
    return tuple(
        charter_rules.Item(text=found[2], done=found[1] != " ", line=line.number)
        for line in (section.lines if section else ())
        if line.kind == "text" and (found := _CHECKED.match(line.text))
    )


FIELDS = ("Field", "Value")
SETTINGS = ("Setting", "Value")
GATES = ("Band", "Scope")
LEVELS = ("Level", "Step", "Window")
UNSIGNED = "(not signed yet)"


def render_charter(charter: Charter) -> str:
    """The whole file; read again it is the same charter."""
    lines = [f"# Session Charter — {one_line(charter.project or 'unnamed')}", ""]
    for number, body in _BODIES.items():
        lines += [heading_of(number), "", *body(charter), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def heading_of(number: int) -> str:
    """The heading of a section."""
    return f"## {number}) {charter_rules.TITLES[number]}"


def one_line(text: str) -> str:
    """The text on one line, with nothing hidden."""
    return " ".join(plain_text(text).split())


def scope_of(patterns: Iterable[str]) -> str:
    """A list of files in one cell."""
    return ", ".join(f"`{one_line(pattern)}`" for pattern in patterns)


def gate_scope(gate: charter_rules.Gate) -> str:
    """What a band covers, with its delay."""
    if not gate.scope:
        return charter_rules.NONE
    said = ", ".join(map(one_line, gate.scope))
    return f"{said} ({duration(gate.delay_seconds)})" if gate.delay_seconds else said


def duration(seconds: int) -> str:
    """Seconds as people write them."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def window(cycles: int) -> str:
    """A number of WORKLOG cycles."""
    return "1 cycle" if cycles == 1 else f"{cycles} cycles"


def participant_cells(one: charter_rules.Participant) -> tuple[str, ...]:
    """The cells of a row of the roster."""
    return tuple(map(one_line, (one.role, one.agent, one.model, one.lane or charter_rules.NONE)))


def lane_cells(lane: charter_rules.CharterLane) -> tuple[str, ...]:
    """The cells of a row of lane ownership."""
    return (one_line(lane.name), one_line(lane.owner), scope_of(lane.patterns))


def signature_lines(one: charter_rules.Signature) -> list[str]:
    """A handshake below its heading."""
    role = f"{one.role} (lane {one.lane})" if one.lane else one.role
    values = {
        "Signed": one.signed or UNSIGNED,
        "Role": role,
        "Handshake status": one.status or "open",
        "Notes": one.notes or charter_rules.NONE,
        "Timestamp": one.timestamp or charter_rules.NONE,
    }
    return [f"- **{key}:** {one_line(value)}" for key, value in values.items()]


def _metadata(charter: Charter) -> list[str]:
    values = (charter.session_id, charter.date, charter.project, charter.milestone, charter.risk_tier)
    return table(FIELDS, zip(charter_rules.METADATA, map(one_line, values), strict=True))


def _render_roster(charter: Charter) -> list[str]:
    return table(charter_rules.ROSTER, map(participant_cells, charter.roster))


def _render_lanes(charter: Charter) -> list[str]:
    return table(charter_rules.LANES, map(lane_cells, charter.lanes))


def _contract(charter: Charter) -> list[str]:
    contract = charter.contract
    values = (contract.location, contract.owner, contract.tests, contract.status)
    return table(
        FIELDS, zip(charter_rules.CONTRACT, (one_line(value) or charter_rules.NONE for value in values), strict=True)
    )


def _render_governance(charter: Charter) -> list[str]:
    rules = charter.governance
    values = (
        rules.decision_mode,
        rules.objection_window,
        rules.cross_review_mode,
        rules.merge_policy,
        rules.test_policy,
    )
    return table(SETTINGS, zip(charter_rules.GOVERNANCE, map(one_line, values), strict=True))


def _render_gates(charter: Charter) -> list[str]:
    names = dict(zip(("auto", "delay", "approval"), charter_rules.BANDS, strict=True))
    return table(GATES, ((names[gate.band], gate_scope(gate)) for gate in charter.gates))


def _render_escalation(charter: Charter) -> list[str]:
    rows = [
        (str(number), one_line(name), window(charter.escalation.rebuttal_cycles) if number == 2 else "")  # noqa: PLR2004 - the level of the rebuttal
        for number, name in enumerate(charter.escalation.levels, 1)
    ]
    tie = one_line(charter.escalation.tie_break) or "the maintainer decides"
    return [*table(LEVELS, rows), "", f"**Tie-break condition:** {tie}"]


def _render_acceptance(charter: Charter) -> list[str]:
    return [f"{number}. {one_line(said)}" for number, said in enumerate(charter.acceptance, 1)]


def _render_handshakes(charter: Charter) -> list[str]:
    lines: list[str] = []
    for one in charter.handshakes:
        lines += [f"### {one_line(one.agent)}", "", *signature_lines(one), ""]
    return lines[:-1]


def _render_checklist(charter: Charter) -> list[str]:
    return [f"- [{'x' if item.done else ' '}] {one_line(item.text)}" for item in charter.checklist]


_BODIES = {
    1: _metadata,
    2: _render_roster,
    3: _render_lanes,
    4: _contract,
    5: _render_governance,
    6: _render_gates,
    7: _render_escalation,
    8: _render_acceptance,
    9: _render_handshakes,
    10: _render_checklist,
}


_HEADERS = {
    1: FIELDS,
    2: charter_rules.ROSTER,
    3: charter_rules.LANES,
    4: FIELDS,
    5: SETTINGS,
    6: GATES,
    7: LEVELS,
}
_EDIT_BAND = dict(zip(("auto", "delay", "approval"), charter_rules.BANDS, strict=True))


def apply_changes(text: str, changes: Iterable[charter_rules.Change]) -> str:
    """The text after these changes; applied once more, nothing changes."""
    for change in changes:
        text = _EDITS[type(change)](text, change)
    return text


def _field(text: str, change: charter_rules.SetField) -> str:
    text, section = _present(text, change.section)
    key = change.key.casefold()
    for found, _, line in fields(section.lines):
        if found.casefold() == key:
            old = split_lines(text)[line - 1].rstrip("\r\n")
            new = _with_value(old, found, change.value)
            return _spliced(text, line, line + 1, [new])
    return _with_row(text, section, (change.key, one_line(change.value)), lambda _cells: False)


def _with_value(line: str, key: str, value: str) -> str:
    """The line of a field, in the form that it has, with another value."""
    said = one_line(value)
    if line.lstrip().startswith("|"):
        return row((key, said))
    before = line[: line.index(key)]
    if before.endswith("**"):
        return f"{before}{key}:** {said}"
    return f"{before}{key}: {said}"


def _participant(text: str, change: charter_rules.SetParticipant) -> str:
    text, section = _present(text, 2)
    one = change.participant
    if one.is_maintainer:
        return _with_row(text, section, participant_cells(one), lambda cells: cells[0].casefold() == "maintainer")
    return _with_row(text, section, participant_cells(one), lambda cells: _at(cells, 1) == one.agent)


def _leave(text: str, change: charter_rules.DropParticipant) -> str:
    return _without_row(text, 2, lambda cells: _at(cells, 1) == change.agent)


def _lane(text: str, change: charter_rules.SetLane) -> str:
    text, section = _present(text, 3)
    lane = change.lane
    return _with_row(text, section, lane_cells(lane), lambda cells: _at(cells, 0) == lane.name)


def _close_lane(text: str, change: charter_rules.DropLane) -> str:
    return _without_row(text, 3, lambda cells: _at(cells, 0) == change.name)


def _gate(text: str, change: charter_rules.SetGate) -> str:
    text, section = _present(text, 6)
    name, scope = _EDIT_BAND[change.gate.band], gate_scope(change.gate)
    for found, _, line in fields(section.lines):
        if found.partition("(")[0].strip().casefold() == name.casefold():
            old = split_lines(text)[line - 1].rstrip("\r\n")
            return _spliced(text, line, line + 1, [_with_value(old, found, scope)])
    return _with_row(text, section, (name, scope), lambda _cells: False)


def _window(text: str, change: charter_rules.SetWindow) -> str:
    text, section = _present(text, 7)
    cells = ("2", charter_rules.LEVELS[1], window(change.cycles))
    return _with_row(text, section, cells, lambda found: found[0] == "2")


def _edit_acceptance(text: str, change: charter_rules.SetAcceptance) -> str:
    text, section = _present(text, 8)
    wanted = [f"{number}. {one_line(said)}" for number, said in enumerate(change.criteria, 1)]
    old = [line.number for line in section.lines if line.kind == "text" and _is_numbered(line.text)]
    for place in reversed(old[1:]):
        text = _spliced(text, place, place + 1, [])
    begin = old[0] if old else _behind(section)
    return _spliced(text, begin, begin + (1 if old else 0), wanted)


def _tick(text: str, change: charter_rules.TickItem) -> str:
    text, section = _present(text, 10)
    boxes = [line for line in section.lines if line.kind == "text" and line.text.lstrip()[:3] in _BOXES]
    if not 1 <= change.number <= len(boxes):
        return text
    line = boxes[change.number - 1]
    head, _, rest = line.text.partition("[")
    return _spliced(text, line.number, line.number + 1, [f"{head}[{'x' if change.done else ' '}]{rest[2:]}"])


def _sign(text: str, change: charter_rules.Sign) -> str:
    text, section = _present(text, 9)
    one = change.signature
    lines = signature_lines(one)
    for title, line, inside in subsections(section):
        if named(title) == one.agent:
            told = {key.casefold(): number for key, _, number in fields(inside)}
            if len(told) == len(inside) - sum(not other.text.strip() for other in inside):
                filled = [other.number for other in inside if other.text.strip()]
                begin, end = (filled[0], filled[-1] + 1) if filled else (line + 1, line + 1)
                return _spliced(text, begin, end, lines if filled else ["", *lines])
            return _signed_within(text, told, lines, line)
    begin = _behind(section)
    return _spliced(text, begin, begin, ["", f"### {one_line(one.agent)}", "", *lines])


def _signed_within(text: str, told: dict[str, int], lines: Sequence[str], heading_line: int) -> str:
    """A handshake among other text of a person: each field in its own line, missing ones below the heading."""
    missing: list[str] = []
    for new in lines:
        key = new.split("**")[1].rstrip(":").casefold()
        if key in told:
            text = _spliced(text, told[key], told[key] + 1, [new])
        else:
            missing.append(new)
    return _spliced(text, heading_line + 1, heading_line + 1, ["", *missing]) if missing else text


_BOXES = ("- [", "* [", "+ [")


def _is_numbered(line: str) -> bool:
    number, dot, _ = line.lstrip().replace(")", ".", 1).partition(". ")
    return bool(dot) and number.isascii() and number.isdigit()


def _at(cells: Sequence[str], place: int) -> str:
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
    text = _spliced(text, begin, begin, [heading_of(number), "", *body])
    return text, next(section for section in sections(text) if section.number == number)


def _with_row(
    text: str, section: CharterSection, cells: Sequence[str], matches: Callable[[tuple[str, ...]], bool]
) -> str:
    """A row in the place of the one that matches, else below the last one; a table is made where there is none."""
    known = list(tables(section.lines))
    for found in (one for each in known for one in each.rows):
        if found.cells and matches(found.cells):
            same = found.cells == tuple(cells)
            return text if same else _spliced(text, found.number, found.number + 1, [row(cells)])
    if known:
        return _spliced(text, known[0].end, known[0].end, [row(cells)])
    begin = _behind(section)
    return _spliced(text, begin, begin, ["", *table(_HEADERS[section.number], [cells])])


def _without_row(text: str, number: int, matches: Callable[[tuple[str, ...]], bool]) -> str:
    section = next((one for one in sections(text) if one.number == number), None)
    for found in (one for each in tables(section.lines) for one in each.rows) if section else ():
        if found.cells and matches(found.cells):
            return _spliced(text, found.number, found.number + 1, [])
    return text


def _behind(section: CharterSection) -> int:
    """The number of the line behind the last one of a section that says something."""
    last = section.line
    for line in section.lines:
        if line.text.strip():
            last = line.number
    return last + 1


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


_EDITS: dict[type[charter_rules.Change], Callable[[str, Any], str]] = {
    charter_rules.SetField: _field,
    charter_rules.SetParticipant: _participant,
    charter_rules.DropParticipant: _leave,
    charter_rules.SetLane: _lane,
    charter_rules.DropLane: _close_lane,
    charter_rules.SetGate: _gate,
    charter_rules.SetWindow: _window,
    charter_rules.SetAcceptance: _edit_acceptance,
    charter_rules.TickItem: _tick,
    charter_rules.Sign: _sign,
}


NAME: Final = "CHARTER"
PATH: Final = "SESSION_CHARTER.md"
EDITS: Final = "SESSION_CHARTER_EDITS.md"
WORKLOG: Final = "WORKLOG.md"
_INDEX: Final = "Decision Index"
TYPES: Final = ("document.charter.",)
CREATED: Final = "document.charter.created"
AMENDED: Final = "document.charter.amended"
SIGNED: Final = "document.charter.signed"


class CharterDocument:
    """Keeps the contract of `documents.projection.Projection`."""

    name, path, types = NAME, PATH, TYPES

    def __init__(self, _policy: Policy) -> None:
        """No setting changes how the charter is written."""

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:  # noqa: ARG002 - the contract
        """Nothing is ever added at the end only."""
        return None

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:  # noqa: ARG002 - the contract
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
        new = text
        for event in missing:
            new = text_after(new, event)
        new, by_hand = _frozen(new, known, files) if known else (new, [])
        for event in fresh:
            new = text_after(new, event)
        kept = {EDITS: markdown.with_kept(files.text(EDITS), PATH, by_hand)} if by_hand else {}
        return Rewritten(kept | ({PATH: new} if new != text else {}))


def _frozen(text: str, events: Sequence[Event], files: Files) -> tuple[str, list[markdown.HandEdit]]:
    """The text with the gates and the owners of lanes that the log has, unless the maintainer decided on an owner."""
    logged, there = parse_charter(replayed(events)), parse_charter(text)
    lines, owners = text.splitlines(), {lane.name: lane.owner for lane in logged.lanes}
    made, by_hand = list[Change](), list[markdown.HandEdit]()
    if scopes(logged) != scopes(there) and there.gates:
        made += [SetGate(gate=gate) for gate in logged.gates]
        said = "\n".join(lines[gate.line - 1] for gate in there.gates if gate.line)
        by_hand.append(markdown.HandEdit("a person changed the approval gates", said))
    decided = decisions(files.text(WORKLOG))
    for lane in there.lanes:
        owner = owners.get(lane.name, lane.owner)
        if owner == lane.owner or any(lane.name in one and lane.owner in one for one in decided):
            continue
        made.append(SetLane(lane=msgspec.structs.replace(lane, owner=owner)))
        what = f"a person changed the owner of the lane {lane.name!r} from {owner} to {lane.owner} without a decision"
        by_hand.append(markdown.HandEdit(what, lines[lane.line - 1]))
    return (apply_changes(text, made), by_hand) if made else (text, [])


def scopes(charter: Charter) -> dict[str, tuple[str, ...]]:
    """What each gate that holds something up covers, and for how long."""
    return {
        gate.band: (*gate.scope, str(gate.delay_seconds))
        for gate in charter.gates
        if gate.scope and gate.band != "auto"
    }


def decisions(worklog: str) -> list[str]:
    """The texts of the decisions in the index of a WORKLOG."""
    lines = scan(worklog)
    begin = next((place for place, line in enumerate(lines) if _is_index(line.text)), None)
    if begin is None:
        return []
    end = next(
        (place for place in range(begin + 1, len(lines)) if (found := heading(lines[place].text)) and found[0] <= 2),  # noqa: PLR2004 - the level of sections
        len(lines),
    )
    return [row.cells[0] for table in tables(lines[begin:end]) for row in table.rows if row.cells]


def _is_index(line: str) -> bool:
    found = heading(line)
    return found is not None and found[1].casefold() == _INDEX.casefold()


def text_after(text: str, event: Event) -> str:
    """The text after an event; one that cannot be read changes nothing."""
    try:
        if event.type == CREATED:
            return text or render_charter(msgspec.convert(event.payload["charter"], prepare_type(Charter)))
        return apply_changes(text, unpacked(event.payload["changes"])) if text else text
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


class OnCharter(OnDocument, frozen=True, kw_only=True):
    """A command about the charter."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the rule's signature
        """Its lock and its text."""
        return Needs(names=frozenset({lock_of(NAME)}), documents=frozenset({PATH}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the rule's signature
        """Who may speak comes first."""
        refused = projection.speaker_refusal(records.policy, self)
        return refused or self.settle(records, records.documents[PATH], now)

    def settle(self, records: Records, text: str, now: int) -> Verdict:
        """What it does to the charter as it is."""
        raise NotImplementedError


class CreateCharter(OnCharter, frozen=True, kw_only=True):
    """Begin a session."""

    charter: charter_rules.Charter

    def settle(self, records: Records, text: str, now: int) -> Verdict:  # noqa: ARG002 - the rule's signature
        """Once per session."""
        refused = projection.not_maintainer(
            records.policy, self, "create the charter"
        ) or charter_rules.unwritable_charter(self.charter)
        if refused is not None:
            return refused
        if text.strip():
            return CharterExists(
                f"there is a charter already, of session {parse_charter(text).session_id[:80] or 'unknown'}",
                f"amend it, or move {PATH} away to begin a new session",
                Call("charter_amend", {"reason": "…"}),
            )
        payload = {"document": NAME, "charter": msgspec.to_builtins(self.charter)}
        return Decision(drafts=(Draft(type=CREATED, task_id="", payload=payload),))


class AmendCharter(OnCharter, frozen=True, kw_only=True):
    """Change what was agreed, by decision of the maintainer."""

    changes: tuple[charter_rules.Change, ...]
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The WORKLOG gets the decision in the same commit."""
        own = super().needs(known, needs)
        return msgspec.structs.replace(own, names=own.names | {lock_of(worklog_text.NAME)})

    def settle(self, records: Records, text: str, now: int) -> Verdict:
        """Only what changes something is recorded, with a decision in the index of the WORKLOG."""
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
        row = posted("decision.recorded", entry, self.acting, decided.subject)
        return Decision(drafts=(Draft(type=AMENDED, task_id="", payload=payload), row), agent=self.acting)


class SignCharter(OnCharter, frozen=True, kw_only=True):
    """An agent accepts its role and lane."""

    status: str = charter_rules.HANDSHAKE_STATUSES[0]
    notes: str = ""

    def settle(self, records: Records, text: str, now: int) -> Verdict:
        """An agent signs for itself; signing again what holds changes nothing."""
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
