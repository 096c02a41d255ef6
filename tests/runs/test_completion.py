"""How a run ends with a result, by outcome, and what a repeated or wrong report does."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from tests.support.world import World


@pytest.mark.parametrize(
    "required",
    [{}, {"reviewRequired": True}, {"reviewRequired": None}, {"reviewRequired": "false"}, {"reviewRequired": 0}],
)
@pytest.mark.parametrize("outcome", [None, "complete", "done"])
def test_done_stops_at_review_unless_that_is_exactly_false(required: dict[str, Any], outcome: str | None) -> None:
    world = World()
    task = world.create(metadata=required)
    run = world.claim(task)
    world.act(commands.Complete, task, "ada", outcome=outcome, summary="did it")
    assert world.path(task) == ["in-progress", "review"]
    result = world.results[task]
    assert result is not None
    assert (result.run_id, result.outcome, result.agent_id, result.notes) == (run, "done", "ada", "did it")
    assert world.runs[task][run].status == "completed"
    assert world.tasks[task].body.endswith("ada: did it\n")


def test_done_without_review_walks_over_review_in_one_commit() -> None:
    world = World()
    task = world.create(metadata={"reviewRequired": False})
    world.claim(task)
    decision = world.act(commands.Complete, task, "ada")
    assert [draft.type for draft in decision.drafts] == [
        "task.completed",
        "task.attempt.completed",
        "task.transitioned",
        "task.transitioned",
    ]
    assert world.path(task) == ["in-progress", "review", "done"]


def test_completing_a_runnable_ready_task_is_claim_and_completion_in_one_commit() -> None:
    world = World()
    task = world.create(metadata={"reviewRequired": False})
    decision = world.act(commands.Complete, task, "ada", summary="quick")
    assert world.path(task) == ["in-progress", "review", "done"]
    assert {event.commit[1] for event in world.log(task, "task.transitioned")} == {len(decision.drafts)}
    assert [run.status for run in world.runs[task].values()] == ["completed"]


def test_a_ready_task_that_cannot_run_cannot_be_completed() -> None:
    world = World()
    task = world.create(depends_on=[world.create()])
    assert world.refuse(commands.Complete, task, "ada").code == "not_ready"


def test_a_ready_task_is_not_completed_under_a_name_that_is_none() -> None:
    world = World()
    assert world.refuse(commands.Complete, world.create(), "a b").code == "invalid"


@pytest.mark.parametrize("outcome", ["needs_review", "partial"])
@pytest.mark.parametrize("metadata", [{}, {"reviewRequired": False}])
def test_what_is_not_finished_goes_to_review_and_no_further(outcome: str, metadata: dict[str, Any]) -> None:
    world = World()
    task = world.create(metadata=metadata)
    world.claim(task)
    world.act(commands.Complete, task, "ada", outcome=outcome)
    assert world.path(task) == ["in-progress", "review"]


def test_blocked_keeps_the_blockers_on_the_task() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.Complete, task, "ada", outcome="blocked", blockers=("no key", "no disk"), summary="all is done")
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert (blocked.reason, blocked.by, blocked.was, blocked.kind) == ("no key; no disk", "ada", "ready", "blocked")
    assert world.log(task, "task.transitioned")[-1].payload["blockers"] == ["no key", "no disk"]


def test_completing_what_is_done_changes_nothing() -> None:
    world = World()
    task = world.into("done")
    for outcome in (None, "complete", "done"):
        assert world.act(commands.Complete, task, "anyone", outcome=outcome, summary="again").drafts == ()


def test_completing_what_is_in_review_is_the_approval() -> None:
    world = World()
    task = world.into("review")
    world.act(commands.Complete, task, "lead", summary="fine")
    assert world.path(task)[-1] == "done"
    assert world.log(task, "task.transitioned")[-1].payload["by"] == "lead"


def test_a_run_that_repeats_its_report_does_not_approve_itself() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    for _ in range(2):
        world.act(commands.Complete, task, "ada", run=run)
    assert world.status(task) == "review"
    assert (
        world.refuse(commands.Complete, task, "ada", run=run, outcome="blocked", blockers=("x",)).code == "stale_lease"
    )


def test_a_run_that_repeats_that_it_is_blocked_changes_nothing() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.Complete, task, "ada", run=run, outcome="blocked", blockers=("x",))
    assert world.act(commands.Complete, task, "ada", run=run, outcome="blocked", blockers=("x",)).drafts == ()


def test_reporting_a_part_of_what_is_in_review_changes_nothing() -> None:
    world = World()
    assert world.act(commands.Complete, world.into("review"), "bob", outcome="partial").drafts == ()


@pytest.mark.parametrize(
    ("status", "operation"),
    [("backlog", "update"), ("blocked", "unblock"), ("cancelled", "retry"), ("deadletter", "retry")],
)
def test_completing_from_elsewhere_is_refused_and_names_the_missing_step(status: str, operation: str) -> None:
    world = World()
    refusal = world.refuse(commands.Complete, world.into(status), "zed")
    assert refusal.code == "invalid_transition"
    assert refusal.call is not None
    assert refusal.call.operation == operation


def test_a_reported_block_of_a_task_in_review_is_refused_with_the_way() -> None:
    world = World()
    refusal = world.refuse(commands.Complete, world.into("review"), "bob", outcome="blocked", blockers=("x",))
    assert refusal.call is not None
    assert refusal.call.operation == "approve"


@pytest.mark.parametrize(
    "given",
    [
        {"outcome": "maybe"},
        {"outcome": "x" * 5_000},
        {"outcome": "blocked"},
        {"outcome": "blocked", "blockers": ("",)},
        {"blockers": ("x",) * 21},
        {"summary": "x" * 10_001},
        {"notes": "\x00"},
        {"summary_ref": "/etc/passwd"},
        {"summary_ref": "../secrets.md"},
        {"summary_ref": "outputs/../../x"},
        {"summary_ref": "..\\x"},
        {"summary_ref": "a\nb"},
        {"deliverables": ("ok.md", "../../x")},
        {"deliverables": ("x",) * 51},
        {"acceptance": (object(),)},
        {"tests": {"total": 1, "passed": 1, "failed": 1}},
        {"tests": {"total": -1}},
        {"tests": {"weather": 1}},
        {"tests": {"total": 1.5}},
    ],
)
@pytest.mark.parametrize("status", ["in-progress", "ready", "review"])
def test_a_malformed_report_is_refused_and_leaves_the_task_as_it_was(given: dict[str, Any], status: str) -> None:
    world = World()
    task = world.into(status)
    before = world.tasks[task]
    assert world.refuse(commands.Complete, task, "ada", **given).kind == "invalid"
    assert world.tasks[task] == before


def test_a_full_result_is_kept_with_its_run() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(
        commands.Complete,
        task,
        "ada",
        summary_ref="outputs/summary.md",
        deliverables=("outputs/a.py",),
        tests={"total": 3, "passed": 2, "failed": 1},
        notes="n",
        acceptance=({"criterion": "works", "met": True},),
    )
    result = world.results[task]
    assert result is not None
    assert (result.summary_ref, result.deliverables, result.notes) == ("outputs/summary.md", ("outputs/a.py",), "n")
    assert (result.tests, result.acceptance) == (
        {"total": 3, "passed": 2, "failed": 1},
        ({"criterion": "works", "met": True},),
    )
