"""Approval and rejection."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from tests.support.world import World


def test_an_approval_finishes_the_task_once() -> None:
    world = World()
    task = world.into("review")
    world.act(commands.Approve, task, reason="well done")
    assert world.act(commands.Approve, task).drafts == ()
    assert world.status(task) == "done"
    assert world.tasks[task].body.endswith("pm: well done\n")


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "blocked", "cancelled", "deadletter"])
def test_only_what_is_in_review_is_approved_or_rejected(status: str) -> None:
    world = World()
    task = world.into(status)
    assert world.refuse(commands.Approve, task).code == "invalid_transition"
    assert world.refuse(commands.Reject, task, blockers=("no",)).code == "invalid_transition"


def test_a_rejection_leads_to_ready_with_its_reasons_and_a_new_run_follows() -> None:
    world = World()
    task = world.into("review")
    world.act(commands.Reject, task, blockers=("no tests", "no docs"))
    moved = world.log(task, "task.transitioned")[-1].payload
    assert (world.status(task), moved["reason"], moved["blockers"]) == (
        "ready",
        "no tests; no docs",
        ["no tests", "no docs"],
    )
    assert "pm rejected: no tests; no docs" in world.tasks[task].body
    world.claim(task, "bob")
    assert world.tasks[task].retry.attempts == 2
    assert world.results[task] is None


@pytest.mark.parametrize("blockers", [(), ("",), ("x" * 257,), ("x",) * 21])
def test_a_rejection_without_usable_reasons_is_refused(blockers: Any) -> None:
    world = World()
    assert world.refuse(commands.Reject, world.into("review"), blockers=blockers).kind == "invalid"


def test_an_approval_with_an_endless_reason_is_refused() -> None:
    world = World()
    assert world.refuse(commands.Approve, world.into("review"), reason="x" * 513).code == "payload_too_large"


def test_needs_review_on_what_is_in_review_is_a_rejection_with_its_blockers() -> None:
    world = World()
    task = world.into("review")
    assert world.refuse(commands.Complete, task, "rev", outcome="needs_review").code == "invalid"
    world.act(commands.Complete, task, "rev", outcome="needs_review", blockers=("no tests",))
    assert world.status(task) == "ready"
    assert world.log(task, "task.transitioned")[-1].payload["blockers"] == ["no tests"]
    assert "rev rejected: no tests" in world.tasks[task].body


def test_a_report_of_needs_review_that_arrives_twice_is_no_rejection() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    said: dict[str, Any] = {"outcome": "needs_review", "blockers": ("look at the schema",)}
    world.act(commands.Complete, task, "ada", **said)
    assert world.act(commands.Complete, task, "ada", **said).drafts == ()
    assert world.act(commands.Complete, task, "ada", run=run, **said).drafts == ()
    assert world.status(task) == "review"


def test_a_finished_task_is_not_sent_back() -> None:
    world = World()
    task = world.into("done")
    refusal = world.refuse(commands.Complete, task, "rev", outcome="needs_review", blockers=("late",))
    assert (refusal.code, refusal.call and refusal.call.operation) == ("invalid_transition", "retry")
