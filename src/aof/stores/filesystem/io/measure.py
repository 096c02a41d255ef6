"""How many files and lines lie under a path: regular files only, no link is followed, and nothing without an end.

Must not know what the figures are for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from aof.stores.filesystem.io.read import digest, read

_MOST_FILES = 10_000
_MOST_BYTES = 256 * 1024 * 1024
_CHUNK = 1 << 20
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
_LARGEST = 4 * 1024 * 1024  # bytes: under a lock nobody reads more of one file
NAMED_ONLY = (1, 0)  # what is not there, or is no file, counts by its name


def measured(folder: str, ref: str) -> tuple[int, int]:
    """Files and lines of a path below the folder; the count ends where it is far beyond any limit."""
    path = os.path.realpath(f"{folder}/{ref}")
    if os.path.commonpath((os.path.realpath(folder), path)) != os.path.realpath(folder):
        return NAMED_ONLY
    files = lines = 0
    left = _MOST_BYTES
    for one in _files(path):
        more, size = _lines(one, left)
        files, lines, left = files + 1, lines + more, left - size
        if files >= _MOST_FILES or left <= 0:
            break
    return (files, lines) if files else NAMED_ONLY


def content_digest(folder: str, ref: str) -> str | None:
    """The SHA-256 of a file below the folder; None where it is none, lies elsewhere or is large."""
    path = os.path.realpath(f"{folder}/{ref}")
    if os.path.commonpath((os.path.realpath(folder), path)) != os.path.realpath(folder):
        return None
    try:
        data = read(path, limit=_LARGEST)
    except OSError:
        return None
    return None if data is None else digest(data)


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (f"{folder}/{name}" for name in sorted(names))


def _lines(path: str, most: int) -> tuple[int, int]:
    """The lines and bytes of one file; a last line without an end counts too."""
    try:
        fd = os.open(path, _READING)
    except OSError:
        return 0, 0
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return 0, 0
        lines, size, last = 0, 0, b"\n"
        while size < most and (chunk := os.read(fd, _CHUNK)):
            lines, size, last = lines + chunk.count(b"\n"), size + len(chunk), chunk[-1:]
        return lines + (last != b"\n"), size
    except OSError:
        return 0, 0
    finally:
        os.close(fd)
