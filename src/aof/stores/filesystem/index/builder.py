"""How the index's tables are filled: from the files, which are fast to read, and from the log.

The heads say where each file lies and how its digest begins, so no folder is listed, and what was checked that way may
be decoded the short way. Must not know where the database lies, nor who may use it when.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

from aof._support.gc_pause import uncollected
from aof._support.hashing import hexdigest
from aof.core.errors.base import AofError
from aof.core.errors.storage import LogDamaged
from aof.core.evolve.task import evolve
from aof.core.model.events import Event, is_remark
from aof.core.model.ids import is_task_id
from aof.core.model.task import Task
from aof.stores.base.fold import fold
from aof.stores.filesystem.index import attention_table, queries, schema
from aof.stores.filesystem.index.schema import is_audited, is_searched
from aof.stores.filesystem.io.locks import stripe
from aof.stores.filesystem.io.paths import Paths, folder_of
from aof.stores.filesystem.io.read import digest, read
from aof.stores.filesystem.log.lane_names import day_of
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.recovery import journal
from aof.stores.filesystem.store import FilesystemStore
from aof.stores.filesystem.working_copy import markdown

_AT_ONCE = 200  # files: one kind of work for many of them keeps the processor's caches warm
Recorded = tuple[Task, bytes | None]  # a task without its body, and its record as JSON where that is at hand
Noted = dict[str, list[tuple[str, str]]]  # by folder, the tasks and how the digests of their files begin
_BATCH = 5_000


def intact(paths: Paths, noted: Noted) -> Iterator[Sequence[Recorded]]:
    """The tasks, folder by folder in the order of their IDs."""
    for folder, path in paths.folders:
        tasks = noted[folder]
        if not tasks:
            continue
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for start in range(0, len(tasks), _AT_ONCE):
                files = list(_unchanged(directory, tasks[start : start + _AT_ONCE]))
                yield _parsed(files, archived=folder == "archive")
        finally:
            os.close(directory)


def _unchanged(directory: int, tasks: list[tuple[str, str]]) -> Iterator[bytes]:
    """The files that are as the log wrote them."""
    for task_id, beginning in tasks:
        try:
            data = read(f"{task_id}.md", directory)
        except OSError:
            continue
        if data is not None and hexdigest(data).startswith(beginning):
            yield data


def _parsed(files: Sequence[bytes], *, archived: bool) -> Sequence[Recorded]:
    """What the files hold: of many at once if they are all canonical, or of one after the other."""
    if not archived and (together := markdown.parse_heads(files)) is not None:
        return together
    found: list[Recorded] = []
    for data in files:
        with suppress(AofError):
            own = None if archived else markdown.parse_own(data)
            found.append(own or (markdown.parse(data, archived=archived), None))
    return found


class _Changes:
    """Tasks as the tables have them and as they should be."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._noting = is_searched(database)
        self._before: dict[str, Task | None] = {}
        self._after: dict[str, Task | None] = {}

    def __len__(self) -> int:
        return len(self._after)

    def apply(self, event: Event) -> None:
        """Let the event change its task."""
        task_id = event.task_id
        if not task_id or is_remark(event):
            return
        try:
            if task_id not in self._after:
                found = self._database.execute(queries.RECORD, schema.places(task_id)).fetchone()
                self._before[task_id] = self._after[task_id] = schema.record(found[0]) if found is not None else None
            self._after[task_id] = evolve(self._after[task_id], event)
        except (ValueError, KeyError, TypeError) as error:
            raise LogDamaged(f"event {event.seq} cannot be applied: {error}", "run 'aof doctor'") from error

    def write(self) -> None:
        """Put the changed rows in the place of the old ones, and tell whom that holds or sets free."""
        old = [task for task in self._before.values() if task is not None]
        new = [task for task in self._after.values() if task is not None]
        self._database.executemany(
            "DELETE FROM tasks WHERE place = ?", ((schema.place(folder_of(task), task.id),) for task in old)
        )
        self._database.executemany("DELETE FROM edges WHERE task = ?", ((task.id,) for task in old))
        attention_table.remove(self._database, old)
        renumbered = [(task.id,) for task in old if task.aliases]
        self._database.executemany("DELETE FROM aliases WHERE task = ?", renumbered)
        _insert(self._database, [(task, None) for task in new])
        touched = {task.id for task in new} | {task.parent_id for task in (*old, *new) if task.parent_id is not None}
        for task in new:
            waiting = self._database.execute("SELECT task FROM edges WHERE blocker = ?", (task.id,))
            touched.update(name for (name,) in waiting)
        _hold(self._database, touched)
        if self._noting:
            from aof.stores.filesystem.index import text_table

            text_table.note(self._database, [task.id for task in new])
        self._before.clear()
        self._after.clear()


def catch_up(store: FilesystemStore, database: sqlite3.Connection, start: Position) -> None:
    """Apply the events behind a position."""
    changes = _Changes(database)
    here = start
    written: dict[str, Event] = {}
    audited, chronicled = is_audited(database), is_chronicled(database)
    with database:
        for here, lines in store.reader.proven(start):
            if audited:
                from aof.stores.filesystem.index import audit_table, health_table

                events = [event for _, event in lines]
                audit_table.add(database, day_of(here.segment), events)
                health_table.add(database, events)
            if chronicled:
                from aof.stores.base import chronicle as told

                told.add(database, (event for _, event in lines))
            for _, event in lines:
                changes.apply(event)
                if event.files:
                    written[event.task_id] = event
            if len(changes) >= _BATCH:
                changes.write()
        changes.write()
        _remember(store, database, here)
    for event in written.values():
        _follow(store, event, here)


def is_chronicled(database: sqlite3.Connection) -> bool:
    """Whether what the log tells over time is in it, as it is where somebody has asked before."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'lives'").fetchone() is not None


def chronicle(store: FilesystemStore, database: sqlite3.Connection, until: int) -> None:
    """Put in what every event up to one tells over time, unless that is there."""
    if is_chronicled(database):
        return
    from aof.stores.base import chronicle as told

    with database:
        database.executescript(told.TABLES)
        told.add(database, takewhile(lambda event: event.seq <= until, store.reader.events(0)))


def _follow(store: FilesystemStore, event: Event, behind: Position) -> None:
    """A version that came with its file from elsewhere, as `git pull` brings them, gets its head."""
    if not is_task_id(event.task_id):
        return
    head = store.heads.get(event.task_id)
    path, mark = next((one for one in event.files.items() if one[0].endswith(f"/{event.task_id}.md")), ("", ""))
    if not path or (head is not None and head.rev >= event.seq):
        return
    held = store.locks.acquire(stripe(event.task_id), wait=False)
    if held is None:
        return  # somebody is writing it
    try:
        head = store.heads.get(event.task_id)
        if (head is None or head.rev < event.seq) and store.stripes.of_this_log(held) and not store.intents.left(held):
            with suppress(OSError):
                data = read(f"{store.paths.root}/{path}")
                if data is not None and digest(data) == mark:
                    folder = "archive" if path.startswith("archive/") else path.split("/")[1]
                    store.heads.put(event.task_id, event.seq, folder, mark)
                    last = store.intents.last(held)
                    if last is None or last.seq < behind.seq:
                        store.intents.clear(held, behind)
    finally:
        store.locks.release((held,))


def build(store: FilesystemStore, database: sqlite3.Connection) -> None:
    """Fill an empty database: from the files, and from the log where a file is odd, missing or in flight.

    Every event up to the checkpoint is in the files; of those behind it, only what a file has not seen yet matters.
    """
    known = journal.load_checkpoint(store.paths) if not store.log.replaced else None
    since = known.position if known is not None and store.reader.holds(known.position) else Position()
    database.executescript(schema.TABLES + attention_table.TABLE)
    noted = store.heads.by_folder()
    if store.log.replaced:  # the heads of another log say nothing
        noted = {folder: [] for folder in noted}
    seen: dict[str, int] = {}
    filling = _Filling()
    with database, uncollected():
        for some in intact(store.paths, noted):
            seen.update([(task.id, task.rev) for task, _ in some])
            _insert(database, some, filling)
    here, fresh = store.reader.unseen(since, seen)
    odd = {task_id for tasks in noted.values() for task_id, _ in tasks if task_id not in seen}
    odd |= {event.task_id for event in fresh if event.task_id not in seen}
    with database:
        folded = fold(store.reader.of_tasks(odd), until=here.seq) if odd else {}
        _insert(database, [(one.task, None) for one in folded.values() if one.task is not None], filling)
        _finish(database, filling)
        changes = _Changes(database)
        for event in fresh:
            if event.task_id not in odd:
                changes.apply(event)
        changes.write()
        _remember(store, database, here)


def fill(database: sqlite3.Connection, tasks: Iterable[Task]) -> None:
    """Fill an empty database with tasks that are at hand."""
    filling = _Filling()
    database.executescript(schema.TABLES + attention_table.TABLE)
    _insert(database, [(task, None) for task in tasks], filling)
    _finish(database, filling)


class _Filling:
    """What is gathered while the tables of a new database are filled: tallies, and tasks that others may hold."""

    def __init__(self) -> None:
        self.tallies: Counter[tuple[Any, ...]] = Counter()
        self.waiting: set[str] = set()


def _finish(database: sqlite3.Connection, filling: _Filling) -> None:
    database.executemany(schema.TALLY, [(*alike, count) for alike, count in filling.tallies.items()])
    database.executescript(schema.INDEXES)
    _hold(database, filling.waiting)


def _insert(database: sqlite3.Connection, tasks: Sequence[Recorded], filling: _Filling | None = None) -> None:
    """Add rows and edges; the triggers that keep the tallies are not there yet while tables are filled."""
    made = [schema.row(task, record) for task, record in tasks]
    waiting = [task for task, _ in tasks if task.depends_on]
    database.executemany(schema.INSERT, made)
    edges = [(task.id, blocker) for task in waiting for blocker in task.depends_on]
    database.executemany("INSERT OR REPLACE INTO edges VALUES (?, ?)", edges)
    attention_table.add(database, [task for task, _ in tasks])
    renumbered = [(old, task.id) for task, _ in tasks if task.aliases for old in task.aliases]
    if renumbered:
        database.executemany("INSERT OR REPLACE INTO aliases VALUES (?, ?)", renumbered)
    if filling is not None:
        filling.tallies.update(schema.tally(made))
        filling.waiting.update(task.id for task in waiting)
        filling.waiting.update(task.id for task, _ in tasks if task.waits_for_children)


def _hold(database: sqlite3.Connection, task_ids: Iterable[str]) -> None:
    """Work out again whether other tasks hold these."""
    named = [task_id for task_id in task_ids if is_task_id(task_id)]
    database.executemany(queries.HOLD, [(task_id, task_id, *schema.places(task_id)) for task_id in named])


def _remember(store: FilesystemStore, database: sqlite3.Connection, here: Position) -> None:
    day, end = store.reader.end()
    if not here.segment or (day > here.segment and not end):
        here = Position(day, 0, here.seq, here.digest)
    database.execute("DELETE FROM meta")
    values = (schema.VERSION, here.segment, here.offset, here.seq, here.digest)
    database.execute("INSERT INTO meta VALUES (?, ?, ?, ?, ?)", values)
