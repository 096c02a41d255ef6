"""Which tasks others may wait for: one byte per slot, so that the end of a task asks the index only where it must.

A byte is set before the commit that adds an edge, under the lock of the blocker, and is never cleared: a set byte means
"ask", an unset one "nobody waits". A file that is missing or short means "ask" for every task. Must not know the graph.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Iterable
from contextlib import suppress

from aof.core.model.ids import is_task_id, split_task_id
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.read import found_at

SLOTS = 1 << 16
_SET = b"\1"


class Waited:
    """The table of one data directory."""

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
            if os.fstat(fd).st_size < SLOTS:  # deleted while others worked: what it said is lost, so all are asked for
                self._disk.overwrite(fd, _SET * SLOTS, 0)
            for blocker in filter(is_task_id, blockers):
                if os.pread(fd, 1, _slot(blocker)) != _SET:
                    self._disk.overwrite(fd, _SET, _slot(blocker))

    def rebuild(self, blockers: Iterable[str]) -> None:
        """Begin anew with exactly these. The caller holds every lock."""
        table = bytearray(SLOTS)
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
            if found_at(self._path, self._known) is None:
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
    return (int(day.replace("-", "")) * 4_001 + number) % SLOTS
