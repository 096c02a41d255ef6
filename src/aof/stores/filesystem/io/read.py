"""How a file is looked at: its bytes, its digest, and what shows that somebody has written it since.

Only regular files are read, and only up to a size: a pipe, a device or an endless file is named by an error instead.
Must not know what the bytes mean, and changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from operator import itemgetter

from aof._support.hashing import hexdigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

LARGEST = 16 * 1024 * 1024  # bytes: many times what a task's file may have
_BUFFER = 8_192
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY  # a pipe must not hang us
digest = hexdigest  # what events and heads know a file by
NO_FILE = (errno.EINVAL, errno.EFBIG, errno.ENXIO, errno.ELOOP)  # what reading something unfit fails with
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
)


class Seen(tuple[int, int, int]):
    """A file as it was read: enough to notice that somebody has written it since."""

    __slots__ = ()

    def __new__(cls, inode: int, modified: int, size: int) -> Self:
        """From what the system tells."""
        return super().__new__(cls, (inode, modified, size))

    inode = property(itemgetter(0), doc="Which file it was.")
    modified = property(itemgetter(1), doc="When it was written, in nanoseconds.")
    size = property(itemgetter(2), doc="How many bytes it had.")


def seen(path: str) -> Seen | None:
    """The file as it is now; None where there is none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return Seen(found.st_ino, found.st_mtime_ns, found.st_size)


def found_at(path: str, known: os.stat_result) -> os.stat_result | None:
    """An open file as it is now; None if a path does not lead to it any more: somebody has deleted or moved it."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found if (found.st_ino, found.st_dev) == (known.st_ino, known.st_dev) else None


def seen_with_mode(path: str) -> tuple[Seen | None, int | None]:
    """The same, and its mode."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None, None
    return Seen(found.st_ino, found.st_mtime_ns, found.st_size), found.st_mode


def read(path: str, directory: int | None = None, *, limit: int | None = LARGEST) -> bytes | None:
    """A file's bytes; None where there is none. What is not a regular file, or is too large, raises OSError.

    The path may be relative to an open directory. A symbolic link is refused: it may have come with a clone.
    """
    opened = _opened(path, directory, limit)
    if opened is None:
        return None
    try:
        return _rest(opened[0], path, limit)
    finally:
        os.close(opened[0])


def read_piece(path: str, offset: int, most: int) -> tuple[bytes, int] | None:
    """At most so many bytes from an offset on, and the file's size; None where there is none. The file may be large."""
    opened = _opened(path, None, None)
    if opened is None:
        return None
    fd, found = opened
    try:
        return os.pread(fd, most, offset), found.st_size
    finally:
        os.close(fd)


def read_seen(path: str) -> tuple[bytes, Seen] | None:
    """The same, and the file as it was before the first byte was read."""
    opened = _opened(path, None, LARGEST)
    if opened is None:
        return None
    fd, found = opened
    try:
        return _rest(fd, path, LARGEST), Seen(found.st_ino, found.st_mtime_ns, found.st_size)
    finally:
        os.close(fd)


def refuse_link(folder: str) -> None:
    """Raise OSError for a folder that is a symbolic link: what lies in it may be anybody's."""
    if os.path.islink(folder):
        raise OSError(errno.ELOOP, "its folder is a symbolic link", folder)


def unfit(path: str, limit: int = LARGEST) -> str | None:
    """Why nobody should read what lies there: it is not a regular file, or too large. None where it can be read."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError as error:
        return error.strerror
    return _unfit(found, limit)


def _unfit(found: os.stat_result, limit: int | None) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "something else")
        return f"it is {kind}, not a regular file"
    if limit is not None and found.st_size > limit:
        return f"it has {found.st_size:,} bytes, more than {limit:,}"
    return None


def _opened(path: str, directory: int | None, limit: int | None) -> tuple[int, os.stat_result] | None:
    try:
        fd = os.open(path, _READING, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, not a regular file", path) from None
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a socket or a device, not a regular file", path) from None
        raise
    found = os.fstat(fd)
    if (why := _unfit(found, limit)) is not None:
        os.close(fd)
        raise OSError(errno.EFBIG if stat.S_ISREG(found.st_mode) else errno.EINVAL, why, path)
    return fd, found


def _rest(fd: int, path: str, limit: int | None) -> bytes:
    data = os.read(fd, _BUFFER)
    if len(data) < _BUFFER:
        return data
    parts, size = [data], len(data)
    while chunk := os.read(fd, 1 << 20):
        parts.append(chunk)
        size += len(chunk)
        if limit is not None and size > limit:  # it grows while it is read, or never ends
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", path)
    return b"".join(parts)
