"""The examples of the protocol's guide, played as they are printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aof.testing import FakeClock
from tests.kernel.test_notifications import Recorder, recorder
from tests.support.messages import Post, request
from tests.support.requirements import requirement
from tests.support.room import Room

__all__ = ["recorder"]

DAY = "2026-02-09"


def printed(
    number: int, kind: str, sender: str, minute: int, payload: dict[str, Any], *, to: str = "dispatcher"
) -> Any:
    """A message of the guide."""
    return {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": f"TASK-{DAY}-{number:03d}",
        "fromAgent": sender,
        "toAgent": to,
        "sentAt": f"{DAY}T21:{minute}:00.000Z",
        "payload": payload,
    }


DONE = printed(
    57,
    "completion.report",
    "swe-backend",
    10,
    {
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
        "deliverables": ["src/api/users.ts", "src/api/auth.ts"],
        "tests": {"total": 120, "passed": 120, "failed": 0},
        "blockers": [],
        "notes": "All acceptance criteria met. Tests passing. Ready for review.",
    },
)
BLOCKED = printed(
    58,
    "completion.report",
    "swe-backend",
    15,
    {
        "outcome": "blocked",
        "summaryRef": "outputs/summary.md",
        "deliverables": ["src/api/users.ts"],
        "tests": {"total": 50, "passed": 50, "failed": 0},
        "blockers": ["Awaiting API key for external service", "Need database credentials"],
        "notes": "Implemented core logic. Cannot proceed without credentials.",
    },
)
PROGRESS = printed(
    59,
    "status.update",
    "swe-qa",
    20,
    {
        "taskId": "TASK-2026-02-09-059",
        "agentId": "swe-qa",
        "progress": "Executed 50/100 test cases",
        "notes": "No issues found so far",
    },
)
MOVED = printed(
    60,
    "status.update",
    "swe-qa",
    25,
    {
        "taskId": "TASK-2026-02-09-060",
        "agentId": "swe-qa",
        "status": "blocked",
        "blockers": ["Test environment unreachable"],
        "notes": "Cannot proceed until infrastructure is fixed",
    },
)
REQUEST = printed(
    61,
    "handoff.request",
    "swe-backend",
    30,
    {
        "taskId": "TASK-2026-02-09-061",
        "parentTaskId": "TASK-2026-02-09-057",
        "fromAgent": "swe-backend",
        "toAgent": "swe-qa",
        "acceptanceCriteria": ["All unit tests pass", "Integration tests pass", "Code coverage >= 80%"],
        "expectedOutputs": ["tests/report.md", "coverage/report.html"],
        "contextRefs": [
            "tasks/in-progress/TASK-2026-02-09-057.md",
            "tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md",
            "src/api/users.ts",
            "src/api/auth.ts",
        ],
        "constraints": ["No new dependencies", "Use existing test framework"],
        "dueBy": "2026-02-10T12:00:00.000Z",
    },
    to="swe-qa",
)
ACCEPTED = printed(61, "handoff.accepted", "swe-qa", 35, {"taskId": "TASK-2026-02-09-061", "accepted": True})
REJECTED = printed(
    62,
    "handoff.rejected",
    "swe-qa",
    40,
    {
        "taskId": "TASK-2026-02-09-062",
        "accepted": False,
        "reason": "Insufficient context: no test plan provided",
    },
)
RUNNING = {57: "swe-backend", 58: "swe-backend", 59: "swe-qa", 60: "swe-qa"}


def stage(post: Post, clock: FakeClock) -> None:
    """The six tasks that the examples are about."""
    clock.set(f"{DAY}T20:55:00.000Z")
    post.skip_to(f"TASK-{DAY}-056")
    for number in range(57, 63):
        task_id = post.room.task()
        assert task_id == f"TASK-{DAY}-{number:03d}"
        if number in RUNNING:
            post.fabric.claim(task_id, agent=RUNNING[number])
    post.takes(request("TASK-2026-02-09-062", "TASK-2026-02-09-057", "swe-backend", "swe-qa"))


def examples(post: Post, clock: FakeClock) -> None:
    """All seven messages in turn."""
    stage(post, clock)
    for fields in (PROGRESS, MOVED, REQUEST, ACCEPTED, REJECTED, DONE, BLOCKED):
        post.takes(fields)
    post.fabric.session_end()


@pytest.fixture
def staged(post: Post, clock: FakeClock, recorder: Recorder) -> Post:
    """The tasks are there, and nobody has been told of anything yet."""
    stage(post, clock)
    recorder.news()
    return post


@requirement("aof1.example.1-completion-done", "aof1.example.2-completion-blocked")
@pytest.mark.parametrize(("fields", "target"), [(DONE, "review"), (BLOCKED, "blocked")])
def test_examples_1_and_2_report_and_the_end_of_the_session_moves(
    staged: Post, recorder: Recorder, clock: FakeClock, fields: Any, target: str
) -> None:
    task_id = fields["taskId"]
    clock.set(fields["sentAt"])
    staged.takes(fields)
    result = staged.room.run_file(task_id, "run_result")
    assert {name: result[name] for name in fields["payload"]} == fields["payload"]
    assert (result["agentId"], result["completedAt"]) == ("swe-backend", fields["sentAt"])
    (event,) = staged.room.events(task_id, "task.completed")
    assert event.payload["outcome"] == fields["payload"]["outcome"]
    assert recorder.told == []
    staged.fabric.session_end()
    assert staged.status(task_id) == target
    assert recorder.news() == [(task_id, target)]


@requirement("aof1.example.3-status-progress")
def test_example_3_adds_a_line(staged: Post, clock: FakeClock) -> None:
    clock.set(PROGRESS["sentAt"])
    before = staged.room.moves(PROGRESS["taskId"])
    staged.takes(PROGRESS)
    line = "- 2026-02-09T21:20:00.000Z Progress: Executed 50/100 test cases | Notes: No issues found so far"
    assert line in staged.room.body(PROGRESS["taskId"]).splitlines()
    assert staged.room.moves(PROGRESS["taskId"]) == before


@requirement("aof1.example.4-status-transition")
def test_example_4_blocks(staged: Post, recorder: Recorder) -> None:
    staged.takes(MOVED)
    assert staged.status(MOVED["taskId"]) == "blocked"
    assert staged.reasons(MOVED["taskId"])[-1] == "Test environment unreachable"
    assert recorder.news() == [(MOVED["taskId"], "blocked")]


@requirement("aof1.example.5-handoff-request", "aof1.example.6-handoff-accepted")
def test_examples_5_and_6_hand_a_task_over(staged: Post, room: Room) -> None:
    task_id = REQUEST["taskId"]
    staged.takes(REQUEST)
    inputs = room.root / "tasks/ready" / task_id / "inputs"
    assert json.loads((inputs / "handoff.json").read_text()) == REQUEST["payload"]
    told = (inputs / "handoff.md").read_text()
    for name in ("acceptanceCriteria", "expectedOutputs", "contextRefs", "constraints"):
        for item in REQUEST["payload"][name]:
            assert f"\n- {item}\n" in told
    assert room.events(task_id, "delegation.requested")
    assert room.front(task_id)["metadata"]["delegationDepth"] == 1
    staged.takes(ACCEPTED)
    (event,) = room.events(task_id, "delegation.accepted")
    assert event.actor == "swe-qa"
    assert (staged.status(task_id), room.moves(task_id)) == ("ready", [])


@requirement("aof1.example.7-handoff-rejected")
def test_example_7_turns_a_task_down(staged: Post, recorder: Recorder) -> None:
    task_id = REJECTED["taskId"]
    staged.takes(REJECTED)
    assert staged.room.moves(task_id) == [("ready", "blocked")]
    for kind in ("task.transitioned", "delegation.rejected"):
        assert staged.room.events(task_id, kind)[-1].payload["reason"] == "Insufficient context: no test plan provided"
    assert recorder.news() == [(task_id, "blocked")]
