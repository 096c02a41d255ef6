"""The index's file: a cache that may be deleted, damaged or put back at any time, which costs only time.

It catches up from the log when it is asked something. It is built again where the last event that it has applied is not
in the log, where a writer of it died, or where it is not the file that the last writer left. Writers of tasks never
touch it. Our own lock keeps readers and writers apart, so it needs no journal, whose name could outlive a deleted file.
Where the disk is full it is built in memory for that one question: looking must not need space.
Must not know what it is asked.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

from aof.core.errors.storage import DiskFull, LogDamaged, StorageFailed
from aof.stores.filesystem.index import builder, schema
from aof.stores.filesystem.io.locks import HeldLock
from aof.stores.filesystem.io.read import Seen, seen
from aof.stores.filesystem.io.system import NO_SPACE, failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from aof.stores.filesystem.store import FilesystemStore

    _Answer = TypeVar("_Answer")

LOCK = "index"
_NOTE_BYTES = 80
_BROKEN = (sqlite3.Error, ValueError, LogDamaged)  # ValueError: a record that cannot be decoded
_inherited: list[_Open] = []


class _Open:
    """A connection, the process that opened it, and the file behind it."""

    def __init__(self, path: str, inode: int) -> None:
        self.inode = inode
        self.pid = os.getpid()
        self.database = schema.connect(path)

    def close(self) -> None:
        """Close it; what a parent process has opened is only set aside, for SQLite does not survive a fork."""
        if self.pid != os.getpid():
            _inherited.append(self)
        else:
            with suppress(sqlite3.Error):
                self.database.close()


class Asked:
    """What a question needs beside the tasks: audit records and health, texts to search, or what the log tells."""

    __slots__ = ("audited", "chronicled", "searched")

    def __init__(self, *, audited: bool = False, searched: bool = False, chronicled: bool = False) -> None:
        self.audited = audited
        self.chronicled = chronicled
        self.searched = searched


class Cache:
    """The cache of one data directory, as one process sees it. Safe for several threads."""

    def __init__(self, store: FilesystemStore) -> None:
        self._store = store
        self._path = store.paths.index
        self._idle: list[_Open] = []

    def ask(
        self,
        question: Callable[[sqlite3.Connection], _Answer],
        *,
        audited: bool = False,
        searched: bool = False,
        chronicled: bool = False,
    ) -> _Answer:
        """Put a question to a cache that has seen every event of the log; with audit, health, texts where asked for."""
        asked = Asked(audited=audited, searched=searched, chronicled=chronicled)
        try:
            return self._ask(question, asked)
        except LogDamaged:
            if not self._store.merger.untangle():
                raise
        except OSError as error:
            raise failed(error, "read the index") from error
        return self._ask(question, asked)

    def _ask(self, question: Callable[[sqlite3.Connection], _Answer], asked: Asked) -> _Answer:
        with self._locked(exclusive=False) as held, suppress(*_BROKEN), self._connection(held) as database:
            if database is not None and self._is_current(database) and _has(database, asked):
                return question(database)
        if asked.searched:
            from aof.stores.filesystem.index import text_table

            text_table.require_full_text()
        self._store.refuse_unsound()  # what is new to the cache may never have been durable
        with self._locked(exclusive=True) as held:
            with suppress(*_BROKEN), self._connection(held) as database:
                if database is not None and self._catch_up(held, database, asked):
                    return question(database)
            try:
                with self._built(held, asked) as database:
                    return question(database)
            except (OSError, DiskFull) as error:
                if not isinstance(error, DiskFull) and error.errno not in NO_SPACE:
                    raise
            with closing(schema.connect(":memory:")) as database:
                self._fill(database, asked)
                return question(database)

    def rebuild(self) -> None:
        """Throw the cache away and build it from the files and the log."""
        with self._locked(exclusive=True) as held, self._built(held, Asked()):
            pass

    def close(self) -> None:
        """Close this process's connections."""
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()

    @contextmanager
    def _locked(self, *, exclusive: bool) -> Iterator[HeldLock]:
        held = self._store.locks.take(LOCK, exclusive=exclusive)
        try:
            yield held
        finally:
            self._store.locks.release((held,))

    @contextmanager
    def _connection(self, held: HeldLock) -> Iterator[sqlite3.Connection | None]:
        """A connection to the file that the last writer left; None when that is not what is there now."""
        file = seen(self._path)
        if file is None or os.pread(held.fd, _NOTE_BYTES, 0) != _note(file):
            yield None
            return
        mine = self._open(file.inode)
        try:
            yield mine.database
        except BaseException:  # it is not used again
            mine.close()
            raise
        self._idle.append(mine)

    def _open(self, inode: int) -> _Open:
        while self._idle:
            with suppress(IndexError):
                known = self._idle.pop()
                if known.inode == inode and known.pid == os.getpid():
                    return known
                known.close()
        return _Open(self._path, inode)

    def _is_current(self, database: sqlite3.Connection) -> bool:
        return self._store.reader.end() == schema.applied_end(database)

    def _catch_up(self, held: HeldLock, database: sqlite3.Connection, asked: Asked) -> bool:
        """Apply what the log has and the cache has not; False when they do not belong together."""
        position = schema.applied_position(database)
        if position is None:
            return False
        if not self._store.reader.holds(position):
            self._store.log.replaced = True
            return False
        self._dirty(held)
        builder.catch_up(self._store, database, position)
        self._add(database, asked)
        self._clean(held)
        return True

    def _fill(self, database: sqlite3.Connection, asked: Asked) -> None:
        builder.build(self._store, database)
        self._add(database, asked)

    def _add(self, database: sqlite3.Connection, asked: Asked) -> None:
        """What takes a look at the whole log or at every file is put in where somebody asks.

        That is: audit records, the agents' health, the texts of the tasks, and the chronicle of runs and moves.
        """
        if asked.searched:
            from aof.stores.filesystem.index import text_table

            text_table.refresh(self._store, database)
        if not (asked.audited or asked.chronicled):
            return
        here = schema.applied_position(database)
        if here is not None and asked.audited and not schema.is_audited(database):
            from aof.stores.filesystem.index import audit_table, health_table

            audit_table.fill(database, self._store.reader, here.seq)
            health_table.fill(database, self._store.reader, here.seq)
        if here is not None and asked.chronicled:
            builder.chronicle(self._store, database, here.seq)

    @contextmanager
    def _built(self, held: HeldLock, asked: Asked) -> Iterator[sqlite3.Connection]:
        """A connection to a new file, which answers even if somebody deletes that file at once."""
        disk, temporary = self._store.disk, self._store.paths.temporary_file("index.sqlite")
        self._dirty(held)
        self.close()
        self._store.make_folders()
        self._sweep()
        disk.refuse_link(self._path)
        disk.write_new(temporary, b"")  # SQLite would give it a mode of its own
        try:
            with closing(schema.connect(temporary)) as database:
                self._fill(database, asked)
                disk.rename(temporary, self._path)
                self._clean(held)
                yield database
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise DiskFull("no space left to make the index", "free some space and try again") from error
            hint = "check the disk and the permissions"
            raise StorageFailed(f"the index cannot be made: {error}", hint) from error
        finally:
            with suppress(OSError):  # a part of an index may take much of a full disk
                disk.unlink(temporary)

    def _sweep(self) -> None:
        """Remove what killed processes had built of an index."""
        for entry in os.scandir(self._store.paths.temporary):
            if entry.name.startswith("index.sqlite."):
                pid = entry.name.rpartition(".")[2].partition("-")[0]
                if pid.isdigit() and _has_ended(int(pid)):  # else somebody has deleted its lock
                    with suppress(OSError):
                        self._store.disk.unlink(entry.path)

    def _dirty(self, held: HeldLock) -> None:
        self._store.disk.overwrite(held.fd, b"being written".ljust(_NOTE_BYTES - 1) + b"\n", 0)

    def _clean(self, held: HeldLock) -> None:
        """Note which file it is, so that any other one is noticed."""
        file = seen(self._path)
        if file is not None:
            self._store.disk.overwrite(held.fd, _note(file), 0)


def _has(database: sqlite3.Connection, asked: Asked) -> bool:
    if asked.searched:
        from aof.stores.filesystem.index import text_table

        if not text_table.is_fresh(database):
            return False
    if asked.chronicled and not builder.is_chronicled(database):
        return False
    return not asked.audited or schema.is_audited(database)


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _note(file: Seen) -> bytes:
    text = f"clean {file.inode} {file.size} {file.modified}"
    return text.encode("ascii").ljust(_NOTE_BYTES - 1) + b"\n"
