"""The parts of a filesystem store, each built on first use, so that read-only commands never load the write path.

Must not know what is done with them.
"""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock
from contextlib import suppress
from functools import cached_property

from aof._support.confined_folder import LinkInTheWay
from aof.core.errors.storage import StorageFailed
from aof.stores.filesystem.integrity.waited import Waited
from aof.stores.filesystem.io import id_counter
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.locks import Locks
from aof.stores.filesystem.io.paths import DIRECTORIES, Paths
from aof.stores.filesystem.log import reader, writer
from aof.stores.filesystem.log.lane_names import LaneNames
from aof.stores.filesystem.log.reader import Reader
from aof.stores.filesystem.recovery.journal import Journal
from aof.stores.filesystem.working_copy.manifest import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from aof.core.model.events import Event
    from aof.ports.clock import Clock
    from aof.ports.store import HashedEvent
    from aof.stores.filesystem.documents.desk import Documents
    from aof.stores.filesystem.integrity.guard import Revs
    from aof.stores.filesystem.io.disk import Modes
    from aof.stores.filesystem.log.writer import Log
    from aof.stores.filesystem.working_copy.clone import Clone
    from aof.stores.filesystem.working_copy.files import TaskFiles

AWAY_MS = 24 * 3_600_000  # how long a run of another clone counts as alive without a sign of life
_TRIES = 50


class Parts:
    """What one process has of one data directory."""

    repairs: bool = True

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
        away_ms: int = AWAY_MS,
    ) -> None:
        self.paths = Paths(root)
        self.disk = disk
        disk.bind(root, modes)
        self._clock = clock
        self._boot = boot
        self._durable = durable
        self._away_ms = away_ms
        self._making = allocate_lock()
        self.locks = Locks(self.paths.locks, clock, lock_timeout, self.renew, disk)
        self.reader = Reader(self.paths, durable=durable, flush=self._flush)
        self.heads = Manifest(self.paths.heads, self.disk)
        self.intents = Journal(self.disk, self.paths.journal)

    @cached_property
    def waited(self) -> Waited:
        """The tasks that others may wait for; a command that neither makes nor ends such a wait does not ask."""
        return Waited(self.paths.waited, self.disk)

    @cached_property
    def log(self) -> writer.Log:
        """Where commits are appended; one for all threads."""
        with self._making:
            known: Log | None = self.__dict__.get("log")
            if known is None:
                layouts = self.reader.layouts
                known = writer.Log(
                    self.paths,
                    self.locks,
                    self.disk,
                    durable=self._durable,
                    layouts=layouts,
                    beginning=self.refuse_lost_log,
                )
                self.__dict__["log"] = known
            return known

    def refuse_unsound(self) -> None:
        """For who is about to answer from events that nobody has answered from before."""
        raise NotImplementedError

    def refuse_lost_log(self) -> None:
        """The log is empty: raise LogDamaged where anything shows that it was not."""
        raise NotImplementedError

    def _flush(self, fd: int) -> None:
        self.log.flush(fd)

    @cached_property
    def files(self) -> TaskFiles:
        """The files of all tasks."""
        from aof.stores.filesystem.working_copy.files import TaskFiles

        return TaskFiles(self.paths, self.disk)

    @cached_property
    def revs(self) -> Revs:
        """What commits prove themselves against."""
        from aof.stores.filesystem.integrity.guard import Revs

        return Revs(self.paths, self.disk, self.reader)

    @cached_property
    def histories(self) -> reader.Histories:
        """What the log tells of single tasks."""
        return reader.Histories(self.reader)

    @cached_property
    def lane_names(self) -> LaneNames:
        """Whether other clones have written to the log, and whether histories were ever merged."""
        return LaneNames(self.paths)

    @cached_property
    def counter(self) -> id_counter.Counter:
        """Gives out the numbers of new tasks."""
        return id_counter.Counter(
            self.paths, self.locks, self.disk, self.reader, lambda: self._boot, numbers=self.clone.numbers
        )

    @cached_property
    def clone(self) -> Clone:
        """The identity of this clone among others of the same history."""
        from aof.stores.filesystem.log.claims import Claims
        from aof.stores.filesystem.working_copy.clone import Clone

        return Clone(self.locks, self.disk, Claims(self.paths, self.disk), self.lane_names, self._away_ms)

    @cached_property
    def documents(self) -> Documents:
        """The documents that follow the log."""
        from aof.stores.filesystem.documents.desk import Documents

        return Documents(self, self._boot, durable=self._durable)

    def told(self, types: tuple[str, ...], since: str = "") -> Iterator[Event]:
        """Durable events of some types only."""
        self.refuse_unsound()
        return reader.events_since(self.reader, types, since)

    def hashed(self, beginning: str) -> tuple[HashedEvent, ...]:
        """Durable events by the beginning of their hashes."""
        from aof.stores.filesystem.merge import hashes

        self.refuse_unsound()
        return hashes.hashed(self.reader, beginning)

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
                    raise StorageFailed(f"{name} is not a folder", hint, path=path)
                with suppress(FileExistsError):
                    self.disk.make_dir(path)

    def renew(self) -> None:
        """Somebody has deleted folders or locks below us, as `git clean` does: go on with new ones."""
        with suppress(FileNotFoundError):
            self.make_folders()
        self.heads.reopen()
        self.intents.reopen()
        if "clone" in self.__dict__:
            self.clone.forget()

    def close(self) -> None:
        """Let go of everything."""
        if "log" in self.__dict__:
            self.log.close()
        if "revs" in self.__dict__:
            self.revs.close()
        if "waited" in self.__dict__:
            self.waited.close()
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
