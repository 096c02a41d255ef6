"""Which of many files somebody has changed: told truly, and without reading a file again that nobody has touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aof.kernel.evolve import evolve
from aof.store.files import working_copy
from aof.store.files.disk import read
from aof.tasks.model import Task
from aof.testing import FakeClock
from tests.support.room import MONDAY, Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A new data directory."""
    made = Room(tmp_path / ".aof", FakeClock(MONDAY))
    yield made
    made.fabric.close()


def _odd(room: Room) -> list[str]:
    files = room.fabric.store.working_copy
    assert files is not None
    tasks: dict[str, Task] = {}
    for event in room.fabric.store.events():  # as the log knows them: nothing is imported
        tasks[event.task_id] = evolve(tasks.get(event.task_id), event)
    return [task.id for task in files.odd_files(tasks.values())]


@contextmanager
def _reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files that are read meanwhile."""
    seen: list[str] = []

    def counted(path: str) -> bytes | None:
        seen.append(os.path.basename(path)[:-3])
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(working_copy, "read", counted)
        yield seen


def _settled(room: Room) -> list[str]:
    """Three tasks that are older than the log's last change, and one more that this change was about."""
    ids = [room.task() for _ in range(4)]
    room.fabric.comment(ids[3], text="later")
    assert _odd(room) == []
    return ids


def test_a_file_that_nobody_touched_is_not_read_again(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = _settled(room)
    with _reads(monkeypatch) as read:
        assert _odd(room) == []
    assert set(read) <= {ids[3]}, "only one that may have changed in the moment in which it was read"
    room.fabric.comment(ids[0], text="news")
    with _reads(monkeypatch) as read:
        assert _odd(room) == []
    assert ids[0] in read
    assert ids[1] not in read


def test_a_changed_file_is_found_though_size_and_time_are_as_before(room: Room) -> None:
    ids = _settled(room)
    path = room.file(ids[1])
    before, text = path.stat(), path.read_text()
    path.write_text(text.replace("One", "Two"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert _odd(room) == [ids[1]]
    assert _odd(room) == [ids[1]], "also when it is asked again"
    path.write_text(text)
    assert _odd(room) == []


def test_a_replaced_moved_missing_or_unreadable_file_is_found(room: Room) -> None:
    ids = _settled(room)
    first, second, third, _ = (room.file(task_id) for task_id in ids)
    copy = first.with_suffix(".new")
    copy.write_text(first.read_text().replace("One", "Two"))
    copy.replace(first)
    second.rename(second.parent.parent / "backlog" / second.name)
    third.unlink()
    third.symlink_to(first)
    assert _odd(room) == ids[:3]


@pytest.mark.parametrize(("later", "looks"), [(-1, 2), (0, 2), (1, 1)])
def test_a_file_is_remembered_only_if_the_log_has_changed_after_it(room: Room, later: int, looks: int) -> None:
    task = room.fabric.get(room.task())
    path = room.file(task.id)
    latest = path.stat().st_ctime_ns + later
    known, looked = working_copy.Fingerprints(), list[str]()
    for _ in range(2):
        assert list(known.differing([task], lambda _: str(path), lambda one: looked.append(one.id), latest)) == []
    assert looked == [task.id] * looks


def test_a_change_in_the_moment_of_the_look_is_found_by_the_next_look(room: Room) -> None:
    task_id = room.task()
    path = room.file(task_id)
    for number in range(200):
        room.fabric.comment(task_id, text=f"number {number}")
        assert _odd(room) == []
        text = path.read_text()
        path.write_text(text.replace("number", "nummer"))
        assert _odd(room) == [task_id], number
        path.write_text(text)
        assert _odd(room) == []
