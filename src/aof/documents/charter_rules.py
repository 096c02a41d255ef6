"""The session charter as data: its parts, its changes, which files belong to whom, and what is wrong with one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from aof.errors import AofError, InvalidInput, PayloadTooLarge
from aof.kernel import limits as kernel_limits
from aof.kernel.findings import DocumentFinding
from aof.org.model import ACTIONS, Band, Gate, OrgChart, enforced
from aof.support.typed import prepare_type

TITLES: Final = {
    1: "Session metadata",
    2: "Agent roster",
    3: "Lane ownership",
    4: "Shared contract",
    5: "Governance settings",
    6: "Approval gates",
    7: "Conflict escalation",
    8: "Acceptance criteria",
    9: "Handshake acknowledgments",
    10: "Session kickoff checklist",
}
# The fields of a section, by the parts of the charter that they say.
METADATA: Final = {
    "Session ID": "session_id",
    "Date": "date",
    "Project": "project",
    "Milestone": "milestone",
    "Risk tier": "risk_tier",
}
CONTRACT: Final = {
    "Contract location": "location",
    "Contract owner": "owner",
    "Validation tests": "tests",
    "Status": "status",
}
GOVERNANCE: Final = {
    "Decision mode": "decision_mode",
    "Objection window": "objection_window",
    "Cross-review mode": "cross_review_mode",
    "Merge policy": "merge_policy",
    "Test policy": "test_policy",
}
ROSTER: Final = ("Role", "Agent", "Model/Provider", "Lane")
LANES: Final = ("Lane", "Owner", "Files/Scope")
BANDS: Final = ("Auto", "Notify + Delay", "Approval Required")
LEVELS: Final = (
    "Counter-recommendation",
    "Time-boxed rebuttal",
    "Risk-minimizing default",
    "Maintainer adjudication",
)
KICKOFF: Final = (
    "Lanes are assigned, and every file has one owner",
    "The shared contract is locked, or there is none",
    "The WORKLOG has its pinned status block",
    "Handoff formats are agreed",
    "Acceptance criteria are written down",
    "Every agent has signed the handshake",
    "A retro is planned",
)
RISK_TIERS: Final = ("Low", "Medium", "High")
CONTRACT_STATUSES: Final = ("Not started", "Draft", "Locked")
DECISION_MODES: Final = ("consent", "quorum", "maintainer-adjudicated")
CROSS_REVIEW_MODES: Final = ("aspirational", "mandatory")
HANDSHAKE_STATUSES: Final = ("Accepted", "Accepted with reservations")
MAINTAINER: Final = "Maintainer"
OBSERVER: Final = "Observer"
EVERYBODY: Final = "All agents"
NONE: Final = "none"
ONE_CYCLE: Final = "1 cycle"

__all__ = ["Band", "Gate"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The form of all parts of the charter."""


class Participant(_Part, frozen=True, kw_only=True):
    """One row of the roster; `lane` is empty for somebody without one."""

    role: str
    agent: str
    model: str = ""
    lane: str = ""
    line: int = 0

    @property
    def is_maintainer(self) -> bool:
        """Whether the row names the maintainer."""
        return self.role.casefold() == MAINTAINER.casefold()

    @property
    def is_observer(self) -> bool:
        """Whether the row names somebody who only looks."""
        return self.role.casefold() == OBSERVER.casefold()


class CharterLane(_Part, frozen=True, kw_only=True):
    """One row of lane ownership: patterns of files, and who owns them."""

    name: str
    owner: str
    patterns: tuple[str, ...] = ()
    line: int = 0

    @property
    def shared(self) -> bool:
        """Whether everybody may append there, which makes it nobody's."""
        return self.owner.casefold() in (EVERYBODY.casefold(), "all")


class Contract(_Part, frozen=True, kw_only=True):
    """What several lanes build against; without a location there is none."""

    location: str = ""
    owner: str = ""
    tests: str = ""
    status: str = "Not started"


class Governance(_Part, frozen=True, kw_only=True):
    """How decisions are made."""

    decision_mode: str = "consent"
    objection_window: str = ONE_CYCLE
    cross_review_mode: str = "aspirational"
    merge_policy: str = ""
    test_policy: str = ""


class Escalation(_Part, frozen=True, kw_only=True):
    """How a conflict climbs. `rebuttal_cycles` is the window of level 2, in WORKLOG cycles."""

    levels: tuple[str, ...] = LEVELS
    rebuttal_cycles: int = 1
    tie_break: str = ""


class Signature(_Part, frozen=True, kw_only=True):
    """An agent's handshake: it has read the charter and takes its role and lane in it."""

    agent: str
    signed: str = ""
    role: str = ""
    lane: str = ""
    status: str = ""
    notes: str = ""
    timestamp: str = ""
    line: int = 0


class Item(_Part, frozen=True, kw_only=True):
    """One line of the kickoff checklist."""

    text: str
    done: bool
    line: int = 0


class Charter(_Part, frozen=True, kw_only=True):
    """The whole charter."""

    session_id: str = ""
    date: str = ""
    project: str = ""
    milestone: str = ""
    risk_tier: str = ""
    roster: tuple[Participant, ...] = ()
    lanes: tuple[CharterLane, ...] = ()
    contract: Contract = Contract()
    governance: Governance = Governance()
    gates: tuple[Gate, ...] = ()
    escalation: Escalation = Escalation()
    acceptance: tuple[str, ...] = ()
    handshakes: tuple[Signature, ...] = ()
    checklist: tuple[Item, ...] = ()

    def participant(self, agent: str) -> Participant | None:
        """The row of somebody in the roster."""
        return next((one for one in self.roster if one.agent == agent), None)

    def signature(self, agent: str) -> Signature | None:
        """The handshake of an agent, as long as it holds for its role and lane."""
        seat = self.participant(agent)
        for one in self.handshakes:
            if one.agent == agent and one.signed and one.status in HANDSHAKE_STATUSES:
                holds = seat is None or (one.role == seat.role and one.lane == seat.lane)
                return one if holds else None
        return None

    @property
    def agents(self) -> tuple[str, ...]:
        """Those who work: neither the maintainer nor observers."""
        return tuple(one.agent for one in self.roster if not one.is_maintainer and not one.is_observer)

    @property
    def unsigned(self) -> tuple[str, ...]:
        """The agents whose handshake is missing, or no longer holds."""
        return tuple(agent for agent in self.agents if self.signature(agent) is None)


class _Change(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="change"):
    """The form of all changes of the charter."""


class SetField(_Change, frozen=True, kw_only=True, tag="field"):
    """A field of the sections 1, 4, 5 and 7 gets a value."""

    section: int
    key: str
    value: str


class SetParticipant(_Change, frozen=True, kw_only=True, tag="participant"):
    """Add a participant, or give one another role or lane."""

    participant: Participant


class DropParticipant(_Change, frozen=True, kw_only=True, tag="leave"):
    """Remove a participant."""

    agent: str


class SetLane(_Change, frozen=True, kw_only=True, tag="lane"):
    """A lane is added, or gets another owner or other files."""

    lane: CharterLane


class DropLane(_Change, frozen=True, kw_only=True, tag="close-lane"):
    """A lane ends."""

    name: str


class SetGate(_Change, frozen=True, kw_only=True, tag="gate"):
    """A band covers something else."""

    gate: Gate


class SetWindow(_Change, frozen=True, kw_only=True, tag="rebuttal-window"):
    """How many WORKLOG cycles a rebuttal may take."""

    cycles: int


class SetAcceptance(_Change, frozen=True, kw_only=True, tag="acceptance"):
    """The acceptance criteria, all of them."""

    criteria: tuple[str, ...]


class TickItem(_Change, frozen=True, kw_only=True, tag="kickoff"):
    """An item of the kickoff checklist is done, or is not."""

    number: int
    done: bool


class Sign(_Change, frozen=True, kw_only=True, tag="signature"):
    """An agent signs its handshake."""

    signature: Signature


Change = (
    SetField
    | SetParticipant
    | DropParticipant
    | SetLane
    | DropLane
    | SetGate
    | SetWindow
    | SetAcceptance
    | TickItem
    | Sign
)
_CHANGES: Final = tuple[Change, ...]


def packed(changes: tuple[Change, ...]) -> list[dict[str, Any]]:
    """The changes as an event holds them."""
    return [msgspec.to_builtins(change) for change in changes]


def described(changes: tuple[Change, ...]) -> str:
    """The changes in a few words, for people."""
    parts = [_WORDS[type(change)](change) for change in changes if not isinstance(change, TickItem)]
    for done, word in ((True, "done"), (False, "open again")):
        numbers = [str(one.number) for one in changes if isinstance(one, TickItem) and one.done is done]
        if numbers:
            parts.append(f"kickoff items {', '.join(numbers)} are {word}")
    return "; ".join(parts)


_WORDS: Final[dict[type[Change], Callable[[Any], str]]] = {
    SetField: lambda one: f"{one.key} is {one.value}",
    SetParticipant: lambda one: (
        f"{one.participant.agent} is {one.participant.role} in {one.participant.lane or 'no lane'}"
    ),
    DropParticipant: lambda one: f"{one.agent} leaves",
    SetLane: lambda one: f"lane {one.lane.name} belongs to {one.lane.owner} ({', '.join(one.lane.patterns)})",
    DropLane: lambda one: f"lane {one.name} ends",
    SetGate: lambda one: f"gate {one.gate.band} covers {', '.join(one.gate.scope) or 'nothing'}",
    SetWindow: lambda one: f"rebuttals within {one.cycles} cycles",
    SetAcceptance: lambda one: f"{len(one.criteria)} acceptance criteria",
    Sign: lambda one: f"{one.signature.agent} signs",
}


def unpacked(payload: object) -> tuple[Change, ...]:
    """The changes that an event holds; raises ValidationError."""
    return msgspec.convert(payload, prepare_type(_CHANGES))


_LINE, _ROWS, _PATTERN = 256, 100, 200


def unwritable_charter(charter: Charter) -> AofError | None:
    """Why this is no charter that could be written."""
    scopes = (kernel_limits.items("gate", gate.scope, _ROWS, single_line=True) for gate in charter.gates)
    return _of_fields(charter) or _of_people(charter) or _of_lanes(charter) or next(filter(None, scopes), None)


def _of_fields(charter: Charter) -> AofError | None:
    rules, contract = charter.governance, charter.contract
    lines = {
        "sessionId": charter.session_id,
        "project": charter.project,
        "milestone": charter.milestone,
        "objectionWindow": rules.objection_window,
        "mergePolicy": rules.merge_policy,
        "testPolicy": rules.test_policy,
        "contract": contract.location,
        "contractOwner": contract.owner,
        "contractTests": contract.tests,
        "tieBreak": charter.escalation.tie_break,
    }
    problem = next((found for key, value in lines.items() if (found := kernel_limits.line(key, value, _LINE))), None)
    return (
        problem
        or kernel_limits.line("sessionId", charter.session_id, _LINE, required=True)
        or kernel_limits.choice("riskTier", charter.risk_tier, RISK_TIERS)
        or kernel_limits.choice("decisionMode", rules.decision_mode, DECISION_MODES)
        or kernel_limits.choice("crossReviewMode", rules.cross_review_mode, CROSS_REVIEW_MODES)
        or kernel_limits.choice("contractStatus", contract.status, CONTRACT_STATUSES)
        or (kernel_limits.items("acceptance", charter.acceptance, kernel_limits.ITEMS, single_line=True))
    )


def _of_people(charter: Charter) -> AofError | None:
    if len(charter.roster) > _ROWS:
        return PayloadTooLarge(f"the roster has {len(charter.roster)} rows, the limit is {_ROWS}", "use fewer")
    for one in charter.roster:
        problem = (
            kernel_limits.names(participant=one.agent)
            or kernel_limits.line("role", one.role, _LINE, required=True)
            or kernel_limits.line("lane", one.lane, _LINE)
            or kernel_limits.line("model", one.model, _LINE)
        )
        if problem is not None:
            return problem
    agents = [one.agent for one in charter.roster]
    if len(set(agents)) < len(agents):
        return InvalidInput("somebody is in the roster twice", "name each participant once")
    if sum(one.is_maintainer for one in charter.roster) != 1:
        return InvalidInput("a session has exactly one maintainer", "name one participant with the role Maintainer")
    return None


def _of_lanes(charter: Charter) -> AofError | None:
    if len(charter.lanes) > _ROWS:
        return PayloadTooLarge(f"there are {len(charter.lanes)} lanes, the limit is {_ROWS}", "use fewer")
    for lane in charter.lanes:
        if (problem := kernel_limits.line("lane", lane.name, _LINE, required=True)) is not None:
            return problem
        if not lane.owner or not lane.patterns:
            return InvalidInput(f"the lane {lane.name[:60]!r} needs an owner and files", "give it as LANE:OWNER:FILES")
        if any(len(pattern) > _PATTERN or "`" in pattern for pattern in lane.patterns):
            return InvalidInput(
                f"a pattern of the lane {lane.name[:60]!r} is too long, or has a backtick", "shorten it"
            )
    names = [lane.name for lane in charter.lanes]
    return InvalidInput("a lane is there twice", "name each lane once") if len(set(names)) < len(names) else None


ANY: Final = "**"
_MOST: Final = 200  # characters of a pattern that count
_DEEPEST: Final = 40  # folders
_SOME: Final = "x"
_REMEMBERED: Final = 50_000


def pattern_takes(pattern: str, path: str) -> bool:
    """Whether a path belongs to a pattern."""
    return common_path(pattern, path, literal=True) is not None


def common_path(one: str, other: str, *, literal: bool = False) -> str | None:
    """A path that both take, if there is one; `literal` says that the other is a path and no pattern."""
    first, second = _segments(one), _segments(other)
    if not first or not second:
        return None
    if literal:
        second = tuple(segment.replace("*", "\0").replace("?", "\1") for segment in second)
    ways = [(first, second)]
    if _is_plain(first[-1]):
        ways.append(((*first, ANY), second))
    if not literal and _is_plain(second[-1]):
        ways.append((first, (*second, ANY)))
    met = next((found for a, b in ways if (found := _meet(a, b))), None)
    for remembered in (_meet, _name):
        if remembered.cache_info().currsize > _REMEMBERED:
            remembered.cache_clear()
    return None if met is None else "/".join(met)


def _is_plain(segment: str) -> bool:
    return "*" not in segment and "?" not in segment


def _segments(pattern: str) -> tuple[str, ...]:
    """The folders and the name that a pattern is made of; a slash at its end means everything below."""
    text = pattern.strip()[:_MOST].removeprefix("./")
    parts = [part for part in text.split("/") if part and part != "."]
    if text.endswith("/"):
        parts.append(ANY)
    return tuple(parts[:_DEEPEST])


@cache
def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...] | None:
    """The segments of a path that both take."""
    if not one or not other:
        left = one or other
        return () if all(part == ANY for part in left) else None
    if one[0] == ANY:
        return _across(one, other)
    if other[0] == ANY:
        return _across(other, one)
    name = _name(one[0], other[0])
    rest = _meet(one[1:], other[1:]) if name is not None else None
    return None if rest is None or name is None else (name or _SOME, *rest)


def _across(crossing: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...] | None:
    """`**` stands for no folder, or takes one more of the other's."""
    if len(crossing) == 1 and other == (ANY,):
        return (_SOME,)
    if other[0] == ANY:
        dropped = _meet(crossing[1:], other) if len(crossing) > 1 else None
        return dropped or _meet(crossing, other[1:])
    if (found := _meet(crossing[1:], other)) is not None:
        return found
    rest = _meet(crossing, other[1:])
    return None if rest is None else (_name(other[0], "*") or _SOME, *rest)


@cache
def _name(one: str, other: str) -> str | None:
    """A name that two patterns of names take."""
    if not one or not other:
        return "" if all(char == "*" for char in one or other) else None
    if one[0] == "*" or other[0] == "*":
        star, rest = (one, other) if one[0] == "*" else (other, one)
        if (found := _name(star[1:], rest)) is not None:
            return found if found or star[1:] or rest else ""
        behind = _name(star, rest[1:])
        return None if behind is None else _char(rest[0]) + behind
    if one[0] == other[0] or "?" in (one[0], other[0]):
        rest_of = _name(one[1:], other[1:])
        char = other[0] if one[0] == "?" else one[0]
        return None if rest_of is None else _char(char) + rest_of
    return None


def _char(char: str) -> str:
    return "" if char == "*" else _SOME if char == "?" else char


def value_findings(charter: Charter, lines: dict[int, int]) -> Iterator[DocumentFinding]:
    """Problems with single values of a charter; `lines` are the lines of its sections."""
    yield from _one_of(lines.get(1, 1), "risk_tier", "Risk tier", charter.risk_tier, RISK_TIERS)
    contract, rules = charter.contract, charter.governance
    if contract.location:
        at = lines.get(4, 1)
        yield from _one_of(at, "contract_status", "the contract's Status", contract.status, CONTRACT_STATUSES)
    at = lines.get(5, 1)
    yield from _one_of(at, "decision_mode", "Decision mode", rules.decision_mode, DECISION_MODES)
    yield from _one_of(at, "cross_review_mode", "Cross-review mode", rules.cross_review_mode, CROSS_REVIEW_MODES)
    bands = Counter[str](gate.band for gate in charter.gates)
    for band, name in zip(("auto", "delay", "approval"), BANDS, strict=True):
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
        for name in LEVELS:
            if not any(name.casefold() in level for level in levels):
                yield DocumentFinding(lines[7], "escalation_level", f"section 7 has no level '{name}'")


def _one_of(line: int, code: str, what: str, value: str, allowed: Sequence[str]) -> Iterator[DocumentFinding]:
    if value not in allowed:
        yield DocumentFinding(line, code, f"{what} is {value[:60]!r}, not one of: {', '.join(allowed)}")


def roster_findings(charter: Charter, line: int, chart: OrgChart | None) -> Iterator[DocumentFinding]:
    """Problems with the roster.

    There is one maintainer, nobody is listed twice, who works has a lane, and the org chart knows everybody.
    """
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


def lane_findings(lanes: Sequence[CharterLane]) -> Iterator[DocumentFinding]:
    """Lanes of two owners that claim the same file; each problem names a path that both match."""
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
            paths = (common_path(theirs, own) for theirs in other.patterns for own in lane.patterns)
            if (met := next((path for path in paths if path is not None), None)) is not None:
                what = f"{met} belongs to the lanes {other.name!r} ({other.owner}) and {lane.name!r} ({lane.owner})"
                yield DocumentFinding(lane.line, "lane_overlap", what)


def kickoff_findings(charter: Charter, line: int, *, status_block: bool) -> Iterator[DocumentFinding]:
    """What still has to be done before work may start, whether or not its item is ticked."""
    true = {
        1: bool(charter.lanes) and not any(True for _ in lane_findings(charter.lanes)),
        2: not charter.contract.location or charter.contract.status == "Locked",
        3: status_block,
        5: bool(charter.acceptance),
        6: not charter.unsigned,
    }
    if len(charter.checklist) < len(KICKOFF):
        missing = len(KICKOFF) - len(charter.checklist)
        yield DocumentFinding(line, "kickoff_items", f"the kickoff checklist lacks {missing} of {len(KICKOFF)} items")
    for number, item in enumerate(charter.checklist[: len(KICKOFF)], 1):
        if true.get(number, item.done):
            if not item.done:
                yield DocumentFinding(
                    item.line, "kickoff_open", f"item {number} is true and not ticked: {item.text}", "warning"
                )
            continue
        why = {6: f"; unsigned: {', '.join(charter.unsigned)}"}.get(number, "")
        how = "is ticked, and not so" if item.done else "is open"
        yield DocumentFinding(item.line, "kickoff_untrue", f"item {number} {how}: {item.text}{why}")


def owners_of(lanes: Iterable[CharterLane], paths: Iterable[str]) -> dict[str, CharterLane]:
    """The lane of each path that belongs to one."""
    listed = list(lanes)
    return {
        path: lane
        for path in paths
        if (lane := next((one for one in listed if any(pattern_takes(p, path) for p in one.patterns)), None))
        is not None
    }
