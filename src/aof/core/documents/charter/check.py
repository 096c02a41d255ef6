"""What is wrong with a charter, by line. Must not know the log, the disk, nor how the charter is written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from aof.core.documents.charter import model
from aof.core.documents.charter.model import Charter, CharterLane
from aof.core.documents.charter.overlap import common_path, takes
from aof.core.documents.finding import DocumentFinding
from aof.core.model.gate import ACTIONS, enforced
from aof.core.model.org_chart import OrgChart


def of_values(charter: Charter, lines: dict[int, int]) -> Iterator[DocumentFinding]:
    """Values that a charter cannot have; `lines` are the lines of the sections."""
    yield from _one_of(lines.get(1, 1), "risk_tier", "Risk tier", charter.risk_tier, model.RISK_TIERS)
    contract, rules = charter.contract, charter.governance
    if contract.location:
        at = lines.get(4, 1)
        yield from _one_of(at, "contract_status", "the contract's Status", contract.status, model.CONTRACT_STATUSES)
    at = lines.get(5, 1)
    yield from _one_of(at, "decision_mode", "Decision mode", rules.decision_mode, model.DECISION_MODES)
    yield from _one_of(at, "cross_review_mode", "Cross-review mode", rules.cross_review_mode, model.CROSS_REVIEW_MODES)
    bands = Counter[str](gate.band for gate in charter.gates)
    for band, name in zip(("auto", "delay", "approval"), model.BANDS, strict=True):
        if bands[band] != 1 and 6 in lines:  # noqa: PLR2004 - the section of the gates
            count = "no" if not bands[band] else "more than one"
            yield DocumentFinding(lines[6], "gate_band", f"section 6 has {count} band '{name}'")
    for gate in charter.gates:
        for item in gate.scope if gate.band != "auto" else ():
            if enforced(item) is None:
                what = f"AOF cannot hold anything up for {item[:80]!r}: people have to; it knows {', '.join(ACTIONS)}"
                yield DocumentFinding(
                    gate.line, "gate_unenforced", f"{what}, and tasks by tag:, risk:, priority:", "warning"
                )
    if 7 in lines:  # noqa: PLR2004 - the section of the escalation
        levels = [name.casefold() for name in charter.escalation.levels]
        for name in model.LEVELS:
            if not any(name.casefold() in level for level in levels):
                yield DocumentFinding(lines[7], "escalation_level", f"section 7 has no level '{name}'")


def _one_of(line: int, code: str, what: str, value: str, allowed: Sequence[str]) -> Iterator[DocumentFinding]:
    if value not in allowed:
        yield DocumentFinding(line, code, f"{what} is {value[:60]!r}, not one of: {', '.join(allowed)}")


def of_roster(charter: Charter, line: int, chart: OrgChart | None) -> Iterator[DocumentFinding]:
    """One maintainer, everybody once, everybody who works with a lane, and nobody that the org chart does not know."""
    maintainers = [one for one in charter.roster if one.is_maintainer]
    if len(maintainers) != 1:
        at = maintainers[1].line if maintainers else line
        yield DocumentFinding(
            at, "roster_maintainer", f"the roster has {len(maintainers)} maintainers, and must have one"
        )
    seen: set[str] = set()
    lanes = {lane.name for lane in charter.lanes}
    for one in charter.roster:
        if one.agent in seen:
            yield DocumentFinding(one.line, "roster_twice", f"{one.agent} is in the roster twice")
        seen.add(one.agent)
        if one.is_maintainer or one.is_observer:
            if one.is_observer and one.lane:
                yield DocumentFinding(one.line, "roster_lane", f"{one.agent} observes and has no lane")
            continue
        if not one.lane:
            yield DocumentFinding(one.line, "roster_lane", f"{one.agent} has no lane")
        elif one.lane not in lanes:
            yield DocumentFinding(
                one.line, "roster_lane", f"section 3 does not know the lane {one.lane[:60]!r} of {one.agent}"
            )
    yield from _of_chart(charter, line, chart, seen)


def _of_chart(charter: Charter, line: int, chart: OrgChart | None, seen: set[str]) -> Iterator[DocumentFinding]:
    if chart is None or not chart.agents:
        return
    for one in charter.roster:
        if one.agent not in chart.by_id and not one.is_maintainer:
            yield DocumentFinding(one.line, "roster_org_chart", f"the org chart does not know {one.agent[:60]!r}")
    for agent in chart.agents:
        if agent.active and agent.id not in seen:
            yield DocumentFinding(line, "roster_org_chart", f"{agent.id} is in the org chart and not in the roster")


def of_lanes(lanes: Sequence[CharterLane]) -> Iterator[DocumentFinding]:
    """Every file has one owner: lanes of two owners that meet in a path are named with that path."""
    names = Counter(lane.name for lane in lanes)
    for place, lane in enumerate(lanes):
        if names[lane.name] > 1:
            yield DocumentFinding(lane.line, "lane_twice", f"the lane {lane.name[:60]!r} stands there twice")
        if not lane.owner:
            yield DocumentFinding(lane.line, "lane_owner", f"the lane {lane.name[:60]!r} has no owner")
        if not lane.patterns:
            yield DocumentFinding(lane.line, "lane_scope", f"the lane {lane.name[:60]!r} has no files")
        for other in lanes[:place]:
            if lane.shared or other.shared or lane.owner == other.owner:
                continue
            if (met := _meeting(lane, other)) is not None:
                what = f"{met} belongs to the lanes {other.name!r} ({other.owner}) and {lane.name!r} ({lane.owner})"
                yield DocumentFinding(lane.line, "lane_overlap", what)


def _meeting(one: CharterLane, other: CharterLane) -> str | None:
    """A path that the patterns of both lanes take."""
    return next((met for a in other.patterns for b in one.patterns if (met := common_path(a, b)) is not None), None)


def of_kickoff(charter: Charter, line: int, *, status_block: bool) -> Iterator[DocumentFinding]:
    """What stands between the charter and the start of work, ticked or not."""
    true = {
        1: bool(charter.lanes) and not any(True for _ in of_lanes(charter.lanes)),
        2: not charter.contract.location or charter.contract.status == "Locked",
        3: status_block,
        5: bool(charter.acceptance),
        6: not charter.unsigned,
    }
    if len(charter.checklist) < len(model.KICKOFF):
        missing = len(model.KICKOFF) - len(charter.checklist)
        yield DocumentFinding(
            line, "kickoff_items", f"the kickoff checklist lacks {missing} of {len(model.KICKOFF)} items"
        )
    for number, item in enumerate(charter.checklist[: len(model.KICKOFF)], 1):
        if true.get(number, item.done):
            if not item.done:
                yield DocumentFinding(
                    item.line, "kickoff_open", f"item {number} is true and not ticked: {item.text}", "warning"
                )
            continue
        why = {6: f"; unsigned: {', '.join(charter.unsigned)}"}.get(number, "")
        said = "is ticked, and not so" if item.done else "is open"
        yield DocumentFinding(item.line, "kickoff_untrue", f"item {number} {said}: {item.text}{why}")


def owners_of(lanes: Iterable[CharterLane], paths: Iterable[str]) -> dict[str, CharterLane]:
    """The lane of each path that belongs to one."""
    listed = list(lanes)
    return {
        path: lane
        for path in paths
        if (lane := next((one for one in listed if any(takes(p, path) for p in one.patterns)), None)) is not None
    }
