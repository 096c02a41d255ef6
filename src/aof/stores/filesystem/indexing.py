"""How the index's tables are filled: from the files, which are fast to read, and from the log.

Must not know where the database lies, nor who may use it when.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from aof.core.errors import AofError, LogDamaged
from aof.core.ids import is_task_id
from aof.core.tasks.evolve import evolve
from aof.core.tasks.task import Task
from aof.stores.filesystem import checkpoint, markdown, rows
from aof.stores.filesystem.files import read
from aof.stores.filesystem.reader import Position
from aof.stores.fold import fold

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore

_BATCH = 5_000


def connect(path: str) -> sqlite3.Connection:
    """Open a database that other means protect and that may be lost."""
    database = sqlite3.connect(path, timeout=10, isolation_level="DEFERRED", check_same_thread=False)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA temp_store = MEMORY")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def position(database: sqlite3.Connection) -> Position | None:
    """Behind which event of the log the tables stand; None when another version of AOF has filled them."""
    found = database.execute("SELECT version, day, position, seq, digest FROM meta").fetchone()
    if found is None or found[0] != rows.VERSION:
        return None
    return Position(*found[1:])


def catch_up(store: FilesystemStore, database: sqlite3.Connection, start: Position) -> None:
    """Apply the events behind a position."""
    tasks: dict[str, Task | None] = {}
    here = start
    with database:
        for here, lines in store.reader.commits(start):  # noqa: B007 - the last position is what counts
            for _, event in lines:
                if not event.task_id:
                    continue
                if event.task_id not in tasks:
                    tasks[event.task_id] = _load(database, event.task_id)
                try:
                    tasks[event.task_id] = evolve(tasks[event.task_id], event)
                except (ValueError, KeyError, TypeError) as error:
                    raise LogDamaged(f"event {event.seq} cannot be applied: {error}", "run 'aof doctor'") from error
            if len(tasks) >= _BATCH:
                _replace(database, tasks.values())
                tasks.clear()
        _replace(database, tasks.values())
        day, end = store.reader.end()
        if not here.day or (day > here.day and not end):
            here = Position(day, 0, here.seq, here.digest)
        database.execute("DELETE FROM meta")
        values = (rows.VERSION, here.day, here.offset, here.seq, here.digest)
        database.execute("INSERT INTO meta VALUES (?, ?, ?, ?, ?)", values)


def build(store: FilesystemStore, database: sqlite3.Connection) -> None:
    """Fill an empty database: from the files, and from the log where a file is odd, missing or in flight."""
    known = checkpoint.load(store.paths)
    since = known.position if known is not None and store.reader.holds(known.position) else Position()
    database.executescript(rows.TABLES)
    odd: set[str] = set()
    with database:
        _insert(database, _files(store, odd))
    touched = {event.task_id for _, lines in store.reader.commits(since) for _, event in lines if event.task_id}
    touched.update(store.heads.ids())
    odd |= {task_id for task_id in touched if not _has(database, task_id)}
    with database:
        folded = fold(store.reader.of_tasks(odd)) if odd else {}
        _insert(database, (one.task for one in folded.values() if one.task is not None))
    database.executescript(rows.INDEXES)
    catch_up(store, database, since)


def _files(store: FilesystemStore, odd: set[str]) -> Iterator[Task]:
    """Every task whose file is as the log wrote it; the IDs of the others go to `odd`."""
    for folder, path in store.paths.folders:
        for entry in os.scandir(path):
            name = entry.name
            if not name.endswith(".md") or not is_task_id(name[:-3]):
                continue
            try:
                data = read(path + name)
                head = store.heads.get(name[:-3])
                if data is not None and head is not None and head.folder == folder and head.matches(data):
                    yield markdown.parse(data, archived=folder == "archive")
                    continue
            except (OSError, AofError):
                pass
            odd.add(name[:-3])


def _load(database: sqlite3.Connection, task_id: str) -> Task | None:
    found = database.execute("SELECT record FROM tasks WHERE id = ?", (task_id,)).fetchone()
    return rows.record(found[0]) if found is not None else None


def _has(database: sqlite3.Connection, task_id: str) -> bool:
    return database.execute("SELECT 1 FROM tasks WHERE id = ?", (task_id,)).fetchone() is not None


def _replace(database: sqlite3.Connection, tasks: Iterable[Task | None]) -> None:
    changed = [task for task in tasks if task is not None]
    database.executemany("DELETE FROM edges WHERE task = ?", ((task.id,) for task in changed))
    _insert(database, changed)


def _insert(database: sqlite3.Connection, tasks: Iterable[Task]) -> None:
    edges: list[tuple[str, str]] = []

    def made() -> Iterator[tuple[Any, ...]]:
        for task in tasks:
            edges.extend((task.id, blocker) for blocker in task.depends_on)
            yield rows.row(task)

    database.executemany(rows.UPSERT, made())
    database.executemany("INSERT OR REPLACE INTO edges VALUES (?, ?)", edges)
