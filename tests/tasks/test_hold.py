"""Block, unblock, pause and resume."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from aof.kernel.model import BLOCKED_KINDS
from tests.support.world import MINUTE, World


@pytest.mark.parametrize("kind", BLOCKED_KINDS)
def test_a_blocked_task_says_of_what_kind_why_and_by_whom(kind: str) -> None:
    world = World()
    task = world.create()
    world.act(commands.Block, task, reason="waiting for the key", kind=kind)
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert (blocked.kind, blocked.reason, blocked.by, blocked.since) == (
        kind,
        "waiting for the key",
        "pm",
        "2026-03-02T09:00:00.000Z",
    )
    assert world.normalized(task) == kind


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "review"])
def test_what_is_unfinished_can_be_blocked(status: str) -> None:
    world = World()
    task = world.into(status)
    world.act(commands.Block, task, reason="wait")
    assert world.status(task) == "blocked"


@pytest.mark.parametrize("status", ["done", "cancelled", "deadletter"])
@pytest.mark.parametrize(("kind", "given"), [(commands.Block, {"reason": "wait"}), (commands.Pause, {})])
def test_what_is_finished_cannot_be_held(status: str, kind: type[commands.OnTask], given: dict[str, Any]) -> None:
    world = World()
    assert world.refuse(kind, world.into(status), **given).code == "invalid_transition"


def test_blocking_again_keeps_the_first_reason_and_time() -> None:
    world = World()
    task = world.create()
    world.act(commands.Block, task, reason="first")
    before = world.tasks[task].blocked
    world.later(MINUTE)
    assert world.act(commands.Block, task, reason="second").drafts == ()
    assert world.tasks[task].blocked == before


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"reason": " "}, "invalid"),
        ({"reason": "x" * 513}, "payload_too_large"),
        ({"reason": "x", "kind": "asleep"}, "invalid"),
    ],
)
def test_a_bad_reason_or_kind_is_refused_with_a_full_call(given: dict[str, Any], code: str) -> None:
    world = World()
    refusal = world.refuse(commands.Block, world.create(), **given)
    assert refusal.code == code
    assert refusal.call is not None
    assert refusal.call.arguments["reason"]


@pytest.mark.parametrize(
    ("kind", "given", "status"), [(commands.Block, {"reason": "wait"}, "blocked"), (commands.Pause, {}, "paused")]
)
def test_holding_a_running_task_ends_its_run_and_fences_it_off(
    kind: type[commands.OnTask], given: dict[str, Any], status: str
) -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(kind, task, **given)
    assert world.normalized(task) == status
    assert world.runs[task][run].status == "cancelled"
    assert world.tasks[task].retry.failures == 0
    assert world.refuse(commands.RecordHeartbeat, task, "ada", run=run).code == "stale_lease"


def test_unblocking_makes_it_ready_and_a_ready_one_stays_as_it_is() -> None:
    world = World()
    task = world.into("blocked")
    world.act(commands.Unblock, task)
    assert (world.status(task), world.tasks[task].blocked) == ("ready", None)
    assert world.act(commands.Unblock, task).drafts == ()


@pytest.mark.parametrize("status", ["backlog", "in-progress", "review", "done", "cancelled", "deadletter"])
def test_only_a_blocked_task_is_unblocked(status: str) -> None:
    world = World()
    refusal = world.refuse(commands.Unblock, world.into(status))
    assert refusal.code == "invalid_transition"
    assert status in refusal.message


def test_an_unblocked_draft_is_a_draft_again() -> None:
    world = World()
    task = world.create(metadata={"draft": True})
    world.act(commands.Block, task, reason="wait")
    world.act(commands.Unblock, task)
    assert world.normalized(task) == "draft"


@pytest.mark.parametrize(
    ("before", "after"), [("ready", "ready"), ("backlog", "backlog"), ("in-progress", "ready"), ("review", "ready")]
)
def test_resume_leads_back_to_where_the_task_was(before: str, after: str) -> None:
    world = World()
    task = world.into(before)
    attempts = world.tasks[task].retry.attempts
    world.act(commands.Pause, task)
    assert world.act(commands.Pause, task).drafts == ()
    world.act(commands.Resume, task)
    assert (world.status(task), world.tasks[task].retry.attempts) == (after, attempts)


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "review", "blocked", "done"])
def test_resume_changes_nothing_on_a_task_that_is_not_paused(status: str) -> None:
    world = World()
    assert world.act(commands.Resume, world.into(status)).drafts == ()


def test_a_pause_does_not_shorten_the_wait_of_a_retry() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.Fail, task, "ada")
    world.act(commands.Pause, task)
    world.act(commands.Resume, task)
    assert world.normalized(task) == "retrying"
