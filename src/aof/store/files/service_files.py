"""Small private files that the services of a data directory keep.

Who may call, whom to tell and how far that has come, and where the services can be reached.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import msgspec

from aof.errors import InvalidInput
from aof.kernel.model import is_task_id
from aof.kernel.ports import Delivery, PushTarget, Targets, Token
from aof.store.files.disk import Disk, clearly, read
from aof.store.files.locks import Locks, lock_file_name
from aof.store.files.paths import Paths
from aof.store.port import Clock
from aof.support import nesting

_LOCK = "tokens"
_GROUP_AND_OTHERS = 0o077


class TokenFile:
    """The tokens of one data directory; read again when the file has changed."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float = 10.0) -> None:
        self._paths = Paths(root)
        self._path = self._paths.tokens
        self._disk = Disk()
        self._disk.bind(root)
        self._locks = Locks(self._paths.locks, clock, lock_timeout, disk=self._disk)
        self._seen: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

    def all(self) -> tuple[Token, ...]:
        """Every token that is valid."""
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            return ()
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._tokens = self._read()
            self._seen = seen
        _refuse_foreign(found)
        return self._tokens

    def change(self, *, add: Token | None = None, remove: str | Collection[str] | None = None) -> bool:
        """Add one, remove one or some, durably; returns whether something changed."""
        gone = {remove} if isinstance(remove, str) else set(remove or ())
        with clearly("change the tokens"):
            held = self._locks.take(_LOCK)
            assert held is not None
            try:
                self._disk.begin()
                self._disk.refuse_link(self._path)
                before = self._read()
                after = tuple(token for token in before if token.id not in gone) + ((add,) if add else ())
                if after != before:
                    self._write(msgspec.json.format(msgspec.json.encode(after)) + b"\n")
                return after != before
            finally:
                self._locks.release([held])

    def _write(self, data: bytes) -> None:
        new = f"{self._paths.temporary}/tokens-{os.getpid()}"
        self._disk.write_private(new, data)
        self._disk.rename(new, self._path)
        self._disk.sync_dir(self._paths.root)

    def _read(self) -> tuple[Token, ...]:
        try:
            data = read(self._path)
            if data is None:
                return ()
            _refuse_foreign(os.lstat(self._path))
            return nesting.decode_json(data, tuple[Token, ...])
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidInput(f"tokens.json cannot be read: {error}", "correct it, or remove it") from None


def _refuse_foreign(found: os.stat_result) -> None:
    """AOF makes the file for its owner alone. One that came with a clone or a copy is open, and may be a stranger's.

    It is looked at each time: a mode can change under a running server.
    """
    if stat.S_ISLNK(found.st_mode):
        raise InvalidInput("tokens.json is not used: it is a symbolic link", "remove it")
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & _GROUP_AND_OTHERS:
        raise InvalidInput(
            f"tokens.json is not used: others can reach it (mode {found.st_mode & 0o777:o}, owner {found.st_uid})",
            "remove it; if you made it yourself, 'chmod 600' it",
        )


_PUSH_TARGETS_MOST = 1_000_000  # bytes
_SUFFIX = ".json"


class PushTargetFiles:
    """Keeps the contract of `ports.push.PushTargets` for one data directory."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float = 10.0, disk: Disk | None = None) -> None:
        self._paths = Paths(root)
        self._disk = disk or Disk()
        self._disk.bind(root)
        self._locks = Locks(self._paths.locks, clock, lock_timeout, disk=self._disk)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else sends; a process that ends lets go."""
        with clearly("lock the push notifications"):
            held = self._locks.take_free("push:sender")
        try:
            yield held is not None
        finally:
            if held is not None:
                self._locks.release([held])

    def tasks(self) -> frozenset[str]:
        """The tasks that have a file."""
        try:
            names = os.listdir(self._paths.push)
        except FileNotFoundError:
            return frozenset()
        found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return frozenset(name for name in found if is_task_id(name))

    def of(self, task_id: str) -> Targets:
        """The targets of a task; none where the file is damaged or may be a stranger's."""
        path = self._path(task_id)
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            data = read(path, limit=_PUSH_TARGETS_MOST)
            if data is not None and _is_private(os.lstat(path)):
                return nesting.decode_json(data, tuple[PushTarget, ...])
        return ()

    def change(self, task_id: str, edit: Callable[[Targets], Targets]) -> Targets:
        """Replace them under a lock, in one step, durably; a task without any has no file."""
        with clearly("keep the push targets of a task"):
            held = self._locks.take("push:targets")
            try:
                before = self.of(task_id)
                after = edit(before)
                if after != before:
                    self._write(task_id, after)
                return after
            finally:
                self._locks.release([held])

    def _write(self, task_id: str, targets: Targets) -> None:
        path = self._path(task_id)
        self._disk.begin()
        self._make_folder()
        self._disk.refuse_link(path)
        if targets:
            new = self._paths.temporary_file(f"push-{task_id}")
            self._disk.write_private(new, msgspec.json.format(msgspec.json.encode(targets)) + b"\n")
            self._disk.rename(new, path)
        else:
            with suppress(FileNotFoundError):
                self._disk.unlink(path)
        self._disk.sync_dir(self._paths.push)

    def _make_folder(self) -> None:
        """The folder says itself that git leaves it alone: data directories from before it was there don't."""
        if not os.path.isdir(self._paths.push):
            with suppress(FileExistsError):
                self._disk.make_dir(self._paths.push)
            self._disk.write_durable(f"{self._paths.push}/.gitignore", b"*\n")

    def _path(self, task_id: str) -> str:
        if not is_task_id(task_id):
            raise InvalidInput(f"{task_id[:80]!r} is no task", "name a task by its whole ID")
        return f"{self._paths.push}/{task_id}{_SUFFIX}"


def _is_private(found: os.stat_result) -> bool:
    """We make the file for its owner alone. One that came with a clone or a copy is open, and may be a stranger's."""
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & _GROUP_AND_OTHERS


_DELIVERIES_MOST = 1_000_000  # bytes


class DeliveryFiles:
    """Keeps the contract of `ports.notifier.Deliveries` for one data directory."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float = 10.0, disk: Disk | None = None) -> None:
        self._paths = Paths(root)
        self._disk = disk or Disk()
        self._disk.bind(root)
        self._locks = Locks(self._paths.locks, clock, lock_timeout, disk=self._disk)

    @contextmanager
    def alone(self, channel: str) -> Iterator[bool]:
        """Whether nobody else sends to the channel; a process that ends lets go."""
        with clearly("lock a notification channel"):
            held = self._locks.take_free(f"delivery:{channel}")
        try:
            yield held is not None
        finally:
            if held is not None:
                self._locks.release([held])

    def load(self, channel: str) -> Delivery | None:
        """How far it has come; None also where the file cannot be read."""
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            found = read(self._path(channel), limit=_DELIVERIES_MOST)
            return nesting.decode_json(found, Delivery) if found is not None else None
        return None

    def save(self, channel: str, delivery: Delivery) -> None:
        """Keep it, in one step."""
        path = self._path(channel)
        new = f"{self._paths.temporary}/delivery-{channel}-{os.getpid()}"
        with clearly("keep how far a notification channel has come"):
            self._disk.begin()
            self._disk.refuse_link(path)
            self._disk.write_new(new, msgspec.json.encode(delivery) + b"\n")
            self._disk.rename(new, path)

    def _path(self, channel: str) -> str:
        return f"{self._paths.locks}/{lock_file_name(f'delivery:{channel}')}.json"


_PREFIX, _STARTING = "service-", "service.lock"
_SERVICE_ADDRESS_MOST = 65_536  # bytes


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
                return nesting.decode_json(os.read(fd, _SERVICE_ADDRESS_MOST), list[str])
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
