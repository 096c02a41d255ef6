"""`update`: body, status and sign of life in one decision."""

from __future__ import annotations

import pytest

from aof.kernel import commands
from tests.support.world import MINUTE, World


def test_a_move_to_in_progress_is_a_claim_with_a_lease() -> None:
    world = World()
    task = world.create()
    world.act(commands.Update, task, "ada", status="in-progress")
    lease = world.tasks[task].lease
    assert lease is not None
    assert (lease.agent, lease.epoch) == ("ada", 1)


def test_a_move_to_in_progress_is_refused_while_a_dependency_is_open() -> None:
    world = World()
    task = world.create(depends_on=[world.create()])
    assert world.refuse(commands.Update, task, "ada", status="in-progress").code == "not_ready"


def test_going_back_from_review_to_work_needs_the_resource_as_well() -> None:
    world = World()
    reviewed = world.into("review", resource="rig")
    world.claim(world.create(resource="rig"), "bob")
    assert world.refuse(commands.Update, reviewed, "ada", status="in-progress").code == "resource_busy"


def test_going_back_from_review_to_work_starts_a_new_run() -> None:
    world = World()
    task = world.into("review")
    world.act(commands.Update, task, "bob", status="in-progress")
    lease = world.tasks[task].lease
    assert lease is not None
    assert (lease.agent, lease.epoch) == ("bob", 2)


def test_body_and_status_are_one_commit() -> None:
    world = World()
    task = world.create(body="old")
    decision = world.act(commands.Update, task, body="new", status="backlog")
    assert [draft.type for draft in decision.drafts] == ["task.updated", "task.transitioned"]
    assert (world.tasks[task].body, world.status(task)) == ("new\n", "backlog")


def test_a_refused_status_keeps_the_body_as_it_was() -> None:
    world = World()
    task = world.create(body="old")
    world.refuse(commands.Update, task, body="new", status="done")
    assert world.tasks[task].body == "old\n"


def test_the_same_body_again_writes_nothing() -> None:
    world = World()
    task = world.create(body="text")
    assert world.act(commands.Update, task, body="text").drafts == ()


def test_a_bare_update_by_the_holder_is_only_a_sign_of_life() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.later(4 * MINUTE)
    decision = world.act(commands.Update, task, "ada")
    assert decision.drafts == ()
    world.later(4 * MINUTE)
    assert world.act(commands.Expire, task).drafts == ()


def test_a_bare_update_by_somebody_else_renews_nothing() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    decision = world.act(commands.Update, task, "bob")
    assert (decision.drafts, decision.heartbeat) == ((), None)


@pytest.mark.parametrize(
    "given", [{"body": "mine"}, {"status": "ready"}, {"status": "blocked"}, {"status": "cancelled"}]
)
def test_only_the_holder_updates_a_running_task(given: dict[str, str]) -> None:
    world = World()
    task = world.create()
    world.claim(task)
    assert world.refuse(commands.Update, task, "bob", **given).code == "not_lease_holder"


@pytest.mark.parametrize("given", [{}, {"body": "late"}, {"status": "review"}, {"status": "blocked"}])
def test_a_replaced_run_updates_nothing_while_another_runs(given: dict[str, str]) -> None:
    world = World()
    task = world.create()
    old = world.claim(task)
    world.act(commands.Release, task, "ada")
    world.claim(task, "bob")
    assert world.refuse(commands.Update, task, "ada", run=old, **given).code == "stale_lease"


@pytest.mark.parametrize("given", [{"body": "late"}, {"status": "in-progress"}, {"status": "blocked"}])
def test_an_ended_run_updates_nothing_when_nobody_runs_the_task(given: dict[str, str]) -> None:
    world = World()
    task = world.create()
    old = world.claim(task)
    world.act(commands.Release, task, "ada")
    assert world.refuse(commands.Update, task, "ada", run=old, **given).code == "stale_lease"


def test_a_run_of_another_task_is_no_hindrance() -> None:
    world = World()
    elsewhere = world.claim(world.create())
    task = world.create()
    world.act(commands.Update, task, "ada", run=elsewhere, body="noted")
    assert world.tasks[task].body == "noted\n"


def test_a_draft_is_not_promoted_before_its_mark_is_gone() -> None:
    world = World()
    task = world.create(metadata={"draft": True})
    assert world.refuse(commands.Update, task, status="ready").code == "not_ready"
    world.act(commands.Edit, task, changes={"metadata": {"draft": None}})
    world.act(commands.Update, task, status="ready")
    assert world.status(task) == "ready"


def test_a_blocked_task_can_be_shelved_while_its_dependency_is_dead() -> None:
    world = World()
    task = world.create(depends_on=[world.into("cancelled")])
    world.act(commands.Update, task, status="backlog")
    assert world.status(task) == "backlog"
    assert world.tasks[task].blocked is None


def test_giving_a_task_up_puts_the_reason_on_it() -> None:
    world = World()
    task = world.into("blocked")
    world.act(commands.Update, task, status="deadletter", reason="nobody wants it")
    error = world.tasks[task].last_error
    assert error is not None
    assert (error.code, error.message) == ("given_up", "nobody wants it")
