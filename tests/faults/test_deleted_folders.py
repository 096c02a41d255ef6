"""Folders that somebody deletes below running processes, as `git clean -fdX` does: the log stays one history."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aof.errors import LockTimeout
from aof.service.bootstrap import open_fabric
from aof.service.upkeep import diagnose
from aof.store.files.locks import Locks, boot_id
from tests.support.clock import ManualClock
from tests.support.indexes import store_of
from tests.support.invariants import check_invariants, check_it_goes_on
from tests.support.log_bench import MONDAY, Bench, another, commit_of
from tests.support.verified import verify


def test_a_lock_that_is_deleted_under_its_holder_does_not_let_another_append(bench: Bench) -> None:
    """Each of the two would number its events after the same one, and the chain would be broken for good."""
    bench.append(MONDAY, "before")
    second = another(bench)
    outcomes: list[str] = []

    def build(last: int, previous: str) -> tuple[bytes, int, str]:
        Path(bench.paths.state).unlink()
        with pytest.raises(LockTimeout):
            second.append(MONDAY, "second")
        outcomes.append("waited")
        return commit_of("first")(last, previous)

    bench.log.append(MONDAY, build)
    second.append(MONDAY, "second")
    assert outcomes == ["waited"]
    assert bench.texts() == ["before", "first", "second"]
    verify(bench.reader)
    second.close()


FOLDERS = ("locks", "locks/heads", "tmp", "runs", "events/torn", "tasks/ready", "tasks/in-progress", "handoffs")


@pytest.mark.parametrize("folders", [*((name,) for name in FOLDERS), ("locks", "tmp", "index.sqlite")], ids="-".join)
def test_a_process_goes_on_where_somebody_has_deleted_folders(root: Path, folders: tuple[str, ...]) -> None:
    with open_fabric(root, actor="pm") as fabric:
        known = fabric.create("Before", review=False).task_id
        assert fabric.list().total == 1
        for name in folders:
            path = root / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        task_id = fabric.create("After", review=False).task_id
        for one in (task_id, known):
            run = fabric.claim(one, agent="ada").run_id
            fabric.progress(one, run=run, agent="ada", text="half")
            fabric.complete(one, run=run, agent="ada", summary="done")
        assert fabric.list().total == 2
    assert diagnose(root, fix=True).ok
    check_invariants(root, boot=boot_id())
    check_it_goes_on(root, boot=boot_id())


def test_a_folder_that_others_make_and_delete_meanwhile_is_made(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_fabric(root, actor="pm") as fabric:
        store = store_of(fabric)
        make_dir = store.disk.make_dir
        outcomes = [FileExistsError, FileNotFoundError]

        def raced(path: str) -> None:
            if outcomes:
                raise outcomes.pop()
            make_dir(path)

        shutil.rmtree(root / "locks")
        monkeypatch.setattr(store.disk, "make_dir", raced)
        store.make_folders()
        assert not outcomes
        assert (root / "locks/heads").is_dir()


def test_what_killed_processes_had_built_of_an_index_is_removed_with_the_next_one(root: Path) -> None:
    ended = subprocess.Popen(["true"])
    assert ended.wait(30) == 0
    dead, living = (root / f"tmp/index.sqlite.{pid}-0a0b0c0d-1" for pid in (ended.pid, os.getpid()))
    dead.write_bytes(b"half")
    living.write_bytes(b"half")
    (root / "index.sqlite").unlink(missing_ok=True)
    with open_fabric(root, actor="pm") as fabric:
        assert fabric.list().total == 0
    assert list((root / "tmp").iterdir()) == [living]


def test_a_lock_that_was_deleted_while_nobody_held_it_is_not_used_any_more(tmp_path: Path) -> None:
    """A process keeps its files open; the next one makes a new file, and both must mean the same lock."""
    first, second = (Locks(str(tmp_path), ManualClock(), 1.0) for _ in range(2))
    first.release([first.take("stripe-00")])
    (tmp_path / "stripe-00").unlink()
    held = second.take("stripe-00")
    assert first.take_free("stripe-00") is None
    second.release([held])
    assert first.take_free("stripe-00") is not None
    first.close()
    second.close()
