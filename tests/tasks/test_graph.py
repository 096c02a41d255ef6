"""When a task may run, and each reason why not."""

from __future__ import annotations

import pytest

from aof.kernel import commands
from aof.kernel.model import FINISHED, Policy
from aof.tasks.graph import find_path
from tests.support.world import MINUTE, World


def test_a_ready_task_that_waits_for_nothing_can_run() -> None:
    world = World()
    assert world.why_not(world.create()) is None


@pytest.mark.parametrize("status", ["backlog", "in-progress", "review", "blocked", "done", "deadletter", "cancelled"])
def test_a_task_in_another_status_cannot_run_and_says_which(status: str) -> None:
    world = World()
    task = world.into(status)
    reason = world.why_not(task)
    assert reason is not None
    assert reason.code == "not_ready"
    assert status in reason.message
    assert reason.call is not None


def test_a_blocked_task_repeats_why_it_is_blocked() -> None:
    world = World()
    task = world.create()
    world.act(commands.Block, task, reason="no credentials")
    reason = world.why_not(task)
    assert reason is not None
    assert "no credentials" in reason.message


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "review", "blocked"])
def test_an_open_dependency_holds_and_is_named(status: str) -> None:
    world = World()
    blocker = world.into(status)
    task = world.create(depends_on=[blocker])
    refusal = world.refuse(commands.Claim, task, "ada")
    assert (refusal.code, refusal.details["waits_for"]) == ("not_ready", blocker)
    assert world.normalized(task) == "queued"


def test_a_task_is_runnable_without_a_further_call_once_the_last_dependency_is_done() -> None:
    world = World()
    first, second = world.create(), world.create()
    task = world.create(depends_on=[first, second])
    for blocker in (first, second):
        assert world.why_not(task) is not None
        world.act(commands.Complete, blocker, "ada")
        world.act(commands.Approve, blocker)
    assert world.why_not(task) is None


def test_a_retry_waits_for_its_time() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.Fail, task, "ada")
    world.later(MINUTE - 1)
    refusal = world.refuse(commands.Claim, task, "ada")
    assert (refusal.code, refusal.details["not_before"]) == ("not_ready", "2026-03-02T09:01:00.000Z")
    world.later(1)
    assert world.why_not(task) is None


def test_a_draft_that_was_put_into_ready_by_hand_does_not_run() -> None:
    world = World()
    task = world.create()
    world.act(commands.ImportEdit, task, changes={"metadata": {"draft": True}})
    assert world.refuse(commands.Claim, task, "ada").code == "not_ready"


def test_an_archived_task_does_not_run() -> None:
    world = World()
    task = world.into("done")
    world.act(commands.ArchiveTask, task)
    assert "archived" in world.refuse(commands.Claim, task, "ada").message


def test_a_resource_has_one_slot_unless_the_policy_says_otherwise() -> None:
    world = World(Policy(resource_slots={"gpu": 2}))
    for resource, slots in (("rig", 1), ("gpu", 2)):
        holders = [world.create(resource=resource) for _ in range(slots)]
        for holder in holders:
            world.claim(holder)
        late = world.create(resource=resource)
        refusal = world.refuse(commands.Claim, late, "bob")
        assert refusal.code == "resource_busy"
        assert refusal.details["waits_for"] == holders[0]
        world.act(commands.Release, holders[0], "ada")
        assert world.why_not(late) is None


def test_a_resource_without_slots_is_a_reason_and_no_crash() -> None:
    world = World(Policy(resource_slots={"rig": 0}))
    refusal = world.refuse(commands.Claim, world.create(resource="rig"), "ada")
    assert refusal.code == "resource_busy"


def test_a_parent_waits_for_its_children_only_when_it_says_so() -> None:
    world = World()
    patient, hasty = world.create(metadata={"waitForChildren": True}), world.create()
    child = world.create(parent_id=patient)
    world.create(parent_id=hasty)
    assert world.why_not(hasty) is None
    assert world.refuse(commands.Claim, patient, "ada").details["waits_for"] == child
    world.act(commands.Complete, child, "ada")
    assert world.why_not(patient) is not None
    world.act(commands.Approve, child)
    assert world.why_not(patient) is None


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_a_finished_child_holds_no_parent(status: str) -> None:
    world = World()
    parent = world.create(metadata={"waitForChildren": True})
    child = world.create(parent_id=parent)
    world.act(commands.ImportEdit, child, status="cancelled") if status == "cancelled" else None
    if status != "cancelled":
        world.claim(child)
        world.act(commands.Fail, child, "ada", retryable=False) if status == "deadletter" else world.act(
            commands.Complete, child, "ada"
        )
    if status == "done":
        world.act(commands.Approve, child)
    assert world.status(child) == status
    assert world.why_not(parent) is None


def test_a_child_may_depend_on_its_parent() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    world.act(commands.AddDependency, child, blocker_id=parent)
    assert world.tasks[child].depends_on == (parent,)


def test_a_path_is_found_along_edges_only() -> None:
    edges = {"a": ("b", "c"), "c": ("d",), "d": ("a",)}
    assert find_path(edges, "a", "d") == ("a", "c", "d")
    assert find_path(edges, "b", "a") == ()
    assert find_path(edges, "a", "a") == ("a",)
