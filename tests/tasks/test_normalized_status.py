"""The normalized status: one of twenty for every combination, and each of the twenty in some scenario."""

from __future__ import annotations

import typing
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import given, settings

from aof.kernel import commands
from aof.kernel.model import BLOCKED_KINDS, CAUSES, STATUSES, iso
from aof.runs.model import Heartbeat
from aof.tasks.graph import Normalized, normalized_status
from aof.tasks.model import Blocked, Cancel, Failure, Lease, Retry
from tests.support.requirements import requirement
from tests.support.world import MINUTE, MONDAY, World

TWENTY = frozenset(typing.get_args(Normalized))
MOMENTS = st.integers(MONDAY - 5, MONDAY + 5).map(iso)
BLANK = World()
TASK = BLANK.tasks[BLANK.create()]
FIELDS = st.fixed_dictionaries(
    {
        "status": st.sampled_from(STATUSES),
        "lease": st.none()
        | st.builds(
            Lease, agent=st.just("a"), run_id=st.just("R1"), epoch=st.just(1), acquired_at=MOMENTS, expires_at=MOMENTS
        ),
        "blocked": st.none()
        | st.builds(Blocked, kind=st.sampled_from(BLOCKED_KINDS), reason=st.just("r"), by=st.just("b"), since=MOMENTS),
        "cancel": st.none() | st.builds(Cancel, by=st.just("b"), at=MOMENTS, stopped=st.booleans()),
        "retry": st.builds(Retry, not_before=st.none() | MOMENTS),
        "last_error": st.none()
        | st.builds(Failure, code=st.just("c"), message=st.just("m"), at=MOMENTS, cause=st.sampled_from(CAUSES)),
        "progress": st.sampled_from([{}, {"percent": 1}]),
        "metadata": st.sampled_from([{}, {"draft": True}, {"draft": False}, {"draft": "yes"}]),
        "archived": st.booleans(),
    }
)
HEARTBEATS = st.none() | st.builds(
    Heartbeat,
    task_id=st.just("t"),
    agent_id=st.just("a"),
    run_id=st.sampled_from(["R1", "R0"]),
    last_heartbeat=MOMENTS,
    beat_count=st.integers(0, 2),
    expires_at=MOMENTS,
)


@given(fields=FIELDS, heartbeat=HEARTBEATS, stale=st.booleans())
@settings(max_examples=150)
def assert_every_combination_has_one_status(
    fields: dict[str, Any], heartbeat: Heartbeat | None, *, stale: bool
) -> None:
    task = msgspec.structs.replace(TASK, **fields)
    found = normalized_status(task, heartbeat, MONDAY, stale=stale)
    assert found in TWENTY
    assert found == normalized_status(task, heartbeat, MONDAY, stale=stale)


def _scenarios() -> set[Normalized]:
    """One scenario a value."""
    world = World()
    seen: set[Normalized] = {normalized_status(None, None, 0)}
    draft = world.create(metadata={"draft": True})
    seen |= {world.normalized(draft), world.normalized(world.create(status="backlog"))}
    task = world.create(max_attempts=2)
    seen.add(world.normalized(task))
    world.claim(task)
    seen.add(world.normalized(task))
    world.act(commands.RecordHeartbeat, task, "ada")
    seen.add(world.normalized(task))
    world.act(commands.Fail, task, "ada")
    seen.add(world.normalized(task))
    world.later(MINUTE)
    world.claim(task, worker="process")
    world.act(commands.CancelTask, task)
    seen.add(world.normalized(task))
    world.act(commands.Settle, task)
    seen.add(world.normalized(task))
    for kind in BLOCKED_KINDS:
        held = world.create()
        world.act(commands.Block, held, reason="r", kind=kind)
        seen.add(world.normalized(held))
    seen |= {world.normalized(world.into("review")), world.normalized(world.into("done"))}
    for cause in ("failed", "timed_out"):
        dead = world.create()
        world.claim(dead)
        world.act(commands.Fail, dead, "ada", cause=cause, retryable=False)
        seen.add(world.normalized(dead))
    gone = world.create()
    world.claim(gone)
    world.later(5 * MINUTE)
    seen.add(world.normalized(gone))
    seen.add(normalized_status(world.tasks[gone], None, world.now, stale=True))
    world.act(commands.ArchiveTask, task)
    seen.add(world.normalized(task))
    return seen


@requirement("task.status.mapping-total")
def test_every_combination_has_exactly_one_status_and_all_twenty_are_reached() -> None:
    assert len(TWENTY) == 20
    assert_every_combination_has_one_status()
    assert _scenarios() == TWENTY


def test_a_run_is_preparing_until_its_first_heartbeat_or_progress() -> None:
    world = World()
    beaten, reported = world.create(), world.create()
    for task in (beaten, reported):
        world.claim(task)
        assert world.normalized(task) == "preparing"
    world.act(commands.RecordHeartbeat, beaten, "ada")
    world.act(commands.ReportProgress, reported, "ada", percent=1)
    assert [world.normalized(task) for task in (beaten, reported)] == ["running", "running"]


def test_the_heartbeat_of_an_earlier_run_says_nothing_of_this_one() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.RecordHeartbeat, task, "ada")
    old = world.heartbeats[task]
    world.act(commands.Release, task, "ada")
    world.claim(task, "bob")
    assert normalized_status(world.tasks[task], old, world.now) == "preparing"


def test_a_failed_task_is_retrying_until_its_time_has_come_or_somebody_ends_the_wait() -> None:
    world = World()
    task, hurried = world.create(), world.create()
    for each in (task, hurried):
        world.claim(each)
        world.act(commands.Fail, each, "ada")
    world.later(MINUTE - 1)
    assert [world.normalized(each) for each in (task, hurried)] == ["retrying", "retrying"]
    world.act(commands.RetryTask, hurried, reason="now")
    assert [world.normalized(each) for each in (task, hurried)] == ["retrying", "queued"]
    world.later(1)
    assert world.normalized(task) == "queued"
    world.claim(task)
    assert world.normalized(task) == "preparing"


def test_a_dead_task_that_has_lost_its_error_is_failed() -> None:
    task = msgspec.structs.replace(TASK, status="deadletter")
    assert normalized_status(task, None, MONDAY) == "failed"
