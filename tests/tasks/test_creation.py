"""Creating a task: what it holds at birth, its idempotency key, its place in the tree."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from aof.kernel.model import Policy
from tests.support.world import World


def test_a_task_holds_what_it_was_created_with() -> None:
    world = World()
    blocker, parent = world.create(), world.create()
    task = world.tasks[
        world.create(
            "  Add refresh endpoint ",
            actor="cli",
            agent="lead",
            body="Why\n",
            priority="high",
            assignee="ada",
            role="developer",
            team="eng",
            tags=["auth"],
            workflow="review",
            depends_on=[blocker, blocker],
            parent_id=parent,
            owner="lead",
            resource="rig",
            visibility="background",
            acceptance=["it works"],
            constraints={"network": "off"},
            profile={"latency": "low"},
            metadata={"anything": [1, 2]},
            max_attempts=5,
        )
    ]
    assert (task.title, task.body, task.priority, task.created_by) == ("Add refresh endpoint", "Why\n", "high", "lead")
    assert (task.routing.agent, task.routing.role, task.routing.team) == ("ada", "developer", "eng")
    assert (task.routing.tags, task.routing.workflow) == (("auth",), "review")
    assert (task.depends_on, task.parent_id, task.owner, task.resource) == ((blocker,), parent, "lead", "rig")
    assert (task.visibility, task.acceptance) == ("background", ("it works",))
    assert (task.constraints, task.profile, task.metadata) == (
        {"network": "off"},
        {"latency": "low"},
        {"anything": [1, 2]},
    )
    assert (task.retry.max_attempts, task.status) == (5, "ready")


@pytest.mark.parametrize(
    ("fields", "events"),
    [
        ({}, ["task.created", "task.accepted", "task.queued"]),
        ({"status": "backlog"}, ["task.created", "task.accepted"]),
        ({"metadata": {"draft": True}}, ["task.created"]),
    ],
)
def test_creation_says_how_far_the_task_has_come(fields: dict[str, Any], events: list[str]) -> None:
    world = World()
    world.create(**fields)
    assert [event.type for event in world.events] == events


def test_a_draft_lies_in_the_backlog_whatever_was_asked_for() -> None:
    world = World()
    assert world.status(world.create(status="ready", metadata={"draft": True})) == "backlog"


def test_the_policy_says_how_often_a_task_is_tried() -> None:
    world = World(Policy(max_attempts=7))
    assert world.tasks[world.create()].retry.max_attempts == 7


def test_the_same_request_under_the_same_key_answers_with_the_first_task() -> None:
    world = World()
    first = world.create("One", key="k", metadata={"a": 1, "b": 2}, actor="alice")
    again = world.create("One", key="k", metadata={"b": 2, "a": 1}, actor="bob")
    assert (again, len(world.tasks)) == (first, 1)


@pytest.mark.parametrize("other", [{"title": "Two"}, {"priority": "high"}, {"body": "more"}, {"metadata": {"a": 1}}])
def test_another_request_under_the_same_key_is_a_conflict_that_names_the_task(other: dict[str, Any]) -> None:
    world = World()
    first = world.create("One", key="k")
    refusal = world.refuse(commands.Create, world.next_id(), **({"title": "One", "key": "k"} | other))
    assert (refusal.code, refusal.kind, refusal.details["task_id"]) == ("key_conflict", "conflict", first)


def test_the_key_still_answers_when_the_task_has_moved_on_and_its_parent_was_cancelled() -> None:
    world = World()
    parent = world.create()
    first = world.create("One", key="k", parent_id=parent)
    world.act(commands.CancelTask, parent)
    assert world.create("One", key="k", parent_id=parent) == first


def test_a_missing_dependency_or_parent_is_refused_and_nothing_is_created() -> None:
    world = World()
    for fields in ({"depends_on": ("TASK-2026-03-02-077",)}, {"parent_id": "TASK-2026-03-02-077"}):
        assert world.refuse(commands.Create, world.next_id(), title="x", **fields).code == "task_not_found"
    assert world.tasks == {}


def test_no_child_is_added_below_a_cancelled_task_at_any_depth() -> None:
    world = World()
    root = world.create()
    child = world.create(parent_id=root, metadata={"reviewRequired": False})
    world.act(commands.Complete, child, "ada")
    world.act(commands.CancelTask, root)
    assert world.status(child) == "done"
    for parent in (root, child):
        refusal = world.refuse(commands.Create, world.next_id(), title="x", parent_id=parent)
        assert refusal.code == "cancel_requested"
        assert root in refusal.message


def test_no_child_is_added_while_a_cancellation_is_still_settling() -> None:
    world = World()
    root = world.create()
    world.claim(root, worker="process")
    world.act(commands.CancelTask, root)
    assert world.status(root) == "in-progress"
    assert world.refuse(commands.Create, world.next_id(), title="x", parent_id=root).code == "cancel_requested"


def test_an_id_is_not_given_twice() -> None:
    world = World()
    task = world.create()
    assert world.refuse(commands.Create, task, title="x").code == "id_taken"


def test_the_default_lease_of_a_task_is_its_own_if_it_names_one() -> None:
    world = World()
    task = world.create(metadata={"leaseTtlMs": 1000})
    world.claim(task)
    lease = world.tasks[task].lease
    assert lease is not None
    assert (lease.ttl_ms, lease.expires_at) == (1000, "2026-03-02T09:00:01.000Z")
