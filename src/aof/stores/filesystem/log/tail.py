"""The end of a log file: found from behind, so that it costs the same however long the file is. Changes nothing."""

from __future__ import annotations

import os

from aof.core.model.events import Event
from aof.stores.filesystem.log import chain

_WINDOW = 1 << 16


def tail(fd: int) -> tuple[int, bytes]:
    """The end of an open log file, with at least one whole commit if there is any: where it begins, and the bytes."""
    size = os.fstat(fd).st_size
    window = _WINDOW
    while window < size:
        data = os.pread(fd, window, size - window)
        begin = _first_commit(data)
        if begin is not None and chain.last_commit_end(data[begin:])[0]:
            return size - window + begin, data[begin:]
        window *= 16
    return 0, os.pread(fd, size, 0)


def _first_commit(data: bytes) -> int | None:
    """Where the first commit that begins inside the window begins; None when none does."""
    position = data.find(b"\n") + 1
    while 0 < position < len(data):
        end = data.find(b"\n", position)
        if end < 0:
            return None
        if chain.decode(data[position : end + 1]).commit[0] == 1:
            return position
        position = end + 1
    return None


def last_event(path: str) -> Event | None:
    """The last event of the last whole commit in a file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return chain.last_commit_end(tail(fd)[1])[1]
    finally:
        os.close(fd)
