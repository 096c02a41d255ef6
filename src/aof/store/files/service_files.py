"""Small private files that the services of a data directory keep.

Who may call, whom to tell and how far that has come, and where the services can be reached.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
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

_MOST = 1_000_000  # bytes
_ADDRESSES_MOST = 65_536  # bytes
_GROUP_AND_OTHERS = 0o077


class _Folder:
    """A data directory as its services write to it: small files that are replaced in one step, under own locks."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float, disk: Disk | None) -> None:
        self.paths = Paths(root)
        self.disk = disk or Disk()
        self.disk.bind(root)
        self.locks = Locks(self.paths.locks, clock, lock_timeout, disk=self.disk)

    @contextmanager
    def alone(self, lock: str, doing: str) -> Iterator[bool]:
        """Whether nobody else has the lock; a process that ends lets go."""
        with clearly(doing):
            held = self.locks.take_free(lock)
        try:
            yield held is not None
        finally:
            if held is not None:
                self.locks.release([held])

    def write_private(self, path: str, data: bytes, temporary: str) -> None:
        """Replace a file that is for its owner alone."""
        self.disk.write_private(temporary, data)
        self.disk.rename(temporary, path)


def _is_private(found: os.stat_result) -> bool:
    """We make the file for its owner alone. One that came with a clone or a copy is open, and may be a stranger's."""
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & _GROUP_AND_OTHERS


class TokenFile:
    """The tokens of one data directory; read again when the file has changed."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float = 10.0) -> None:
        self._folder = _Folder(root, clock, lock_timeout, None)
        self._path = self._folder.paths.tokens
        # One value, replaced as a whole: threads that read different states cannot mix them.
        self._last: tuple[tuple[int, int, int] | None, tuple[Token, ...]] = (None, ())

    def all(self) -> tuple[Token, ...]:
        """Every token that is valid."""
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            return ()
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        last = self._last
        if seen != last[0]:
            last = self._last = (seen, self._read())
        _refuse_foreign(found)
        return last[1]

    def change(self, *, add: Token | None = None, remove: str | Collection[str] | None = None) -> bool:
        """Add one, remove one or some, durably; returns whether something changed."""
        gone = {remove} if isinstance(remove, str) else set(remove or ())
        folder = self._folder
        with clearly("change the tokens"):
            held = folder.locks.take("tokens")
            try:
                folder.disk.begin()
                folder.disk.refuse_link(self._path)
                before = self._read()
                after = tuple(token for token in before if token.id not in gone) + ((add,) if add else ())
                if after != before:
                    data = msgspec.json.format(msgspec.json.encode(after)) + b"\n"
                    folder.write_private(self._path, data, f"{folder.paths.temporary}/tokens-{os.getpid()}")
                    folder.disk.sync_dir(folder.paths.root)
                return after != before
            finally:
                folder.locks.release([held])

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
    """Refuse a file that is not private. It is looked at each time: a mode can change under a running server."""
    if stat.S_ISLNK(found.st_mode):
        raise InvalidInput("tokens.json is not used: it is a symbolic link", "remove it")
    if not _is_private(found):
        raise InvalidInput(
            f"tokens.json is not used: others can reach it (mode {found.st_mode & 0o777:o}, owner {found.st_uid})",
            "remove it; if you made it yourself, 'chmod 600' it",
        )


class PushTargetFiles:
    """Whom to push the changes of a task to: a private file for each task that has targets."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float = 10.0, disk: Disk | None = None) -> None:
        self._folder = _Folder(root, clock, lock_timeout, disk)

    def alone(self) -> AbstractContextManager[bool]:
        """Whether nobody else sends; a process that ends lets go."""
        return self._folder.alone("push:sender", "lock the push notifications")

    def tasks(self) -> frozenset[str]:
        """The tasks that have a file."""
        try:
            names = os.listdir(self._folder.paths.push)
        except FileNotFoundError:
            return frozenset()
        found = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return frozenset(name for name in found if is_task_id(name))

    def of(self, task_id: str) -> Targets:
        """The targets of a task; none where the file is damaged or may be a stranger's."""
        path = self._path(task_id)
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            data = read(path, limit=_MOST)
            if data is not None and _is_private(os.lstat(path)):
                return nesting.decode_json(data, tuple[PushTarget, ...])
        return ()

    def change(self, task_id: str, edit: Callable[[Targets], Targets]) -> Targets:
        """Replace them under a lock, in one step, durably; a task without any has no file."""
        folder = self._folder
        with clearly("keep the push targets of a task"):
            held = folder.locks.take("push:targets")
            try:
                before = self.of(task_id)
                after = edit(before)
                if after != before:
                    self._write(task_id, after)
                return after
            finally:
                folder.locks.release([held])

    def _write(self, task_id: str, targets: Targets) -> None:
        path, disk, paths = self._path(task_id), self._folder.disk, self._folder.paths
        disk.begin()
        if not os.path.isdir(paths.push):  # data directories of older versions have none, and do not tell git of it
            with suppress(FileExistsError):
                disk.make_dir(paths.push)
            disk.write_durable(f"{paths.push}/.gitignore", b"*\n")
        disk.refuse_link(path)
        if targets:
            data = msgspec.json.format(msgspec.json.encode(targets)) + b"\n"
            self._folder.write_private(path, data, paths.temporary_file(f"push-{task_id}"))
        else:
            with suppress(FileNotFoundError):
                disk.unlink(path)
        disk.sync_dir(paths.push)

    def _path(self, task_id: str) -> str:
        if not is_task_id(task_id):
            raise InvalidInput(f"{task_id[:80]!r} is no task", "name a task by its whole ID")
        return f"{self._folder.paths.push}/{task_id}.json"


class DeliveryFiles:
    """How far each notification channel has come."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float = 10.0, disk: Disk | None = None) -> None:
        self._folder = _Folder(root, clock, lock_timeout, disk)

    def alone(self, channel: str) -> AbstractContextManager[bool]:
        """Whether nobody else sends to the channel; a process that ends lets go."""
        return self._folder.alone(f"delivery:{channel}", "lock a notification channel")

    def load(self, channel: str) -> Delivery | None:
        """How far it has come; None also where the file cannot be read."""
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            found = read(self._path(channel), limit=_MOST)
            return nesting.decode_json(found, Delivery) if found is not None else None
        return None

    def save(self, channel: str, delivery: Delivery) -> None:
        """Keep it, in one step."""
        path, disk = self._path(channel), self._folder.disk
        new = f"{self._folder.paths.temporary}/delivery-{channel}-{os.getpid()}"
        with clearly("keep how far a notification channel has come"):
            disk.begin()
            disk.refuse_link(path)
            disk.write_new(new, msgspec.json.encode(delivery) + b"\n")
            disk.rename(new, path)

    def _path(self, channel: str) -> str:
        return f"{self._folder.paths.locks}/{lock_file_name(f'delivery:{channel}')}.json"


class ServiceAddresses:
    """The addresses of all services of one data directory."""

    def __init__(self, root: str) -> None:
        self._folder = Paths(root).locks
        self._disk = Disk()
        self._disk.bind(root)

    @contextmanager
    def announced(self, addresses: tuple[str, ...]) -> Iterator[None]:
        """Tell where this process can be reached, as long as the context lasts."""
        path = f"{self._folder}/service-{os.getpid()}"
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
        fd = self._disk.open_state(f"{self._folder}/service.lock")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield partial(fcntl.flock, fd, fcntl.LOCK_UN)
        finally:
            os.close(fd)

    def known(self) -> tuple[str, ...]:
        """The addresses of the services that run now."""
        found: list[str] = []
        for name in sorted(os.listdir(self._folder)):
            if name.startswith("service-"):
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
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:  # its process lives
                return nesting.decode_json(os.read(fd, _ADDRESSES_MOST), list[str])
            with suppress(OSError):
                self._disk.unlink(path)
        except msgspec.MsgspecError:
            return []
        finally:
            os.close(fd)
        return []
