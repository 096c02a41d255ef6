"""Every one of the twenty statuses, reached for real, and the same in the snapshot and in `show`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aof.api.fabric import Fabric
from aof.kernel.kinds import BlockedKind
from aof.runs.model import Run
from aof.testing import FakeClock
from tests.support.portable import STATUSES, Camera
from tests.support.requirements import requirement
from tests.support.room import Room


class Driver:
    """Brings a task into a status."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.fabric: Fabric = room.fabric
        self.clock: FakeClock = room.clock

    def draft(self) -> str:
        return self.room.task("backlog", metadata={"draft": True})

    def accepted(self) -> str:
        return self.room.task("backlog")

    def queued(self) -> str:
        return self.room.task()

    def preparing(self) -> str:
        return self.room.task("in-progress")

    def running(self) -> str:
        task_id = self.room.task("in-progress")
        self.fabric.heartbeat(task_id, agent="ada")
        return task_id

    def waiting_input(self) -> str:
        return self._held("waiting_input")

    def waiting_permission(self) -> str:
        return self.room.task("review")

    def waiting_resource(self) -> str:
        return self._held("waiting_resource")

    def blocked(self) -> str:
        blocker = self.room.task()
        task_id = self.room.task(depends_on=[blocker])
        self.fabric.cancel(blocker)
        return task_id

    def _held(self, kind: BlockedKind) -> str:
        task_id = self.room.task("in-progress")
        self.fabric.block(task_id, reason="it is missing", kind=kind)
        return task_id

    def paused(self) -> str:
        task_id = self.running()
        self.fabric.pause(task_id, reason="not today")
        return task_id

    def retrying(self) -> str:
        task_id = self.room.task("in-progress")
        self.fabric.fail(task_id, agent="ada")
        return task_id

    def cancelling(self) -> str:
        """Its worker has a host, which has not stopped it yet."""
        task_id = self.room.task()
        self.fabric.claim(task_id, agent="ada", worker="process")
        self.fabric.cancel(task_id)
        return task_id

    def cancelled(self) -> str:
        task_id = self.cancelling()
        self.fabric.settle(task_id)
        return task_id

    def timed_out(self) -> str:
        task_id = self.room.task("in-progress")
        self.fabric.fail(task_id, cause="timed_out", retryable=False, agent="ada")
        return task_id

    def failed(self) -> str:
        return self.room.task("deadletter")

    def lost(self) -> str:
        task_id = self.room.task()
        self.fabric.claim(task_id, agent="ada", ttl=60)
        self.clock.sleep(61)
        return task_id

    def completed(self) -> str:
        return self.room.task("done")

    def archived(self) -> str:
        task_id = self.room.task("done")
        self.fabric.archive(task_id)
        return task_id

    def stale(self) -> str:
        """A person has edited the file, and nothing has imported that yet."""
        path = self.room.file(task_id := self.room.task())
        path.write_text(path.read_text().replace("title:", "owner: lea\ntitle:"))
        return task_id

    def unknown(self) -> str:
        self.room.file(task_id := self.room.task()).write_text("---\n{no: [yaml\n---\n")
        return task_id


@requirement("task.record.status", "task.status.mapping-total")
@pytest.mark.parametrize("status", STATUSES)
def test_a_task_can_be_driven_into_each_status_and_every_view_says_so(room: Room, status: str) -> None:
    drive: Callable[[], str] = getattr(Driver(room), status)
    task_id = drive()
    camera = Camera(room)
    task = camera.task(task_id)
    assert task["status"] == status
    summary = camera.view(archived=True)["taskSummary"]
    assert summary["byStatus"][status] >= 1
    if status not in ("stale", "unknown"):  # `show` imports an edit first, and refuses what it cannot read
        assert room.normalized(task_id) == status
    if status in ("timed_out", "failed", "lost"):
        assert task["lastError"]["code"]
    if status not in ("draft", "accepted", "preparing", "running", "completed", "archived"):
        assert task["statusReason"]


def test_a_lost_worker_is_never_taken_for_a_success(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    driver = Driver(room)
    task_id = driver.lost()
    fabric.recover()
    assert Camera(room).status(task_id) == "retrying"
    clock.sleep(1000)
    assert Camera(room).status(task_id) == "queued"
    runs: list[Run] = list(fabric.store.attempts(task_id))
    assert [run.status for run in runs] == ["expired"]
