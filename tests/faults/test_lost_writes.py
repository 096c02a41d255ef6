"""Between a failed flush and the note of it: nobody is told that something is durable which stands behind a gap."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.errors import CommitUnknown, LogPoisoned
from aof.store.files.locks import Locks
from aof.store.files.log.writer import Log
from tests.support.clock import ManualClock
from tests.support.disks import Killed, SteppingDisk, path_of
from tests.support.log_bench import MONDAY, TUESDAY, Bench, commit_of


class Platters:
    """What is durable of each file, what waits to be written, and how often writing has failed."""

    def __init__(self) -> None:
        self.durable: dict[str, bytearray] = {}
        self.waiting: dict[str, list[tuple[int, bytes]]] = {}
        self.failures: dict[str, int] = {}

    def wrote(self, path: str, offset: int, data: bytes) -> None:
        """Something was written to memory."""
        self.waiting.setdefault(path, []).append((offset, data))

    def flush(self, path: str, *, fails: bool) -> None:
        """What waits becomes durable, or is forgotten."""
        waiting = self.waiting.pop(path, [])
        if fails:
            self.failures[path] = self.failures.get(path, 0) + 1
            return
        durable = self.durable.setdefault(path, bytearray())
        for offset, data in waiting:
            durable.extend(b"\0" * (offset + len(data) - len(durable)))
            durable[offset : offset + len(data)] = data

    def after_a_power_cut(self, path: Path) -> bytes:
        """What is left of a file."""
        return bytes(self.durable.get(str(path), b""))


class LossyDisk(SteppingDisk):
    """One process's way to the platters, which loses what it could not write as the system does it.

    A failed flush forgets what was waiting: flushing again reports nothing. Every open file is told of a failure once,
    but only if it was open when the failure came; who opens the file afterwards is told nothing. So what is on the
    platters can lack a part that everybody still reads from memory. `meanwhile` happens when a flush has failed and
    nobody has been told yet.
    """

    def __init__(self, platters: Platters) -> None:
        super().__init__()
        self._platters = platters
        self._told: dict[int, int] = {}
        self.fails = False
        self.meanwhile: Callable[[], object] | None = None

    def create(self, path: str) -> int:
        fd = super().create(path)
        self._told[fd] = self._platters.failures.get(path_of(fd), 0)
        return fd

    def append(self, fd: int, data: bytes) -> int:
        self._platters.wrote(path_of(fd), os.fstat(fd).st_size, data)
        return super().append(fd, data)

    def overwrite(self, fd: int, data: bytes, offset: int) -> None:
        self._platters.wrote(path_of(fd), offset, data)
        super().overwrite(fd, data, offset)

    def flush(self, fd: int) -> None:
        path = path_of(fd)
        self._platters.flush(path, fails=self.fails)
        known, self._told[fd] = self._told.get(fd, 0), self._platters.failures.get(path, 0)
        if self._told[fd] != known:
            self.fails = False
            if self.meanwhile is not None:
                self.meanwhile()
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)


_LARGE = "x" * 3_000_000


class Process:
    """One process's log on a disk that it shares with others."""

    def __init__(self, bench: Bench, platters: Platters) -> None:
        self.disk = LossyDisk(platters)
        self.locks = Locks(bench.paths.locks, ManualClock(), 5.0)
        self.log = Log(bench.paths, self.locks, self.disk, durable=True)

    def append(self, text: str, day: str = MONDAY) -> None:
        """One commit; returns when it is acknowledged."""
        self.log.append(day, commit_of(text))

    def close(self) -> None:
        self.log.close()
        self.locks.close()


@pytest.fixture
def platters() -> Platters:
    return Platters()


def durable(bench: Bench, platters: Platters, day: str = MONDAY) -> bool:
    """Whether all that everybody reads would outlast a power cut."""
    return platters.after_a_power_cut(bench.file(day)) == bench.file(day).read_bytes()


@pytest.mark.parametrize("text", ["lost", _LARGE], ids=["small", "large"])
def test_who_opens_the_log_after_a_failed_flush_makes_durable_what_it_builds_on(
    bench: Bench, platters: Platters, text: str
) -> None:
    """The flag is not noted yet, and the system tells the newcomer nothing."""
    first, second = Process(bench, platters), Process(bench, platters)
    first.append("before")
    first.disk.fails = True
    first.disk.meanwhile = lambda: second.append("acknowledged")
    with pytest.raises(CommitUnknown):
        first.append(text)
    assert bench.texts() == ["before", text, "acknowledged"]
    assert durable(bench, platters), "the second was told that its change is durable"
    with pytest.raises(LogPoisoned):
        second.append("later")
    first.close()
    second.close()


def test_who_has_the_log_open_learns_of_the_failed_flush_of_another(bench: Bench, platters: Platters) -> None:
    first, second = Process(bench, platters), Process(bench, platters)
    second.append("before")
    first.append("too")
    outcomes: list[str] = []

    def work() -> None:
        with pytest.raises(CommitUnknown):
            second.append("unknown")
        outcomes.append("told")

    first.disk.fails, first.disk.meanwhile = True, work
    with pytest.raises(CommitUnknown):
        first.append("lost")
    assert outcomes == ["told"]
    first.close()
    second.close()


@pytest.mark.parametrize("day", [MONDAY, TUESDAY])
def test_who_comes_after_a_writer_that_died_over_its_failed_flush_makes_good_what_was_lost(
    bench: Bench, platters: Platters, day: str
) -> None:
    """Nobody was left who could note it."""

    def die() -> None:
        raise Killed

    first = Process(bench, platters)
    first.append("before")
    first.disk.fails, first.disk.meanwhile = True, die
    with pytest.raises(Killed):
        first.append("lost")
    first.close()
    second = Process(bench, platters)
    second.append("acknowledged", day)
    assert bench.texts() == ["before", "lost", "acknowledged"]
    assert durable(bench, platters)
    assert durable(bench, platters, day)
    second.close()


def test_what_is_known_to_be_durable_is_not_written_again(bench: Bench, platters: Platters) -> None:
    first = Process(bench, platters)
    first.append("before")
    first.close()
    second = Process(bench, platters)
    before = bench.file().stat().st_size
    second.append("after")
    second.close()
    third = Process(bench, platters)
    third.log.refresh()
    assert platters.waiting.get(str(bench.file()), []) == []
    assert bench.file().stat().st_size > before
    third.close()


def test_a_note_about_another_file_proves_nothing(bench: Bench, platters: Platters) -> None:
    """Somebody has put a copy in the place of the log, whose first flush fails."""
    first = Process(bench, platters)
    first.append("before")
    copy = bench.file().with_suffix(".copy")
    copy.write_bytes(bench.file().read_bytes())
    copy.rename(bench.file())
    platters.durable.clear()
    platters.wrote(str(bench.file()), 0, bench.file().read_bytes())
    first.disk.fails = True
    second = Process(bench, platters)
    first.disk.meanwhile = lambda: second.append("acknowledged")
    with pytest.raises(CommitUnknown):
        first.append("lost")
    assert durable(bench, platters)
    first.close()
    second.close()
