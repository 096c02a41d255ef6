"""The audit of handoffs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.handoffs import audit
from aof.handoffs.audit import AuditRecord
from aof.handoffs.context import TASK_STATUS, digest
from aof.handoffs.model import Handoff, Rationale
from aof.kernel.events import Event
from aof.kernel.model import TRANSITIONS
from tests.support.audits import handoff_between
from tests.support.handoff_team import HandoffTeam, started
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.strategies import json_objects
from tests.support.world import World

# --- what the audit says of handoffs, from their first step to their last


STEPS = {"initiated", "accepted", "rejected", "completed", "failed", "timeout", "escalated"}


@pytest.fixture
def team() -> HandoffTeam:
    """Pulling agents, one that is started, and a chain that ends with a person."""
    same = {"capabilities": ["code"]}
    pulling = [{"id": name, **same} for name in ("ada", "bob", "eve")]
    return HandoffTeam(*pulling, started("zoe", **same), escalation=["human"])


def mixed(team: HandoffTeam) -> list[Handoff]:
    """A handoff of each type and of each fate, all over but those that a person has."""
    done, failed, turned, lost = team.hand("bob"), team.hand("bob"), team.hand("bob"), team.hand("zoe")
    fabric = team.fabric
    fabric.handoff_accept(done.id, agent="bob")
    fabric.handoff_return(done.id, agent="bob", status="success", result="done", tokens_consumed=7)
    fabric.handoff_accept(failed.id, agent="bob")
    fabric.handoff_return(failed.id, agent="bob", status="failed", result="broken")
    fabric.handoff_reject(turned.id, agent="bob", reason="busy")
    passed = team.hand("eve", "sequential", segment_complete=True)
    fabric.handoff_accept(passed.id, agent="eve")
    group = fabric.handoff_new(type="broadcast", task_id=team.task(), reason="look", to=["ada", "bob"], timeout="5m")
    members = msgspec.convert(group.handoff_ids, tuple[str, ...])
    for one, agent in zip(members, ("ada", "bob"), strict=True):
        fabric.handoff_accept(one, agent=agent)
        fabric.handoff_return(one, agent=agent, status="partial", result="fine")
    asked = team.hand("", "escalation", rationale="too risky", risk="high")
    fabric.handoff_answer(asked.id, text="go on", actor="pm")
    team.clock.sleep(30)
    team.tick()
    return [done, failed, turned, lost, passed, asked, *(fabric.handoff_show(one) for one in members)]


@requirement("handoff.audit.record-fields", "handoff.audit.event-types")
def test_every_record_agrees_with_its_handoff_and_every_step_has_its_type(team: HandoffTeam) -> None:
    mixed(team)
    records = team.fabric.audit().records
    for one in records:
        handoff = team.fabric.handoff_show(one.handoff_id)
        told = (one.from_agent, one.to_agent, one.handoff_type, one.risk_level)
        assert told == (handoff.from_agent, handoff.to_agent, handoff.type, handoff.audit.risk_level)
        assert one.decision_rationale == handoff.audit.decision_rationale
        assert one.timestamp.endswith("Z")
        assert one.reason
    assert {one.handoff_type for one in records} == {"sequential", "delegation", "broadcast", "escalation"}
    assert {one.event_type for one in records} == STEPS


@requirement("handoff.audit.two-records-minimum", "handoff.audit.closing-record")
def test_a_handoff_that_is_over_has_its_beginning_its_answer_and_its_end(team: HandoffTeam) -> None:
    mixed(team)
    closing = {"completed": "completed", "failed": "failed"}
    for handoff in team.fabric.handoff_list():
        if handoff.is_open:
            continue
        steps = team.audit(handoff)
        assert steps[0] == "initiated"
        assert {"accepted", "rejected"} & set(steps), handoff
        if handoff.state in closing:
            ends = [step for step in steps if step in closing.values()]
            assert ends == [closing[handoff.state]]
            assert steps.index("accepted") < steps.index(ends[0])


@requirement("handoff.audit.measures")
def test_the_closing_record_says_how_long_it_took_what_it_cost_and_how_it_ended(team: HandoffTeam) -> None:
    handoff = team.hand("bob")
    team.fabric.handoff_accept(handoff.id, agent="bob")
    team.clock.sleep(1.5)
    team.fabric.handoff_return(handoff.id, agent="bob", status="partial", result="half", tokens_consumed=42)
    last = team.records(handoff)[-1]
    assert (last.event_type, last.duration_ms, last.tokens_consumed, last.outcome) == ("completed", 1500, 42, "partial")
    assert {one.outcome for one in team.records(handoff)[:-1]} == {None}


@requirement("handoff.audit.context-snapshot")
def test_a_record_keeps_the_task_as_it_was_at_the_step(team: HandoffTeam) -> None:
    task = team.task()
    artifact = {"type": "file", "path": "outputs/a.txt", "description": "a file"}
    first = team.hand("bob", task=task, variables={"branch": "main"})
    before = team.records(first)[0].context_snapshot
    assert (before.task_id, before.task_status, before.artifact_count) == (task, "pending", 0)
    assert before.context_variables_hash == digest(first.context.context_variables)
    team.fabric.handoff_accept(first.id, agent="bob")
    run = team.fabric.claim(task, agent="bob").run_id
    second = team.hand("eve", task=task, from_agent="bob", run=run, artifacts=[artifact])
    after = team.records(second)[0].context_snapshot
    assert (after.task_status, after.artifact_count) == ("in_progress", 1)
    assert team.records(first)[0].context_snapshot == before


def in_room(room: Room) -> Fabric:
    """Three handoffs of two tasks in a data directory."""
    fabric = room.fabric
    one, two = room.task(), room.task()
    for task, sender, receiver in ((one, "ada", "bob"), (two, "ada", "eve"), (two, "eve", "bob")):
        begun = fabric.handoff_new(
            type="delegation", task_id=task, reason="needs it", from_agent=sender, to=[receiver], timeout="5m"
        )
        fabric.handoff_accept(str(begun.handoff_id), agent=receiver)
    return fabric


@requirement("handoff.audit.queryable")
def test_each_key_finds_what_a_filter_over_the_files_finds_also_without_an_index(room: Room) -> None:
    fabric = in_room(room)
    for _ in range(2):
        fabric.audit()
        lines = [line for path in sorted(room.root.glob("logs/*/*/*")) for line in path.read_bytes().splitlines()]
        raw = [msgspec.json.decode(line, type=AuditRecord) for line in lines]
        assert len(raw) == 6
        for one in raw:
            asked: list[tuple[dict[str, Any], list[AuditRecord]]] = [
                ({"handoff": one.handoff_id}, [it for it in raw if it.handoff_id == one.handoff_id]),
                (
                    {"task": one.context_snapshot.task_id},
                    [it for it in raw if it.context_snapshot.task_id == one.context_snapshot.task_id],
                ),
                ({"from_agent": one.from_agent}, [it for it in raw if it.from_agent == one.from_agent]),
                ({"to_agent": one.to_agent}, [it for it in raw if it.to_agent == one.to_agent]),
            ]
            for named, expected in asked:
                assert list(fabric.audit(**named).records) == expected
        (room.root / "index.sqlite").unlink()
        fabric = room.reopen()


@requirement("handoff.audit.trace-log")
def test_one_log_shows_runs_and_handoffs_in_order(room: Room) -> None:
    fabric = room.fabric
    task = fabric.create("Work", review=False).task_id
    run = fabric.claim(task, agent="ada").run_id
    begun = fabric.handoff_new(
        type="sequential",
        task_id=task,
        reason="your turn",
        from_agent="ada",
        to=["bob"],
        segment_complete=True,
        run=run,
    )
    taken = fabric.handoff_accept(str(begun.handoff_id), agent="bob")
    fabric.complete(task, run=str(taken.run_id))
    events = room.events(task)
    kinds = [event.type for event in events]
    order = ["task.attempt.started", "handoff.initiated", "handoff.accepted", "task.attempt.started"]
    assert [kind for kind in kinds if kind in order] == order
    audited = [event.seq for event in events if "audit" in event.payload]
    assert audited == [one.seq for one in fabric.audit(task=task).records] == sorted(audited)
    assert kinds.index("handoff.completed") < len(kinds) - 1


# --- the audit record of a handoff's step, and the event that it is


FIELDS = (
    "handoff_id",
    "timestamp",
    "event_type",
    "from_agent",
    "to_agent",
    "handoff_type",
    "reason",
    "context_snapshot",
    "decision_rationale",
    "risk_level",
    "duration_ms",
    "tokens_consumed",
    "outcome",
)


def made(step: audit.AuditStep = "initiated", variables: dict[str, Any] | None = None) -> dict[str, Any]:
    world = World()
    task = world.tasks[world.create()]
    why = Rationale(decision_rationale="bob knows it", risk_level="medium")
    return audit.audited(step, task, handoff_between(variables=variables, artifacts=2, why=why))


def event(payload: dict[str, Any]) -> Event:
    return Event(
        seq=7,
        type="handoff.initiated",
        timestamp="2026-03-02T09:00:00.000Z",
        actor="ada",
        task_id="TASK-2026-03-02-001",
        payload={"handoffId": "h-1", **payload},
        commit=(1, 1),
        hash="f" * 64,
    )


def test_an_audited_event_is_its_record_with_the_fields_in_the_specified_order() -> None:
    found = audit.audit_record(event({"audit": made()}))
    assert found is not None
    line = audit.line_of(found)
    whole = msgspec.json.decode(line)
    assert tuple(whole)[: len(FIELDS)] == FIELDS
    assert (whole["handoff_id"], whole["timestamp"]) == ("h-1", "2026-03-02T09:00:00.000Z")
    assert (whole["seq"], whole["hash"]) == (7, "f" * 64)
    assert whole["context_snapshot"]["task_status"] == "pending"
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")


def test_what_is_not_known_is_left_out_of_the_event_and_null_in_the_line() -> None:
    payload = made()
    assert not {"duration_ms", "tokens_consumed", "outcome", "status", "notes"} & payload.keys()
    found = audit.audit_record(event({"audit": payload}))
    assert found is not None
    assert found.outcome is None


def test_an_event_without_an_audit_is_no_record() -> None:
    assert audit.audit_record(event({})) is None


def test_an_audit_with_a_foreign_step_is_no_record() -> None:
    with pytest.raises(msgspec.ValidationError):
        audit.audit_record(event({"audit": made() | {"event_type": "begun"}}))


@requirement("handoff.audit.variables-hash")
@given(json_objects(), st.randoms())
def test_equal_variables_have_equal_hashes_whatever_their_order(variables: dict[str, Any], random: Any) -> None:
    names = list(variables)
    random.shuffle(names)
    found = digest(variables)
    assert digest({name: variables[name] for name in names}) == found
    assert len(found) == 64
    assert int(found, 16) >= 0
    assert digest(variables | {"one more": 1}) != digest(variables | {"one more": 2})
    assert made(variables=variables)["context_snapshot"]["context_variables_hash"] == found


def test_every_status_has_a_word() -> None:
    words = {status: TASK_STATUS[status] for status in TRANSITIONS}
    assert set(words.values()) == {"pending", "in_progress", "blocked", "complete", "failed"}
    assert (words["review"], words["done"], words["cancelled"]) == ("in_progress", "complete", "failed")
