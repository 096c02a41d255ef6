"""The events of the portable format, in the log and for those who follow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.model import STATUSES, Policy, SchedulingPolicy
from aof.scheduler.tick import Tick
from aof.testing import FakeClock
from tests.support.command_line import Aof
from tests.support.delegated import run_at
from tests.support.handoffs import charted, start
from tests.support.messages import Post, report, request
from tests.support.portable import EVENTS, Camera, Tape
from tests.support.portable import STATUSES as NORMALIZED
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.scripted_peer import ScriptedPeer, serving

# --- every portable event: an operation emits it exactly once, also when it is asked again, restarted and looked after


Asked = Callable[[Fabric], object]  # the operation, which may be asked again
_DAY = 86_400.0


@pytest.fixture
def tape(room: Room) -> Tape:
    """What is heard of the room."""
    return Tape(room)


class Driver:
    """For each event: a task, and the operation that emits it. All are asked with a key, so that twice is once."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def of(self, name: str) -> tuple[str, Asked]:
        """The task whose event it is, and the operation."""
        found: tuple[str, Asked] = getattr(self, name.removeprefix("task.").replace(".", "_"))()
        return found

    def created(self) -> tuple[str, Asked]:
        made = self.room.task().rpartition("-")
        following = f"{made[0]}-{int(made[2]) + 1:03}"
        return following, lambda fabric: fabric.create("New", key="k")

    accepted = created
    queued = created

    def started(self) -> tuple[str, Asked]:
        task_id = self.room.task()
        return task_id, lambda fabric: fabric.claim(task_id, agent="ada", key="k")

    attempt_started = started

    def updated(self) -> tuple[str, Asked]:
        task_id = self.room.task()
        return task_id, lambda fabric: fabric.edit(task_id, title="Another", priority="high", key="k")

    def progress(self) -> tuple[str, Asked]:
        task_id = self.room.task("in-progress")
        return task_id, lambda fabric: fabric.progress(task_id, percent=50, phase="verifying", agent="ada", key="k")

    def waiting(self) -> tuple[str, Asked]:
        task_id = self.room.task("in-progress")
        return task_id, lambda fabric: fabric.block(task_id, reason="which?", kind="waiting_input", key="k")

    def blocked(self) -> tuple[str, Asked]:
        task_id = self.room.task()
        return task_id, lambda fabric: fabric.block(task_id, reason="no key", key="k")

    def paused(self) -> tuple[str, Asked]:
        task_id = self.room.task()
        return task_id, lambda fabric: fabric.pause(task_id, key="k")

    def resumed(self) -> tuple[str, Asked]:
        task_id, pause = self.paused()
        pause(self.room.fabric)
        return task_id, lambda fabric: fabric.resume(task_id, key="r")

    def retrying(self) -> tuple[str, Asked]:
        task_id = self.room.task("done")
        return task_id, lambda fabric: fabric.retry(task_id, reason="again", key="k")

    def cancel_requested(self) -> tuple[str, Asked]:
        task_id = self.room.task()
        return task_id, lambda fabric: fabric.cancel(task_id, key="k")

    cancelled = cancel_requested

    def timed_out(self) -> tuple[str, Asked]:
        return self._fails(cause="timed_out")

    def failed(self) -> tuple[str, Asked]:
        return self._fails(cause="failed", retryable=False)

    attempt_failed = failed

    def _fails(self, **how: Any) -> tuple[str, Asked]:
        task_id = self.room.task("in-progress")
        run = self.room.fabric.get(task_id).last_run
        return task_id, lambda fabric: fabric.fail(task_id, run=run, key="k", **how)

    def lost(self) -> tuple[str, Asked]:
        task_id = self.room.task("in-progress")
        self.room.clock.sleep(1000)
        return task_id, lambda fabric: fabric.recover()

    def completed(self) -> tuple[str, Asked]:
        task_id = self.room.task("in-progress", review=False)
        run = self.room.fabric.get(task_id).last_run
        return task_id, lambda fabric: fabric.complete(task_id, run=run, key="k")

    attempt_completed = completed

    def archived(self) -> tuple[str, Asked]:
        task_id = self.room.task("done")
        return task_id, lambda fabric: fabric.archive(task_id, key="k")

    def delegated(self) -> tuple[str, Asked]:
        task_id = self.room.task()
        return task_id, lambda fabric: fabric.create("Part of it", parent_id=task_id, key="k")

    def dependency_updated(self) -> tuple[str, Asked]:
        task_id, blocker = self.room.task(), self.room.task()
        return task_id, lambda fabric: fabric.dep_add(task_id, blocker, key="k")


@pytest.mark.parametrize("name", EVENTS)
def test_an_operation_emits_its_event_once_however_often_it_is_asked(room: Room, tape: Tape, name: str) -> None:
    task_id, ask = Driver(room).of(name)
    before = room.fabric.store.head()
    ask(room.fabric)

    def heard() -> list[int]:
        found = [line for line in tape.lines() if line["sequence"] > before and line["type"] == name]
        return [line["sequence"] for line in found if line["taskId"] == task_id]

    once = heard()
    assert len(once) == 1, name
    ask(room.reopen())
    room.reopen().recover()
    room.fabric.sync()
    room.fabric.store.index.rebuild()  # type: ignore[attr-defined]
    assert heard() == once
    assert len({line["eventId"] for line in tape.lines()}) == len(tape.lines())


@requirement("task.events.archived")
def test_a_task_is_archived_by_hand_or_by_retention_with_one_event_each(
    room: Room, tape: Tape, fabric: Fabric, clock: FakeClock
) -> None:
    by_hand, done, cancelled, dead = (room.task(status) for status in ("done", "done", "cancelled", "deadletter"))
    fabric.archive(by_hand)
    policy = Policy(scheduling=SchedulingPolicy(archive_ms=30 * 86_400_000))
    keeping = Fabric(fabric.store, clock, policy, "pm")
    assert keeping.tick().actions == ()
    clock.sleep(20 * _DAY)
    late = room.task("done")
    clock.sleep(10 * _DAY + 60)
    told = keeping.tick()
    assert [(one.action, one.task_id) for one in told.actions] == [("archive", done), ("archive", cancelled)]
    assert keeping.tick().actions == ()
    for task_id in (by_hand, done, cancelled):
        (line,) = tape.lines(task_id, "task.archived")
        assert (line["status"], line["nativeStatus"]) == ("archived", "archive")
        assert room.file(task_id).parent.parent.name == "archive"
    assert tape.lines(done, "task.archived")[0]["payload"]["reason"].startswith("done since 2026-03-02")
    assert [fabric.get(one).archived for one in (late, dead)] == [False, False], "a dead one waits for a person"
    assert told.next_at is not None
    assert told.next_at.startswith("2026-04-21"), "when the next one is due"


def test_finished_tasks_are_archived_in_bounded_numbers_and_only_where_the_settings_say_so(
    room: Room, fabric: Fabric, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aof.scheduler.tick._AT_ONCE", 2)
    for _ in range(3):
        room.task("cancelled")
    clock.sleep(400 * _DAY)
    assert fabric.tick().actions == ()
    scheduler = Fabric(fabric.store, clock, Policy(scheduling=SchedulingPolicy(archive_ms=0)), "pm").services
    tick = Tick(scheduler.environment, scheduler.dispatcher)
    assert [len(tick.ticked().actions) for _ in range(3)] == [2, 1, 0]


@requirement("task.events.delegated")
def test_what_is_given_to_a_child_a_receiver_a_peer_or_a_worker_names_its_target(
    room: Room, tape: Tape, post: Post, clock: FakeClock
) -> None:
    fabric = room.fabric
    parent, other = room.task(), room.task()
    child = room.task(parent_id=parent)
    assert [line["payload"] for line in tape.lines(parent, "task.delegated")] == [
        {"kind": "child", "targetId": child, "parentTaskId": parent}
    ]
    fabric.claim(parent, agent="ada")
    post.takes(request(other, parent, "ada", "bob"))
    (by_message,) = tape.lines(parent, "task.delegated")[1:]
    (handoff,) = fabric.handoff_list()
    assert by_message["payload"] == {
        "kind": "handoff",
        "targetId": other,
        "handoffId": handoff.id,
        "agent": "bob",
        "parentTaskId": parent,
    }
    team = charted(fabric.store, clock)
    handed = team.create("Work").task_id
    team.claim(handed, agent="wes")
    started = start(team, "delegation", handed, "wes", "bea")
    (line,) = tape.lines(handed, "task.delegated")
    assert (line["payload"]["kind"], line["payload"]["targetId"]) == ("handoff", "bea")
    assert line["payload"]["handoffId"] == started.id

    task_id = room.task()
    run = fabric.claim(task_id, agent="ada", worker="process").run_id
    (line,) = tape.lines(task_id, "task.delegated")
    assert (line["runId"], line["payload"]) == (run, {"kind": "worker", "targetId": "ada", "worker": "process"})
    pulled = room.task("in-progress")
    assert tape.lines(pulled, "task.delegated") == [], "ada took it by itself"
    with serving(ScriptedPeer("completed")) as peer:
        remote = room.task()
        run_at(fabric, remote, peer.address)
    told = [line["payload"] for line in tape.lines(remote, "task.delegated")]
    assert [one["kind"] for one in told] == ["worker", "peer"]
    assert (told[1]["targetId"], told[1]["agent"]) == ("remote-1", f"pia {peer.address}")


# --- the portable log: which events come, when, how often and with what in them


@requirement("task.events.envelope", "task.status.native")
def test_every_line_has_the_same_envelope_however_often_it_is_read(
    room: Room, tape: Tape, fabric: Fabric, aof: Aof
) -> None:
    ids = [room.task(status) for status in STATUSES]
    fabric.archive(ids[5])
    lines = tape.lines()
    required = ("type", "eventId", "timestamp", "sequence", "taskId", "status", "nativeStatus", "payload")
    assert all(name in line for line in lines for name in required)
    sequences = [line["sequence"] for line in lines]
    assert sequences == sorted(set(sequences))
    assert len({line["eventId"] for line in lines}) == len(lines)
    assert {line["status"] for line in lines} <= set(NORMALIZED)
    assert {line["nativeStatus"] for line in lines} == {*STATUSES, "archive"}
    fabric.store.index.rebuild()  # type: ignore[attr-defined]
    assert tape.lines() == lines
    assert aof("log", "--format", "agentruntime").data["events"] == lines
    room.reopen()
    assert tape.lines() == lines
    last = {line["taskId"]: line for line in lines}
    view = {task["taskId"]: task for task in fabric.snapshot(at=sequences[-1], archived=True)["tasks"]}
    assert {one: (line["status"], line["nativeStatus"]) for one, line in last.items()} == {
        one: (task["status"], task["nativeStatus"]) for one, task in view.items()
    }


@requirement("task.events.ids")
def test_every_attempt_event_joins_an_attempt_of_the_snapshot(room: Room, tape: Tape) -> None:
    for status in STATUSES:
        room.task(status)
    camera = Camera(room)
    known = {one["runId"]: one for task in camera.tasks().values() for one in task["attempts"]}
    lines = [line for line in tape.lines() if line["type"].startswith("task.attempt.")]
    assert {line["runId"] for line in lines} == set(known)
    for line in lines:
        assert line["runId"] == line["attemptId"] == known[line["runId"]]["attemptId"]
        assert line["taskId"][5:] in line["runId"]
    assert all(line["taskId"] for line in tape.lines())


@requirement("task.events.accepted")
def test_a_task_is_accepted_at_its_creation_or_at_the_end_of_its_draft(tape: Tape, fabric: Fabric, room: Room) -> None:
    plain, draft = room.task(), room.task("backlog", metadata={"draft": True})
    assert tape.types(plain) == ["created", "accepted", "queued"]
    assert tape.types(draft) == ["created"]
    fabric.edit(draft, title="Better said")
    assert tape.count(draft, "accepted") == 0
    fabric.edit(draft, metadata={"draft": None})
    fabric.update(draft, status="ready")
    assert tape.types(draft) == ["created", "updated", "updated", "accepted", "queued"]
    assert tape.count(plain, "accepted") == 1


@requirement("task.events.queued")
def test_a_task_is_queued_each_time_that_it_waits_for_a_run(
    room: Room, tape: Tape, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task("backlog")
    assert tape.count(task_id, "queued") == 0
    counts = []

    def late() -> None:
        clock.sleep(61)
        fabric.recover()

    for step in (
        lambda: fabric.update(task_id, status="ready"),
        lambda: fabric.release(task_id, run=fabric.claim(task_id, agent="ada").run_id),
        lambda: fabric.claim(task_id, agent="bob", ttl=60),
        late,
        lambda: fabric.block(task_id, reason="waits"),
        lambda: fabric.unblock(task_id),
    ):
        step()
        counts.append(tape.count(task_id, "queued"))
    assert counts == [1, 2, 2, 3, 3, 4]
    assert tape.count(room.task(), "queued") == 1


@requirement("task.events.started")
def test_a_task_is_started_once_and_its_attempts_each_time(
    room: Room, tape: Tape, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task()
    for _ in range(3):
        fabric.fail(task_id, run=fabric.claim(task_id, agent="ada").run_id)
        clock.sleep(1000)
    counted = Counter(tape.types(task_id))
    assert (counted["started"], counted["attempt.started"], counted["retrying"]) == (1, 3, 2)
    assert tape.types(task_id).index("started") < tape.types(task_id).index("attempt.started")


@requirement("task.events.updated")
def test_an_edit_gives_one_event_with_what_it_changed(room: Room, tape: Tape, fabric: Fabric) -> None:
    task_id = room.task()
    edits: tuple[tuple[str, Any], ...] = (
        ("title", "Another"),
        ("description", "Other words.\n"),
        ("priority", "high"),
        ("owner", "lea"),
        ("routing", {"agent": "ada"}),
        ("constraints", {"network": "none"}),
        ("profile", {"latency": "low"}),
        ("metadata", {"estimate": 3}),
    )
    for number, (name, value) in enumerate(edits, 1):
        fabric.edit(task_id, **{name: value})
        lines = tape.lines(task_id, "task.updated")
        assert (len(lines), lines[-1]["payload"]["changed"]) == (number, [name])
        fabric.edit(task_id, **{name: value})
        assert tape.count(task_id, "updated") == number


@requirement("task.events.progress")
def test_each_report_is_one_event_and_a_heartbeat_is_none(room: Room, tape: Tape, fabric: Fabric) -> None:
    task_id = room.task("in-progress")
    for percent in (10, 20, 30):
        fabric.progress(task_id, percent=percent, agent="ada")
    for _ in range(100):
        fabric.heartbeat(task_id, agent="ada")
    lines = tape.lines(task_id, "task.progress")
    assert [line["payload"] for line in lines] == [{"percent": percent} for percent in (10, 20, 30)]
    assert {line["runId"] for line in lines} == {fabric.get(task_id).last_run}


@requirement("task.events.waiting")
def test_a_task_that_begins_to_wait_says_for_what(room: Room, tape: Tape, fabric: Fabric) -> None:
    review = room.task("review")
    (line,) = tape.lines(review, "task.waiting")
    assert (line["payload"]["waitsFor"], line["status"]) == ("permission", "waiting_permission")
    for wait in ("input", "permission", "resource"):
        task_id = room.task()
        fabric.block(task_id, reason=f"needs {wait}", kind=f"waiting_{wait}")  # type: ignore[arg-type] # a word that is put together
        (line,) = tape.lines(task_id, "task.waiting")
        assert (line["payload"]["waitsFor"], line["payload"]["reason"]) == (wait, f"needs {wait}")
        assert tape.count(task_id, "blocked") == 0


@requirement("task.events.blocked")
def test_a_blocked_task_names_its_blocker_in_the_event(room: Room, tape: Tape, fabric: Fabric) -> None:
    by_hand, dead = room.task("blocked"), room.task()
    behind = room.task(depends_on=[dead])
    fabric.cancel(dead)
    (line,) = tape.lines(by_hand, "task.blocked")
    assert (line["payload"]["reason"], line["payload"]["by"]) == ("waits for the key", "pm")
    (line,) = tape.lines(behind, "task.blocked")
    assert line["payload"]["blockerId"] == dead


@requirement("task.events.paused", "task.events.resumed")
def test_a_pause_and_its_end_are_one_event_each(room: Room, tape: Tape, fabric: Fabric) -> None:
    task_id, early, held = room.task(), room.task("backlog"), room.task("blocked")
    for one in (task_id, early):
        fabric.pause(one, reason="holidays", actor="lea")
        fabric.pause(one, reason="holidays", actor="lea")
        (line,) = tape.lines(one, "task.paused")
        assert (line["payload"]["by"], line["payload"]["reason"]) == ("lea", "holidays")
        fabric.resume(one)
        fabric.resume(one)
    fabric.unblock(held)
    assert [line["payload"]["to"] for line in tape.lines(kind="task.resumed")] == ["ready", "backlog"]
    assert tape.types(held)[-1] == "queued"


@requirement("task.events.retrying")
def test_a_retry_says_why_which_attempt_and_when(room: Room, tape: Tape, fabric: Fabric) -> None:
    failed, done = room.task("in-progress"), room.task("done")
    fabric.fail(failed, code="tests_failed", agent="ada")
    fabric.retry(done, reason="better output")
    (line,) = tape.lines(failed, "task.retrying")
    assert (line["payload"]["reason"], line["payload"]["attempt"]) == ("tests_failed", 2)
    assert line["payload"]["notBefore"] > line["timestamp"]
    (line,) = tape.lines(done, "task.retrying")
    assert (line["payload"]["reason"], line["payload"]["attempt"]) == ("better output", 2)
    assert "notBefore" not in line["payload"], "at once"


@requirement("task.events.cancelled")
def test_a_cancellation_is_asked_for_before_it_is_one(room: Room, tape: Tape, fabric: Fabric) -> None:
    for status in ("backlog", "ready", "in-progress", "review", "blocked"):
        task_id = room.task(status)
        fabric.cancel(task_id, reason="superseded")
        heard = [one for one in tape.types(task_id) if one.startswith("cancel")]
        assert heard == ["cancel_requested", "cancelled"]
    slow = room.task()
    fabric.claim(slow, agent="ada", worker="process")
    fabric.cancel(slow)
    assert tape.count(slow, "cancelled") == 0
    fabric.settle(slow)
    assert tape.types(slow)[-1] == "cancelled"


@requirement("task.events.failed")
def test_a_task_has_failed_once_its_last_attempt_has(room: Room, tape: Tape, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task()
    for number in (1, 2, 3):
        assert tape.count(task_id, "failed") == 0
        fabric.fail(task_id, code=f"broke_{number}", run=fabric.claim(task_id, agent="ada").run_id)
        clock.sleep(1000)
    assert tape.count(task_id, "attempt.failed") == 3
    (line,) = tape.lines(task_id, "task.failed")
    assert (line["payload"]["error"]["code"], line["status"]) == ("broke_3", "failed")


@requirement("task.events.completed")
def test_only_what_has_come_to_done_is_completed(room: Room, tape: Tape, fabric: Fabric) -> None:
    for outcome in ("done", "needs_review", "partial", "blocked"):
        for review in (True, False):
            task_id = room.task("in-progress", review=review)
            fabric.complete(task_id, outcome=outcome, blockers=["x"] if outcome == "blocked" else [], agent="ada")
            done = fabric.get(task_id).status == "done"
            assert done == (outcome == "done" and not review)
            assert tape.count(task_id, "completed") == int(done)
            if fabric.get(task_id).status == "review":
                fabric.approve(task_id)
                assert tape.count(task_id, "completed") == 1
    assert {line["nativeStatus"] for line in tape.lines(kind="task.completed")} == {"done"}


@requirement("task.events.attempts")
def test_the_starts_and_ends_of_attempts_pair_off(room: Room, tape: Tape, clock: FakeClock) -> None:
    def end(how: str, fabric: Fabric, task_id: str, run: str) -> None:
        match how:
            case "complete":
                fabric.complete(task_id, run=run)
            case "fail":
                fabric.fail(task_id, run=run)
            case "time out":
                fabric.fail(task_id, run=run, code="too_late", cause="timed_out")
            case "expire":
                clock.sleep(1000)
                fabric.recover()
            case "cancel":
                fabric.cancel(task_id)
            case _:
                fabric.session_end(run=run)

    for how in ("complete", "fail", "time out", "expire", "cancel", "say nothing"):
        task_id = room.task()
        run = room.fabric.claim(task_id, agent="ada").run_id
        assert tape.types(task_id)[-1] == "attempt.started"
        end(how, room.reopen(), task_id, run)
        room.reopen().recover()
        lines = [line for line in tape.lines(task_id) if line["type"].startswith("task.attempt.")]
        expected = "task.attempt.completed" if how == "complete" else "task.attempt.failed"
        assert [line["type"] for line in lines] == ["task.attempt.started", expected], how
        assert {line["runId"] for line in lines} == {run}


@requirement("task.anti-pattern.no-early-completed")
def test_nothing_is_completed_before_the_last_commit(room: Room, tape: Tape, post: Post, aof: Aof) -> None:
    camera = Camera(room)
    task_id = post.running()
    post.takes(report(task_id))

    def nowhere() -> None:
        assert camera.status(task_id) != "completed"
        assert tape.count(task_id, "completed") == 0
        assert aof("board", "--once").data["byStatus"].get("done", 0) == 0
        assert room.fabric.show(task_id)["normalizedStatus"] != "completed"

    nowhere()
    post.fabric.session_end(agent="ada")
    assert room.fabric.get(task_id).status == "review"
    nowhere()
    post.fabric.approve(task_id)
    assert camera.status(task_id) == "completed"
    assert tape.types(task_id)[-1] == "completed"


def test_a_wrong_format_is_refused_with_the_right_call(aof: Aof) -> None:
    said = aof("log", "--format", "xml")
    assert said.code == 2
    assert "agentruntime" in said.error["hint"]
    assert aof("log", "--format", "native").data["events"] == []


def test_following_begins_with_the_past_and_ends_when_nothing_comes(room: Room, fabric: Fabric) -> None:
    one, two = room.task(), room.task("blocked")
    every = fabric.portable_log()["events"]
    assert list(fabric.portable_follow(timeout=0)) == every
    assert list(fabric.portable_follow(after=2, limit=3, timeout=0)) == every[-3:]
    assert list(fabric.portable_follow(limit=0, timeout=0)) == []
    assert list(fabric.portable_follow(two, type="task.blocked", timeout=0)) == every[-1:]
    following = fabric.portable_follow(after=every[-1]["sequence"], timeout=0)
    fabric.edit(one, title="News")
    assert [line["type"] for line in following] == ["task.updated"]
    with pytest.raises(AofError):
        list(fabric.portable_follow("999", timeout=0))


def test_the_last_so_many_events_can_be_asked_for(room: Room, fabric: Fabric) -> None:
    room.task()
    every = fabric.portable_log()["events"]
    assert fabric.portable_log(limit=2)["events"] == every[-2:]
    assert fabric.portable_log(limit=0)["events"] == []
    assert fabric.portable_log(after=every[0]["sequence"])["events"] == every[1:]
    room.refused("invalid", fabric.portable_log, limit=-1)


def test_only_known_names_are_used(room: Room, tape: Tape, fabric: Fabric) -> None:
    one, two = room.task(), room.task("done")
    fabric.link(one, "source_task", two)
    fabric.link(one, "parent", two)
    fabric.dep_add(one, two)
    assert tape.types(one)[-3:] == ["dependency.updated"] * 3
    assert {line["type"] for line in tape.lines()} <= set(EVENTS)


@requirement("task.events.dependency-updated")
def test_a_dependent_hears_once_of_every_change_of_its_edges(room: Room, tape: Tape, fabric: Fabric) -> None:
    blockers = {name: room.task(review=False) for name in ("done", "cancelled", "dead", "removed")}
    reviewed = room.task()
    waiting = room.task(depends_on=[blockers["done"]])
    for blocker in (blockers["cancelled"], blockers["dead"], blockers["removed"], reviewed):
        fabric.dep_add(waiting, blocker)
    assert tape.count(waiting, "dependency.updated") == 4
    fabric.complete(blockers["done"], actor="ada")
    fabric.complete(reviewed, actor="ada")
    fabric.cancel(blockers["cancelled"])
    fabric.fail(blockers["dead"], run=fabric.claim(blockers["dead"], agent="ada").run_id, retryable=False)
    fabric.approve(reviewed, actor="bob")
    fabric.retry(blockers["dead"], reason="again")
    fabric.dep_remove(waiting, blockers["removed"])
    changes = [line["payload"] for line in tape.lines(waiting, "task.dependency.updated")][4:]
    assert [(one.get("targetId"), one.get("status")) for one in changes[:-1]] == [
        (blockers["done"], "satisfied"),
        (blockers["cancelled"], "broken"),
        (blockers["dead"], "broken"),
        (reviewed, "satisfied"),
        (blockers["dead"], "active"),
    ]
    assert changes[-1]["removed"] == blockers["removed"]
    after = tape.lines(waiting, "task.dependency.updated")[-4]
    ended = tape.lines(blockers["dead"], "task.failed")[0]
    assert after["sequence"] == ended["sequence"] + 1, "in the same commit"
