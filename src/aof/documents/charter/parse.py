"""A charter as data. Never fails: what cannot be read is left out here and named by `core.documents.charter.check`.

Must not know what a charter has to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from aof.core.documents.charter import model
from aof.core.documents.charter.model import Charter
from aof.documents.charter.outline import CharterSection, fields, sections, subsections
from aof.documents.markdown import Line, tables

_NOBODY: Final = frozenset({"", "-", "–", "—", "none", "n/a"})  # noqa: RUF001 - dashes that people type
_NUMBERED: Final = re.compile(r"[ \t]*\d{1,4}[.)][ \t]+(.*?)[ \t]*\Z")
_CHECKED: Final = re.compile(r"[ \t]*[-*+][ \t]+\[([ xX])\][ \t]*(.*?)[ \t]*\Z")
_DELAY: Final = re.compile(r"\(([^()]*)\)[ \t]*\Z|\bafter ([^,;]*)\Z", re.IGNORECASE)
_DURATION: Final = re.compile(r"(\d{1,6})[ \t]*(s|m|min|h|d)[a-z]*\b", re.IGNORECASE)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_COUNT: Final = re.compile(r"(\d{1,4})")
_WORDS: Final = {"one": 1, "two": 2, "three": 3, "four": 4}
_ROLE: Final = re.compile(r"(.*?)(?:[ \t]+\(lane[ \t]+(.*)\))?\Z")
_BAND: Final[Mapping[str, model.Band]] = {"auto": "auto", "notify + delay": "delay", "approval required": "approval"}
_LONGEST_DELAY: Final = 30 * 86_400


def parse(text: str) -> Charter:
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
        roster=_roster(found.get(2)),
        lanes=_lanes(found.get(3)),
        contract=model.Contract(
            location=named(contract.get("contract location", "")),
            owner=named(contract.get("contract owner", "")),
            tests=named(contract.get("validation tests", "")),
            status=contract.get("status", "") or "Not started",
        ),
        governance=_governance(governance),
        gates=_gates(found.get(6)),
        escalation=_escalation(found.get(7)),
        acceptance=_numbered(found.get(8)),
        handshakes=_handshakes(found.get(9)),
        checklist=_checklist(found.get(10)),
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


def _roster(section: CharterSection | None) -> tuple[model.Participant, ...]:
    return tuple(
        model.Participant(role=role, agent=named(agent), model=named(kind), lane=named(lane), line=line)
        for (role, agent, kind, lane, *_), line in _rows(section, 4)
    )


def _lanes(section: CharterSection | None) -> tuple[model.CharterLane, ...]:
    return tuple(
        model.CharterLane(name=named(lane), owner=named(owner), patterns=items(scope), line=line)
        for (lane, owner, scope, *_), line in _rows(section, 3)
    )


def _governance(told: Mapping[str, str]) -> model.Governance:
    return model.Governance(
        decision_mode=told.get("decision mode", "") or "consent",
        objection_window=told.get("objection window", "") or model.ONE_CYCLE,
        cross_review_mode=told.get("cross-review mode", "") or "aspirational",
        merge_policy=told.get("merge policy", ""),
        test_policy=told.get("test policy", ""),
    )


def _gates(section: CharterSection | None) -> tuple[model.Gate, ...]:
    found: list[model.Gate] = []
    for key, value, line in fields(section.lines) if section else ():
        name, _, inside = key.partition("(")
        band = _BAND.get(name.strip().casefold())
        if band is None:
            continue
        wait = _DELAY.search(value) if band == "delay" else None
        scope = value[: wait.start()] if wait and seconds(wait.group()) else value
        delay = seconds(inside) or (seconds(wait.group()) if wait else 0)
        found.append(model.Gate(band=band, scope=items(scope), delay_seconds=delay, line=line))
    return tuple(found)


def _escalation(section: CharterSection | None) -> model.Escalation:
    if section is None:
        return model.Escalation()
    told = _fields(section)
    tie_break = told.get("tie-break condition", "") or told.get("tie-break", "")
    levels = {number: (name, window) for number, name, window in _levels(section)}
    window = levels.get(2, ("", ""))
    return model.Escalation(
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
    found = _NUMBERED.match(line.text) if line.kind == "text" else None
    return found[1] if found else None


def _numbered(section: CharterSection | None) -> tuple[str, ...]:
    return tuple(said for line in section.lines if (said := _said(line))) if section else ()


def _handshakes(section: CharterSection | None) -> tuple[model.Signature, ...]:
    found: list[model.Signature] = []
    for title, line, lines in subsections(section) if section else ():
        told: dict[str, str] = {}
        for key, value, _ in fields(lines):
            told.setdefault(key.casefold(), value)
        role = _ROLE.match(told.get("role", ""))
        found.append(
            model.Signature(
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


def _checklist(section: CharterSection | None) -> tuple[model.Item, ...]:
    return tuple(
        model.Item(text=found[2], done=found[1] != " ", line=line.number)
        for line in (section.lines if section else ())
        if line.kind == "text" and (found := _CHECKED.match(line.text))
    )
