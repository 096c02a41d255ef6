"""Changes of a charter that people also edit: only the lines that must change do, and everything else keeps its bytes.

A section that somebody has deleted is put back in its place. Must not know who may change what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aof.core.documents.charter import changes as c
from aof.core.documents.charter import model
from aof.documents.charter import render
from aof.documents.charter.outline import CharterSection, fields, sections, subsections
from aof.documents.charter.parse import named
from aof.documents.markdown import ending, heading, row, split, table, tables

_HEADERS = {
    1: render.FIELDS,
    2: model.ROSTER,
    3: model.LANES,
    4: render.FIELDS,
    5: render.SETTINGS,
    6: render.GATES,
    7: render.LEVELS,
}
_BAND = dict(zip(("auto", "delay", "approval"), model.BANDS, strict=True))


def apply(text: str, changes: Iterable[c.Change]) -> str:
    """The text after these changes; applied once more, nothing changes."""
    for change in changes:
        text = _EDITS[type(change)](text, change)
    return text


def _field(text: str, change: c.SetField) -> str:
    text, section = _present(text, change.section)
    key = change.key.casefold()
    for found, _, line in fields(section.lines):
        if found.casefold() == key:
            old = split(text)[line - 1].rstrip("\r\n")
            new = _with_value(old, found, change.value)
            return _spliced(text, line, line + 1, [new])
    return _with_row(text, section, (change.key, render.one_line(change.value)), lambda _cells: False)


def _with_value(line: str, key: str, value: str) -> str:
    """The line of a field, in the form that it has, with another value."""
    said = render.one_line(value)
    if line.lstrip().startswith("|"):
        return row((key, said))
    before = line[: line.index(key)]
    if before.endswith("**"):
        return f"{before}{key}:** {said}"
    return f"{before}{key}: {said}"


def _participant(text: str, change: c.SetParticipant) -> str:
    text, section = _present(text, 2)
    one = change.participant
    if one.is_maintainer:
        return _with_row(
            text, section, render.participant_cells(one), lambda cells: cells[0].casefold() == "maintainer"
        )
    return _with_row(text, section, render.participant_cells(one), lambda cells: _at(cells, 1) == one.agent)


def _leave(text: str, change: c.DropParticipant) -> str:
    return _without_row(text, 2, lambda cells: _at(cells, 1) == change.agent)


def _lane(text: str, change: c.SetLane) -> str:
    text, section = _present(text, 3)
    lane = change.lane
    return _with_row(text, section, render.lane_cells(lane), lambda cells: _at(cells, 0) == lane.name)


def _close_lane(text: str, change: c.DropLane) -> str:
    return _without_row(text, 3, lambda cells: _at(cells, 0) == change.name)


def _gate(text: str, change: c.SetGate) -> str:
    text, section = _present(text, 6)
    name, scope = _BAND[change.gate.band], render.gate_scope(change.gate)
    for found, _, line in fields(section.lines):
        if found.partition("(")[0].strip().casefold() == name.casefold():
            old = split(text)[line - 1].rstrip("\r\n")
            return _spliced(text, line, line + 1, [_with_value(old, found, scope)])
    return _with_row(text, section, (name, scope), lambda _cells: False)


def _window(text: str, change: c.SetWindow) -> str:
    text, section = _present(text, 7)
    cells = ("2", model.LEVELS[1], render.window(change.cycles))
    return _with_row(text, section, cells, lambda found: found[0] == "2")


def _acceptance(text: str, change: c.SetAcceptance) -> str:
    text, section = _present(text, 8)
    wanted = [f"{number}. {render.one_line(said)}" for number, said in enumerate(change.criteria, 1)]
    old = [line.number for line in section.lines if line.kind == "text" and _is_numbered(line.text)]
    for place in reversed(old[1:]):
        text = _spliced(text, place, place + 1, [])
    begin = old[0] if old else _behind(section)
    return _spliced(text, begin, begin + (1 if old else 0), wanted)


def _tick(text: str, change: c.TickItem) -> str:
    text, section = _present(text, 10)
    boxes = [line for line in section.lines if line.kind == "text" and line.text.lstrip()[:3] in _BOXES]
    if not 1 <= change.number <= len(boxes):
        return text
    line = boxes[change.number - 1]
    head, _, rest = line.text.partition("[")
    return _spliced(text, line.number, line.number + 1, [f"{head}[{'x' if change.done else ' '}]{rest[2:]}"])


def _sign(text: str, change: c.Sign) -> str:
    text, section = _present(text, 9)
    one = change.signature
    lines = render.signature_lines(one)
    for title, line, inside in subsections(section):
        if named(title) == one.agent:
            told = {key.casefold(): number for key, _, number in fields(inside)}
            if len(told) == len(inside) - sum(not other.text.strip() for other in inside):
                filled = [other.number for other in inside if other.text.strip()]
                begin, end = (filled[0], filled[-1] + 1) if filled else (line + 1, line + 1)
                return _spliced(text, begin, end, lines if filled else ["", *lines])
            return _signed_within(text, told, lines, line)
    begin = _behind(section)
    return _spliced(text, begin, begin, ["", f"### {render.one_line(one.agent)}", "", *lines])


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
    begin = later.line if later is not None else len(split(text)) + 1
    header = _HEADERS.get(number)
    body = [*table(header), ""] if header else []
    text = _spliced(text, begin, begin, [render.heading_of(number), "", *body])
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
    mark, raw = ending(text), split(text)
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


_EDITS: dict[type[c.Change], Callable[[str, Any], str]] = {
    c.SetField: _field,
    c.SetParticipant: _participant,
    c.DropParticipant: _leave,
    c.SetLane: _lane,
    c.DropLane: _close_lane,
    c.SetGate: _gate,
    c.SetWindow: _window,
    c.SetAcceptance: _acceptance,
    c.TickItem: _tick,
    c.Sign: _sign,
}
