"""Compares the log with what its last appender left, and verifies it where that differs. Called under the log's lock.

The revs hold the last event of each task that was appended here: a command that decided on an older version starts
over, also where somebody deleted the lock files and two processes hold one stripe. Only a cache: what it lacks is
looked up in the log. What was acknowledged is never cut: an end that is missing, or a line that was changed, swapped or
removed, is damage. A log that holds from its first to its last event, yet lacks what was appended here, may be another
branch's: whether it is, its tasks' files show, and that is for others to judge. Must not know what the events mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from aof.core.model.ids import split_task_id
from aof.stores.filesystem.integrity import verification
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import found_at
from aof.stores.filesystem.log.layout import Layouts, PathSection, last_before, segments
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.log.reader import Reader
from aof.stores.filesystem.log.state import Stamp, State, older_files

_LINE = 16
_CHUNK = 1 << 20
_WHOLE = b"whole".ljust(_LINE - 1) + b"\n"  # every event of the day's tasks is noted; else only the newer ones are


class Revs:
    """The table of one data directory: a file per day of IDs, a line per task. Called under the log's lock."""

    def __init__(self, paths: Paths, disk: Disk, reader: Reader) -> None:
        self._paths = paths
        self._disk = disk
        self._reader = reader
        self._fds: dict[str, tuple[int, bool, os.stat_result]] = {}

    def newer(self, task_id: str, rev: int) -> bool:
        """Whether the log has an event of the task behind this one."""
        day, number = split_task_id(task_id)
        fd, whole, _ = self._table(day)
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
        for fd, _, _ in self._fds.values():
            with suppress(OSError):
                os.close(fd)
        self._fds = {}

    def _table(self, day: str) -> tuple[int, bool, os.stat_result]:
        """The day's open file, and whether it is whole; one that was deleted or moved away is begun again."""
        path = f"{self._paths.revs}/{day}"
        known = self._fds.get(day)
        if known is not None:
            if found_at(path, known[2]) is not None:
                return known
            del self._fds[day]
            os.close(known[0])
        fd = self._disk.open_cache(path)
        found = os.fstat(fd)
        if not found.st_size:
            whole = not self._mentioned(f'"taskId":"TASK-{day}-'.encode())
            self._disk.overwrite(fd, _WHOLE if whole else b" " * (_LINE - 1) + b"\n", 0)
        self._fds[day] = table = fd, os.pread(fd, _LINE, 0) == _WHOLE, found
        return table

    def _mentioned(self, text: bytes) -> bool:
        """Whether the log has this text anywhere."""
        for segment in segments(self._paths):
            with open(self._paths.log(segment), "rb") as file:
                rest = b""
                while data := file.read(_CHUNK):
                    if text in rest + data:
                        return True
                    rest = data[-len(text) :]
        return False

    def _last(self, task_id: str) -> int:
        return max((event.seq for event in self._reader.of_tasks((task_id,)) if event.files), default=0)


class LogGuard:
    """What one process knows of the files before the current one."""

    def __init__(self, paths: Paths, layouts: Layouts) -> None:
        self._paths = paths
        self._layouts = layouts
        self._folder = 0
        self._older = ""

    def as_left(self, state: State, folder: int) -> bool:
        """Whether folder and files look as the last appender left them; `folder` is the open folder of the log."""
        stamp = state.stamp
        if stamp is None or stamp.position.segment != state.segment or stamp.folder != os.fstat(folder).st_ctime_ns:
            return False
        if stamp.older != self._older:  # this process has not looked at them yet
            self._older = self._files(self._before(state.segment))
            if stamp.older != self._older:
                return False
            self._folder = stamp.folder
        try:
            return stamp.describes(os.stat(self._paths.log(state.segment)))
        except FileNotFoundError:
            return False

    def verify(self, state: State) -> bool:
        """Whether the log still has what was appended last; raises LogDamaged where it is not a whole history."""
        stamp, path = state.stamp, self._layouts.path()
        if stamp is None or not state.segment or not path:
            return True  # nobody has said what to expect, or all of it is gone, which looking for its end tells
        while path[-1].name > state.segment and not os.stat(self._paths.log(path[-1].name)).st_size:
            path = path[:-1]
        untouched = path[-1].name == state.segment and self._files(path[:-1]) == stamp.older
        if untouched:
            before = last_before(self._paths, path[:-1])
            proof = verification.prove_last(self._paths, path[-1], before, stamp.position)
        else:
            proof = verification.prove(self._paths, path, stamp.position)
        if not proof.known and proof.rest:
            raise verification.lost(stamp.position)
        return proof.known

    def stamp(self, folder: int, fd: int, position: Position) -> Stamp:
        """What to leave behind."""
        changed = os.fstat(folder).st_ctime_ns
        if changed != self._folder or not self._older:
            self._folder, self._older = changed, self._files(self._before(position.segment))
        found = os.fstat(fd)
        return Stamp(changed, self._older, found.st_ino, found.st_ctime_ns, position)

    def _before(self, segment: str) -> tuple[PathSection, ...]:
        return self._layouts.path_to(segment)[:-1]

    def _files(self, path: Iterable[PathSection]) -> str:
        return older_files(self._paths, [section.name for section in path])
