"""Locks between processes and threads: `flock` on small files, shared or exclusive, waited for within bounds.

Every holder has an open file of its own, so `flock` keeps threads apart as well as processes. A lock is never
stolen: it ends when its holder lets go or dies. Must not know what the locks protect.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress

from aof._support.hashing import hexdigest
from aof.core.errors.storage import LockTimeout
from aof.stores.filesystem.io import owners
from aof.stores.filesystem.io.disk import Disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.ports.clock import Clock

STRIPES = 64
STRIPE_NAMES = tuple(f"stripe-{number:02d}" for number in range(STRIPES))
_READABLE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-")
_TRIES = 50
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0001, 0.002
_OPEN_LOCKS: weakref.WeakSet[Locks] = weakref.WeakSet()


class HeldLock:
    """One held lock: the open file, whether it is exclusive, and its name."""

    __slots__ = ("exclusive", "fd", "name")

    def __init__(self, name: str, fd: int, *, exclusive: bool) -> None:
        self.name = name
        self.fd = fd
        self.exclusive = exclusive


class Locks:
    """The lock files of one data directory."""

    def __init__(
        self,
        folder: str,
        clock: Clock,
        timeout: float,
        deleted: Callable[[], None] | None = None,
        disk: Disk | None = None,
    ) -> None:
        self._folder = folder
        self._disk = disk or Disk()
        self._deleted = deleted
        self._clock = clock
        self._timeout = timeout
        self._idle: dict[str, list[int]] = {}
        self._all: set[int] = set()
        _OPEN_LOCKS.add(self)

    def acquire(self, name: str, *, exclusive: bool = True, wait: bool = True) -> HeldLock | None:
        """Take a lock; None only when it is taken and `wait` is off."""
        mode = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
        deadline = 0.0
        pause = _FIRST_PAUSE
        while True:
            fd = self._open(name)
            try:
                fcntl.flock(fd, mode)
            except BlockingIOError:
                self._idle.setdefault(name, []).append(fd)
                if not wait:
                    return None
                now = self._clock.monotonic()
                deadline = deadline or now + self._timeout
                if now >= deadline:
                    raise self._given_up(name, fd) from None
                self._clock.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            if os.fstat(fd).st_nlink:
                return HeldLock(name, fd, exclusive=exclusive)
            self._forget(fd)
            if self._deleted is not None:
                self._deleted()

    def take(self, name: str, *, exclusive: bool = True) -> HeldLock:
        """Take a lock, waiting for it."""
        held = self.acquire(name, exclusive=exclusive)
        assert held is not None
        return held

    def acquire_all(self, wanted: Iterable[tuple[str, bool]]) -> list[HeldLock]:
        """Take several locks in the one order that all use, so that nobody waits in a circle."""
        held: list[HeldLock] = []
        try:
            for name, exclusive in sorted(wanted):
                held.append(self.take(name, exclusive=exclusive))
        except BaseException:
            self.release(held)
            raise
        return held

    def release(self, held: Iterable[HeldLock]) -> None:
        """Let go; the open files are kept for next time."""
        for lock in held:
            if lock.fd in self._all:
                fcntl.flock(lock.fd, fcntl.LOCK_UN)
                self._idle.setdefault(lock.name, []).append(lock.fd)

    def close(self) -> None:
        """Close every file, which lets go of every lock."""
        for fd in list(self._all):
            self._forget(fd)
        self._idle.clear()

    def _open(self, name: str) -> int:
        idle = self._idle.get(name)
        if idle:
            with suppress(IndexError):  # another thread may have taken it meanwhile
                return idle.pop()
        fd = self._opened(name) if self._deleted is None else self._made(name, self._deleted)
        self._all.add(fd)
        return fd

    def _made(self, name: str, deleted: Callable[[], None]) -> int:
        """Open the file, even if somebody deletes the folder meanwhile."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return self._opened(name)
            deleted()
        return self._opened(name)

    def _opened(self, name: str) -> int:
        """A name with a slash in front is that folder itself, for what must not end when somebody deletes locks."""
        if name.startswith("/"):
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._disk.open_state(f"{self._folder}/{file_name(name)}")

    def _forget(self, fd: int) -> None:
        self._all.discard(fd)
        with suppress(OSError):
            os.close(fd)

    def _given_up(self, name: str, fd: int) -> LockTimeout:
        pids = holders(os.fstat(fd).st_ino)
        of = {pid: owners.runs_as(pid) for pid in pids}
        named = ", ".join(f"{pid} of {user}" if (user := of[pid]) else f"{pid}" for pid in pids)
        who = f"process {named}" if pids else "another process"
        return LockTimeout(
            f"waited {self._timeout:g} s for the lock '{name}', which {who} holds",
            f"look at what {who} does; end it if it hangs, then try again",
            pids=pids,
            owners=[of[pid] for pid in pids],
            lock=name,
        )


def stripe(task_id: str) -> str:
    """The name of the lock that a task shares with about one in 64 others: neighbours get different ones."""
    return STRIPE_NAMES[int(task_id[16:]) % STRIPES]


def file_name(name: str) -> str:
    """A lock's file: readable where the name allows it, a digest where it would be too long."""
    if _READABLE.issuperset(name):
        readable = name
    else:
        readable = "".join(
            one if one in _READABLE else "".join(f"%{byte:02X}" for byte in one.encode()) for one in name
        )
    return readable if len(readable) <= 100 else hexdigest(name.encode())  # noqa: PLR2004 - a file name


def holders(inode: int) -> list[int]:
    """The processes that hold a `flock` on the file, where the system tells (Linux)."""
    try:
        with open("/proc/locks", encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return []
    pids = (int(row[4]) for row in rows if "FLOCK" in row and "->" not in row and row[5].endswith(f":{inode}"))
    return list(dict.fromkeys(pids))  # the table may tell a lock twice when it changes while it is read


def _after_fork() -> None:
    """A child must not keep its parent's locks alive: it closes the inherited files and opens its own."""
    for locks in list(_OPEN_LOCKS):
        locks.close()


os.register_at_fork(after_in_child=_after_fork)
