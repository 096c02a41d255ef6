"""Runs one after another: attempts, recovery of what was left behind, retries."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.kernel import commands
from aof.kernel.model import Policy, millis
from aof.runs.results import backoff_ms
from aof.service.bootstrap import open_fabric
from aof.testing import FakeClock
from tests.support.messages import Post, report, update
from tests.support.processes import Worker
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.world import MINUTE, SECOND, World

# --- attempts: what is kept of each, how they are counted and timed, and that silence is not a success


def earlier(room: Room, task_id: str) -> dict[str, str]:
    """The digest of every file of the earlier attempts."""
    return {path: digest for path, digest in room.contents().items() if f"runs/{task_id}/attempts/" in path}


@requirement("task.attempts.kept", "task.attempts.count")
def test_earlier_attempts_stay_as_they_were_over_retries_crashes_and_restarts(room: Room, clock: FakeClock) -> None:
    task_id = room.task(max_attempts=20)

    def crash(pipe: Connection) -> None:
        with room.opened() as mine:
            claimed = mine.claim(task_id, agent="ada", ttl=60)
            mine.progress(task_id, run=claimed.run_id, text="half way")
            pipe.send(claimed.attempt)
            pipe.recv()

    kept: dict[str, str] = {}
    for number in range(1, 10):
        clock.sleep(1000)
        if number % 3 == 0:
            worker = Worker(crash)
            assert worker.hear() == number
            worker.kill()
            clock.sleep(1000)
            room.fabric.recover()
        else:
            claimed = room.fabric.claim(task_id, agent="ada")
            assert claimed.attempt == number
            if number % 3 == 1:
                room.fabric.fail(task_id, run=claimed.run_id, code=f"error_{number}")
            else:
                room.fabric.complete(task_id, run=claimed.run_id, summary=f"result {number}")
                room.fabric.reject(task_id, blockers=["again"])
        now = earlier(room, task_id)
        assert kept.items() <= now.items(), "an earlier attempt was changed"
        kept = now
        room.reopen()
        assert [run["attempt"] for run in room.attempts(task_id)] == list(range(1, number + 1))

    folders = sorted(int(path.name) for path in (room.root / "runs" / task_id / "attempts").iterdir())
    assert folders == list(range(1, len(folders) + 1))
    assert len(folders) >= 8
    room.fabric.close()
    (room.root / "index.sqlite").unlink()
    room.fabric = room.opened()
    assert [run["attempt"] for run in room.attempts(task_id)] == list(range(1, 10))


@requirement("task.attempts.not-new-when")
def test_what_happens_during_a_run_makes_no_new_one(room: Room, fabric: Fabric, post: Post) -> None:
    task_id = room.task(agent="ada")
    run = fabric.claim(task_id, agent="ada", key="k").run_id
    again, done = update(task_id, progress="half way"), report(task_id)
    for number in range(100):
        fabric.heartbeat(task_id, run=run)
        fabric.heartbeat(task_id, run=run, ttl=60 + number)
        fabric.progress(task_id, run=run, text=f"step {number}")
        fabric.update(task_id, run=run, body=f"Body {number}.\n")
        fabric.edit(task_id, title=f"Title {number}", priority="high" if number % 2 else "low")
        assert post.send(again, run=run).outcome in ("accepted", "noop")
        assert fabric.claim(task_id, agent="ada", key="k").run_id == run
    for _ in range(100):
        assert post.send(done, run=run).outcome in ("accepted", "noop")
    assert [one["runId"] for one in room.attempts(task_id)] == [run]
    assert len(room.events(task_id, "task.attempt.started")) == 1
    assert (room.front(task_id)["lease"]["epoch"], fabric.get(task_id).retry.attempts) == (1, 1)


@requirement("task.attempts.timing")
def test_an_attempt_begins_with_its_claim_and_ends_however_it_ends(
    room: Room, fabric: Fabric, clock: FakeClock
) -> None:
    def times() -> list[tuple[str | None, str | None]]:
        return [(run["startedAt"][11:19], (run.get("endedAt") or "")[11:19] or None) for run in room.attempts(task_id)]

    task_id = room.task(review=False)
    fabric.claim(task_id, agent="ada", ttl=30)
    assert times() == [("09:00:00", None)]
    clock.sleep(40)
    fabric.recover()
    assert times() == [("09:00:00", "09:00:40")]

    clock.sleep(60)
    run = fabric.claim(task_id, agent="ada").run_id
    assert times()[1:] == [("09:01:40", None)]
    clock.sleep(5)
    fabric.complete(task_id, run=run)
    assert times() == [("09:00:00", "09:00:40"), ("09:01:40", "09:01:45")]


@requirement("task.attempts.completion-summary")
def test_no_decision_is_taken_from_the_wording_of_a_summary(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False)
    said = "All is done, complete and approved."
    fabric.complete(task_id, agent="ada", outcome="blocked", blockers=["no key"], summary=said)
    assert fabric.get(task_id).status == "blocked"
    assert room.normalized(task_id) == "blocked"
    assert fabric.show(task_id)["result"]["notes"] == said


@requirement("task.anti-pattern.history-survives-retry")
def test_every_earlier_error_can_be_read_under_its_own_run(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task(max_attempts=9, review=False)
    runs = [fabric.claim(task_id, agent="ada").run_id]
    fabric.fail(task_id, run=runs[-1], code="tests_failed", message="3 of 20")
    clock.sleep(1000)
    runs.append(fabric.claim(task_id, agent="ada").run_id)
    fabric.fail(task_id, run=runs[-1], code="run_limit", message="after an hour", cause="timed_out")
    clock.sleep(1000)
    runs.append(fabric.claim(task_id, agent="ada", ttl=10).run_id)
    clock.sleep(1000)
    fabric.recover()
    clock.sleep(1000)
    runs.append(fabric.claim(task_id, agent="ada").run_id)
    fabric.complete(task_id, run=runs[-1], summary="at last")
    fabric.archive(task_id)

    attempts = room.attempts(task_id)
    assert [run["runId"] for run in attempts] == runs
    errors = [run.get("error") for run in attempts]
    assert [error and (error["code"], error.get("cause", "failed"), error["runId"]) for error in errors] == [
        ("tests_failed", "failed", runs[0]),
        ("run_limit", "timed_out", runs[1]),
        ("stale_heartbeat", "lost", runs[2]),
        None,
    ]
    assert [error["message"] for error in errors[:2] if error] == ["3 of 20", "after an hour"]


@requirement("task.anti-pattern.lost-is-no-success")
@pytest.mark.parametrize("end", ["killed", "exits with code 0"])
def test_a_worker_that_is_gone_without_a_report_has_not_succeeded(room: Room, clock: FakeClock, end: str) -> None:
    task_id = room.task(review=False)

    def work(pipe: Connection) -> None:
        mine = room.opened()
        run = mine.claim(task_id, agent="ada", ttl=60).run_id
        mine.progress(task_id, run=run, text="all done", percent=100)
        pipe.send(run)
        if end == "killed":
            pipe.recv()
        os._exit(0)

    seen = set()
    for _ in range(3):
        clock.sleep(1000)
        worker = Worker(work)
        worker.hear()
        if end == "killed":
            worker.kill()
        worker.end()
        clock.sleep(61)
        assert room.normalized(task_id) == "lost"
        room.fabric.recover()
        seen.add(room.normalized(task_id))

    assert seen == {"retrying", "lost"}
    assert room.fabric.get(task_id).status == "deadletter"
    assert not {to for _, to in room.moves(task_id)} & {"review", "done"}


@requirement("aof1.resume.heartbeat-ttl")
@pytest.mark.parametrize(("setting", "own", "seconds"), [(None, None, 300), (40, None, 40), (40, 7, 7), (None, 7, 7)])
def test_a_lease_lasts_as_long_as_the_task_or_the_settings_say(
    room: Room, clock: FakeClock, setting: int | None, own: int | None, seconds: int
) -> None:
    if setting is not None:
        (room.root / "aof.toml").write_text(f"schemaVersion = 1\n[lease]\nttl = {setting}\n")
    with open_fabric(room.root, clock=clock, actor="pm") as fabric:
        task_id = fabric.create("Timed", metadata={"leaseTtlMs": own * 1000} if own else {}).task_id
        fabric.claim(task_id, agent="ada")
        for _ in range(2):
            beat = room.run_file(task_id, "run_heartbeat")
            assert millis(beat["expiresAt"]) - millis(beat["lastHeartbeat"]) == seconds * 1000
            clock.sleep(seconds - 0.001)
            assert fabric.recover() == ()
            fabric.heartbeat(task_id, agent="ada")
        clock.sleep(seconds - 0.001)
        assert fabric.recover() == ()
        clock.sleep(0.001)
        assert [one.task_id for one in fabric.recover()] == [task_id]


@requirement("task.attempts.new-when")
def test_each_new_attempt_says_why_it_was_made(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task(max_attempts=9, review=False)
    fabric.fail(task_id, run=fabric.claim(task_id, agent="ada").run_id)
    clock.sleep(1000)
    fabric.claim(task_id, agent="ada", ttl=60)
    clock.sleep(61)
    fabric.recover()
    clock.sleep(1000)
    fabric.release(task_id, run=fabric.claim(task_id, agent="ada").run_id)
    fabric.edit(task_id, routing={"agent": "bob"})
    fabric.complete(task_id, run=fabric.claim(task_id, agent="bob").run_id)
    fabric.retry(task_id, reason="once more")
    fabric.edit(task_id, title="Another title")
    fabric.claim(task_id, agent="bob")
    attempts = room.attempts(task_id)
    assert [one["cause"] for one in attempts] == ["first", "retry", "lost_worker", "rerouted", "rerun"]
    assert len({one["runId"] for one in attempts}) == 5


# --- recovery by reported outcome, and by nothing else


def test_a_lease_ends_exactly_at_its_time_and_not_before() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.later(5 * MINUTE - 1)
    assert world.act(commands.Expire, task, "aof").drafts == ()
    world.later(1)
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


# --- failures, the wait before the next try, the end of all tries, and trying again by hand


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
