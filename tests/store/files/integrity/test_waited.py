"""The table of tasks that others may wait for: it saves questions, and never hides a dependent."""

from __future__ import annotations

import shutil

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy
from aof.store.files.manifest import BLOCKER_SLOTS
from aof.store.files.store import FilesystemStore
from tests.support.room import Room


def finish(room: Room, task_id: str) -> int:
    """End the task; how many events of dependents came with it."""
    room.fabric.complete(task_id, actor="ada")
    return len([event for event in room.events(kind="task.dependency.updated") if event.payload.get("status")])


def test_the_end_of_a_task_that_nobody_waits_for_asks_no_index(room: Room) -> None:
    ids = [room.task(review=False) for _ in range(3)]
    room.reopen()
    (room.root / "index.sqlite").unlink(missing_ok=True)
    for task_id in ids:
        assert finish(room, task_id) == 0
    assert not (room.root / "index.sqlite").exists()


@pytest.mark.parametrize("lost", ["table", "cut table", "locks", "all zero under a new boot"])
def test_a_lost_table_hides_no_dependent(room: Room, lost: str) -> None:
    blocker = room.task(review=False)
    room.task(depends_on=[blocker])
    table = room.root / "locks/ends"
    assert table.stat().st_size == BLOCKER_SLOTS
    if lost == "table":
        table.unlink()
    elif lost == "cut table":
        table.write_bytes(b"")
    elif lost == "locks":
        room.fabric.close()
        shutil.rmtree(room.root / "locks")
        room.fabric = room.opened()
    else:
        room.fabric.close()
        table.write_bytes(bytes(BLOCKER_SLOTS))
        store = FilesystemStore(str(room.root), room.clock, boot_id=lambda: "after-the-power-cut")
        room.fabric = Fabric(store, room.clock, Policy(), "pm")
    assert finish(room, blocker) == 1
    later = room.task(review=False)
    room.task(depends_on=[later])
    assert finish(room, later) == 2


def test_every_way_to_add_an_edge_is_noticed(room: Room) -> None:
    blockers = [room.task(review=False) for _ in range(3)]
    room.task(depends_on=[blockers[0]])
    room.fabric.dep_add(room.task(), blockers[1])
    edited = room.file(room.task())
    edited.write_text(edited.read_text().replace("priority:", f'dependsOn: ["{blockers[2]}"]\npriority:', 1))
    room.fabric.sync()
    assert [finish(room, one) for one in blockers] == [1, 2, 3]
