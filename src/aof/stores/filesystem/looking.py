"""How a file is looked at: its bytes, its digest, and what shows that somebody has written it since.

Must not know what the bytes mean, and changes nothing.
"""

from __future__ import annotations

import os

from aof.hashing import hexdigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_BUFFER = 8_192
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not hang us


def digest(data: bytes) -> str:
    """What events and heads know a file by."""
    return hexdigest(data)


class Seen(tuple[int, int, int]):
    """A file as it was read: enough to notice that somebody has written it since."""

    __slots__ = ()

    def __new__(cls, inode: int, modified: int, size: int) -> Self:
        """From what the system tells."""
        return super().__new__(cls, (inode, modified, size))

    @property
    def inode(self) -> int:
        """Which file it was."""
        return self[0]

    @property
    def modified(self) -> int:
        """When it was written, in nanoseconds."""
        return self[1]

    @property
    def size(self) -> int:
        """How many bytes it had."""
        return self[2]


def seen(path: str) -> Seen | None:
    """The file as it is now; None where there is none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return Seen(found.st_ino, found.st_mtime_ns, found.st_size)


def seen_with_mode(path: str) -> tuple[Seen | None, int | None]:
    """The same, and its mode."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None, None
    return Seen(found.st_ino, found.st_mtime_ns, found.st_size), found.st_mode


def read(path: str, directory: int | None = None) -> bytes | None:
    """A file's bytes; None where there is none. A symbolic link is no task: it raises OSError (ELOOP).

    The path may be relative to an open directory.
    """
    try:
        fd = os.open(path, _READING, dir_fd=directory)
    except FileNotFoundError:
        return None
    try:
        return _rest(fd)
    finally:
        os.close(fd)


def read_seen(path: str) -> tuple[bytes, Seen] | None:
    """The same, and the file as it was before the first byte was read."""
    try:
        fd = os.open(path, _READING)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(fd)
        return _rest(fd), Seen(found.st_ino, found.st_mtime_ns, found.st_size)
    finally:
        os.close(fd)


def _rest(fd: int) -> bytes:
    data = os.read(fd, _BUFFER)
    if len(data) < _BUFFER:
        return data
    parts = [data]
    while chunk := os.read(fd, 1 << 20):
        parts.append(chunk)
    return b"".join(parts)
