"""How far the log is known to be durable, passed from one process to the next.

The system reports a lost write only to processes that had the file open by then, and forgets what it could not write.
A process that opens the log later must not build on that. So every writer notes how far a flush has succeeded, and a
process that opens the log first rewrites what lies behind that note. A note that is missing, late or about another
file only costs time. Must not know how the log is written.
"""

from __future__ import annotations

import os
from contextlib import suppress

from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.log.reader import Position

_BYTES = 160


class Flushed:
    """The note of one data directory."""

    def __init__(self, path: str, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._fd = -1

    def note(self, inode: int, behind: Position) -> None:
        """Everything before the position is durable in that file."""
        with suppress(OSError):
            self._disk.overwrite(self._open(), f"{inode} {behind.text()}".ljust(_BYTES - 1).encode() + b"\n", 0)

    def forget(self) -> None:
        """Say nothing; raises OSError, for what is said of another log must not stay."""
        self._disk.overwrite(self._open(), b" " * (_BYTES - 1) + b"\n", 0)

    def last(self) -> Position | None:
        """Where any file was durable last."""
        with suppress(OSError):
            return Position.parse(os.pread(self._open(), _BYTES, 0).decode("ascii", "replace").split()[1:])
        return None

    def upto(self, inode: int) -> Position | None:
        """Where the file was durable last; None where nobody has said."""
        with suppress(OSError):
            noted, *words = os.pread(self._open(), _BYTES, 0).decode("ascii", "replace").split() or [""]
            return Position.parse(words) if noted == str(inode) else None
        return None

    def close(self) -> None:
        """Close the open file."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> int:
        if self._fd < 0:
            self._fd = self._disk.open_cache(self._path)
        return self._fd
