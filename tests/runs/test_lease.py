"""Claim, lease and fencing: one winner, a rising epoch, and nobody else writes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aof.errors import Call
from aof.kernel import commands
from aof.kernel.model import Policy
from aof.org.model import Agent, OrgChart
from tests.support.world import MINUTE, World

WRITES: list[tuple[type[commands.OnTask], dict[str, Any]]] = [
    (commands.RecordHeartbeat, {}),
    (commands.ReportProgress, {"text": "x"}),
    (commands.Update, {"body": "x"}),
    (commands.Complete, {}),
    (commands.Fail, {}),
    (commands.Release, {}),
]


def test_a_claim_is_one_commit_of_status_lease_and_run() -> None:
    world = World()
    task = world.create()
    decision = world.act(commands.Claim, task, "ada")
    assert [draft.type for draft in decision.drafts] == ["task.transitioned", "task.attempt.started"]
    lease = world.tasks[task].lease
    assert lease is not None
    run = world.runs[task][lease.run_id]
    assert (lease.agent, lease.epoch, lease.expires_at) == ("ada", 1, "2026-03-02T09:05:00.000Z")
    assert (run.agent_id, run.status, run.attempt, run.epoch, run.cause) == ("ada", "running", 1, 1, "first")
    beat = world.heartbeats[task]
    assert (beat.run_id, beat.beat_count, beat.expires_at) == (lease.run_id, 0, lease.expires_at)


def test_the_losers_of_a_claim_learn_who_won() -> None:
    world = World()
    task = world.create()
    run = world.claim(task, "ada")
    for loser in ("bob", "ada"):
        refusal = world.refuse(commands.Claim, task, loser)
        assert (refusal.code, refusal.kind) == ("already_claimed", "conflict")
        assert (refusal.details["holder"], refusal.details["run_id"]) == ("ada", run)
        assert "ada" in refusal.message


def test_every_new_lease_raises_the_epoch_whatever_ended_the_last_one() -> None:
    world = World()
    task = world.create(max_attempts=10)
    epochs = []
    for end in (commands.Release, commands.Fail, commands.Block, commands.Expire, commands.Complete):
        run = world.claim(task)
        lease = world.tasks[task].lease
        assert lease is not None
        epochs.append(lease.epoch)
        if end is commands.Block:
            world.act(commands.Block, task, reason="x")
            world.act(commands.Unblock, task)
        elif end is commands.Expire:
            world.expire(task)
        else:
            world.act(end, task, "ada", run=run)
        world.later(20 * MINUTE)
    assert epochs == [1, 2, 3, 4, 5]
    assert len(world.runs[task]) == 5


@pytest.mark.parametrize(("kind", "given"), WRITES)
def test_only_the_holder_writes_to_a_running_task(kind: type[commands.OnTask], given: dict[str, Any]) -> None:
    world = World()
    task = world.create()
    world.claim(task, "ada")
    refusal = world.refuse(kind, task, "bob", **given)
    assert (refusal.code, refusal.details["holder"]) == ("not_lease_holder", "ada")
    world.act(kind, task, "ada", **given)


@pytest.mark.parametrize(("kind", "given"), WRITES)
def test_a_run_speaks_for_its_agent_whoever_calls(kind: type[commands.OnTask], given: dict[str, Any]) -> None:
    world = World()
    task = world.create()
    run = world.claim(task, "ada")
    assert world.act(kind, task, "runner", run=run, **given).agent == "ada"


@pytest.mark.parametrize(("kind", "given"), WRITES)
@pytest.mark.parametrize("successor", ["ada", "bob"])
def test_a_replaced_run_changes_nothing(kind: type[commands.OnTask], given: dict[str, Any], successor: str) -> None:
    world = World()
    task = world.create()
    old = world.claim(task, "ada")
    world.act(commands.Release, task, "ada")
    world.claim(task, successor)
    before = world.tasks[task]
    refusal = world.refuse(kind, task, "ada", run=old, **given)
    assert (refusal.code, refusal.kind) == ("stale_lease", "conflict")
    after = world.tasks[task]
    late = after.late_results if kind is commands.Complete else ()
    assert after == msgspec.structs.replace(before, rev=after.rev, updated_at=after.updated_at, late_results=late)


@pytest.mark.parametrize(("kind", "given"), WRITES)
@pytest.mark.parametrize("waited", [0, 60 * MINUTE])
def test_an_expired_run_changes_nothing_also_before_anybody_else_has_claimed(
    kind: type[commands.OnTask], given: dict[str, Any], waited: int
) -> None:
    world = World()
    task = world.create()
    old = world.claim(task, "ada")
    world.expire(task)
    world.later(waited)
    assert world.refuse(kind, task, "ada", run=old, **given).code == "stale_lease"


@pytest.mark.parametrize(("kind", "given"), WRITES)
def test_a_holder_that_had_an_earlier_run_must_name_the_one_it_means(
    kind: type[commands.OnTask], given: dict[str, Any]
) -> None:
    world = World()
    task = world.create()
    world.claim(task, "ada")
    world.act(commands.Release, task, "ada")
    run = world.claim(task, "ada")
    refusal = world.refuse(kind, task, "ada", **given)
    assert (refusal.code, refusal.kind) == ("run_required", "conflict")
    world.act(kind, task, "ada", run=run, **given)


def test_the_hint_to_name_the_run_repeats_what_was_said() -> None:
    world = World()
    task = world.create()
    world.claim(task, "ada")
    world.act(commands.Release, task, "ada")
    run = world.claim(task, "ada")
    refusal = world.refuse(commands.Update, task, "ada", note="tried the cache first", reason="x" * 300)
    assert refusal.call == Call("update", {"task_id": task, "note": "tried the cache first", "reason": "…", "run": run})


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (commands.RecordHeartbeat, {}),
        (commands.ReportProgress, {"text": "x"}),
        (commands.Fail, {}),
        (commands.Release, {}),
    ],
)
def test_nobody_writes_as_a_worker_to_a_task_that_nobody_runs(
    kind: type[commands.OnTask], given: dict[str, Any]
) -> None:
    world = World()
    refusal = world.refuse(kind, world.create(), "ada", **given)
    assert refusal.code == "stale_lease"
    assert refusal.call is not None
    assert refusal.call.operation == "claim"


def test_a_heartbeat_is_no_event_and_moves_the_end_of_the_lease() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    events = len(world.events)
    for number in range(1, 4):
        world.later(4 * MINUTE)
        world.act(commands.RecordHeartbeat, task, "ada")
        assert world.heartbeats[task].beat_count == number
        assert world.act(commands.Expire, task).drafts == ()
    assert len(world.events) == events


def test_an_expired_lease_that_nobody_reclaimed_may_be_renewed() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.later(60 * MINUTE)
    world.act(commands.RecordHeartbeat, task, "ada", run=run)
    assert world.act(commands.Expire, task).drafts == ()


def test_the_length_of_a_lease_comes_from_the_call_then_the_task_then_the_policy() -> None:
    world = World(Policy(lease_ttl_ms=7_000))
    plain, own = world.create(), world.create(metadata={"leaseTtlMs": 5_000})
    asked = world.create(metadata={"leaseTtlMs": 5_000})
    world.claim(plain)
    world.claim(own)
    world.claim(asked, ttl_ms=3_000)
    leases = [world.tasks[task].lease for task in (plain, own, asked)]
    assert [lease.ttl_ms for lease in leases if lease] == [7_000, 5_000, 3_000]
    world.act(commands.RecordHeartbeat, own, "ada")
    assert world.heartbeats[own].expires_at == "2026-03-02T09:00:05.000Z"


@pytest.mark.parametrize("ttl", [0, -1, 7 * 24 * 3_600_000 + 1])
def test_an_impossible_lease_is_refused(ttl: int) -> None:
    world = World()
    task = world.create()
    assert world.refuse(commands.Claim, task, "ada", ttl_ms=ttl).code == "invalid"
    world.claim(task)
    assert world.refuse(commands.RecordHeartbeat, task, "ada", ttl_ms=ttl).code == "invalid"


@pytest.mark.parametrize("given", [{"actor": "a b"}, {"worker": "a b"}])
def test_a_claim_under_a_name_that_is_none_is_refused(given: dict[str, Any]) -> None:
    world = World()
    command = commands.Claim(**({"actor": "ada", "task_id": world.create()} | given))
    assert world.refused(command).code == "invalid"


def test_a_release_is_no_failure_and_the_task_can_be_claimed_at_once() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.Release, task, "ada", reason="not mine")
    assert (world.runs[task][run].status, world.tasks[task].retry.failures) == ("released", 0)
    assert world.why_not(task) is None
    assert world.log(task, "task.transitioned")[-1].payload["reason"] == "not mine"


DAY = 24 * 60 * MINUTE


@pytest.mark.parametrize("operation", [commands.Claim, commands.RecordHeartbeat])
def test_a_lease_lasts_a_day_at_most(operation: type[commands.OnTask]) -> None:
    world = World()
    task = world.create()
    if operation is commands.RecordHeartbeat:
        world.claim(task, "ada")
    refusal = world.refuse(operation, task, "ada", ttl_ms=DAY + 1)
    assert refusal.code == "invalid"
    assert "maxLeaseTime" in refusal.hint
    world.act(operation, task, "ada", ttl_ms=DAY)


@pytest.mark.parametrize("operation", [commands.Claim, commands.RecordHeartbeat])
def test_the_chart_lets_an_agent_have_a_longer_lease(operation: type[commands.OnTask]) -> None:
    chart = OrgChart(agents=(Agent(id="ada", max_lease_time="3d"), Agent(id="bob")))
    world = World(policy=Policy(org=chart))
    task = world.create()
    if operation is commands.RecordHeartbeat:
        world.claim(task, "ada")
    assert world.refuse(operation, task, "ada", ttl_ms=3 * DAY + 1).code == "invalid"
    world.act(operation, task, "ada", ttl_ms=3 * DAY)
    if operation is commands.Claim:
        assert world.refuse(commands.Claim, world.create(), "bob", ttl_ms=2 * DAY).code == "invalid"


def test_what_a_task_asks_for_is_cut_to_what_its_agent_may_have() -> None:
    world = World()
    task = world.create(metadata={"leaseTtlMs": 6 * DAY})
    world.claim(task, "ada")
    lease = world.tasks[task].lease
    assert lease is not None
    assert lease.ttl_ms == DAY


def test_the_settings_may_give_everybody_a_longer_lease() -> None:
    world = World(policy=Policy(lease_ttl_ms=2 * DAY))
    task = world.create()
    assert world.act(commands.Claim, task, "ada", ttl_ms=2 * DAY).refusal is None
