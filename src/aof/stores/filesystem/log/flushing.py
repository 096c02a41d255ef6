"""The flushes of one process. Must not know what is flushed.

The system reports a lost write once per open file, and threads share one. So they flush one after the other, a flush
counts for everything that was appended before it began, and after a failed one no caller gets a success.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # as threading.Lock, without the rest of that module
from typing import NamedTuple

from aof.core.errors.storage import CommitUnknown
from aof.stores.filesystem.io.disk import Disk


class Mark(NamedTuple):
    """How far the log was written: which opening of which file, and up to where in it."""

    opening: int = 0
    end: int = 0


class Flushing:
    """The flushes of one process."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.written = Mark()
        self.failed = False
        self.noted = False
        self._flushed = Mark()
        self._turn = allocate_lock()
        self._pid = os.getpid()

    def upto(self, fd: int, mark: Mark) -> None:
        """Return when everything up to the mark is durable; raises CommitUnknown."""
        if self._pid != os.getpid():  # another thread may have had its turn when this process was forked
            self._turn, self._pid = allocate_lock(), os.getpid()
        with self._turn:
            if self.failed:
                raise unknown()
            if self._flushed.opening == mark.opening and self._flushed.end >= mark.end:
                return
            written = self.written
            self.now(fd)
            self._flushed = written if written.opening == mark.opening else mark

    def now(self, fd: int) -> None:
        """Flush an open file; raises CommitUnknown. A flush that failed is never tried again."""
        try:
            self.disk.flush(fd)
        except OSError as error:
            self.failed, self.noted = True, False
            raise unknown(error) from error


def unknown(error: OSError | None = None) -> CommitUnknown:
    """The caller's error when a flush has failed."""
    why = f" ({error.strerror})" if error is not None else ""
    return CommitUnknown(
        f"the log could not be flushed{why}; the change may or may not be durable",
        "run 'aof doctor', which verifies the log; then look whether the change is there",
    )
