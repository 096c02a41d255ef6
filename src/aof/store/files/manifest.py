"""Two tables with a fixed place for each task, so that a look costs microseconds.

`Manifest` has the version of its file that the log last wrote, `BlockerTable` whether other tasks may wait for it.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Iterable, Iterator
from contextlib import suppress

from aof.kernel.model import is_task_id, split_task_id, task_id
from aof.store.files.disk import Disk, found_at
from aof.store.files.paths import FOLDERS_BY_LETTER, STATUS_LETTERS
from aof.support.hashing import hexdigest

_LINE = 32
_DIGEST = 16
_LETTER = 13
_CHUNK = 1 << 16


class Head:
    """The last version of a task. A plain class: lists pay for what is loaded here."""

    __slots__ = ("digest", "folder", "rev")

    def __init__(self, rev: int, folder: str, digest: str) -> None:
        self.rev = rev
        self.folder = folder
        self.digest = digest

    def matches(self, data: bytes) -> bool:
        """Whether the bytes are exactly what the log wrote."""
        return hexdigest(data)[:_DIGEST] == self.digest


class Manifest:
    """The last version of each task's file, at a fixed place in a file per day of IDs."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self._fds: dict[str, int] = {}
        self._deleted: list[int] = []

    def get(self, task_id: str) -> Head | None:
        """None for a task that the table does not know."""
        day, number = split_task_id(task_id)
        fd = self._fds.get(day) or self._open(day, os.O_RDWR)
        line = os.pread(fd, _LINE, number * _LINE) if fd else b""
        return _parse(line)

    def knows_day_of(self, task_id: str) -> bool:
        """Whether anything was ever noted for the task's day; if not, the table may have been deleted."""
        day, _ = split_task_id(task_id)
        return (self._fds.get(day) or self._open(day, os.O_RDWR)) is not None

    def put(self, task_id: str, rev: int, folder: str, digest: str) -> None:
        """Note the version that was just written."""
        day, number = split_task_id(task_id)
        fd = self._fds.get(day) or self._open(day, os.O_RDWR | os.O_CREAT)
        assert fd is not None
        line = f"{rev:012d} {STATUS_LETTERS[folder]} {digest[:_DIGEST]}\n"
        self._disk.overwrite(fd, line.encode("ascii"), number * _LINE)

    def forget(self, task_id: str) -> None:
        """The log does not know the task any more."""
        day, number = split_task_id(task_id)
        fd = self._fds.get(day) or self._open(day, os.O_RDWR)
        if fd is not None:
            self._disk.overwrite(fd, b" " * (_LINE - 1) + b"\n", number * _LINE)

    def ids(self) -> Iterator[str]:
        """Every task that was ever noted."""
        return (named for named, _ in self._lines())

    def table(self) -> dict[str, Head]:
        """Every task that was ever noted, with its head, for callers that look at all of them."""
        found = ((named, _parse(line)) for named, line in self._lines())
        return {named: head for named, head in found if head is not None}

    def by_folder(self) -> dict[str, list[tuple[str, str]]]:
        """For callers that read all files: each folder's tasks in the order of IDs, with how their digests begin."""
        found: dict[str, list[tuple[str, str]]] = {letter: [] for letter in FOLDERS_BY_LETTER}
        for day, fd in self._days():
            for first, lines in _chunks(fd):
                text = lines.decode("ascii", "replace")
                for number, place in enumerate(range(0, len(text), _LINE), first):
                    noted = found.get(text[place + _LETTER : place + _LETTER + 1])
                    if noted is not None:
                        noted.append(
                            (f"TASK-{day}-{number:03d}", text[place + _LINE - 1 - _DIGEST : place + _LINE - 1])
                        )
        return {FOLDERS_BY_LETTER[letter]: noted for letter, noted in found.items()}

    def _lines(self) -> Iterator[tuple[str, bytes]]:
        """The lines that hold something."""
        for day, fd in self._days():
            for first, lines in _chunks(fd):
                for place in range(0, len(lines), _LINE):
                    if lines[place : place + 1].isdigit():
                        yield task_id(day, first + place // _LINE), lines[place : place + _LINE]

    def _days(self) -> Iterator[tuple[str, int]]:
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:  # somebody has deleted the table: nothing is noted
            names = []
        for name in names:
            fd = self._fds.get(name) or self._open(name, os.O_RDWR)
            if fd and is_task_id(task_id(name, 1)):
                yield name, fd

    def reopen(self) -> None:
        """Somebody has deleted files: do not go on with what only this process still sees."""
        self._deleted += self._fds.values()  # another thread may just be reading one
        self._fds = {}

    def close(self) -> None:
        """Close the open files."""
        for fd in (*self._fds.values(), *self._deleted):
            os.close(fd)
        self._fds, self._deleted = {}, []

    def _open(self, day: str, flags: int) -> int | None:
        try:
            path = f"{self._folder}/{day}"
            fd = self._disk.open_cache(path) if flags & os.O_CREAT else self._disk.open_state(path, create=False)
        except FileNotFoundError:
            if flags & os.O_CREAT:
                raise
            return None
        kept = self._fds.setdefault(day, fd)
        if kept != fd:  # another thread was faster
            os.close(fd)
        return kept


def _parse(line: bytes) -> Head | None:
    try:
        rev, letter, digest = line.decode("ascii").split()
        return Head(int(rev), FOLDERS_BY_LETTER[letter], digest) if len(line) == _LINE and line[-1:] == b"\n" else None
    except (ValueError, KeyError):
        return None


def _chunks(fd: int) -> Iterator[tuple[int, bytes]]:
    """Lines, and the number of the first; the holes of a day with few and great numbers are passed over."""
    offset = 0
    while True:
        try:
            offset = os.lseek(fd, offset, os.SEEK_DATA) // _LINE * _LINE
        except OSError:  # ENXIO: there is nothing more
            return
        data = os.pread(fd, _CHUNK, offset)
        if len(data) < _LINE:
            return
        yield offset // _LINE, data
        offset += _CHUNK


BLOCKER_SLOTS = 1 << 16
_SET = b"\1"


class BlockerTable:
    """Whether other tasks may wait for a task: one byte, which several tasks share, so that a set one means perhaps."""

    def __init__(self, path: str, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._fd: int | None = None
        self._known: os.stat_result | None = None
        self._lock = allocate_lock()

    def may_have_dependents(self, task_id: str) -> bool:
        """Whether the index must be asked for the tasks that wait for this one."""
        with self._lock:
            fd = self._opened(create=False)
            return fd is None or os.pread(fd, 1, _slot(task_id)) != b"\0"

    def add(self, blockers: Iterable[str]) -> None:
        """Note that somebody is about to wait for these tasks."""
        with self._lock:
            fd = self._opened(create=True)
            assert fd is not None
            if (
                os.fstat(fd).st_size < BLOCKER_SLOTS
            ):  # deleted while others worked: what it said is lost, so all are asked for
                self._disk.overwrite(fd, _SET * BLOCKER_SLOTS, 0)
            for blocker in filter(is_task_id, blockers):
                if os.pread(fd, 1, _slot(blocker)) != _SET:
                    self._disk.overwrite(fd, _SET, _slot(blocker))

    def rebuild(self, blockers: Iterable[str]) -> None:
        """Begin anew with exactly these. The caller holds every lock."""
        table = bytearray(BLOCKER_SLOTS)
        for blocker in filter(is_task_id, blockers):
            table[_slot(blocker)] = _SET[0]
        with self._lock:
            fd = self._opened(create=True)
            assert fd is not None
            self._disk.overwrite(fd, bytes(table), 0)

    def close(self) -> None:
        """Close the open file."""
        if self._fd is not None:
            with suppress(OSError):
                os.close(self._fd)
            self._fd = self._known = None

    def _opened(self, *, create: bool) -> int | None:
        if self._fd is not None:
            self._known = self._known or os.fstat(self._fd)
            if found_at(self._path, self._known.st_ino, self._known.st_dev) is None:
                self.close()
        if self._fd is None:
            with suppress(FileNotFoundError):
                self._fd = (
                    self._disk.open_cache(self._path) if create else self._disk.open_state(self._path, create=False)
                )
        return self._fd


def _slot(task_id: str) -> int:
    """Tasks of one day have slots of their own."""
    day, number = split_task_id(task_id)
    return (int(day.replace("-", "")) * 4_001 + number) % BLOCKER_SLOTS
