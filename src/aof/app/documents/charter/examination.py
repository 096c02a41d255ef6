"""What is wrong with the charter, and with what happens beside it: locks, changed files, and edits by hand.

Must not know any surface; changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from aof.app.documents import reading
from aof.app.operations.results import Result
from aof.core.documents.charter import check, model
from aof.core.documents.charter.model import Charter, CharterLane
from aof.core.documents.finding import DocumentFinding
from aof.core.errors.base import Call
from aof.core.errors.charter import NoCharter
from aof.core.model.workflow import leases
from aof.documents import edits
from aof.documents.charter.outline import sections
from aof.documents.charter.parse import parse
from aof.documents.charter.projection import CREATED, EDITS, NAME, PATH, TYPES, decisions, replayed, scopes
from aof.documents.markdown import conflict_marks, scan, unclosed
from aof.ports.lists import Query
from aof.ports.store import Scope

if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.core.model.events import Event

WORKLOG: Final = "WORKLOG.md"
_STATUS_BLOCK: Final = re.compile(r"^\W{0,4}(?:Now Working|Maintainer Focus)\W", re.MULTILINE)
_PATH_LIKE: Final = re.compile(r"[^\s`]*[/.][^\s`]*\Z")


class CharterProblem(Result, frozen=True, kw_only=True, omit_defaults=True):
    """One finding; a warning does not make the check fail."""

    file: str
    line: int
    code: str
    detail: str
    severity: str = "error"


class CharterChecked(Result, frozen=True, kw_only=True):
    """What was found; when it is `ok`, nothing stands between the charter and the start of work."""

    ok: bool
    path: str
    problems: tuple[CharterProblem, ...]


def examined(environment: Environment, text: str, *, agent: str | None, changed: tuple[str, ...]) -> CharterChecked:
    """Everything that is wrong, in the order of the lines."""
    if not text.strip():
        raise NoCharter("there is no session charter", "let a maintainer create one", Call("charter_init", {}))
    found = sorted(_findings(environment, text, agent, changed), key=lambda one: one.line)
    problems = tuple(
        CharterProblem(file=PATH, line=one.line, code=one.code, detail=one.detail, severity=one.severity)
        for one in found
    )
    ok = all(one.severity != "error" for one in found)
    return CharterChecked(ok=ok, path=PATH, problems=problems)


def _findings(
    environment: Environment, text: str, agent: str | None, changed: tuple[str, ...]
) -> Iterator[DocumentFinding]:
    charter = parse(text)
    lines: dict[int, int] = {}
    for section in sections(text):
        lines.setdefault(section.number, section.line)
    events = _events(environment)
    with environment.store.unit(Scope()) as unit:
        worklog = unit.document(WORKLOG)
    chart = environment.chart.whole() if environment.org is not None else None
    yield from _of_text(text)
    yield from _of_sections(text)
    yield from _of_session(charter, lines.get(1, 1), events)
    yield from check.of_values(charter, lines)
    yield from check.of_roster(charter, lines.get(2, 1), chart)
    yield from check.of_lanes(charter.lanes)
    yield from _of_owners(charter, events, decisions(worklog))
    yield from _of_contract(environment, charter, lines.get(4, 1))
    yield from check.of_kickoff(charter, lines.get(10, 1), status_block=bool(_STATUS_BLOCK.search(worklog)))
    yield from _of_locks(environment, charter)
    yield from _of_changes(charter, lines.get(3, 1), agent, changed)
    for line, edit in edits.kept(reading.foreseen(environment, NAME, EDITS)[EDITS]):
        how = "amend the charter, or let a maintainer decide, if it is meant; then delete the section"
        yield DocumentFinding(1, "changed_by_hand", f"{edit.what}, see {EDITS}:{line}; {how}")


def _events(environment: Environment) -> list[Event]:
    return list(environment.store.told(TYPES))


def _of_text(text: str) -> Iterator[DocumentFinding]:
    lines = scan(text)
    for number in unclosed(lines):
        yield DocumentFinding(number, "unclosed", "a fenced block or a comment that is never closed", "warning")
    for number in conflict_marks(lines):
        yield DocumentFinding(number, "conflict_mark", "a mark that a failed merge has left")


def _of_sections(text: str) -> Iterator[DocumentFinding]:
    known = sections(text)
    seen: set[int] = set()
    last = 0
    for section in known:
        if not section.number:
            continue
        if section.number in seen:
            yield DocumentFinding(
                section.line, "section_twice", f"section {section.number} is there twice; the first counts"
            )
        elif section.number < last:
            yield DocumentFinding(
                section.line, "section_order", f"section {section.number} stands after {last}", "warning"
            )
        if section.empty and section.number not in seen:
            title = model.TITLES[section.number]
            yield DocumentFinding(section.line, "section_empty", f"section {section.number} ({title}) is empty")
        seen.add(section.number)
        last = max(last, section.number)
    end = len(text.splitlines())
    for number, title in model.TITLES.items():
        if number not in seen:
            yield DocumentFinding(end, "section_missing", f"section {number} ({title}) is missing")


def _of_session(charter: Charter, line: int, events: list[Event]) -> Iterator[DocumentFinding]:
    if not charter.session_id:
        yield DocumentFinding(line, "session_id", "the session has no ID")
    earlier = [event.payload.get("charter", {}).get("sessionId") for event in events if event.type == CREATED][:-1]
    if charter.session_id and charter.session_id in earlier:
        yield DocumentFinding(line, "session_id", f"an earlier session had the ID {charter.session_id[:80]}")
    for name, value in (("Date", charter.date), ("Project", charter.project), ("Milestone", charter.milestone)):
        if not value:
            yield DocumentFinding(line, "metadata", f"section 1 does not say '{name}'", "warning")


def _of_owners(charter: Charter, events: list[Event], decided: list[str]) -> Iterator[DocumentFinding]:
    """Owners change by a decision of the maintainer: what the log does not know needs a row of the Decision Index."""
    if not events:
        return
    logged = parse(replayed(events))
    known = {lane.name: lane.owner for lane in logged.lanes}
    if scopes(logged) != scopes(charter):
        at = charter.gates[0].line if charter.gates else 1
        yield DocumentFinding(at, "gates_changed", "the gates were changed by hand; let a maintainer amend the charter")
    for lane in charter.lanes:
        before = known.get(lane.name)
        if before is None or before == lane.owner:
            continue
        if not any(lane.name in text and lane.owner in text for text in decided):
            what = f"the lane {lane.name!r} went from {before} to {lane.owner} by hand, without a decision"
            yield DocumentFinding(lane.line, "lane_owner_changed", what)


def _of_contract(environment: Environment, charter: Charter, line: int) -> Iterator[DocumentFinding]:
    contract, files = charter.contract, environment.project
    if not contract.location:
        return
    for name, path in (("Contract location", contract.location), ("Validation tests", contract.tests)):
        if files is not None and path and _PATH_LIKE.match(path) and not files.has(path):
            yield DocumentFinding(line, "contract_path", f"{name} of the contract: there is no {path[:200]}")
    if contract.status != "Locked":
        busy = {lane for agent in _working(environment) if (lane := _lane_of(charter, agent))}
        if len(busy) > 1:
            named = ", ".join(sorted(busy))
            what = f"the contract {contract.location[:200]} is {contract.status[:40]}, and the lanes {named} work"
            yield DocumentFinding(line, "contract_unlocked", what)


def _working(environment: Environment) -> set[str]:
    tasks = environment.store.find(Query(status=("in-progress",))).tasks
    return {lease.agent for task in tasks for lease in leases(task)}


def _lane_of(charter: Charter, agent: str) -> str | None:
    seat = charter.participant(agent)
    return (seat.lane or None) if seat is not None else None


def _of_locks(environment: Environment, charter: Charter) -> Iterator[DocumentFinding]:
    for task in environment.store.find(Query(status=("in-progress",))).tasks:
        for lock in task.locks:
            lane = check.owners_of(charter.lanes, [lock.path]).get(lock.path)
            if lane is not None and not lane.shared and lane.owner != lock.agent:
                what = f"{lock.agent} has locked {lock.path} for {task.id}, which {_owned(lane)}"
                yield DocumentFinding(lane.line, "lock_outside_lane", what)


def _of_changes(charter: Charter, line: int, agent: str | None, changed: tuple[str, ...]) -> Iterator[DocumentFinding]:
    owners = check.owners_of(charter.lanes, changed)
    for path in changed:
        lane = owners.get(path)
        if lane is None:
            yield DocumentFinding(
                line, "file_without_lane", f"{path[:200]} has changed and belongs to no lane", "warning"
            )
        elif agent is not None and not lane.shared and lane.owner != agent:
            what = f"{agent} has changed {path[:200]}, which {_owned(lane)}"
            yield DocumentFinding(lane.line, "changed_outside_lane", what)


def _owned(lane: CharterLane) -> str:
    return f"belongs to {lane.owner} (lane {lane.name})"
