"""The limit that the disk sets: a line is appended to one file and flushed. Nothing durable can be faster than this.

With several processes there are two ways. Flushed inside the lock, each waits for the flush of every other one.
Flushed outside of it, only the write is locked, and the disk may serve many flushes at once: that is the true limit.

A third figure is no limit but explains the distance to it: what one small file costs that takes its name when it is
whole, unflushed. A lifecycle of AOF writes seven. Must not know AOF.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aof.bench.rounds import Operation, Subject

_LINE = b"x" * 899 + b"\n"  # about what one AOF commit of the smallest kind appends


def _prepare(folder: Path) -> None:
    (folder / "log").touch()
    (folder / "lock").touch()


@contextmanager
def _files(folder: Path) -> Iterator[tuple[int, int]]:
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND)
    lock = os.open(folder / "lock", os.O_RDWR)
    try:
        yield log, lock
    finally:
        os.close(log)
        os.close(lock)


@contextmanager
def _inside(folder: Path, _number: int) -> Iterator[Operation]:
    with _files(folder) as (log, lock):

        def append() -> None:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(log, _LINE)
            os.fdatasync(log)
            fcntl.flock(lock, fcntl.LOCK_UN)

        yield append


@contextmanager
def _outside(folder: Path, _number: int) -> Iterator[Operation]:
    with _files(folder) as (log, lock):

        def append() -> None:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(log, _LINE)
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.fdatasync(log)

        yield append


@contextmanager
def _small_file(folder: Path, number: int) -> Iterator[Operation]:
    (folder / f"{number}").mkdir()
    count = 0

    def write() -> None:
        nonlocal count
        count += 1
        temporary = f"{folder}/{number}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(fd, _LINE)
        os.close(fd)
        os.rename(temporary, f"{folder}/{number}/{count}")  # noqa: PTH104 - nothing but the call

    yield write


INSIDE = Subject("raw, flushed inside the lock", 1, _prepare, _inside)
OUTSIDE = Subject("raw, flushed outside the lock", 1, _prepare, _outside)
SMALL_FILE = Subject("a small file", 1, _prepare, _small_file)
