"""How the index's tables are filled: from the files, which are fast to read, and from the log.

Must not know where the database lies, nor who may use it when.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aof.core.errors import AofError, LogDamaged
from aof.core.events import Event
from aof.core.tasks.evolve import evolve
from aof.core.tasks.task import Task
from aof.stores.filesystem import checkpoint, markdown, rows
from aof.stores.filesystem.files import digest, read
from aof.stores.filesystem.heads import Head
from aof.stores.filesystem.locks import stripe
from aof.stores.filesystem.reader import Position
from aof.stores.fold import fold

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore

_BATCH = 5_000


def catch_up(store: FilesystemStore, database: sqlite3.Connection, start: Position) -> None:
    """Apply the events behind a position."""
    tasks: dict[str, Task | None] = {}
    here = start
    written: dict[str, Event] = {}
    with database:
        for here, lines in store.reader.proven(start):  # noqa: B007 - the last position is what counts
            for _, event in lines:
                _apply(database, tasks, event)
                if event.files:
                    written[event.task_id] = event
            if len(tasks) >= _BATCH:
                _replace(database, tasks.values())
                tasks.clear()
        _replace(database, tasks.values())
        _remember(store, database, here)
    for event in written.values():
        _follow(store, event)


def _follow(store: FilesystemStore, event: Event) -> None:
    """A version that came with its file from elsewhere, as `git pull` brings them, gets its head."""
    head = store.heads.get(event.task_id)
    if head is not None and head.rev >= event.seq:
        return
    path, mark = next((one for one in event.files.items() if not one[0].startswith("runs/")), ("", ""))
    held = store.locks.acquire(stripe(event.task_id), wait=False)
    if held is None:
        return  # somebody is writing it
    try:
        head = store.heads.get(event.task_id)
        if (head is None or head.rev < event.seq) and not store.intents.left(held):
            with suppress(OSError):
                data = read(f"{store.paths.root}/{path}")
                if data is not None and digest(data) == mark:
                    folder = "archive" if path.startswith("archive/") else path.split("/")[1]
                    store.heads.put(event.task_id, event.seq, folder, mark)
    finally:
        store.locks.release((held,))


def _apply(database: sqlite3.Connection, tasks: dict[str, Task | None], event: Event) -> None:
    if not event.task_id:
        return
    if event.task_id not in tasks:
        tasks[event.task_id] = _load(database, event.task_id)
    try:
        tasks[event.task_id] = evolve(tasks[event.task_id], event)
    except (ValueError, KeyError, TypeError) as error:
        raise LogDamaged(f"event {event.seq} cannot be applied: {error}", "run 'aof doctor'") from error


def _remember(store: FilesystemStore, database: sqlite3.Connection, here: Position) -> None:
    day, end = store.reader.end()
    if not here.day or (day > here.day and not end):
        here = Position(day, 0, here.seq, here.digest)
    database.execute("DELETE FROM meta")
    values = (rows.VERSION, here.day, here.offset, here.seq, here.digest)
    database.execute("INSERT INTO meta VALUES (?, ?, ?, ?, ?)", values)


def build(store: FilesystemStore, database: sqlite3.Connection) -> None:
    """Fill an empty database: from the files, and from the log where a file is odd, missing or in flight.

    Every event up to the checkpoint is in the files; of those behind it, only what a file has not seen yet matters.
    """
    known = checkpoint.load(store.paths) if not store.log.replaced else None
    since = known.position if known is not None and store.reader.holds(known.position) else Position()
    database.executescript(rows.TABLES)
    heads = store.heads.table() if not store.log.replaced else {}  # those of another log say nothing
    seen: dict[str, int] = {}
    with database:
        _insert(database, _files(store, heads, seen))
    here, fresh = store.reader.unseen(since, seen)
    odd = heads.keys() - seen.keys() | {event.task_id for event in fresh if event.task_id not in seen}
    with database:
        folded = fold(store.reader.of_tasks(odd), until=here.seq) if odd else {}
        _insert(database, ((one.task, None) for one in folded.values() if one.task is not None))
        database.executescript(rows.INDEXES)
        tasks: dict[str, Task | None] = {}
        for event in fresh:
            if event.task_id not in odd:
                _apply(database, tasks, event)
        _replace(database, tasks.values())
        _remember(store, database, here)


def _files(store: FilesystemStore, heads: dict[str, Head], seen: dict[str, int]) -> Iterator[tuple[Task, bytes | None]]:
    """Every task whose file is as the log wrote it, with its record where that is at hand; notes their numbers."""
    for folder, path in store.paths.folders:
        for entry in os.scandir(path):
            name = entry.name
            head = heads.get(name[:-3])
            if head is None or head.folder != folder or not name.endswith(".md"):
                continue
            try:
                data = read(path + name)
                if data is None or not head.matches(data):
                    continue
                own = markdown.parse_own(data) if folder != "archive" else None
                task, record = own or (markdown.parse(data, archived=folder == "archive"), None)
            except (OSError, AofError):
                continue
            seen[task.id] = task.rev
            yield task, record


def _load(database: sqlite3.Connection, task_id: str) -> Task | None:
    found = database.execute("SELECT record FROM tasks WHERE id = ?", (task_id,)).fetchone()
    return rows.record(found[0]) if found is not None else None


def _replace(database: sqlite3.Connection, tasks: Iterable[Task | None]) -> None:
    changed = [task for task in tasks if task is not None]
    database.executemany("DELETE FROM edges WHERE task = ?", ((task.id,) for task in changed))
    _insert(database, ((task, None) for task in changed))


def _insert(database: sqlite3.Connection, tasks: Iterable[tuple[Task, bytes | None]]) -> None:
    edges: list[tuple[str, str]] = []

    def made() -> Iterator[tuple[Any, ...]]:
        for task, record in tasks:
            edges.extend((task.id, blocker) for blocker in task.depends_on)
            yield rows.row(task, record)

    database.executemany(rows.UPSERT, made())
    database.executemany("INSERT OR REPLACE INTO edges VALUES (?, ?)", edges)
