"""The parts of a filesystem store, each made when it is first needed: who only asks loads nothing that writes.

Must not know what is done with them.
"""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock
from contextlib import suppress
from functools import cached_property

from aof.beneath import LinkInTheWay
from aof.core.errors import StorageFailed
from aof.stores.filesystem.disk import Disk
from aof.stores.filesystem.heads import Heads
from aof.stores.filesystem.intents import Intents
from aof.stores.filesystem.locks import Locks
from aof.stores.filesystem.paths import DIRECTORIES, Paths
from aof.stores.filesystem.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.ports.clock import Clock
    from aof.stores.filesystem.counter import Counter
    from aof.stores.filesystem.files import TaskFiles
    from aof.stores.filesystem.histories import Histories
    from aof.stores.filesystem.log import Log
    from aof.stores.filesystem.modes import Modes
    from aof.stores.filesystem.revs import Revs

_TRIES = 50


class Parts:
    """What one process has of one data directory."""

    def __init__(
        self,
        root: str,
        clock: Clock,
        *,
        durable: bool,
        lock_timeout: float,
        disk: Disk,
        boot: str,
        modes: Modes | None = None,
    ) -> None:
        self.paths = Paths(root)
        self.disk = disk
        disk.bind(root, modes)
        self._clock = clock
        self._boot = boot
        self._durable = durable
        self._log: Log | None = None
        self._making = allocate_lock()
        self.locks = Locks(self.paths.locks, clock, lock_timeout, self.renew, disk)
        self.reader = Reader(self.paths, durable=durable, flush=self._flush)
        self.heads = Heads(self.paths.heads, self.disk)
        self.intents = Intents(self.disk, self.paths.journal)

    @property
    def log(self) -> Log:
        """Where commits are appended; one for all threads."""
        if self._log is None:
            from aof.stores.filesystem.log import Log

            with self._making:
                if self._log is None:
                    self._log = Log(self.paths, self.locks, self.disk, durable=self._durable)
        return self._log

    def _flush(self, fd: int) -> None:
        self.log.flush(fd)

    @cached_property
    def files(self) -> TaskFiles:
        """The files of all tasks."""
        from aof.stores.filesystem.files import TaskFiles

        return TaskFiles(self.paths, self.disk)

    @cached_property
    def revs(self) -> Revs:
        """What commits prove themselves against."""
        from aof.stores.filesystem.revs import Revs

        return Revs(self.paths, self.disk, self.reader)

    @cached_property
    def histories(self) -> Histories:
        """What the log tells of single tasks."""
        from aof.stores.filesystem.histories import Histories

        return Histories(self.reader)

    @cached_property
    def counter(self) -> Counter:
        """Gives out the numbers of new tasks."""
        from aof.stores.filesystem.counter import Counter

        return Counter(self.paths, self.locks, self.disk, self.reader, lambda: self._boot)

    def make_folders(self) -> None:
        """Make what is missing, as after an interrupted beginning."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):  # unless somebody goes on deleting
                return self._make_folders()
        return self._make_folders()

    def _make_folders(self) -> None:
        self.disk.begin()
        for name in DIRECTORIES:
            path = f"{self.paths.root}/{name}"
            for _ in range(_TRIES):  # others may make it and delete it meanwhile
                found = _is_folder(path)
                if found:
                    break
                if found is False:
                    hint = "move what lies there away; nothing was changed"
                    raise StorageFailed(f"{name} is no folder", hint, path=path)
                with suppress(FileExistsError):
                    self.disk.make_dir(path)

    def renew(self) -> None:
        """Somebody has deleted folders or locks below us, as `git clean` does: go on with new ones."""
        with suppress(FileNotFoundError):
            self.make_folders()
        self.heads.reopen()
        self.intents.reopen()

    def close(self) -> None:
        """Let go of everything."""
        if self._log is not None:
            self._log.close()
        if "revs" in self.__dict__:
            self.revs.close()
        self.heads.close()
        self.intents.reopen()
        self.locks.close()
        self.disk.close()


def _is_folder(path: str) -> bool | None:
    """Whether a folder of ours is there, None for nothing; a link is refused: what is written would lie elsewhere."""
    try:
        found = os.stat(path, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found):
        raise LinkInTheWay(path)
    return stat.S_ISDIR(found)
