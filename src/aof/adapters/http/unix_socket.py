"""A Unix socket that only its owner can open. Must not know what is served on it."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aof.core.errors.base import Unavailable

_MODE = 0o600
_LONGEST = 107  # bytes of a path that the kernel takes
_BACKLOG = 512
_PATIENCE = 2.0  # seconds: a living server accepts at once, or its queue is full


def listen_unix(given: str) -> socket.socket:
    """A listening socket at this path. One that nobody listens on any more is replaced, anything else is left alone."""
    path = Path(given).absolute()
    if len(os.fsencode(path)) > _LONGEST:
        raise Unavailable(f"the path {path} is too long for a socket", f"use one of at most {_LONGEST} bytes")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone(path.parent):
            _remove_stale(path)
            os.fchmod(bound.fileno(), _MODE)  # before it has a name: at no moment can others open it
            bound.bind(str(path))
            path.chmod(_MODE)  # where the kernel does not take over the mode
            bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise Unavailable(
            f"the socket {path} cannot be made: {error.strerror}", "name a path in a folder that you may write to"
        ) from None
    except Unavailable:
        bound.close()
        raise
    return bound


def remove_unix(bound: socket.socket, given: str, made: os.stat_result) -> None:
    """Take the name away, unless another server has taken it over."""
    bound.close()
    path = Path(given)
    with suppress(OSError):
        there = path.lstat()
        if (there.st_dev, there.st_ino) == (made.st_dev, made.st_ino):
            path.unlink()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Of two servers that start at once, the second looks after the first one listens."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _remove_stale(path: Path) -> None:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(there.st_mode):
        raise Unavailable(f"{path} is there and is not a socket", "name another path, or move that file away")
    if there.st_uid != os.geteuid():
        raise Unavailable(f"{path} belongs to another user", "name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PATIENCE)
        found = probe.connect_ex(str(path))
    if found != errno.ECONNREFUSED:
        raise Unavailable(f"a server is listening on {path}", "stop it first, or name another path")
    path.unlink()
