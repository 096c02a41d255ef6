"""Fills the index's tables from the files, which are fast to read, and from the log, and lets them follow the log.

Keeps also the table of what needs a person.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

from aof.errors import AofError, LogDamaged
from aof.kernel.events import Event, is_remark
from aof.kernel.evolve import evolve
from aof.kernel.model import is_task_id
from aof.store import chronicle
from aof.store.files import locks, markdown
from aof.store.files.disk import digest, read
from aof.store.files.index import queries, schema, tables
from aof.store.files.locks import stripe
from aof.store.files.paths import Paths, Position, day_of, folder_of
from aof.store.files.store import FilesystemStore
from aof.store.fold import fold
from aof.supervision.rules import Attention, AttentionPage, AttentionQuery, attention_of
from aof.support.hashing import hexdigest
from aof.support.typed import uncollected
from aof.tasks.model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


_AT_ONCE = 200  # files: one kind of work for many of them keeps the processor's caches warm
Recorded = tuple[Task, bytes | None]  # a task without its body, and its record as JSON where that is at hand
NotedFiles = dict[str, list[tuple[str, str]]]  # by folder, the tasks and how the digests of their files begin
_BATCH = 5_000


def intact_tasks(paths: Paths, noted: NotedFiles) -> Iterator[Sequence[Recorded]]:
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


class _ChangedTasks:
    """Tasks as the tables have them and as they should be."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._has_texts = schema.has_table(database, "texts")
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
        """Put the changed rows in the place of the old ones, and note which other tasks that holds or sets free."""
        old = [task for task in self._before.values() if task is not None]
        new = [task for task in self._after.values() if task is not None]
        self._database.executemany(
            "DELETE FROM tasks WHERE place = ?", ((schema.place(folder_of(task), task.id),) for task in old)
        )
        self._database.executemany("DELETE FROM edges WHERE task = ?", ((task.id,) for task in old))
        remove_attention(self._database, old)
        renumbered = [(task.id,) for task in old if task.aliases]
        self._database.executemany("DELETE FROM aliases WHERE task = ?", renumbered)
        _insert(self._database, [(task, None) for task in new])
        touched = {task.id for task in new} | {task.parent_id for task in (*old, *new) if task.parent_id is not None}
        for task in new:
            waiting = self._database.execute("SELECT task FROM edges WHERE blocker = ?", (task.id,))
            touched.update(name for (name,) in waiting)
        _update_held(self._database, touched)
        if self._has_texts:
            tables.note_text(self._database, [task.id for task in new])
        self._before.clear()
        self._after.clear()


def catch_up(store: FilesystemStore, database: sqlite3.Connection, start: Position) -> None:
    """Apply the events behind a position."""
    changes = _ChangedTasks(database)
    here = start
    written: dict[str, Event] = {}
    audited, chronicled = schema.has_table(database, "audit"), schema.has_table(database, "lives")
    with database:
        for here, lines in store.reader.proven(start):
            if audited:
                events = [event for _, event in lines]
                tables.add_audit(database, day_of(here.segment), events)
                tables.add_health(database, events)
            if chronicled:
                chronicle.add(database, (event for _, event in lines))
            for _, event in lines:
                changes.apply(event)
                if event.files:
                    written[event.task_id] = event
            if len(changes) >= _BATCH:
                changes.write()
        changes.write()
        _save_position(store, database, here)
    for event in written.values():
        _note_head(store, event, here)


def add_chronicle(store: FilesystemStore, database: sqlite3.Connection, until: int) -> None:
    """Put in what every event up to one tells over time."""
    with database:
        database.executescript(chronicle.TABLES)
        chronicle.add(database, takewhile(lambda event: event.seq <= until, store.reader.events(0)))


def _note_head(store: FilesystemStore, event: Event, behind: Position) -> None:
    """A version that came with its file from elsewhere, as `git pull` brings them, gets its head."""
    if not is_task_id(event.task_id):
        return
    head = store.heads.get(event.task_id)
    path, mark = next((one for one in event.files.items() if one[0].endswith(f"/{event.task_id}.md")), ("", ""))
    if not path or (head is not None and head.rev >= event.seq):
        return
    held = store.locks.take_free(stripe(event.task_id))
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


def build_tables(store: FilesystemStore, database: sqlite3.Connection) -> None:
    """Fill an empty database: from the files, and from the log where a file is odd, missing or in flight.

    Every event up to the checkpoint is in the files; of those behind it, only what a file has not seen yet matters.
    """
    known = locks.load_checkpoint(store.paths) if not store.log.replaced else None
    since = known.position if known is not None and store.reader.holds(known.position) else Position()
    database.executescript(schema.TABLES + ATTENTION_TABLE)
    noted = store.heads.by_folder()
    if store.log.replaced:  # the heads of another log say nothing
        noted = {folder: [] for folder in noted}
    seen: dict[str, int] = {}
    filling = _Filling()
    with database, uncollected():
        for some in intact_tasks(store.paths, noted):
            seen.update([(task.id, task.rev) for task, _ in some])
            _insert(database, some, filling)
    here, fresh = store.reader.unseen(since, seen)
    odd = {task_id for tasks in noted.values() for task_id, _ in tasks if task_id not in seen}
    odd |= {event.task_id for event in fresh if event.task_id not in seen}
    with database:
        folded = fold(store.reader.of_tasks(odd), until=here.seq) if odd else {}
        _insert(database, [(one.task, None) for one in folded.values() if one.task is not None], filling)
        _finish(database, filling)
        changes = _ChangedTasks(database)
        for event in fresh:
            if event.task_id not in odd:
                changes.apply(event)
        changes.write()
        _save_position(store, database, here)


def fill_tables(database: sqlite3.Connection, tasks: Iterable[Task]) -> None:
    """Fill an empty database with tasks that are at hand."""
    filling = _Filling()
    database.executescript(schema.TABLES + ATTENTION_TABLE)
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
    _update_held(database, filling.waiting)


def _insert(database: sqlite3.Connection, tasks: Sequence[Recorded], filling: _Filling | None = None) -> None:
    """Add rows and edges; the triggers that keep the tallies are not there yet while tables are filled."""
    made = [schema.row(task, record) for task, record in tasks]
    waiting = [task for task, _ in tasks if task.depends_on]
    database.executemany(schema.INSERT, made)
    edges = [(task.id, blocker) for task in waiting for blocker in task.depends_on]
    database.executemany("INSERT OR REPLACE INTO edges VALUES (?, ?)", edges)
    add_attention(database, [task for task, _ in tasks])
    renumbered = [(old, task.id) for task, _ in tasks if task.aliases for old in task.aliases]
    if renumbered:
        database.executemany("INSERT OR REPLACE INTO aliases VALUES (?, ?)", renumbered)
    if filling is not None:
        filling.tallies.update(schema.tally(made))
        filling.waiting.update(task.id for task in waiting)
        filling.waiting.update(task.id for task, _ in tasks if task.waits_for_children)


def _update_held(database: sqlite3.Connection, task_ids: Iterable[str]) -> None:
    """Work out again whether other tasks hold these."""
    named = [task_id for task_id in task_ids if is_task_id(task_id)]
    database.executemany(queries.HOLD, [(task_id, task_id, *schema.places(task_id)) for task_id in named])


def _save_position(store: FilesystemStore, database: sqlite3.Connection, here: Position) -> None:
    day, end = store.reader.end()
    if not here.segment or (day > here.segment and not end):
        here = Position(day, 0, here.seq, here.digest)
    database.execute("DELETE FROM meta")
    values = (schema.VERSION, here.segment, here.offset, here.seq, here.digest)
    database.execute("INSERT INTO meta VALUES (?, ?, ?, ?, ?)", values)


ATTENTION_TABLE: Final = """
CREATE TABLE attention (
  turn TEXT, since TEXT, kind TEXT, task TEXT, item TEXT, person TEXT, PRIMARY KEY (turn, since, kind, task, item)
) WITHOUT ROWID;
CREATE INDEX attention_by_kind ON attention (kind, turn, since, task, item, person);
"""
_INSERT: Final = "INSERT OR REPLACE INTO attention VALUES (?, ?, ?, ?, ?, ?)"
_DELETE: Final = "DELETE FROM attention WHERE (turn, since, kind, task, item) = (?, ?, ?, ?, ?)"


def add_attention(database: sqlite3.Connection, tasks: Iterable[Task]) -> None:
    """Put in what these tasks need."""
    rows = [one for task in tasks for one in attention_of(task)]
    if rows:
        database.executemany(_INSERT, rows)


def remove_attention(database: sqlite3.Connection, tasks: Iterable[Task]) -> None:
    """Take out what these tasks needed, as they were."""
    rows = [one[:5] for task in tasks for one in attention_of(task)]
    if rows:
        database.executemany(_DELETE, rows)


def find_attention(database: sqlite3.Connection, query: AttentionQuery) -> AttentionPage:
    """A page, and the counts of all."""
    if not query.kinds:
        return AttentionPage((), {})
    values: dict[str, Any] = {f"kind{number}": kind for number, kind in enumerate(query.kinds)}
    where = [f"kind IN ({', '.join(f':{name}' for name in values)})", "since <= :before"]
    values["before"] = query.before
    if query.person is not None:
        where.append("person IN ('', :person)")
        values["person"] = query.person
    shared = " AND ".join(where)
    counts = database.execute(f"SELECT kind, count(*) FROM attention WHERE {shared} GROUP BY 1", values).fetchall()
    if query.behind is not None:
        where.append("(turn, since, kind, task, item) > (:turn, :since, :kind, :task, :item)")
        values |= dict(zip(("turn", "since", "kind", "task", "item"), query.behind, strict=True))
    values["limit"] = -1 if query.limit is None else query.limit
    order = "turn, since, kind, task, item"
    sql = f"SELECT {order}, person FROM attention WHERE {' AND '.join(where)} ORDER BY {order} LIMIT :limit"
    return AttentionPage(tuple(Attention(*row) for row in database.execute(sql, values)), dict(counts))
