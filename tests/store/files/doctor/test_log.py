"""Doctor and the log: what is told, what is healed from the files, and what is never cut."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aof.errors import AofError, LogDamaged, LogPoisoned
from aof.kernel.events import Event
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.upkeep import diagnose
from aof.store.files.log.reader import Reader
from tests.support.desk import Desk
from tests.support.diagnosis import DONE, GONE, LAID_OUT, RUNNING, WAITING, codes, diagnosed, heals
from tests.support.invariants import check_invariants, check_it_goes_on


def log_of(desk: Desk) -> Path:
    return desk.root / "events/2026-03-02.jsonl"


@pytest.mark.parametrize("damage", ["changed", "taken out", "put in", "garbage"])
def test_a_broken_chain_is_told_and_never_cut(desk: Desk, damage: str) -> None:
    desk.store.close()
    path = log_of(desk)
    lines = path.read_bytes().splitlines(keepends=True)
    match damage:
        case "changed":
            lines[4] = lines[4].replace(b"tester", b"ghost!")
        case "taken out":
            del lines[3:6]
        case "put in":
            lines.insert(4, lines[2])
        case "garbage":
            lines[4] = b"\x00" * len(lines[4])
    path.write_bytes(b"".join(lines))
    before = desk.contents()
    for fix in (False, True):
        told = diagnosed(desk, fix=fix)
        assert (told.ok, codes(told.problems)) == (False, ["log_damaged"])
        assert "backup" in told.problems[0].fix
        assert desk.contents() == before


def test_a_poisoned_log_is_written_anew_and_opened_again(desk: Desk) -> None:
    state = desk.root / "locks/log"
    state.write_bytes(state.read_bytes().replace(b"sound ", b"poisoned ", 1)[:64])
    desk.reopen()
    with pytest.raises(LogPoisoned):
        desk.fabric.edit(WAITING, title="Another")
    data, inode = log_of(desk).read_bytes(), log_of(desk).stat().st_ino
    heals(desk, "log_poisoned")
    assert log_of(desk).read_bytes() == data
    assert log_of(desk).stat().st_ino != inode, "the bytes are in a new place"
    assert desk.reopen().edit(WAITING, title="Another").updated_fields == ("title",)
    check_it_goes_on(desk.root)


@pytest.mark.parametrize("damage", ["the files deleted", "the folder deleted", "cut", "emptied"])
@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_log_that_lost_events_is_healed_from_the_files(desk: Desk, damage: str, *, checkpointed: bool) -> None:
    if checkpointed:
        desk.store.checkpoint()
    files = {path: path.read_bytes() for path in desk.root.glob("tasks/*/*.md")}
    records = {task_id: desk.fabric.get(task_id) for task_id in (WAITING, RUNNING, DONE, LAID_OUT, GONE)}
    desk.store.close()
    lines = log_of(desk).read_bytes().splitlines(keepends=True)
    match damage:
        case "the files deleted":
            log_of(desk).unlink()
        case "the folder deleted":
            shutil.rmtree(desk.root / "events")
        case "cut":
            log_of(desk).write_bytes(b"".join(lines[:3]))
        case "emptied":
            log_of(desk).write_bytes(b"")
    if checkpointed or damage == "the folder deleted":
        with pytest.raises(AofError) as refusal:
            desk.reopen()
        assert refusal.value.code in {"log_damaged", "no_data_directory"}
    assert codes(diagnosed(desk).problems) == ["log_lacks_events"]
    healed = diagnosed(desk, fix=True)
    assert healed.ok, healed.problems
    desk.reopen()
    for task_id, before in records.items():
        after = desk.fabric.get(task_id)
        for name in ("title", "status", "lease", "retry", "archived", "body", "created_at"):
            assert getattr(after, name) == getattr(before, name), name
        assert after.rev > before.rev or (damage, task_id) == ("cut", WAITING), "no number is given twice"
    assert "priority: high   # mine" in desk.file(LAID_OUT).read_text()
    assert files.keys() == set(desk.root.glob("tasks/*/*.md"))
    assert desk.fabric.progress(RUNNING, agent="ada", text="on").task_id == RUNNING
    assert desk.fabric.doctor().ok


def test_a_directory_that_was_put_back_as_a_whole_is_taken_over_with_one_line(
    desk: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk.store.close()
    shutil.copytree(desk.root, tmp_path / "backup")
    desk.reopen().create("Later")
    desk.store.checkpoint()
    desk.store.close()
    for name in ("tasks", "events", "runs", "archive"):
        shutil.rmtree(desk.root / name)
        shutil.copytree(tmp_path / "backup" / name, desk.root / name)
    desk.reopen()
    assert [line for line in caplog.messages if "replaced as a whole" in line]
    assert desk.fabric.doctor().ok
    desk.store.close()
    check_it_goes_on(desk.root)


def test_a_file_from_another_directory_is_put_into_the_log(desk: Desk, tmp_path: Path) -> None:
    other = Desk(tmp_path / "other")
    other.clock.time += 24 * 3_600_000
    task_id = other.create("From elsewhere")
    shutil.copy(other.file(task_id), desk.file(task_id, "ready"))
    desk.reopen()
    assert "doctor" in desk.refused(task_id).hint
    heals(desk, "task_not_in_log")
    assert desk.reopen().get(task_id).title == "From elsewhere"
    check_invariants(desk.root, edited=True)


def test_a_list_does_not_show_what_was_never_proven_durable(desk: Desk) -> None:
    """An event that only the log has, behind a failed flush, is not an answer; what is known already still is."""
    known = desk.fabric.list()
    unproven = desk.create("Never flushed")
    state = desk.root / "locks/log"
    state.write_bytes(state.read_bytes().replace(b"sound ", b"poisoned ", 1)[:64])
    desk.reopen()
    with pytest.raises(LogPoisoned) as refusal:
        desk.fabric.list()
    assert "doctor --fix" in refusal.value.hint
    heals(desk, "log_poisoned")
    assert [row.id for row in desk.reopen().list().tasks] == [*(row.id for row in known.tasks), unproven]


@pytest.mark.parametrize("lost", ["runs", "locks/heads", "index"])
def test_the_log_is_not_read_once_more_for_every_task_that_something_is_wrong_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """With thousands of tasks doctor would seem to hang, just when somebody needs it most."""
    read: list[int] = []
    of_tasks = Reader.of_tasks

    def counted(self: Reader, *given: Any) -> Iterator[Event]:
        read.append(1)
        return of_tasks(self, *given)

    def readings(count: int) -> int:
        root = Path(init_data_dir(tmp_path / f"{count}/.aof")[0])
        with open_fabric(root, actor="pm") as fabric:
            for _ in range(count):
                fabric.claim(fabric.create("Work", review=False).task_id, agent="ada")
            fabric.list()
        if lost == "index":
            with closing(sqlite3.connect(root / "index.sqlite")) as database, database:
                database.execute("UPDATE tasks SET record = json_set(record, '$.title', 'Wrong')")
        else:
            shutil.rmtree(root / lost)
        read.clear()
        assert not diagnose(root).ok
        assert diagnose(root, fix=True).ok
        return len(read)

    monkeypatch.setattr(Reader, "of_tasks", counted)
    assert readings(12) == readings(4)


@pytest.mark.parametrize(
    "make",
    [os.mkdir, os.mkfifo, lambda path: os.symlink("nowhere", path), lambda path: os.symlink("../aof.toml", path)],
    ids=["dir", "pipe", "link", "link to a file"],
)
@pytest.mark.parametrize("day", ["2026-03-02", "2099-01-01", "2026-03-02.0123456789ab"])
def test_what_is_no_file_in_the_place_of_a_log_is_told_and_nobody_hangs_on_it(
    desk: Desk, make: Callable[[str], None], day: str
) -> None:
    desk.fabric.create("One")
    path = desk.root / f"events/{day}.jsonl"
    kept = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    make(os.fspath(path))
    with pytest.raises(LogDamaged, match="is not a file"):
        desk.fabric.create("Two")
    (problem,) = diagnosed(desk).problems
    assert (problem.code, problem.path) == ("log_damaged", f"events/{day}.jsonl")
    assert not diagnosed(desk, fix=True).ok
    path.rmdir() if path.is_dir() else path.unlink()
    if kept is not None:
        path.write_bytes(kept)
    assert diagnosed(desk, fix=True).ok
    desk.reopen().create("Two")
