"""Every write to the disk, as single steps. Nothing else in the store changes a file.

A test can stand in for this class to stop at each step, to fail one, or to record all of them and work out every
state that a power cut may leave. Must not know what the bytes mean.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

_WORTH_SWAPPING = 8
_HERE, _SWAP_NAMES = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class Disk:
    """The real disk."""

    def __init__(self) -> None:
        self._replaced = 0
        self._exchange: Callable[[str, str], bool] | None = None

    def append(self, fd: int, data: bytes) -> int:
        """Write at the end of an open file; tells how much was written."""
        return os.write(fd, data)

    def flush(self, fd: int) -> None:
        """Make what was appended durable."""
        os.fdatasync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut an open file back."""
        os.ftruncate(fd, size)

    def overwrite(self, fd: int, data: bytes, offset: int) -> None:
        """Write over a place of an open file that only ever holds state which can be rebuilt."""
        os.pwrite(fd, data, offset)

    def write_new(self, path: str, data: bytes) -> None:
        """Create a file, or empty it, and write all of the data; not atomic, so only for temporary files."""
        fd = os.open(path, _NEW_FILE, 0o644)
        try:
            written = os.write(fd, data)
            while written < len(data):
                written += os.write(fd, memoryview(data)[written:])
        finally:
            os.close(fd)

    def write_durable(self, path: str, data: bytes) -> None:
        """The same, and flushed."""
        self.write_new(path, data)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def write_private(self, path: str, data: bytes) -> None:
        """Create a file that only its owner may read, or empty it, write all of the data and flush it."""
        fd = os.open(path, _NEW_FILE, 0o600)
        try:
            os.fchmod(fd, 0o600)  # one that was left there keeps the rights it had
            written = os.write(fd, data)
            while written < len(data):
                written += os.write(fd, memoryview(data)[written:])
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: str, target: str) -> None:
        """Put a file in the place of another, atomically."""
        os.rename(source, target)

    def replace(self, source: str, target: str) -> None:
        """Put a new version in the place of an existing file, atomically; the old one is gone afterwards.

        Swapping the two names and removing the old version costs half of a rename over it, which makes ext4 allocate
        and write out blocks at once. It needs a library that takes milliseconds to load, so it begins to pay only
        after some writes.
        """
        self._replaced += 1
        if self._replaced > _WORTH_SWAPPING and self._swap(source, target):
            self.unlink(source)
        else:
            self.rename(source, target)

    def _swap(self, source: str, target: str) -> bool:
        """Exchange two names; False where the system cannot, or the target does not exist."""
        if self._exchange is None:
            self._exchange = _exchanger()
        return self._exchange(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def make_dir(self, path: str) -> None:
        """Create a folder."""
        os.mkdir(path)

    def sync_dir(self, path: str) -> None:
        """Make the names in a folder durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_all(self, root: str) -> None:
        """Make everything on the data directory's file system durable."""
        if sys.platform != "linux":
            os.sync()
            return
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            import ctypes  # 10 ms that only a checkpoint needs

            if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), root)
        finally:
            os.close(fd)

    def create(self, path: str) -> int:
        """Open a file for reading and appending, creating it where it is missing."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _exchanger() -> Callable[[str, str], bool]:
    """The system's way to exchange two names, or one that always says no."""
    import ctypes  # see Disk.replace

    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except AttributeError:
        return lambda _source, _target: False

    def exchange(source: str, target: str) -> bool:
        done: int = renameat2(_HERE, os.fsencode(source), _HERE, os.fsencode(target), _SWAP_NAMES)
        return done == 0

    return exchange
