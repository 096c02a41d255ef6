"""A disk that loses what it could not write, in the way the system does it.

A failed flush forgets what was waiting: flushing again reports nothing. Every open file is told of a failure once, but
only if it was open when the failure came; who opens the file afterwards is told nothing. So what is on the platters can
lack a part that everybody still reads from memory.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from tests.support.disks import SteppingDisk, path_of


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
    """One process's way to the platters. `meanwhile` happens when a flush has failed and nobody has been told yet."""

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
