"""Cancelling: intent first, down the whole tree, settled from the leaves up, and it sticks."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from tests.support.world import MINUTE, World


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "review", "blocked"])
def test_what_is_unfinished_is_cancelled_at_once_when_nobody_hosts_it(status: str) -> None:
    world = World()
    task = world.into(status)
    world.act(commands.CancelTask, task, reason="not wanted")
    cancel = world.tasks[task].cancel
    assert cancel is not None
    assert (world.status(task), cancel.by, cancel.reason) == ("cancelled", "pm", "not wanted")
    kinds = [event.type for event in world.events if event.task_id == task]
    assert kinds.index("task.cancel_requested") < len(kinds) - 1
    assert kinds[-1] == "task.transitioned"


@pytest.mark.parametrize("status", ["done", "deadletter"])
def test_what_is_finished_is_not_cancelled(status: str) -> None:
    world = World()
    assert world.refuse(commands.CancelTask, world.into(status)).code == "invalid_transition"


def test_cancelling_again_changes_nothing() -> None:
    world = World()
    assert world.act(commands.CancelTask, world.into("cancelled")).drafts == ()


def test_a_cancelled_pulling_agent_can_no_longer_write() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.CancelTask, task)
    assert world.runs[task][run].status == "cancelled"
    for kind, given in (
        (commands.RecordHeartbeat, {}),
        (commands.ReportProgress, {"text": "x"}),
        (commands.Release, {}),
        (commands.Complete, {}),
        (commands.Fail, {}),
    ):
        assert world.refuse(kind, task, "ada", run=run, **given).code == "stale_lease"


def test_a_hosted_run_is_cancelling_until_its_host_has_stopped_it() -> None:
    world = World()
    task = world.create()
    run = world.claim(task, worker="process")
    world.act(commands.CancelTask, task, reason="not wanted")
    assert world.normalized(task) == "cancelling"
    assert world.act(commands.CancelTask, task).drafts == ()
    assert world.refuse(commands.RecordHeartbeat, task, "ada", run=run).code == "stale_lease"
    world.act(commands.Settle, task, "host")
    assert (world.status(task), world.runs[task][run].status) == ("cancelled", "cancelled")
    assert world.act(commands.Settle, task, "host").drafts == ()


def test_settling_a_task_that_is_not_being_cancelled_changes_nothing() -> None:
    world = World()
    assert world.act(commands.Settle, world.into("in-progress")).drafts == ()


def test_a_cancellation_spreads_over_three_generations_children_first() -> None:
    world = World()
    root = world.create()
    child = world.create(parent_id=root)
    grandchild = world.create(parent_id=child)
    outside = world.create(depends_on=[grandchild])
    world.act(commands.CancelTask, root, reason="stop")
    moved = [event.task_id for event in world.events if event.payload.get("to") == "cancelled"]
    assert moved == [grandchild, child, root]
    assert world.status(outside) == "blocked"
    spread = world.log(grandchild, "task.cancel_requested")[0].payload
    assert (spread["spreadFrom"], spread["reason"]) == (root, "stop")
    first = min(event.seq for event in world.events if event.type == "task.transitioned")
    assert all(event.seq < first for event in world.events if event.type == "task.cancel_requested")


def test_a_cancellation_reaches_unfinished_tasks_below_a_finished_one() -> None:
    world = World()
    root = world.create()
    child = world.create(parent_id=root)
    grandchild = world.create(parent_id=child)
    world.claim(grandchild, worker="process")
    world.act(commands.Complete, child, "ada", allow_open_children=True)
    world.act(commands.Approve, child, allow_open_children=True)
    world.act(commands.CancelTask, root)
    assert (world.status(root), world.normalized(grandchild)) == ("ready", "cancelling")
    world.act(commands.Settle, grandchild, "host")
    assert [world.status(task) for task in (root, child, grandchild)] == ["cancelled", "done", "cancelled"]


@pytest.mark.parametrize("status", ["backlog", "ready", "review", "blocked", "in-progress"])
def test_a_parent_is_cancelled_only_after_its_hosted_child_has_stopped(status: str) -> None:
    world = World()
    parent = world.into(status)
    child, idle = world.create(parent_id=parent), world.create(parent_id=parent)
    world.claim(child, "bob", worker="process")
    world.act(commands.CancelTask, parent)
    assert [world.status(task) for task in (parent, child, idle)] == [status, "in-progress", "cancelled"]
    world.act(commands.Settle, child, "host")
    assert [world.status(task) for task in (parent, child)] == ["cancelled", "cancelled"]
    assert all(run.ended_at for run in world.runs[parent].values())


def test_a_hosted_parent_that_stops_before_its_hosted_child_is_cancelled_with_it() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    run = world.claim(parent, worker="process")
    world.claim(child, "bob", worker="process")
    world.act(commands.CancelTask, parent)
    world.act(commands.Settle, parent, "host")
    assert (world.normalized(parent), world.runs[parent][run].status) == ("cancelling", "cancelled")
    world.later(60 * MINUTE)
    assert world.normalized(parent) == "cancelling"
    assert world.act(commands.Expire, parent, "aof").drafts == ()
    world.act(commands.Settle, child, "host")
    assert [world.status(task) for task in (parent, child)] == ["cancelled", "cancelled"]
    assert len(world.log(parent, "task.attempt.failed")) == 1


def test_a_host_that_vanished_while_it_cancelled_is_recovered_to_cancelled() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    run = world.claim(child, worker="process")
    world.act(commands.CancelTask, parent)
    world.expire(child)
    assert [world.status(task) for task in (parent, child)] == ["cancelled", "cancelled"]
    assert world.runs[child][run].status == "expired"
    assert len(world.log(child, "task.lost")) == 1


def test_a_result_does_not_undo_a_cancellation() -> None:
    world = World()
    task = world.create(metadata={"reviewRequired": False})
    world.claim(task, worker="process")
    world.report(task, "done")
    world.act(commands.CancelTask, task)
    world.expire(task)
    assert world.status(task) == "cancelled"


@pytest.mark.parametrize(
    ("status", "kind", "given"),
    [
        ("review", commands.Approve, {}),
        ("review", commands.Reject, {"blockers": ("no",)}),
        ("review", commands.Complete, {}),
        ("ready", commands.Claim, {}),
        ("ready", commands.Complete, {}),
        ("ready", commands.Block, {"reason": "wait"}),
        ("ready", commands.Pause, {}),
        ("ready", commands.RetryTask, {"reason": "again"}),
        ("ready", commands.Update, {"status": "backlog"}),
        ("ready", commands.ImportEdit, {"status": "backlog"}),
        ("backlog", commands.Update, {"status": "ready"}),
        ("blocked", commands.Unblock, {}),
        ("blocked", commands.Resume, {}),
    ],
)
def test_a_task_that_waits_to_be_cancelled_goes_nowhere_else(
    status: str, kind: type[commands.OnTask], given: dict[str, Any]
) -> None:
    world = World()
    parent = world.into(status)
    child = world.create(parent_id=parent)
    world.claim(child, "bob", worker="process")
    world.act(commands.CancelTask, parent)
    agent = "pm" if kind is commands.Complete else "ada"  # from who ran it, it is a repeated report
    assert world.refuse(kind, parent, agent, **given).code == "cancel_requested"


def test_a_child_is_not_retried_before_the_task_above_that_was_cancelled() -> None:
    world = World()
    root = world.create()
    middle = world.create(parent_id=root)
    leaf = world.create(parent_id=middle)
    world.act(commands.CancelTask, root)
    for task in (leaf, middle):
        refusal = world.refuse(commands.RetryTask, task, reason="again")
        assert refusal.code == "cancel_requested"
        assert world.refuse(commands.ImportEdit, task, status="ready").code == "cancel_requested"
    for task in (root, middle, leaf):
        world.act(commands.RetryTask, task, reason="again")
        assert (world.status(task), world.tasks[task].cancel) == ("ready", None)


def test_a_very_deep_tree_is_cancelled_too() -> None:
    world = World()
    tasks = [world.create()]
    for _ in range(60):
        tasks.append(world.create(parent_id=tasks[-1]))
    world.act(commands.CancelTask, tasks[0])
    assert {world.status(task) for task in tasks} == {"cancelled"}
