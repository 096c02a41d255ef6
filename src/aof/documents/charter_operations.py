"""Operations on the session charter, and its examination. Must not know how it is written down, nor any surface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, TypedDict, Unpack

import msgspec

from aof.documents import charter_rules, hand_edits, markdown, reading
from aof.documents.charter import (
    CREATED,
    EDITS,
    NAME,
    PATH,
    TYPES,
    AmendCharter,
    CreateCharter,
    SignCharter,
    decisions,
    items,
    parse_charter,
    replayed,
    scopes,
    seconds,
    sections,
)
from aof.documents.charter_rules import (
    CONTRACT_STATUSES,
    CROSS_REVIEW_MODES,
    DECISION_MODES,
    HANDSHAKE_STATUSES,
    RISK_TIERS,
    Charter,
    CharterLane,
)
from aof.errors import Call, InvalidInput, NoCharter
from aof.kernel.declarations import one_of, param
from aof.kernel.findings import DocumentFinding
from aof.kernel.model import iso
from aof.kernel.operation import Extra, Family, Spelling, operation
from aof.kernel.results import Result
from aof.store.lists import Query
from aof.store.port import Scope
from aof.workflows.model import leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext, Environment
    from aof.kernel.events import Event


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
    charter = parse_charter(text)
    lines: dict[int, int] = {}
    for section in sections(text):
        lines.setdefault(section.number, section.line)
    events = list(environment.store.events_of_types(TYPES))
    with environment.store.unit(Scope()) as unit:
        worklog = unit.document(WORKLOG)
    chart = environment.chart.whole() if environment.org is not None else None
    yield from markdown.damage(text)
    yield from _of_sections(text)
    yield from _of_session(charter, lines.get(1, 1), events)
    yield from charter_rules.value_findings(charter, lines)
    yield from charter_rules.roster_findings(charter, lines.get(2, 1), chart)
    yield from charter_rules.lane_findings(charter.lanes)
    yield from _of_owners(charter, events, decisions(worklog))
    yield from _of_contract(environment, charter, lines.get(4, 1))
    yield from charter_rules.kickoff_findings(
        charter, lines.get(10, 1), status_block=bool(_STATUS_BLOCK.search(worklog))
    )
    yield from _of_locks(environment, charter)
    yield from _of_changes(charter, lines.get(3, 1), agent, changed)
    for line, edit in hand_edits.kept_edits(reading.foreseen(environment, NAME, EDITS)[EDITS]):
        how = "amend the charter, or let a maintainer decide, if it is meant; then delete the section"
        yield DocumentFinding(1, "changed_by_hand", f"{edit.what}, see {EDITS}:{line}; {how}")


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
            title = charter_rules.TITLES[section.number]
            yield DocumentFinding(section.line, "section_empty", f"section {section.number} ({title}) is empty")
        seen.add(section.number)
        last = max(last, section.number)
    end = len(text.splitlines())
    for number, title in charter_rules.TITLES.items():
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
    logged = parse_charter(replayed(events))
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
        tasks = environment.store.find(Query(status=("in-progress",))).tasks
        seats = (charter.participant(lease.agent) for task in tasks for lease in leases(task))
        busy = {seat.lane for seat in seats if seat is not None and seat.lane}
        if len(busy) > 1:
            named = ", ".join(sorted(busy))
            what = f"the contract {contract.location[:200]} is {contract.status[:40]}, and the lanes {named} work"
            yield DocumentFinding(line, "contract_unlocked", what)


def _of_locks(environment: Environment, charter: Charter) -> Iterator[DocumentFinding]:
    for task in environment.store.find(Query(status=("in-progress",))).tasks:
        for lock in task.locks:
            lane = charter_rules.owners_of(charter.lanes, [lock.path]).get(lock.path)
            if lane is not None and not lane.shared and lane.owner != lock.agent:
                what = f"{lock.agent} has locked {lock.path} for {task.id}, which {_owned(lane)}"
                yield DocumentFinding(lane.line, "lock_outside_lane", what)


def _of_changes(charter: Charter, line: int, agent: str | None, changed: tuple[str, ...]) -> Iterator[DocumentFinding]:
    owners = charter_rules.owners_of(charter.lanes, changed)
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


class CharterShown(Result, frozen=True, kw_only=True):
    """The charter as it stands, and whose handshake is missing."""

    path: str
    session_id: str
    date: str
    project: str
    milestone: str
    risk_tier: str
    roster: tuple[charter_rules.Participant, ...]
    lanes: tuple[charter_rules.CharterLane, ...]
    contract: charter_rules.Contract
    governance: charter_rules.Governance
    gates: tuple[charter_rules.Gate, ...]
    escalation: charter_rules.Escalation
    acceptance: tuple[str, ...]
    handshakes: tuple[charter_rules.Signature, ...]
    checklist: tuple[charter_rules.Item, ...]
    unsigned: tuple[str, ...]


_FAMILY = Family(
    verb="charter",
    help="create, amend, sign, show or check the session charter",
    example="aof charter init --participant ada:Developer:api --lane 'api:ada:src/api/**'",
    section="team",
    order=40,
)
_charter_operation = partial(operation, family=_FAMILY, tier="mail")


class CharterFields(TypedDict, total=False):
    """What a charter says."""

    session_id: Annotated[str, param("ID of the session, unique in the project")] | None
    project: Annotated[str, param("the project")] | None
    milestone: Annotated[str, param("what the session works towards")] | None
    risk_tier: Annotated[str, param("Low, Medium or High", Spelling(option="--risk"), says=one_of(RISK_TIERS))] | None
    participants: Annotated[
        Sequence[str],
        param(
            "somebody who takes part, as NAME:ROLE:LANE, with :MODEL behind it if you like; "
            "the roles Maintainer and Observer have no lane",
            Spelling(option="--participant", metavar="P"),
        ),
    ]
    lanes: Annotated[
        Sequence[str],
        param("files that somebody owns, as LANE:OWNER:PATTERN,PATTERN", Spelling(option="--lane", metavar="L")),
    ]
    contract: Annotated[str, param("file that several lanes build against")] | None
    contract_owner: Annotated[str, param("who owns the contract")] | None
    contract_tests: Annotated[str, param("tests that validate the contract")] | None
    contract_status: Annotated[str, param("Not started, Draft or Locked", says=one_of(CONTRACT_STATUSES))] | None
    decision_mode: (
        Annotated[str, param("consent, quorum or maintainer-adjudicated", says=one_of(DECISION_MODES))] | None
    )
    objection_window: Annotated[str, param("how long objections may take, such as '1 cycle'")] | None
    cross_review_mode: (
        Annotated[
            str,
            param("aspirational or mandatory", Spelling(option="--cross-review"), says=one_of(CROSS_REVIEW_MODES)),
        ]
        | None
    )
    merge_policy: Annotated[str, param("when work is merged")] | None
    test_policy: Annotated[str, param("which tests must pass")] | None
    auto: Annotated[Sequence[str], param("what needs nobody's approval", Spelling(metavar="T"))] | None
    delayed: (
        Annotated[
            Sequence[str],
            param(
                "what is told and then waits: complete, or tasks by tag:X, risk:X, priority:X, agent:X or team:X",
                Spelling(option="--delay", metavar="T"),
            ),
        ]
        | None
    )
    delay_time: Annotated[str, param("how long that waits: 30m, 2h, 1d")] | None
    approval: (
        Annotated[
            Sequence[str],
            param(
                "what a person has to approve: an action (complete, cancel, retry, archive), or such tasks",
                Spelling(metavar="T"),
            ),
        ]
        | None
    )
    rebuttal_cycles: (
        Annotated[int, param("WORKLOG cycles that a rebuttal may take", Spelling(metavar="N"), ge=1, le=99)] | None
    )
    tie_break: Annotated[str, param("what breaks a tie")] | None
    acceptance: Annotated[Sequence[str], param("acceptance criterion", Spelling(option="--accept", metavar="T"))]
    agent: _AS | None


@_charter_operation(effect="append", example="aof charter init", acts="agent", needs="lead")
def charter_init(context: CallContext, *, actor: str | None = None, **given: Unpack[CharterFields]) -> CharterShown:
    """Create the charter of a session: who takes part, who owns which files, how decisions are made."""
    agent = given.get("agent")
    caller = agent or actor or context.actor
    maintainers = context.environment.policy.maintainers
    maintainer = caller if not maintainers or caller in maintainers else maintainers[0]
    today = iso(context.environment.clock.now())[:10]
    project = context.environment.policy.project
    charter = new_charter(_given(given), maintainer=maintainer, project=project, today=today)
    context.dispatch(CreateCharter(actor=actor or context.actor, agent=agent, charter=charter))
    return charter_show(context)


@_charter_operation(
    effect="write",
    example="aof charter amend --lane 'api:bob:src/api/**' --reason 'ada is away'",
    acts="agent",
    needs="lead",
)
def charter_amend(
    context: CallContext,
    *,
    reason: Annotated[str, param("why; it stands in the Decision Index", Spelling(metavar="T"))],
    leave: Annotated[Sequence[str], param("participant who leaves", Spelling(option="--leave", metavar="A"))] = (),
    close_lanes: Annotated[Sequence[str], param("lane that ends", Spelling(option="--close-lane", metavar="L"))] = (),
    done: Annotated[Sequence[int], param("kickoff item that is done, by its number", Spelling(metavar="N"))] = (),
    undone: Annotated[Sequence[int], param("kickoff item that is not done", Spelling(metavar="N"))] = (),
    actor: str | None = None,
    **given: Unpack[CharterFields],
) -> CharterShown:
    """Change the charter, by decision of a maintainer."""
    more = {"leave": leave, "close_lanes": close_lanes, "done": done, "undone": undone}
    changes = changes_of(_given({**given, **more}), _charter(context))
    agent = given.get("agent")
    context.dispatch(AmendCharter(actor=actor or context.actor, agent=agent, changes=changes, reason=reason))
    return charter_show(context)


@_charter_operation(effect="append", example="aof charter sign --agent ada", acts="agent")
def charter_sign(
    context: CallContext,
    *,
    agent: _AS | None = None,
    status: Annotated[
        str, param("'Accepted' or 'Accepted with reservations'", says=one_of(HANDSHAKE_STATUSES))
    ] = "Accepted",
    notes: Annotated[str, param("reservations, or what the maintainer should know")] = "",
    actor: str | None = None,
) -> CharterShown:
    """Sign the handshake of the charter: you have read it and take your role and lane."""
    status = spelled(status, charter_rules.HANDSHAKE_STATUSES)
    signed = SignCharter(actor=actor or context.actor, agent=agent, status=status, notes=notes)
    context.dispatch(signed)
    return charter_show(context)


@_charter_operation(effect="read", example="aof charter show")
def charter_show(context: CallContext) -> CharterShown:
    """The session charter as it stands."""
    charter = _charter(context)
    parts = {name: getattr(charter, name) for name in charter.__struct_fields__}
    return CharterShown(path=PATH, unsigned=charter.unsigned, **parts)


@_charter_operation(
    effect="read",
    example="aof charter check --agent ada --git HEAD",
    extra=(Extra(option="--git", help="check: compare the files that git says have changed since", metavar="REV"),),
)
def charter_check(
    context: CallContext,
    *,
    agent: Annotated[str, param("whose changes they are")] | None = None,
    changed: Annotated[
        Sequence[str], param("file that has changed, relative to the project", Spelling(metavar="FILE"))
    ] = (),
) -> CharterChecked:
    """What is wrong with the charter, and which locks and changed files lie outside of their owner's lane."""
    return examined(context.environment, _text(context), agent=agent, changed=tuple(changed))


def _charter(context: CallContext) -> charter_rules.Charter:
    text = _text(context)
    if not text.strip():
        raise NoCharter("there is no session charter", "let a maintainer create one", Call("charter_init", {}))
    return parse_charter(text)


def _text(context: CallContext) -> str:
    return reading.texts(context.environment, NAME, PATH)[PATH]


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the caller gave of what a charter says."""
    given = {name: value for name, value in values.items() if name != "agent" and value not in (None, ())}
    return given | {name: spelled(given[name], allowed) for name, allowed in _WORDS.items() if name in given}


_WORDS = {
    "risk_tier": charter_rules.RISK_TIERS,
    "contract_status": charter_rules.CONTRACT_STATUSES,
    "decision_mode": charter_rules.DECISION_MODES,
    "cross_review_mode": charter_rules.CROSS_REVIEW_MODES,
}


SHARED: Final = charter_rules.CharterLane(name="Shared log", owner=charter_rules.EVERYBODY, patterns=("WORKLOG.md",))
_FIELDS: Final = {
    "session_id": (1, "Session ID"),
    "milestone": (1, "Milestone"),
    "risk_tier": (1, "Risk tier"),
    "project": (1, "Project"),
    "contract": (4, "Contract location"),
    "contract_owner": (4, "Contract owner"),
    "contract_tests": (4, "Validation tests"),
    "contract_status": (4, "Status"),
    "decision_mode": (5, "Decision mode"),
    "objection_window": (5, "Objection window"),
    "cross_review_mode": (5, "Cross-review mode"),
    "merge_policy": (5, "Merge policy"),
    "test_policy": (5, "Test policy"),
    "tie_break": (7, "Tie-break condition"),
}


def participant(text: str) -> charter_rules.Participant:
    """Somebody from `NAME`, `NAME:ROLE`, `NAME:ROLE:LANE` or `NAME:ROLE:LANE:MODEL`."""
    name, role, lane, kind = (*map(str.strip, text.split(":", 3)), "", "", "")[:4]
    if not name:
        raise InvalidInput(f"{text[:60]!r} names nobody", "give a participant as NAME:ROLE:LANE")
    return charter_rules.Participant(role=role or "Developer", agent=name, model=kind, lane=lane)


def lane(text: str) -> charter_rules.CharterLane:
    """A lane from `LANE:OWNER:PATTERN,PATTERN`."""
    name, owner, scope = (*map(str.strip, text.split(":", 2)), "", "")[:3]
    if not (name and owner and scope):
        raise InvalidInput(f"{text[:60]!r} is no lane", "give a lane as LANE:OWNER:FILES, such as api:ada:src/api/**")
    return charter_rules.CharterLane(name=name, owner=owner, patterns=items(scope))


def spelled(value: str, allowed: Sequence[str]) -> str:
    """The value as the charter spells it, whatever the case it was given in."""
    return next((one for one in allowed if one.casefold() == value.strip().casefold()), value)


def delay(text: str) -> int:
    """How long `Notify + Delay` waits."""
    found = seconds(text)
    if not found:
        raise InvalidInput(f"{text[:60]!r} is no time to wait", "give the delay as 30m, 2h or 1d")
    return found


def new_charter(given: dict[str, Any], *, maintainer: str, project: str, today: str) -> charter_rules.Charter:
    """The charter that the caller asks for, with everything that it does not mention as usual."""
    people = [participant(text) for text in given.get("participants", ())]
    if not any(one.is_maintainer for one in people):
        people.insert(0, charter_rules.Participant(role=charter_rules.MAINTAINER, agent=maintainer, model="human"))
    lanes = [lane(text) for text in given.get("lanes", ())]
    known = {one.name for one in lanes}
    owned = {one.owner: one.name for one in lanes}
    people = [
        one
        if one.lane or one.is_maintainer or one.is_observer
        else msgspec.structs.replace(one, lane=owned.get(one.agent, ""))
        for one in people
    ]
    if SHARED.name not in known:
        lanes.append(SHARED)
    usual = charter_rules.Governance(merge_policy="after review", test_policy="all tests pass")
    named = ("decision_mode", "objection_window", "cross_review_mode", "merge_policy", "test_policy")
    waits = delay(given["delay_time"]) if given.get("delay_time") else _HALF_HOUR
    charter = charter_rules.Charter(
        session_id=given.get("session_id") or f"{today}-session",
        date=today,
        project=given.get("project") or project,
        milestone=given.get("milestone", ""),
        risk_tier=given.get("risk_tier") or "Medium",
        roster=tuple(people),
        lanes=tuple(lanes),
        contract=charter_rules.Contract(
            location=given.get("contract", ""),
            owner=given.get("contract_owner", ""),
            tests=given.get("contract_tests", ""),
            status=given.get("contract_status") or "Not started",
        ),
        governance=msgspec.structs.replace(usual, **{name: given[name] for name in named if given.get(name)}),
        gates=(
            charter_rules.Gate(band="auto", scope=tuple(given.get("auto") or ("everything else",))),
            charter_rules.Gate(band="delay", scope=tuple(given.get("delayed", ())), delay_seconds=waits),
            charter_rules.Gate(band="approval", scope=tuple(given.get("approval", ()))),
        ),
        escalation=charter_rules.Escalation(
            rebuttal_cycles=given.get("rebuttal_cycles", 1), tie_break=given.get("tie_break", "")
        ),
        acceptance=tuple(given.get("acceptance", ())),
        checklist=tuple(charter_rules.Item(text=text, done=False) for text in charter_rules.KICKOFF),
    )
    seats = [one for one in charter.roster if one.agent in charter.agents]
    unsigned = tuple(charter_rules.Signature(agent=one.agent, role=one.role, lane=one.lane) for one in seats)
    return msgspec.structs.replace(charter, handshakes=unsigned)


_HALF_HOUR: Final = 1_800


def changes_of(given: dict[str, Any], before: charter_rules.Charter) -> tuple[charter_rules.Change, ...]:
    """What an amendment asks for, in the order in which it is carried out."""
    wanted: list[charter_rules.Change] = [
        charter_rules.SetField(section=section, key=key, value=given[name])
        for name, (section, key) in _FIELDS.items()
        if given.get(name) is not None
    ]
    wanted += [charter_rules.SetLane(lane=lane(text)) for text in given.get("lanes", ())]
    wanted += [charter_rules.SetParticipant(participant=participant(text)) for text in given.get("participants", ())]
    wanted += [charter_rules.DropParticipant(agent=name) for name in given.get("leave", ())]
    wanted += [charter_rules.DropLane(name=name) for name in given.get("close_lanes", ())]
    wanted += _gate_changes(given, before.gates)
    if given.get("rebuttal_cycles"):
        wanted.append(charter_rules.SetWindow(cycles=given["rebuttal_cycles"]))
    if given.get("acceptance"):
        wanted.append(charter_rules.SetAcceptance(criteria=tuple(given["acceptance"])))
    wanted += [charter_rules.TickItem(number=number, done=True) for number in given.get("done", ())]
    wanted += [charter_rules.TickItem(number=number, done=False) for number in given.get("undone", ())]
    if not wanted:
        raise InvalidInput("the amendment changes nothing", "say what is to change, such as --lane api:ada:src/api/**")
    return tuple(wanted)


def _gate_changes(given: dict[str, Any], gates: Sequence[charter_rules.Gate]) -> list[charter_rules.Change]:
    """A band that is named gets exactly this scope; a delay alone keeps the scope of its band."""
    found: list[charter_rules.Change] = []
    before = {gate.band: gate for gate in gates}
    bands: tuple[tuple[str, charter_rules.Band], ...] = (
        ("auto", "auto"),
        ("delayed", "delay"),
        ("approval", "approval"),
    )
    for name, band in bands:
        old = before.get(band, charter_rules.Gate(band=band))
        waits = delay(given["delay_time"]) if band == "delay" and given.get("delay_time") else old.delay_seconds
        waits = waits or (_HALF_HOUR if band == "delay" else 0)
        scope = tuple(given[name]) if given.get(name) is not None else old.scope
        if scope != old.scope or (scope and waits != old.delay_seconds):
            found.append(charter_rules.SetGate(gate=charter_rules.Gate(band=band, scope=scope, delay_seconds=waits)))
    return found


_AS = Annotated[str, param("who acts", Spelling(note="(else the actor)"))]
