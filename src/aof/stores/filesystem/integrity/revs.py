"""The last event of each task that was appended here, noted under the log's own lock.

A commit is checked against it before it is appended: a command that decided on an older version starts over. This holds
also where somebody deleted the lock files, so that two processes hold one stripe. Only a cache: what it lacks is looked
up in the log. Must not know what the events mean.
"""

from __future__ import annotations

import os
from contextlib import suppress

from aof.core.model.ids import split_task_id
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log.reader import Reader, log_days

_LINE = 16
_CHUNK = 1 << 20
_WHOLE = b"whole".ljust(_LINE - 1) + b"\n"  # every event of the day's tasks is noted; else only the newer ones are


class Revs:
    """The table of one data directory: a file per day of IDs, a line per task. Called under the log's lock."""

    def __init__(self, paths: Paths, disk: Disk, reader: Reader) -> None:
        self._paths = paths
        self._disk = disk
        self._reader = reader
        self._fds: dict[str, tuple[int, bool]] = {}

    def newer(self, task_id: str, rev: int) -> bool:
        """Whether the log has an event of the task behind this one."""
        day, number = split_task_id(task_id)
        fd, whole = self._table(day)
        noted = os.pread(fd, _LINE, number * _LINE).strip(b"\0 \n")
        if noted.isdigit():
            return int(noted) > rev and self._last(task_id) > rev
        if whole and not rev:
            return False
        last = self._last(task_id)
        self.put(task_id, last)  # looked up once, also where the task is only read
        return last > rev

    def put(self, task_id: str, seq: int) -> None:
        """Note an event that was just appended; one that is missing here is found in the log."""
        day, number = split_task_id(task_id)
        known = self._fds.get(day)  # looked at a moment ago, under the same lock
        fd = known[0] if known is not None else self._table(day)[0]
        self._disk.overwrite(fd, b"%015d\n" % seq, number * _LINE)

    def close(self) -> None:
        """Close the open files."""
        for fd, _ in self._fds.values():
            with suppress(OSError):
                os.close(fd)
        self._fds = {}

    def _table(self, day: str) -> tuple[int, bool]:
        """The day's open file, and whether it is whole; one that was deleted is begun again."""
        known = self._fds.get(day)
        if known is not None:
            if os.fstat(known[0]).st_nlink:
                return known
            del self._fds[day]
            os.close(known[0])
        fd = self._disk.open_cache(f"{self._paths.revs}/{day}")
        if not os.fstat(fd).st_size:
            whole = not self._mentioned(f'"taskId":"TASK-{day}-'.encode())
            self._disk.overwrite(fd, _WHOLE if whole else b" " * (_LINE - 1) + b"\n", 0)
        self._fds[day] = found = fd, os.pread(fd, _LINE, 0) == _WHOLE
        return found

    def _mentioned(self, text: bytes) -> bool:
        """Whether the log has this text anywhere."""
        for day in log_days(self._paths):
            with open(self._paths.log(day), "rb") as file:
                rest = b""
                while data := file.read(_CHUNK):
                    if text in rest + data:
                        return True
                    rest = data[-len(text) :]
        return False

    def _last(self, task_id: str) -> int:
        return max((event.seq for event in self._reader.of_tasks((task_id,)) if event.files), default=0)
