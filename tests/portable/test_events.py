"""Every portable event: an operation emits it exactly once, also when it is asked again, restarted and looked after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy, SchedulingPolicy
from aof.scheduler.tick import Tick
from aof.testing import FakeClock
from tests.support.delegated import run_at
from tests.support.handoffs import charted, start
from tests.support.messages import Post, request
from tests.support.portable import EVENTS, Tape
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.scripted_peer import ScriptedPeer, serving

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
