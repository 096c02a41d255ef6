"""The real disk: each step that promises durability asks the system for it, of the right file.

The other tests stand in for this class, so only these see whether it keeps its word.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.store.files.disk import Disk


def flush(disk: Disk, path: Path) -> None:
    fd = disk.create(os.fspath(path))
    try:
        disk.append(fd, b"a commit\n")
        disk.flush(fd)
    finally:
        os.close(fd)


def write_durable(disk: Disk, path: Path) -> None:
    disk.write_durable(os.fspath(path), b"a checkpoint\n")


def write_private(disk: Disk, path: Path) -> None:
    disk.write_private(os.fspath(path), b"a token\n")


def sync_dir(disk: Disk, path: Path) -> None:
    disk.write_new(os.fspath(path), b"a name\n")
    disk.sync_dir(os.fspath(path.parent))


@pytest.mark.parametrize(
    ("step", "synced"),
    [(flush, "file"), (write_durable, "file"), (write_private, "file"), (sync_dir, "folder")],
    ids=["flush", "write_durable", "write_private", "sync_dir"],
)
def test_a_step_that_promises_durability_asks_the_system_for_it_when_all_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Callable[[Disk, Path], None], synced: str
) -> None:
    path = tmp_path / "file"
    asked: list[tuple[int, bytes]] = []
    for name in ("fdatasync", "fsync"):
        monkeypatch.setattr(os, name, lambda fd: asked.append((os.fstat(fd).st_ino, path.read_bytes())))
    step(Disk(), path)
    where = path if synced == "file" else tmp_path
    assert asked == [(where.stat().st_ino, path.read_bytes())]


def test_a_step_that_fails_is_told() -> None:
    """Nothing can be flushed to a pipe."""
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="Invalid argument"):
            Disk().flush(writing)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_temporary_file_is_made_anew_and_never_written_into_a_leftover(tmp_path: Path) -> None:
    """After a power cut a file that was written into may hold its older bytes, and pass for an older version."""
    path, kept = tmp_path / "file", tmp_path / "kept"
    path.write_bytes(b"a dead writer's")
    kept.hardlink_to(path)
    Disk().write_new(os.fspath(path), b"ours")
    assert (path.read_bytes(), kept.read_bytes()) == (b"ours", b"a dead writer's")


def test_a_round_of_work_in_many_folders_keeps_few_of_them_open(tmp_path: Path) -> None:
    folders = [f"{tmp_path}/data/runs/{number}" for number in range(100)]
    for folder in folders:
        os.makedirs(folder)
    before = len(os.listdir("/proc/self/fd"))
    disk = Disk()
    disk.bind(f"{tmp_path}/data")
    disk.begin()
    disk.prove(*folders)
    for folder in folders:
        disk.write_new(f"{folder}/run.json", b"{}")
    assert len(os.listdir("/proc/self/fd")) - before <= 48
    disk.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_was_used_before_lets_no_path_out_of_it(tmp_path: Path) -> None:
    disk = Disk()
    (tmp_path / "data/runs").mkdir(parents=True)
    disk.bind(f"{tmp_path}/data")
    disk.write_new(f"{tmp_path}/data/runs/x", b"")
    for name in ("..", ".", ""):
        with pytest.raises(OSError, match="not beneath"):
            disk.open_state(f"{tmp_path}/data/runs/{name}")
    disk.close()
