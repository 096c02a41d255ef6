"""Numbers for IDs after the counter is lost, and locks after a fork: what only shows when somebody has died."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from aof.store.files.locks import Locks
from aof.store.files.store import FilesystemStore
from tests.support.clock import ManualClock
from tests.support.disks import SteppingDisk
from tests.support.invariants import SAME_BOOT, fabric_on, open_store


@pytest.mark.parametrize("boot", [SAME_BOOT, "the next boot"])
@pytest.mark.parametrize("known_by", ["log", "folder", "archive", "runs"])
def test_a_lost_counter_is_rebuilt_from_all_that_knows_an_id(tmp_path: Path, known_by: str, boot: str) -> None:
    FilesystemStore.create(str(tmp_path / "data"), SteppingDisk())
    root = tmp_path / "data"
    store, clock = open_store(root), ManualClock()
    given = [fabric_on(store).create("One").task_id for _ in range(3)]
    day, highest = given[-1][5:15], 3
    store.close()
    if boot == SAME_BOOT:
        (root / "locks/counter").unlink()
    else:  # what a counter said before a power cut may be older than the log
        (root / "locks/counter").write_text(f"{SAME_BOOT} {day} 1".ljust(95) + "\n")
    if known_by == "log":
        for path in (root / "tasks").glob("*/TASK-*.md"):
            path.unlink()
    else:
        highest = 9
        place = {"folder": "tasks/backlog", "archive": "archive/tasks", "runs": "runs"}[known_by]
        (root / place / f"TASK-{day}-009{'' if known_by == 'runs' else '.md'}").mkdir()
    store = open_store(root, boot_id=lambda: boot)
    assert store.reserve_id(clock.now()) == f"TASK-{day}-{highest + 1:03d}"
    store.close()
    shutil.rmtree(root)


def test_a_child_does_not_keep_a_lock_that_its_parent_has_let_go_by_ending(tmp_path: Path) -> None:
    parent, other = (Locks(str(tmp_path), ManualClock(), 1.0) for _ in range(2))
    parent.take("stripe-00")
    reading, writing = os.pipe()
    telling, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(told, b"1")
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.read(telling, 1)
    parent.close()  # as the system does with the files of a process that is killed
    held = other.take_free("stripe-00")
    os.close(writing)
    os.waitpid(child, 0)
    for fd in (reading, telling, told):
        os.close(fd)
    assert held is not None
    other.close()
