"""Recovery by reported outcome, and by nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from tests.support.world import MINUTE, World


def test_a_lease_ends_exactly_at_its_time_and_not_before() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.later(5 * MINUTE - 1)
    assert world.act(commands.Expire, task, "aof").drafts == ()
    world.later(1)
    world.act(commands.Expire, task, "aof")
    assert world.status(task) == "ready"


def test_the_later_of_lease_and_heartbeat_counts() -> None:
    world = World()
    by_lease, by_heartbeat = world.create(), world.create()
    world.claim(by_lease, ttl_ms=10 * MINUTE)
    world.claim(by_heartbeat, ttl_ms=MINUTE)
    world.act(commands.RecordHeartbeat, by_lease, "ada", ttl_ms=MINUTE)
    world.act(commands.RecordHeartbeat, by_heartbeat, "ada", ttl_ms=10 * MINUTE)
    world.later(10 * MINUTE - 1)
    for task in (by_lease, by_heartbeat):
        assert world.act(commands.Expire, task, "aof").drafts == ()
        assert world.normalized(task) == "running"
    world.later(1)
    for task in (by_lease, by_heartbeat):
        assert world.normalized(task) == "lost"
        world.act(commands.Expire, task, "aof")
        assert world.status(task) == "ready"


def test_the_heartbeat_of_another_run_does_not_count() -> None:
    world = World()
    task = world.create()
    world.claim(task, ttl_ms=1)
    world.act(commands.RecordHeartbeat, task, "ada", ttl_ms=60 * MINUTE)
    old = world.heartbeats[task]
    world.act(commands.Release, task, "ada")
    world.claim(task, "bob")
    world.heartbeats[task] = old
    world.expire(task)
    assert world.status(task) == "ready"


@pytest.mark.parametrize(
    ("outcome", "metadata", "path"),
    [
        ("done", {}, ["review"]),
        ("done", {"reviewRequired": False}, ["review", "done"]),
        ("needs_review", {}, ["review"]),
        ("needs_review", {"reviewRequired": False}, ["review"]),
        ("partial", {}, ["review"]),
        ("partial", {"reviewRequired": False}, ["review"]),
        ("blocked", {}, ["blocked"]),
    ],
)
def test_a_reported_outcome_decides(outcome: str, metadata: dict[str, Any], path: list[str]) -> None:
    world = World()
    task = world.create(metadata=metadata)
    run = world.claim(task)
    world.report(task, outcome, "no key")
    assert world.status(task) == "in-progress"
    assert world.expire(task).agent == "ada"
    moves = world.log(task, "task.transitioned")[1:]
    assert [move.payload["to"] for move in moves] == path
    assert {move.payload["reason"] for move in moves} == {f"stale_heartbeat_{outcome}"}
    assert world.runs[task][run].status == "completed"
    assert world.log(task, "task.lost") == []
    if outcome == "blocked":
        blocked = world.tasks[task].blocked
        assert blocked is not None
        assert blocked.reason == "no key"


def test_without_a_result_the_task_is_requeued_and_the_run_marked_expired() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.expire(task)
    expired = world.runs[task][run]
    assert expired.error is not None
    assert (expired.status, expired.error.code, expired.error.cause) == ("expired", "stale_heartbeat", "lost")
    assert world.log(task, "task.transitioned")[-1].payload["reason"] == "stale_heartbeat_reclaim"
    assert len(world.log(task, "task.lost")) == 1
    assert world.normalized(task) == "retrying"
    world.later(MINUTE)
    successor = world.claim(task, "bob")
    assert world.runs[task][successor].cause == "lost_worker"


def test_a_worker_that_vanishes_every_time_ends_as_lost() -> None:
    world = World()
    task = world.create()
    for _ in range(3):
        world.claim(task)
        world.expire(task)
        world.later(15 * MINUTE)
    assert (world.status(task), world.normalized(task)) == ("deadletter", "lost")
    assert [run.status for run in world.runs[task].values()] == ["expired"] * 3


def test_recovery_leaves_alone_what_has_moved_on() -> None:
    world = World()
    for status in ("backlog", "ready", "review", "blocked", "done", "cancelled", "deadletter"):
        task = world.into(status)
        world.later(60 * MINUTE)
        assert world.act(commands.Expire, task, "aof").drafts == ()


def test_recovering_twice_changes_nothing_more() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.expire(task)
    assert world.act(commands.Expire, task, "aof").drafts == ()


def test_a_result_is_never_applied_to_another_run() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.report(task, "partial")
    stray = world.results[task]
    world.expire(task)
    world.act(commands.Reject, task, blockers=("more",))
    world.claim(task, "bob")
    assert world.results[task] is None
    world.results[task] = stray
    world.expire(task)
    assert world.log(task, "task.transitioned")[-1].payload["reason"] == "stale_heartbeat_reclaim"


def test_a_late_report_of_a_replaced_run_does_not_complete_its_successor() -> None:
    world = World()
    task = world.create(metadata={"reviewRequired": False})
    first = world.claim(task)
    world.expire(task)
    world.later(MINUTE)
    world.claim(task, "bob")
    assert world.refuse(commands.Complete, task, "ada", run=first).code == "stale_lease"
    world.expire(task)
    assert world.status(task) == "ready"
