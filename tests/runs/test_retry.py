"""Failures, the wait before the next try, the end of all tries, and trying again by hand."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aof.kernel import commands
from aof.kernel.model import Policy, millis
from aof.runs.results import backoff_ms
from tests.support.world import MINUTE, SECOND, World


def test_the_wait_triples_from_a_minute_up_to_a_quarter_of_an_hour() -> None:
    waits = [backoff_ms(Policy(), failures) // SECOND for failures in range(1, 7)]
    assert waits == [60, 180, 540, 900, 900, 900]


@given(failures=st.integers(0, 10**6))
def test_the_wait_never_exceeds_its_bounds(failures: int) -> None:
    assert 60_000 <= backoff_ms(Policy(), failures) <= 900_000
    assert backoff_ms(Policy(), failures) <= backoff_ms(Policy(), failures + 1)


def test_a_failed_task_waits_longer_each_time_and_then_dies_with_the_cause() -> None:
    world = World()
    task = world.create(max_attempts=5)
    waits = []
    for _ in range(4):
        run = world.claim(task)
        world.act(commands.Fail, task, "ada", run=run, code="boom", message="it broke")
        not_before = world.tasks[task].retry.not_before
        assert not_before is not None
        waits.append((millis(not_before) - world.now) // SECOND)
        world.now = millis(not_before)
    assert waits == [60, 180, 540, 900]
    run = world.claim(task)
    world.act(commands.Fail, task, "ada", run=run, code="boom", message="it broke")
    error = world.tasks[task].last_error
    assert error is not None
    assert (world.status(task), world.normalized(task)) == ("deadletter", "failed")
    assert (error.code, error.message, error.run_id) == ("boom", "it broke", run)


def test_three_attempts_are_the_default() -> None:
    world = World()
    task = world.create()
    for _ in range(3):
        assert world.status(task) == "ready"
        world.act(commands.Fail, task, "ada", run=world.claim(task))
        world.later(15 * MINUTE)
    assert world.status(task) == "deadletter"
    assert [run.status for run in world.runs[task].values()] == ["failed"] * 3


def test_a_retry_says_why_which_attempt_and_when() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.Fail, task, "ada", code="boom")
    [event] = world.log(task, "task.retrying")
    assert event.payload == {"reason": "boom", "attempt": 2, "notBefore": "2026-03-02T09:01:00.000Z", "cause": "retry"}


def test_what_is_not_retryable_dies_at_once() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.Fail, task, "ada", retryable=False)
    assert world.status(task) == "deadletter"


def test_a_limit_that_fired_is_named_also_when_a_retry_follows() -> None:
    world = World()
    task = world.create(max_attempts=2)
    first = world.claim(task)
    world.act(commands.Fail, task, "ada", code="max_execution_time", cause="timed_out")
    assert world.normalized(task) == "retrying"
    world.later(MINUTE)
    second = world.claim(task)
    world.act(commands.Fail, task, "ada", run=second, code="max_execution_time", cause="timed_out")
    assert world.normalized(task) == "timed_out"
    events = world.log(task, "task.timed_out")
    assert [event.run_id for event in events] == [first, second]
    assert events[0].payload["limit"] == "max_execution_time"


@pytest.mark.parametrize(
    "given", [{"code": ""}, {"code": "a\nb"}, {"code": "x" * 300}, {"message": "x" * 10_001}, {"cause": "magic"}]
)
def test_a_malformed_failure_is_refused(given: dict[str, str]) -> None:
    world = World()
    task = world.create()
    world.claim(task)
    assert world.refuse(commands.Fail, task, "ada", **given).kind == "invalid"


def test_a_release_in_between_uses_up_no_attempt() -> None:
    world = World()
    task = world.create(max_attempts=2)
    for _ in range(4):
        world.act(commands.Release, task, "ada", run=world.claim(task))
    world.act(commands.Fail, task, "ada", run=world.claim(task))
    assert (world.status(task), world.tasks[task].retry.failures) == ("ready", 1)


@pytest.mark.parametrize("status", ["done", "cancelled", "deadletter"])
def test_a_retry_makes_a_finished_task_ready_and_keeps_its_history(status: str) -> None:
    world = World()
    task = world.into(status)
    before = world.runs[task].copy()
    world.act(commands.RetryTask, task, reason="once more")
    again = world.tasks[task]
    assert (again.status, again.cancel, again.last_error, again.ended_at) == ("ready", None, None, None)
    assert (again.retry.failures, again.retry.not_before) == (0, None)
    assert world.runs[task] == before
    assert world.log(task, "task.retrying")[-1].payload["reason"] == "once more"
    world.claim(task, "bob")
    assert list(world.runs[task].values())[: len(before)] == list(before.values())
    assert len(world.runs[task]) == len(before) + 1


def test_a_retry_by_hand_ends_the_wait_and_counts_failures_anew() -> None:
    world = World()
    task = world.create(max_attempts=2)
    world.claim(task)
    world.act(commands.Fail, task, "ada")
    world.act(commands.RetryTask, task, reason="fixed")
    assert world.why_not(task) is None
    assert world.act(commands.RetryTask, task, reason="fixed").drafts == ()
    world.act(commands.Fail, task, "ada", run=world.claim(task))
    assert world.status(task) == "ready"


@pytest.mark.parametrize("status", ["backlog", "in-progress", "review", "blocked"])
def test_what_is_not_finished_is_not_retried(status: str) -> None:
    world = World()
    assert world.refuse(commands.RetryTask, world.into(status), reason="again").code == "invalid_transition"


@pytest.mark.parametrize("reason", ["", " ", "x" * 513])
def test_a_retry_needs_a_reason(reason: str) -> None:
    world = World()
    assert world.refuse(commands.RetryTask, world.into("done"), reason=reason).kind == "invalid"
