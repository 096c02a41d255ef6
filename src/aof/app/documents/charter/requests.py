"""A charter, or changes of one, from what a caller gives as short texts. Must not know what a charter may hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from aof.core.documents.charter import changes as c
from aof.core.documents.charter import model
from aof.core.errors.base import InvalidInput
from aof.documents.charter.parse import items, seconds

SHARED: Final = model.CharterLane(name="Shared log", owner=model.EVERYBODY, patterns=("WORKLOG.md",))
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


def participant(text: str) -> model.Participant:
    """Somebody from `NAME`, `NAME:ROLE`, `NAME:ROLE:LANE` or `NAME:ROLE:LANE:MODEL`."""
    name, role, lane, kind = (*map(str.strip, text.split(":", 3)), "", "", "")[:4]
    if not name:
        raise InvalidInput(f"{text[:60]!r} names nobody", "give a participant as NAME:ROLE:LANE")
    return model.Participant(role=role or "Developer", agent=name, model=kind, lane=lane)


def lane(text: str) -> model.CharterLane:
    """A lane from `LANE:OWNER:PATTERN,PATTERN`."""
    name, owner, scope = (*map(str.strip, text.split(":", 2)), "", "")[:3]
    if not (name and owner and scope):
        raise InvalidInput(f"{text[:60]!r} is no lane", "give a lane as LANE:OWNER:FILES, such as api:ada:src/api/**")
    return model.CharterLane(name=name, owner=owner, patterns=items(scope))


def spelled(value: str, allowed: Sequence[str]) -> str:
    """The value as the charter spells it, whatever the case it was given in."""
    return next((one for one in allowed if one.casefold() == value.strip().casefold()), value)


def delay(text: str) -> int:
    """How long `Notify + Delay` waits."""
    found = seconds(text)
    if not found:
        raise InvalidInput(f"{text[:60]!r} is no time to wait", "give the delay as 30m, 2h or 1d")
    return found


def new_charter(given: dict[str, Any], *, maintainer: str, project: str, today: str) -> model.Charter:
    """The charter that the caller asks for, with everything that it does not mention as usual."""
    people = [participant(text) for text in given.get("participants", ())]
    if not any(one.is_maintainer for one in people):
        people.insert(0, model.Participant(role=model.MAINTAINER, agent=maintainer, model="human"))
    lanes = [lane(text) for text in given.get("lanes", ())]
    known = {one.name for one in lanes}
    owned = {one.owner: one.name for one in lanes}
    people = [
        one if one.lane or one.is_maintainer or one.is_observer else _seated(one, owned.get(one.agent, ""))
        for one in people
    ]
    if SHARED.name not in known:
        lanes.append(SHARED)
    charter = model.Charter(
        session_id=given.get("session_id") or f"{today}-session",
        date=today,
        project=given.get("project") or project,
        milestone=given.get("milestone", ""),
        risk_tier=given.get("risk_tier") or "Medium",
        roster=tuple(people),
        lanes=tuple(lanes),
        contract=_contract(given),
        governance=_governance(given),
        gates=_gates(given),
        escalation=model.Escalation(
            rebuttal_cycles=given.get("rebuttal_cycles", 1), tie_break=given.get("tie_break", "")
        ),
        acceptance=tuple(given.get("acceptance", ())),
        checklist=tuple(model.Item(text=text, done=False) for text in model.KICKOFF),
    )
    seats = [one for one in charter.roster if one.agent in charter.agents]
    unsigned = tuple(model.Signature(agent=one.agent, role=one.role, lane=one.lane) for one in seats)
    return msgspec.structs.replace(charter, handshakes=unsigned)


def _seated(one: model.Participant, lane_name: str) -> model.Participant:
    return msgspec.structs.replace(one, lane=lane_name)


def _contract(given: dict[str, Any]) -> model.Contract:
    return model.Contract(
        location=given.get("contract", ""),
        owner=given.get("contract_owner", ""),
        tests=given.get("contract_tests", ""),
        status=given.get("contract_status") or "Not started",
    )


def _governance(given: dict[str, Any]) -> model.Governance:
    usual = model.Governance(merge_policy="after review", test_policy="all tests pass")
    names = ("decision_mode", "objection_window", "cross_review_mode", "merge_policy", "test_policy")
    return msgspec.structs.replace(usual, **{name: given[name] for name in names if given.get(name)})


def _gates(given: dict[str, Any]) -> tuple[model.Gate, ...]:
    waits = delay(given["delay_time"]) if given.get("delay_time") else 0
    return (
        model.Gate(band="auto", scope=tuple(given.get("auto") or ("everything else",))),
        model.Gate(band="delay", scope=tuple(given.get("delayed", ())), delay_seconds=waits or _HALF_HOUR),
        model.Gate(band="approval", scope=tuple(given.get("approval", ()))),
    )


_HALF_HOUR: Final = 1_800


def changes_of(given: dict[str, Any], before: model.Charter) -> tuple[c.Change, ...]:
    """What an amendment asks for, in the order in which it is carried out."""
    wanted: list[c.Change] = [
        c.SetField(section=section, key=key, value=given[name])
        for name, (section, key) in _FIELDS.items()
        if given.get(name) is not None
    ]
    wanted += [c.SetLane(lane=lane(text)) for text in given.get("lanes", ())]
    wanted += [c.SetParticipant(participant=participant(text)) for text in given.get("participants", ())]
    wanted += [c.DropParticipant(agent=name) for name in given.get("leave", ())]
    wanted += [c.DropLane(name=name) for name in given.get("close_lanes", ())]
    wanted += _gate_changes(given, before.gates)
    if given.get("rebuttal_cycles"):
        wanted.append(c.SetWindow(cycles=given["rebuttal_cycles"]))
    if given.get("acceptance"):
        wanted.append(c.SetAcceptance(criteria=tuple(given["acceptance"])))
    wanted += [c.TickItem(number=number, done=True) for number in given.get("done", ())]
    wanted += [c.TickItem(number=number, done=False) for number in given.get("undone", ())]
    if not wanted:
        raise InvalidInput("the amendment changes nothing", "say what is to change, such as --lane api:ada:src/api/**")
    return tuple(wanted)


def _gate_changes(given: dict[str, Any], gates: Sequence[model.Gate]) -> list[c.Change]:
    """A band that is named gets exactly this scope; a delay alone keeps the scope of its band."""
    found: list[c.Change] = []
    before = {gate.band: gate for gate in gates}
    bands: tuple[tuple[str, model.Band], ...] = (("auto", "auto"), ("delayed", "delay"), ("approval", "approval"))
    for name, band in bands:
        old = before.get(band, model.Gate(band=band))
        waits = delay(given["delay_time"]) if band == "delay" and given.get("delay_time") else old.delay_seconds
        waits = waits or (_HALF_HOUR if band == "delay" else 0)
        scope = tuple(given[name]) if given.get(name) is not None else old.scope
        if scope != old.scope or (scope and waits != old.delay_seconds):
            found.append(c.SetGate(gate=model.Gate(band=band, scope=scope, delay_seconds=waits)))
    return found
