"""Where the services of a data directory can be reached. Must not know what they serve.

Each service keeps its file locked as long as it runs, so a file that a dead one left behind is not believed: somebody
else may listen at its address by now. Nor is a file of another user: a link that lets somebody in must not go there.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import msgspec

from aof._support import nesting
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths

_PREFIX, _STARTING = "service-", "service.lock"
_MOST = 65_536  # bytes


class ServiceAddresses:
    """The addresses of all services of one data directory."""

    def __init__(self, root: str) -> None:
        self._folder = Paths(root).locks
        self._disk = Disk()
        self._disk.bind(root)

    @contextmanager
    def announced(self, addresses: tuple[str, ...]) -> Iterator[None]:
        """Tell where this process can be reached, as long as the context lasts."""
        path = f"{self._folder}/{_PREFIX}{os.getpid()}"
        with suppress(OSError):
            self._disk.unlink(path)  # of an earlier process with the same number
        self._disk.write_private(path, msgspec.json.encode(addresses))
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            with suppress(OSError):
                self._disk.unlink(path)
            os.close(fd)

    @contextmanager
    def starting(self) -> Iterator[Callable[[], None]]:
        """One process at a time looks for a service and starts one: until the context ends, or what it gives is called.

        A process that dies lets the next one in.
        """
        fd = self._disk.open_state(f"{self._folder}/{_STARTING}")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield partial(fcntl.flock, fd, fcntl.LOCK_UN)
        finally:
            os.close(fd)

    def known(self) -> tuple[str, ...]:
        """The addresses of the services that run now."""
        found: list[str] = []
        for name in sorted(os.listdir(self._folder)):
            if name.startswith(_PREFIX):
                found += self._addresses(f"{self._folder}/{name}")
        return tuple(found)

    def _addresses(self, path: str) -> list[str]:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            if os.fstat(fd).st_uid != os.geteuid():
                return []
            if _is_locked(fd):
                return nesting.decode(os.read(fd, _MOST), list[str])
            with suppress(OSError):
                self._disk.unlink(path)
        except msgspec.MsgspecError:
            return []
        finally:
            os.close(fd)
        return []


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
