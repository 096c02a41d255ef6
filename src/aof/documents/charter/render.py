"""A new charter as text that people like to read. Must not know how an existing one is changed."""

from __future__ import annotations

from collections.abc import Iterable

from aof.core.documents.charter import model
from aof.core.documents.charter.model import Charter
from aof.documents.escaping import plain
from aof.documents.markdown import table

FIELDS = ("Field", "Value")
SETTINGS = ("Setting", "Value")
GATES = ("Band", "Scope")
LEVELS = ("Level", "Step", "Window")
UNSIGNED = "(not signed yet)"


def render(charter: Charter) -> str:
    """The whole file; read again it is the same charter."""
    lines = [f"# Session Charter — {one_line(charter.project or 'unnamed')}", ""]
    for number, body in _BODIES.items():
        lines += [heading_of(number), "", *body(charter), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def heading_of(number: int) -> str:
    """The heading of a section."""
    return f"## {number}) {model.TITLES[number]}"


def one_line(text: str) -> str:
    """The text on one line, with nothing hidden."""
    return " ".join(plain(text).split())


def scope_of(patterns: Iterable[str]) -> str:
    """A list of files in one cell."""
    return ", ".join(f"`{one_line(pattern)}`" for pattern in patterns)


def gate_scope(gate: model.Gate) -> str:
    """What a band covers, with its delay."""
    if not gate.scope:
        return model.NONE
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


def participant_cells(one: model.Participant) -> tuple[str, ...]:
    """The cells of a row of the roster."""
    return tuple(map(one_line, (one.role, one.agent, one.model, one.lane or model.NONE)))


def lane_cells(lane: model.CharterLane) -> tuple[str, ...]:
    """The cells of a row of lane ownership."""
    return (one_line(lane.name), one_line(lane.owner), scope_of(lane.patterns))


def signature_lines(one: model.Signature) -> list[str]:
    """A handshake below its heading."""
    role = f"{one.role} (lane {one.lane})" if one.lane else one.role
    values = {
        "Signed": one.signed or UNSIGNED,
        "Role": role,
        "Handshake status": one.status or "open",
        "Notes": one.notes or model.NONE,
        "Timestamp": one.timestamp or model.NONE,
    }
    return [f"- **{key}:** {one_line(value)}" for key, value in values.items()]


def _metadata(charter: Charter) -> list[str]:
    values = (charter.session_id, charter.date, charter.project, charter.milestone, charter.risk_tier)
    return table(FIELDS, zip(model.METADATA, map(one_line, values), strict=True))


def _roster(charter: Charter) -> list[str]:
    return table(model.ROSTER, map(participant_cells, charter.roster))


def _lanes(charter: Charter) -> list[str]:
    return table(model.LANES, map(lane_cells, charter.lanes))


def _contract(charter: Charter) -> list[str]:
    contract = charter.contract
    values = (contract.location, contract.owner, contract.tests, contract.status)
    return table(FIELDS, zip(model.CONTRACT, (one_line(value) or model.NONE for value in values), strict=True))


def _governance(charter: Charter) -> list[str]:
    rules = charter.governance
    values = (
        rules.decision_mode,
        rules.objection_window,
        rules.cross_review_mode,
        rules.merge_policy,
        rules.test_policy,
    )
    return table(SETTINGS, zip(model.GOVERNANCE, map(one_line, values), strict=True))


def _gates(charter: Charter) -> list[str]:
    names = dict(zip(("auto", "delay", "approval"), model.BANDS, strict=True))
    return table(GATES, ((names[gate.band], gate_scope(gate)) for gate in charter.gates))


def _escalation(charter: Charter) -> list[str]:
    rows = [
        (str(number), one_line(name), window(charter.escalation.rebuttal_cycles) if number == 2 else "")  # noqa: PLR2004 - the level of the rebuttal
        for number, name in enumerate(charter.escalation.levels, 1)
    ]
    tie = one_line(charter.escalation.tie_break) or "the maintainer decides"
    return [*table(LEVELS, rows), "", f"**Tie-break condition:** {tie}"]


def _acceptance(charter: Charter) -> list[str]:
    return [f"{number}. {one_line(said)}" for number, said in enumerate(charter.acceptance, 1)]


def _handshakes(charter: Charter) -> list[str]:
    lines: list[str] = []
    for one in charter.handshakes:
        lines += [f"### {one_line(one.agent)}", "", *signature_lines(one), ""]
    return lines[:-1]


def _checklist(charter: Charter) -> list[str]:
    return [f"- [{'x' if item.done else ' '}] {one_line(item.text)}" for item in charter.checklist]


_BODIES = {
    1: _metadata,
    2: _roster,
    3: _lanes,
    4: _contract,
    5: _governance,
    6: _gates,
    7: _escalation,
    8: _acceptance,
    9: _handshakes,
    10: _checklist,
}
