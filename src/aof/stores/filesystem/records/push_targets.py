"""Push targets of peers: one private file per task in `push/`, which neither git nor an export takes along.

Must not know what a target is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from aof._support import nesting
from aof.core.errors.base import InvalidInput
from aof.core.model.ids import is_task_id
from aof.ports.clock import Clock
from aof.ports.push import PushTarget, Targets
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.locks import Locks
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.io.system import clearly

_MOST = 1_000_000  # bytes
_SUFFIX = ".json"
_GROUP_AND_OTHERS = 0o077


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
            held = self._locks.acquire("push:sender", wait=False)
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
            data = read(path, limit=_MOST)
            if data is not None and _is_private(os.lstat(path)):
                return nesting.decode(data, tuple[PushTarget, ...])
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
