"""Work that goes from agent to agent, and comes back."""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.handoffs.answers import group_state
from aof.handoffs.model import AGGREGATIONS, Aggregation, Handoff, is_format_1, is_handoff_id, is_part, uuid4
from aof.handoffs.operations import HandoffCache, escaped_mermaid
from aof.kernel.events import Draft
from aof.kernel.model import Policy
from aof.runs.brief import brief, prime
from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from aof.store.lists import Query
from aof.store.port import Scope
from aof.surfaces.cli.commands import handoffs as commands_handoffs
from aof.surfaces.cli.screen import Screen
from aof.testing import FakeClock
from tests.support.command_line import Aof
from tests.support.handoff_team import HandoffTeam, started
from tests.support.handoffs import audited, held, refuses, start, told
from tests.support.messages import CHILD, Post, accepted, having, rejected, request, without
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.waiting import BOUND

# --- handoffs by message: requests, answers, and how deep a delegation goes


FULL: dict[str, Any] = {
    "acceptanceCriteria": ["All tests pass", "Update docs"],
    "expectedOutputs": ["tests/report.md", "docs/QA.md"],
    "contextRefs": ["tasks/in-progress/TASK-2026-02-09-057.md"],
    "constraints": ["No new dependencies"],
    "dueBy": "2026-02-10T12:00:00.000Z",
}


def inputs(room: Room, task_id: str) -> Path:
    """Where the child's artifacts lie now."""
    return room.file(task_id).with_suffix("") / "inputs"


def asked(room: Room, task_id: str) -> dict[str, Any]:
    """The authoritative artifact."""
    fields: dict[str, Any] = json.loads((inputs(room, task_id) / "handoff.json").read_text())
    return fields


def untouched(room: Room, task_id: str) -> bool:
    """Nothing of a handoff has reached the task."""
    return not inputs(room, task_id).exists() and "metadata" not in room.front(task_id)


@requirement("aof1.handoff.required-fields", "aof1.handoff.lists-default", "aof1.handoff.due-by")
def test_a_request_names_both_tasks_and_both_agents(post: Post) -> None:
    parent, child = post.pair()
    for name in ("taskId", "parentTaskId", "fromAgent", "toAgent"):
        post.refuses("invalid_envelope", without(request(child, parent), f"payload.{name}"))
    post.refuses("invalid_envelope", having(request(child, parent), "payload.parentTaskId", 57))
    post.refuses("invalid_envelope", request(child, parent, dueBy="tomorrow"))
    assert untouched(post.room, child)
    post.takes(request(child, parent))
    lists: dict[str, Any] = {
        name: [] for name in ("acceptanceCriteria", "expectedOutputs", "contextRefs", "constraints")
    }
    named = {"taskId": child, "parentTaskId": parent, "fromAgent": "ada", "toAgent": "bob"}
    assert asked(post.room, child) == named | lists

    other = post.room.task()
    post.takes(request(other, parent, **FULL))
    assert asked(post.room, other) == named | {"taskId": other} | FULL
    assert "2026-02-10T12:00:00.000Z" in (inputs(post.room, other) / "handoff.md").read_text()


@requirement("aof1.handoff.writes-json", "aof1.handoff.writes-md", "aof1.handoff.logs-requested")
def test_a_request_leaves_two_files_with_the_child_and_moves_nothing(post: Post) -> None:
    parent, child = post.pair("swe-backend")
    before = post.room.moves(child)
    seen = post.fabric.store.head()
    sent = request(child, parent, "swe-backend", "swe-qa", **FULL)
    post.takes(sent)
    assert json.loads((post.room.root / f"tasks/ready/{child}/inputs/handoff.json").read_text()) == sent["payload"]
    told = (post.room.root / f"tasks/ready/{child}/inputs/handoff.md").read_text()
    assert [line for line in told.splitlines() if line] == [
        "# Handoff Request",
        "**From:** swe-backend",
        "**To:** swe-qa",
        "**Due By:** 2026-02-10T12:00:00.000Z",
        "## Acceptance Criteria",
        "- All tests pass",
        "- Update docs",
        "## Expected Outputs",
        "- tests/report.md",
        "- docs/QA.md",
        "## Context References",
        "- tasks/in-progress/TASK-2026-02-09-057.md",
        "## Constraints",
        "- No new dependencies",
    ]
    (event,) = post.room.events(child, "delegation.requested")
    assert (event.actor, event.task_id) == ("swe-backend", child)
    assert post.types(seen) == ["protocol.message.received", "delegation.requested"]
    assert post.room.moves(child) == before


@requirement("aof1.handoff.artifacts-move-with-child")
def test_the_files_of_a_handoff_move_with_the_child(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent, **FULL))
    before = {path.name: path.read_bytes() for path in inputs(post.room, child).iterdir()}
    post.fabric.claim(child, agent="bob")
    moved = post.room.root / f"tasks/in-progress/{child}/inputs"
    assert {path.name: path.read_bytes() for path in moved.iterdir()} == before
    assert set(before) == {"handoff.json", "handoff.md"}
    assert not (post.room.root / f"tasks/ready/{child}").exists()


@requirement("aof1.handoff.engine-record")
def test_a_request_is_a_delegation_among_the_handoffs(post: Post, aof: Aof) -> None:
    parent, child = post.pair("swe-backend")
    post.takes(request(child, parent, "swe-backend", "swe-qa"))
    for found in (
        post.fabric.handoff_list(),
        post.fabric.handoff_list(task=child),
        post.fabric.handoff_list(task=parent),
        post.fabric.handoff_list(from_agent="swe-backend", to_agent="swe-qa"),
    ):
        (handoff,) = found
        assert (handoff.type, handoff.task_id, handoff.state) == ("delegation", child, "requested")
        assert (handoff.from_agent, handoff.to_agent) == ("swe-backend", "swe-qa")
    assert post.fabric.handoff_list(to_agent="swe-backend") == ()
    assert (post.room.root / "handoffs" / f"{handoff.id}.json").is_file()
    (listed,) = aof("handoff", "list", "--task", child).data["handoffs"]
    assert aof("handoff", "show", handoff.id).data == listed
    assert (listed["type"], listed["from_agent"], listed["to_agent"]) == ("delegation", "swe-backend", "swe-qa")
    assert aof("handoff", "show", "HO-2026-03-02-404-1").code == 3


@requirement("aof1.handoff.depth-allowed")
@pytest.mark.parametrize("metadata", [{}, {"delegationDepth": 0}, {"other": 1}, {"delegationDepth": "1"}])
def test_a_task_that_was_not_delegated_may_be(post: Post, metadata: dict[str, Any]) -> None:
    parent, child = post.pair(metadata=metadata)
    post.takes(request(child, parent))
    assert post.room.front(child)["metadata"]["delegationDepth"] == 1
    assert post.room.events(child, "delegation.requested")


@requirement("aof1.handoff.depth-rejected", "aof1.conflict.nested-delegation")
def test_what_was_delegated_is_not_delegated_on(post: Post) -> None:
    parent, child = post.pair()
    further = post.room.task()
    post.takes(request(child, parent))
    before, seen = post.files(), post.fabric.store.head()
    sent = post.send(request(further, child, "bob", "cem"))
    assert (sent.outcome, sent.reason) == ("rejected", "nested_delegation")
    assert post.types(seen) == ["protocol.message.received", "delegation.rejected"]
    (event,) = post.room.events(further, "delegation.rejected")
    assert (event.actor, event.task_id, event.payload["reason"]) == ("bob", further, "nested_delegation")
    assert post.files() == before
    assert untouched(post.room, further)


@requirement("aof1.handoff.task-not-found")
def test_a_child_must_exist_and_is_never_made_by_a_message(post: Post) -> None:
    parent = post.running()
    for sound in (request(CHILD, parent), accepted(CHILD), rejected(CHILD)):
        post.refuses("task_not_found", sound, beside=("delegation.rejected",))
        refusals = post.room.events(CHILD)[-2:]
        assert [event.payload["reason"] for event in refusals] == ["task_not_found"] * 2
    assert post.fabric.list().total == 1
    child = post.room.task()
    post.takes(request(child, parent))
    assert post.fabric.list().total == 2


@requirement("aof1.handoff.parent-not-found")
def test_a_parent_must_exist(post: Post) -> None:
    child = post.room.task()
    before, seen = post.files(), post.fabric.store.head()
    sent = post.send(request(child, "TASK-2026-02-09-404"))
    assert (sent.outcome, sent.reason) == ("rejected", "parent_not_found")
    assert post.types(seen) == ["protocol.message.received", "delegation.rejected"]
    assert post.room.events(child)[-1].payload["reason"] == "parent_not_found"
    assert post.files() == before


@requirement("aof1.handoff.task-id-mismatch", "aof1.conflict.handoff-task-id-mismatch")
def test_both_names_of_a_child_are_the_same(post: Post) -> None:
    parent, child = post.pair()
    other = post.room.task(metadata={"delegationDepth": 1})
    for sound in (request(child, parent), accepted(child), rejected(child)):
        post.refuses("taskId_mismatch", having(sound, "taskId", other))
    for wrong in ("TASK-2026-02-09-404", other):
        post.refuses("taskId_mismatch", having(request(child, wrong, "bob"), "taskId", parent))
    assert not [event for event in post.room.events() if event.type.startswith("delegation.")]


@requirement("aof1.handoff.invalid-acceptance-criteria")
@pytest.mark.parametrize(("criteria", "kept"), [("all pass", ["all pass"]), ([1], ["1"])])
def test_criteria_of_a_wrong_form_are_told_and_do_no_harm(post: Post, criteria: object, kept: list[str]) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent, acceptanceCriteria=criteria))
    assert asked(post.room, child)["acceptanceCriteria"] == kept
    assert post.room.events(child, "delegation.requested")
    (warning,) = post.room.events(child, "task.warning")
    assert (warning.payload["code"], warning.payload["field"]) == ("schema_error", "payload.acceptanceCriteria")


@requirement("aof1.handoff.accepted-payload", "aof1.handoff.rejected-payload")
def test_an_answer_is_a_yes_or_a_no_with_a_reason(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent))
    for name in ("taskId", "accepted"):
        post.refuses("invalid_envelope", without(accepted(child), f"payload.{name}"))
    post.refuses("invalid_envelope", having(accepted(child), "payload.accepted", value=False))
    for name in ("taskId", "accepted", "reason"):
        post.refuses("invalid_envelope", without(rejected(child), f"payload.{name}"))
    post.refuses("invalid_envelope", having(rejected(child), "payload.accepted", value=True))
    answers = ("delegation.accepted", "delegation.rejected")
    assert not [event for event in post.room.events(child) if event.type in answers]
    post.takes(accepted(child))
    post.takes(rejected(child))
    assert [event.type for event in post.room.events(child) if event.type in answers] == [*answers]


@requirement("aof1.handoff.accepted-effect")
@pytest.mark.parametrize("pending", [True, False])
def test_a_yes_moves_nothing(post: Post, *, pending: bool) -> None:
    parent, child = post.pair()
    if pending:
        post.takes(request(child, parent))
    before = post.room.moves(child)
    post.takes(accepted(child))
    (event,) = post.room.events(child, "delegation.accepted")
    assert (event.actor, event.task_id) == ("bob", child)
    assert (post.status(child), post.room.moves(child)) == ("ready", before)
    assert [handoff.state for handoff in post.fabric.handoff_list()] == ["accepted"] * pending
    if pending:
        post.idles(accepted(child))


@requirement("aof1.handoff.rejected-effect")
@pytest.mark.parametrize("pending", [True, False])
def test_a_no_blocks_the_child_and_leaves_the_parent(post: Post, *, pending: bool) -> None:
    parent, child = post.pair()
    if pending:
        post.takes(request(child, parent))
    before = post.room.moves(parent)
    post.takes(rejected(child))
    assert post.status(child) == "blocked"
    for kind in ("task.transitioned", "delegation.rejected"):
        event = post.room.events(child, kind)[-1]
        assert (event.actor, event.payload["reason"]) == ("bob", "Insufficient context to proceed")
    assert len(post.room.events(child, "delegation.rejected")) == 1
    assert post.room.moves(parent) == before
    if pending:
        (handoff,) = post.fabric.handoff_list(task=child)
        assert handoff.acceptance is not None
        assert (handoff.state, handoff.acceptance.reason) == ("rejected", "Insufficient context to proceed")
        post.idles(rejected(child))
        post.refuses("invalid_transition", accepted(child))


def test_who_has_claimed_the_child_may_still_turn_it_down_and_nobody_else(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent))
    post.fabric.claim(child, agent="bob")
    post.refuses("not_lease_holder", rejected(child, "cem"))
    post.takes(rejected(child, "bob"))
    assert post.status(child) == "blocked"
    other = post.room.task()
    post.takes(request(other, parent))
    post.fabric.claim(other, agent="cem", steal=True)
    post.refuses("not_lease_holder", rejected(other, "bob"))


def test_a_finished_task_is_not_handed_off(post: Post) -> None:
    parent = post.running()
    for status in ("done", "cancelled", "deadletter"):
        assert post.refuses("invalid_transition", request(post.room.task(status), parent)).detail


def test_a_parent_that_nobody_runs_is_its_agents(post: Post) -> None:
    parent, child = post.room.task(agent="ada"), post.room.task()
    assert post.refuses("not_lease_holder", request(child, parent, "bob", "cem")).detail
    assert post.takes(request(child, parent, "ada", "cem")).outcome == "accepted"


@requirement("aof1.idempotency.handoff-resent")
def test_the_same_request_again_makes_no_second_delegation(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent, **FULL))
    post.idles(request(child, parent, **FULL))
    post.idles(request(child, parent, **FULL) | {"sentAt": "2026-02-09T22:00:00.000Z"})
    assert len(post.fabric.handoff_list()) == 1
    assert post.room.front(child)["metadata"]["delegationDepth"] == 1
    post.takes(accepted(child))
    post.idles(request(child, parent, **FULL))


def test_a_pending_request_can_be_said_better_and_a_rejected_one_made_anew(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent))
    post.takes(request(child, parent, constraints=["No new dependencies"]))
    (handoff,) = post.fabric.handoff_list()
    assert asked(post.room, child)["constraints"] == ["No new dependencies"]
    assert handoff.request is not None
    assert (handoff.request.constraints, handoff.state) == (("No new dependencies",), "requested")

    post.takes(rejected(child))
    post.idles(request(child, parent, constraints=["No new dependencies"]))
    post.takes(request(child, parent, constraints=["No new dependencies"]) | {"sentAt": "2026-02-09T23:00:00.000Z"})
    assert [handoff.state for handoff in post.fabric.handoff_list(task=child)] == ["rejected", "requested"]
    assert [edge for edge in post.room.edges(child) if edge[0] == "handoff"] != []
    assert len(set(post.room.edges(child))) == 2


def test_files_of_a_handoff_that_are_gone_are_restored_from_the_log(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent, **FULL))
    post.takes(accepted(child))
    before = post.files()
    (handoff,) = post.fabric.handoff_list()
    gone = [inputs(post.room, child) / "handoff.md", post.room.root / "handoffs" / f"{handoff.id}.json"]
    for path in gone:
        path.unlink()
    post.idles(accepted(child))
    assert {problem.code for problem in post.fabric.doctor().problems} == {"handoff_file"}
    assert post.fabric.doctor(fix=True).ok
    assert {path: post.files()[path] for path in before} == before
    gone[1].write_text("{")
    assert post.fabric.doctor(fix=True).ok
    assert {path: post.files()[path] for path in before} == before


def test_a_persons_notes_among_the_inputs_are_not_taken_for_a_mistake(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent))
    path = inputs(post.room, child) / "handoff.md"
    path.write_text("my own notes")
    assert post.fabric.doctor(fix=True).ok
    assert path.read_text() == "my own notes"


@requirement("aof1.detect.no-live-connection")
def test_two_processes_hand_a_task_over_through_the_files_alone(post: Post, aof: Aof, tmp_path: Path) -> None:
    parent, child = post.pair("swe-backend")
    sent = tmp_path / "request.json"
    sent.write_text(json.dumps(request(child, parent, "swe-backend", "swe-qa")))
    assert aof("send", str(sent)).code == 0
    answer = accepted(child, asked(post.room, child)["toAgent"])
    sent.write_text(f"AOF/1 {json.dumps(answer)}\n")
    assert aof("send", str(sent)).code == 0
    kinds = [event.type for event in post.room.events(child)]
    assert kinds[-3:] == ["delegation.requested", "protocol.message.received", "delegation.accepted"]


def test_a_request_binds_the_child_to_the_agent_that_was_asked(post: Post) -> None:
    parent, child = post.pair("swe-backend")
    post.takes(request(child, parent, "swe-backend", "swe-qa"))
    assert post.room.front(child)["routing"]["agent"] == "swe-qa"
    assert [row.id for row in post.fabric.ready(agent="swe-qa").tasks] == [child]
    assert post.fabric.ready(agent="swe-web").tasks == ()


@pytest.mark.parametrize("answered", [False, True])
def test_a_request_that_is_sent_again_writes_files_that_got_lost(post: Post, *, answered: bool) -> None:
    parent, child = post.pair("swe-backend")
    sent = request(child, parent, "swe-backend", "swe-qa", **FULL)
    post.takes(sent)
    if answered:
        post.fabric.claim(child, agent="swe-qa")
    before = {path.name: path.read_bytes() for path in inputs(post.room, child).iterdir()}
    (inputs(post.room, child) / "handoff.md").unlink()
    post.takes(sent)
    assert {path.name: path.read_bytes() for path in inputs(post.room, child).iterdir()} == before
    assert len(post.room.events(child, "delegation.requested")) == 1
    assert post.fabric.doctor().ok


# --- handoffs in a data directory: their files, what earlier versions wrote, short IDs, and what people are shown


def _plain(handoff: Handoff) -> Any:
    """The record as any reader of JSON sees it."""
    return json.loads(msgspec.json.encode(handoff))


@requirement("handoff.schema.record-file")
def test_a_record_is_plain_json_and_the_same_as_what_is_shown(room: Room, aof: Aof) -> None:
    task_id = held(room.fabric, "ada")
    one = start(room.fabric, "broadcast", task_id, "ada", "bob", variables={"a": 1}, budget=2.5)
    file = room.root / "handoffs" / f"{one.id}.json"
    written = json.loads(file.read_text())
    schema = ["id", "timestamp", "from_agent", "to_agent", "type", "reason", "context", "validation"]
    assert list(written)[:10] == [*schema, "return_protocol", "audit"]
    parts = {
        "context": ["task_id", "conversation_history", "context_variables", "artifacts", "constraints"],
        "validation": ["required_capabilities", "autonomy_budget"],
        "return_protocol": ["expected", "timeout", "on_timeout"],
        "audit": ["decision_rationale", "risk_level"],
    }
    assert {name: list(written[name]) for name in parts} == parts
    assert list(written["context"]["constraints"]) == ["budget", "deadline"]
    assert _plain(room.fabric.handoff_show(one.id)) == written == aof("handoff", "show", one.id).data
    (room.root / "index.sqlite").unlink(missing_ok=True)
    assert _plain(room.reopen().handoff_show(one.id)) == written
    assert room.front(task_id)["handoffs"][0]["id"] == one.id
    assert ("handoff", one.id) in room.edges(task_id)


def test_a_record_of_an_earlier_version_stays_as_it_is(room: Room, aof: Aof) -> None:
    parent, child = room.task(), room.task()
    old = f"HO-{child[5:]}-2"
    fields = {"taskId": child, "parentTaskId": parent, "fromAgent": "ada", "toAgent": "bob"}
    payload = {"handoffId": old, "depth": 1, "sentAt": "2026-02-09T21:00:00.000Z", "request": fields}
    with room.fabric.store.unit(Scope(write=frozenset({child}))) as unit:
        draft = Draft(type="delegation.requested", task_id=child, payload=payload)
        unit.commit((draft,), actor="ada", agent=None, now=room.clock.now())
    written = json.loads((room.root / "handoffs" / f"{old}.json").read_text())
    assert (written["kind"], written["taskId"], written["state"]) == ("delegation", child, "requested")
    shown = room.fabric.handoff_show(old)
    assert (shown.type, shown.task_id, shown.from_agent, shown.to_agent) == ("delegation", child, "ada", "bob")
    assert "handoffs" not in room.front(child)
    assert aof("doctor").data["ok"]


@requirement("handoff.delegation.aof1-request", "handoff.delegation.aof1-depth-one")
def test_an_aof1_request_is_a_delegation_in_the_same_engine(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent, dueBy="2026-03-02T10:00:00.000Z"))
    (one,) = post.fabric.handoff_list()
    assert (one.type, one.state, one.parent_task_id) == ("delegation", "requested", parent)
    assert one.return_protocol.expected
    assert one.return_protocol.timeout is not None
    assert one.context.constraints.deadline == "2026-03-02T10:00:00.000Z"
    assert audited(post.fabric, one.id) == ["initiated"]
    inputs = post.room.file(child).with_suffix("") / "inputs"
    assert sorted(path.name for path in inputs.iterdir()) == ["handoff.json", "handoff.md"]
    assert post.room.front(child)["metadata"]["delegationDepth"] == 1

    further = post.room.task()
    post.fabric.claim(child, agent="bob")
    sent = post.send(request(further, child, "bob", "cem"))
    assert (sent.outcome, sent.reason) == ("rejected", "nested_delegation")
    assert not (post.room.file(further).with_suffix("") / "inputs").exists()


def test_the_beginning_of_an_id_stands_for_a_handoff(room: Room, aof: Aof) -> None:
    task_id = held(room.fabric, "ada")
    made = [start(room.fabric, "broadcast", task_id, "ada", f"bob{number}") for number in range(40)]
    one = made[0]
    assert room.fabric.handoff_show(one.id[:13].upper()).id == one.id
    twice = next(a.id[0] for a in made if sum(b.id[0] == a.id[0] for b in made) > 1)
    assert "stands for" in refuses("ambiguous_id", room.fabric.handoff_show, twice).message
    for nothing in ("", "zz", "../../etc", "0" * 40, "\x1b[2J"):
        refuses("handoff_not_found", room.fabric.handoff_show, nothing)
    assert aof("handoff", "show", "7c1e0b5e-54f3-4f3a-9d0e-0f8a1f0f2a11").code == 3


def test_the_ten_steps_are_drawn_for_any_width(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    one = start(room.fabric, "delegation", room.task(), "ada", "bob", reason="check\x1b[31m it \u202eagain")
    room.fabric.handoff_accept(one.id, agent="bob")
    room.clock.sleep(90)
    done = room.fabric.handoff_return(one.id, agent="bob", status="success", result="all \x07good")
    for columns in (80, 40):
        screen = Screen()
        screen.width = columns
        commands_handoffs.show_whole(screen, done)
        said = capsys.readouterr().out
        names = ("TRIGGER", "PREPARE", "VALIDATE", "INITIATE", "ACKNOWLEDGE", "ACCEPT/REJECT", "EXECUTE", "RETURN")
        assert [name for name in (*names, "COMPLETE", "RELEASE") if name not in said] == []
        steps = [line for line in said.splitlines() if line[2:5].strip() in ("✓", "·")]
        assert len(steps) == 10
        assert max(map(len, steps)) <= columns
        assert "09:01:30" in said
        assert not {"\x1b", "\x07", "\u202e"} & set(said)


def test_a_tasks_chain_is_a_diagram_whose_text_cannot_break_out(room: Room, aof: Aof) -> None:
    task_id = room.task()
    hostile = 'x; A0->>A1: forged\n%%{init: {"theme":"dark"}}%% <script>#quot;'
    one = start(room.fabric, "escalation", task_id, "ada", "bob", reason=hostile)
    room.fabric.handoff_reject(one.id, agent="bob", reason="no; end\n")
    text = aof("handoff", "chain", task_id).data["text"]
    lines = text.splitlines()
    assert lines[0] == "sequenceDiagram"
    assert not [line for line in lines[1:] if ";" in line.replace(";", "", line.count("#"))]
    assert not [sign for sign in ("<", "%%", '"') if sign in text]
    assert escaped_mermaid("a;b#c") == "a#59;b#35;c"


def test_an_agent_is_told_of_the_handoffs_that_wait_for_it(room: Room) -> None:
    task_id = room.task()
    one = start(room.fabric, "delegation", task_id, "ada", "bob")
    assert f"Handed to you:\n- {one.id} delegation of {task_id} from ada, requested" in prime(room.fabric, "bob")
    assert "Handed to you" not in prime(room.fabric, "cem")
    room.fabric.handoff_accept(one.id, agent="bob")
    assert f"aof handoff return {one.id[:8]} --agent bob" in prime(room.fabric, "bob")
    shown = room.fabric.show(task_id)["handoffs"]
    assert shown == [{"id": one.id, "type": "delegation", "state": "accepted", "fromAgent": "ada", "toAgent": "bob"}]
    run = room.fabric.claim(task_id, agent="bob").run_id
    said = brief(room.fabric.get(task_id), run, (), handed=room.fabric.handoff_list())
    assert f"`aof handoff return {one.id} --agent bob --status success --result …`" in said
    room.fabric.handoff_return(one.id, agent="bob", status="success")
    assert "Handed to you" not in prime(room.fabric, "bob")


def test_doctor_restores_the_record_of_a_handoff(room: Room, aof: Aof) -> None:
    one = start(room.fabric, "delegation", room.task(), "ada", "bob")
    file = room.root / "handoffs" / f"{one.id}.json"
    sound = file.read_bytes()
    for spoil in (file.unlink, lambda: file.write_text(sound.decode().replace("bob", "eve"))):
        spoil()
        assert [problem["code"] for problem in aof("doctor").data["problems"]] == ["handoff_file"]
        aof("doctor", "--fix")
        assert file.read_bytes() == sound


def test_refusals_are_on_record_with_their_codes(room: Room) -> None:
    fabric, task_id = room.fabric, room.task()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("invalid", {"type": "escalation", "to": ["bob"]}),
        ("invalid", {"type": "delegation", "to": ["bob"], "timeout": "soon"}),
        ("invalid", {"type": "sequential", "to": ["bob", "cem"]}),
        ("invalid", {"type": "sequential", "to": ["ada"]}),
        ("invalid", {"type": "sideways", "to": ["bob"]}),
        ("invalid", {"type": "broadcast", "to": ["bob"], "aggregation": "most"}),
        ("task_not_found", {"type": "broadcast", "to": ["bob"], "task_id": "TASK-2020-01-01-999"}),
        ("task_not_found", {"type": "broadcast", "to": ["bob"], "task_id": "no such"}),
    ]
    for code, more in calls:
        asked = {"task_id": task_id, "from_agent": "ada", "reason": "r"} | more
        refuses(code, fabric.handoff_new, **asked)
    recorded = told(fabric, kind="handoff.refused")
    assert [event.task_id for event in recorded[-3:]] == [task_id, "TASK-2020-01-01-999", ""]
    assert {event.payload["agent"] for event in recorded} == {"ada"}
    assert [event.payload["code"] for event in told(fabric, kind="handoff.refused")] == [code for code, _ in calls]
    assert room.front(task_id)["rev"] == fabric.get(task_id).rev


def test_a_folder_of_handoffs_holds_only_what_is_named_like_one(room: Room) -> None:
    (Path(room.root) / "handoffs").mkdir(exist_ok=True)
    (Path(room.root) / "handoffs" / "notes.json").write_text("{}")
    assert room.fabric.handoff_list() == ()


def test_a_handoff_whose_file_a_dead_writer_never_wrote_is_found_all_the_same(room: Room) -> None:
    one = start(room.fabric, "delegation", room.task(), "ada", "bob")
    (room.root / "handoffs" / f"{one.id}.json").unlink()
    assert room.fabric.handoff_show(one.id[:8]).id == one.id
    assert room.fabric.handoff_accept(one.id, agent="bob").handoff.state == "accepted"


# --- open handoffs as the scheduler remembers them: never older than the version of the task that they belong to


class SlowDisk(Disk):
    """Writes the file of a handoff only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go_on = threading.Event(), threading.Event()

    def replace(self, source: str, target: str, mode: int | None = None) -> None:
        if "/handoffs/" in target:
            self.reached.set()
            assert self.go_on.wait(BOUND)
        super().replace(source, target, mode)


def test_what_the_log_knows_before_the_file_does_is_not_remembered_as_it_was(tmp_path: Path) -> None:
    root, clock, disk = str(tmp_path / ".aof"), FakeClock(), SlowDisk()
    FilesystemStore.create(root)
    looking = FilesystemStore(root, clock, lock_timeout=0.05)
    pm = Fabric(looking, clock, Policy(), "pm")
    task = pm.create("Move the data").task_id
    made = pm.handoff_new(type="delegation", task_id=task, reason="too much", to=["bob"], timeout="1s")
    pending = HandoffCache(looking)

    def states() -> list[str]:
        return [one.state for _, one in pending.open(looking.find(Query(open_handoffs=True)).tasks)]

    assert states() == ["requested"]
    bob = Fabric(FilesystemStore(root, clock, disk=disk), clock, Policy(), "bob")
    answering = threading.Thread(target=lambda: bob.handoff_accept(str(made.handoff_id), agent="bob"))
    answering.start()
    try:
        assert disk.reached.wait(BOUND)
        states()
    finally:
        disk.go_on.set()
        answering.join(BOUND)
    assert states() == ["accepted"]
    bob.close()
    pm.close()


# --- what the returns of a broadcast come to, for any number of receivers and any order


MODES = st.sampled_from(AGGREGATIONS)


@given(MODES, st.lists(st.booleans(), min_size=1, max_size=9))
def test_a_group_is_decided_once_and_stays_so(mode: Aggregation, returns: list[bool]) -> None:
    good = bad = 0
    states = [group_state(mode, len(returns), good, bad)]
    for success in returns:
        good, bad = good + success, bad + (not success)
        states.append(group_state(mode, len(returns), good, bad))
    assert states[0] == "open"
    final = [state for state in states if state != "open"]
    assert len(set(final)) == 1, "a decision never changes"
    needed = {"all": all(returns), "any": any(returns), "majority": sum(returns) > len(returns) / 2}[mode]
    assert states[-1] == ("success" if needed else "failed")


@given(MODES)
def test_a_group_that_owes_nothing_is_only_sent(mode: Aggregation) -> None:
    assert group_state(mode, 0, 0, 0) == "sent"


@given(st.text(), st.integers(0, 10**9))
def test_ids_are_version_4_uuids_that_follow_from_their_entropy(entropy: str, number: int) -> None:
    made = uuid4(entropy, number)
    parsed = uuid.UUID(made)
    assert (str(parsed), parsed.version, parsed.variant) == (made, 4, uuid.RFC_4122)
    assert is_handoff_id(made)
    assert made == uuid4(entropy, number) != uuid4(entropy, number + 1)
    assert all(is_part(made[:length]) for length in range(1, 37))


def test_only_whole_ids_become_file_names() -> None:
    sound = uuid4("x", 1)
    for wrong in ("", f"{sound}\n", sound.upper(), f"../{sound}", sound[:-1], sound.replace("-4", "-1", 1), "HO-2026"):
        assert not is_handoff_id(wrong)
    assert is_format_1("HO-2026-03-02-001-7")
    assert not is_part("../x")


# --- over random agents, failures and timings: every handoff ends or waits for somebody that is named, with its audit
# Locks of files are never held by a run that is over.


AGENTS = ("a", "b", "c", "d", "e")
MINUTE = 60.0

kinds = st.sampled_from(["process", "pull", "human"])
charts = st.lists(kinds, min_size=len(AGENTS), max_size=len(AGENTS))
acts = st.one_of(
    st.tuples(st.just("hand"), st.sampled_from(AGENTS), st.sampled_from(["sequential", "delegation", "escalation"])),
    st.tuples(st.just("broadcast"), st.sampled_from(["all", "any", "majority"])),
    st.tuples(st.just("answer"), st.integers(0, 9), st.sampled_from(["accept", "reject", "defer", "return", "person"])),
    st.tuples(st.just("take"), st.sampled_from(["keep", "return"])),
    st.tuples(st.just("claim"), st.integers(0, 9), st.sampled_from(AGENTS)),
    st.tuples(st.just("end"), st.integers(0, 9), st.sampled_from(["complete", "cancel", "fail"])),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 3.0, 31.0, 301.0, 3700.0])),
)
scripts = st.tuples(charts, st.lists(acts, max_size=14), st.sampled_from(["retry", "escalate", "fail"]))


class Story:
    """One random life of a team."""

    def __init__(self, kinds: list[str], on_timeout: str) -> None:
        agents = [
            started(name, capabilities=["code"])
            if kind == "process"
            else {"id": name, "capabilities": ["code"], "runner": {"kind": kind}}
            for name, kind in zip(AGENTS, kinds, strict=True)
        ]
        self.team = HandoffTeam(*agents, roles={"lead": {"agents": ["e"]}}, escalation=["lead", "human"])
        self.fabric = self.team.fabric
        self.on_timeout = on_timeout
        self.tasks = [
            self.team.task(f"Task {number}", priority=one) for number, one in enumerate(("normal", "critical"))
        ]

    def act(self, what: str, *given_: Any) -> None:
        """Do it, or be refused: both are fine."""
        with suppress(AofError):
            getattr(self, what)(*given_)
        self.check()

    def hand(self, to: str, kind: str) -> None:
        """Somebody is asked."""
        self.team.hand(to, kind, task=self.tasks[len(to + kind) % 2], on_timeout=self.on_timeout)

    def broadcast(self, mode: str) -> None:
        """Three are asked at once."""
        self.fabric.handoff_new(
            type="broadcast",
            task_id=self.tasks[0],
            reason="look",
            to=["a", "b", "c"],
            aggregation=mode,
            timeout="5m",
            on_timeout=self.on_timeout,
        )

    def answer(self, number: int, how: str) -> None:
        """Somebody that was asked answers."""
        every = self.fabric.handoff_list()
        if not every:
            return
        one = every[number % len(every)]
        if how == "accept":
            self.fabric.handoff_accept(one.id, agent=one.to_agent)
        elif how == "return":
            self.fabric.handoff_return(one.id, agent=one.to_agent, status="success", result="done")
        elif how == "person":
            self.fabric.handoff_answer(one.id, text="so be it", actor="pm")
        else:
            answer = self.fabric.handoff_reject if how == "reject" else self.fabric.handoff_defer
            answer(one.id, agent=one.to_agent, reason="not now")

    def take(self, then: str) -> None:
        """Whoever was asked last accepts, and may return at once."""
        one = self.fabric.handoff_list()[-1:]
        for handoff in one:
            self.fabric.handoff_accept(handoff.id, agent=handoff.to_agent)
            if then == "return":
                self.fabric.handoff_return(handoff.id, agent=handoff.to_agent, status="partial", result="half")

    def claim(self, number: int, agent: str) -> None:
        """An agent takes a task and locks a file; it may never be heard of again."""
        task = self.tasks[number % 2]
        run = self.fabric.claim(task, agent=agent).run_id
        self.fabric.lock("src/main.py", task_id=task, run=run, actor=agent)

    def end(self, number: int, how: str) -> None:
        """A task ends."""
        task = self.tasks[number % 2]
        if how == "cancel":
            self.fabric.cancel(task)
            return
        lease = self.fabric.get(task).lease
        run = lease.run_id if lease is not None else None
        if how == "complete":
            self.fabric.complete(task, run=run)
        else:
            self.fabric.fail(task, run=run)

    def wait(self, seconds: float) -> None:
        """Time passes, and the scheduler looks."""
        self.team.clock.sleep(seconds)
        self.team.tick()

    def check(self) -> None:
        """What holds at every moment."""
        for task in self.fabric.store.locking():
            runs = {task.lease.run_id} if task.lease is not None else set()
            assert {lock.run_id for lock in task.locks} <= runs, "the dead hold no locks"

    def settle(self) -> None:
        """Let a long time pass: longer than every timer together."""
        for _ in range(40):
            self.team.clock.sleep(11 * MINUTE)
            self.team.tick()
            self.check()

    def waiting(self, handoff: Handoff) -> bool:
        """Whether it waits for a named person or pulling agent, and the plan says so."""
        seat = self.team.chart.by_id.get(handoff.to_agent)
        named = handoff.to_agent == "human" or (seat is not None and seat.runner.kind in ("pull", "human"))
        told = any(handoff.id in one.reason for one in self.team.tick(dry_run=True).left)
        return named and told

    def check_end(self) -> None:
        """What holds in the end."""
        for handoff in self.fabric.handoff_list():
            steps = self.team.audit(handoff)
            assert steps[0] == "initiated"
            if handoff.is_open:
                assert self.waiting(handoff), handoff
                continue
            assert {"accepted", "rejected"} & set(steps), (handoff.state, steps)
            if handoff.state in ("completed", "failed"):
                assert sum(step in ("completed", "failed") for step in steps) == 1
        assert self.fabric.audit_verify().ok


def assert_ends_well(script: tuple[list[str], list[tuple[Any, ...]], str]) -> None:
    """Let a story happen, and look at its end."""
    kinds_, acts_, on_timeout = script
    story = Story(kinds_, on_timeout)
    for what, *given_ in acts_:
        story.act(what, *given_)
    story.settle()
    story.check_end()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scripts)
def test_no_handoff_stays_open_for_ever(script: tuple[list[str], list[tuple[Any, ...]], str]) -> None:
    assert_ends_well(script)


@pytest.mark.full
@settings(max_examples=1_500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scripts)
def test_no_handoff_stays_open_for_ever_in_many_more_lives(
    script: tuple[list[str], list[tuple[Any, ...]], str],
) -> None:
    assert_ends_well(script)
