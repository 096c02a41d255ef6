"""Handoffs by message: requests, answers, and how deep a delegation goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Aof
from tests.support.messages import CHILD, Post, accepted, having, rejected, request, without
from tests.support.requirements import requirement
from tests.support.room import Room

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
