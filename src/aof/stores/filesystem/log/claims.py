"""Whose lane is it? A lane has one writer: the clone that began it, as long as the lane ends where that clone left it.

`locks/lanes/<lane>` says so, `locks/lanes/root` of the root lane: the last hash that was appended here before another
lane was begun, the data directory by device and inode, and the host. None of it is in git, so a clone has none of it,
and a copied folder finds that it is not the one that is named. Of the lane that is being written, the log's lock file
has the last hash. What is lost only lets this clone begin another lane. Must not know what the lanes hold.
"""

from __future__ import annotations

import os
from contextlib import suppress

from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log.lane_names import is_merge, lane_of
from aof.stores.filesystem.log.line_end import GENESIS
from aof.stores.filesystem.log.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.log.segment import LogFile

ROOT = "root"
_BYTES = 256


class Claims:
    """What this clone says of its lanes."""

    def __init__(self, paths: Paths, disk: Disk) -> None:
        self._paths = paths
        self._disk = disk

    def note(self, lane: str, digest: str) -> None:
        """Say that a lane is ours, and with which hash we left it. Raises OSError."""
        fd = self._disk.open_cache(self._path(lane))
        try:
            self._disk.overwrite(fd, f"{digest} {self._place()}".ljust(_BYTES - 1).encode() + b"\n", 0)
        finally:
            os.close(fd)

    def is_root(self) -> bool:
        """Whether this clone began the log; an earlier version has noted how it left it, the first one only the day."""
        return self._noted("") is not None or (not self._any() and self._is_as_left())

    def _is_as_left(self) -> bool:
        with suppress(OSError):
            fd = os.open(f"{self._paths.locks}/log", os.O_RDONLY | os.O_CLOEXEC)
            try:
                state = State.read(fd)
            finally:
                os.close(fd)
            if state is not None and not state.foreign:
                inode = os.stat(self._paths.log(state.segment)).st_ino
                return state.unstamped or (state.stamp is not None and state.stamp.inode == inode)
        return False

    def is_ours(self, before: State, file: LogFile) -> bool:
        """Whether we may append to the log's current file; `before` is how the last appender left the log."""
        lane, left = lane_of(file.segment), None
        if not file.segment:
            return not before.foreign  # nothing is there yet: who begins the log has its root lane
        if before.stamp is not None and not before.foreign:
            left = before.stamp.position
        inode = before.stamp.inode if before.stamp is not None else 0
        untouched = left is not None and inode == file.inode and file.has(left)
        if self._exists(lane):
            noted = self._noted(lane)
        elif (untouched or before.unstamped) and not self._any():  # an earlier version has noted no lanes
            noted = GENESIS
            self._try_note(lane, file.digest)
        else:
            noted = None
        if left is not None and self._noted(lane_of(left.segment)) is not None:
            self._try_note(lane_of(left.segment), left.digest)
        if noted is None or is_merge(file.segment):
            return False
        if before.stamp is None:  # as after a power cut: nobody else writes here
            return True
        if left is not None and lane_of(left.segment) == lane:
            return untouched or left.digest == file.digest
        return noted == file.digest

    def _try_note(self, lane: str, digest: str) -> None:
        with suppress(OSError):  # what is not noted lets us begin another lane
            self.note(lane, digest)

    def _noted(self, lane: str) -> str | None:
        """The hash that we left the lane with; None where it is not ours."""
        try:
            data = read(self._path(lane))
        except OSError:
            return None
        digest, _, place = (data or b"").decode("utf-8", "replace").strip().partition(" ")
        return digest if place == self._place() else None

    def _exists(self, lane: str) -> bool:
        return os.path.lexists(self._path(lane))

    def _any(self) -> bool:
        with suppress(OSError):
            return bool(os.listdir(self._paths.lanes))
        return False

    def _path(self, lane: str) -> str:
        return f"{self._paths.lanes}/{lane or ROOT}"

    def _place(self) -> str:
        """What tells this data directory: a copy has another inode, and the same folder elsewhere another host."""
        found = os.stat(self._paths.root)
        return f"{found.st_dev} {found.st_ino} {os.uname().nodename}"
