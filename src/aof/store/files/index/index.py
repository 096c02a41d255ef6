"""The index: answers questions about many tasks from a cache in SQLite, which has seen every event of the log.

Its file may be deleted, damaged or put back at any time, which costs only time.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from aof.errors import DiskFull, LogDamaged, StorageFailed
from aof.kernel.model import NUMBER_DIGITS, is_task_id, matching_ids, split_task_id
from aof.store import chronicle, port
from aof.store.files.disk import NO_SPACE, Seen, failed, seen
from aof.store.files.index import builder, queries, schema, tables
from aof.store.files.locks import HeldLock
from aof.store.lists import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from aof.handoffs.audit import AuditRecord
    from aof.org.routing import AgentHealth
    from aof.store.directory import AuditQuery
    from aof.store.files.store import FilesystemStore
    from aof.store.lists import Place
    from aof.store.port import Page
    from aof.supervision.rules import AttentionPage, AttentionQuery, FlowFacts, SpanPage, SpanQuery
    from aof.tasks.model import Task

    _Answer = TypeVar("_Answer")


_NAMES = f"SELECT {schema.name()} FROM tasks WHERE {{}} ORDER BY {schema.number()}"
# The tasks with a certain number on any day in any folder: a look at each day instead of one at each task.
_DAY = schema.DAY
_NUMBERED = f"""WITH RECURSIVE days(first) AS (
    SELECT min(place) / {_DAY} * {_DAY} FROM tasks
    UNION ALL
    SELECT (SELECT min(place) FROM tasks WHERE place >= first + {_DAY}) / {_DAY} * {_DAY} FROM days WHERE first >= 0
  ) SELECT {schema.name()} FROM days CROSS JOIN tasks ON place = first + ? ORDER BY {schema.number()}"""
_CHILD_COUNTS = "SELECT parent, status, count(*) FROM tasks WHERE parent IN ({}) GROUP BY 1, 2"
_DEPENDENTS = "SELECT task FROM edges WHERE blocker = ?"
_OWN_LEASE = "whose = ?1 AND json_extract(record, '$.lease') IS NOT NULL"
_HELD = f"SELECT {schema.name()}, hops, handed, {_OWN_LEASE} FROM tasks WHERE {{}} ORDER BY {schema.number()}"


class Index:
    """The index of one data directory."""

    def __init__(self, store: FilesystemStore) -> None:
        self._cache = Cache(store)

    def pages(self, asked: Sequence[Query]) -> tuple[Page, ...]:
        """For each query one page of tasks, with counts over all that match."""
        prepared = [(query, *queries.asked(query)) for query in asked]

        def each(database: sqlite3.Connection) -> tuple[Page, ...]:
            return tuple(_page(database, *one) for one in prepared)

        return self._cache.ask(each, *(["texts"] if any(query.search is not None for query in asked) else []))

    def shown(self, query: Query) -> tuple[dict[str, int], list[queries.Shown], Place | None]:
        """The same for a list: counts, what a row needs of each task, and where the page ends if others follow."""
        counts, records, values = queries.asked(query)

        def both(database: sqlite3.Connection) -> tuple[dict[str, int], list[queries.Shown], Place | None]:
            found = [queries.Shown(*one) for one in database.execute(queries.showing(records), values)]
            page = found[: query.limit]
            end = (page[-1].key, page[-1].id) if page and len(found) > len(page) else None
            return dict(database.execute(counts, values).fetchall()), page, end

        return self._cache.ask(both, *(["texts"] if query.search is not None else []))

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form stands for, archived ones included."""
        last = part.rpartition("-")[2]
        if last.isdecimal() and len(last) <= NUMBER_DIGITS:
            ends = [name for (name,) in self._rows(_NUMBERED, int(last)) if name.endswith(f"-{part}")]
            if len(ends) == 1:
                return tuple(matching_ids(part, ends))
        return tuple(matching_ids(part, self._names(f"instr('-' || {schema.name()}, ?) > 0", f"-{part}")))

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """The IDs that tasks had elsewhere, each with its tasks."""
        found: dict[str, list[str]] = {}
        for old, task in self._rows("SELECT old, task FROM aliases"):
            found.setdefault(old, []).append(task)
        return {old: tuple(sorted(tasks, key=split_task_id)) for old, tasks in found.items()}

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below."""
        return self._names("parent = ?", task_id)

    def above(self, task_id: str) -> tuple[str, ...]:
        """The ancestors, from the parent up; a circle that a damaged file made ends the walk."""

        def climb(database: sqlite3.Connection) -> tuple[str, ...]:
            found: dict[str, None] = {}
            here: str | None = task_id
            while here is not None and is_task_id(here):
                row = database.execute(queries.PARENT, schema.places(here)).fetchone()
                here = row[0] if row is not None and row[0] not in found else None
                if here is not None:
                    found[here] = None
            return tuple(found)

        return self._cache.ask(climb)

    def tree(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """The children of the task and of everything below it."""

        def descend(database: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
            found: dict[str, tuple[str, ...]] = {}
            waiting = [task_id]
            for one in waiting:
                if one not in found:
                    found[one] = tuple(name for (name,) in database.execute(_NAMES.format("parent = ?"), (one,)))
                    waiting += found[one]
            return found

        return self._cache.ask(descend)

    def dependents_of(self, task_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The tasks that wait for each of these."""

        def each(database: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
            found: dict[str, tuple[str, ...]] = {}
            for one in task_ids:
                waiting = (name for (name,) in database.execute(_DEPENDENTS, (one,)))
                found[one] = tuple(sorted(waiting, key=split_task_id))
            return found

        return self._cache.ask(each)

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for this one."""
        return self.dependents_of((task_id,))[task_id]

    def resource_holders(self, resource: str) -> tuple[str, ...]:
        """The running tasks that occupy the resource."""
        return self._names(f"resource = ? AND {queries.RUNNING}", resource)

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds, each as often as it holds hops of it."""
        own = f"{_OWN_LEASE} AND {queries.RUNNING}"
        among = "hops IS NOT NULL AND instr(hops, char(10) || ?1 || char(10)) > 0"
        taken = "handed IS NOT NULL AND instr(handed, char(10) || ?1 || char(10)) > 0"
        found = self._rows(_HELD.format(f"({own}) OR ({among}) OR ({taken})"), agent)
        return tuple(name for name, *held in found for _ in range(_times(agent, *held)))

    def resources_in_use(self) -> dict[str, int]:
        """How many running tasks occupy each resource."""
        running = f"resource <> 0 AND {queries.RUNNING}"
        return dict(self._rows(f"SELECT resource, count(*) FROM tasks WHERE {running} GROUP BY 1"))

    def locking(self) -> tuple[Task, ...]:
        """The running tasks that hold locks on files."""
        found = self._rows(f"SELECT record FROM tasks WHERE {queries.LOCKING} ORDER BY {schema.number()}")
        return tuple(task for (text,) in found if (task := schema.record(text)).locks)

    def key_owner(self, key: str) -> str | None:
        """The task that was created with this key."""
        return next(iter(self._names("key = ?", key)), None)

    def reachable(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """All dependency edges on the ways that lead from a task."""
        sql = """WITH RECURSIVE way(id) AS (VALUES (?) UNION SELECT blocker FROM edges JOIN way ON edges.task = way.id)
                 SELECT edges.task, edges.blocker FROM edges JOIN way ON edges.task = way.id ORDER BY 1, 2"""
        edges: dict[str, list[str]] = {}
        for task, blocker in self._rows(sql, task_id):
            edges.setdefault(task, []).append(blocker)
        return {task: tuple(blockers) for task, blockers in edges.items()}

    def attention(self, query: AttentionQuery) -> AttentionPage:
        """What needs a person, most urgent first."""
        return self._cache.ask(lambda database: builder.find_attention(database, query))

    def last_seen(self) -> dict[str, str]:
        """When each name was last seen in the log."""
        return self._cache.ask(chronicle.last_seen, "lives")

    def run_spans(self, query: SpanQuery) -> SpanPage:
        """A page of runs, the last one first."""
        return self._cache.ask(lambda database: chronicle.run_spans(database, query), "lives")

    def flow_facts(self, since: str) -> FlowFacts:
        """What moved, was finished and was run."""
        return self._cache.ask(lambda database: chronicle.flow_facts(database, since), "lives")

    def audited(self, query: AuditQuery) -> tuple[AuditRecord, ...]:
        """The audit records that match, in the order of the log."""
        return tuple(self._cache.ask(lambda database: tables.find_audit(database, query), "audit"))

    def audit_lines(self, after: int) -> list[tuple[int, str, str]]:
        """The audit records behind an event: number, day and line."""
        return self._cache.ask(lambda database: tables.audit_lines(database, after), "audit")

    def health(self) -> dict[str, AgentHealth]:
        """What the log says last of each agent's health."""
        return self._cache.ask(tables.all_health, "audit")

    def records(self, task_ids: Collection[str]) -> tuple[Task, ...]:
        """These tasks, without their bodies; what does not exist is left out."""

        def each(database: sqlite3.Connection) -> tuple[Task, ...]:
            found = (database.execute(queries.RECORD, schema.places(one)).fetchone() for one in task_ids)
            return tuple(schema.record(row[0]) for row in found if row is not None)

        return self._cache.ask(each)

    def child_counts(self, task_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """How many tasks below each of these are in which status."""
        found: dict[str, dict[str, int]] = {}
        for parent, status, count in self._rows(_CHILD_COUNTS.format(", ".join("?" * len(task_ids))), *task_ids):
            found.setdefault(parent, {})[status] = count
        return found

    def rebuild(self) -> None:
        """Discard the cache and rebuild it."""
        self._cache.rebuild()

    def close(self) -> None:
        """Close what this process has open."""
        self._cache.close()

    def _names(self, condition: str, value: str) -> tuple[str, ...]:
        return tuple(name for (name,) in self._rows(_NAMES.format(condition), value))

    def _rows(self, sql: str, *values: str | int) -> list[Any]:
        return self._cache.ask(lambda database: database.execute(sql, values).fetchall())


def _page(database: sqlite3.Connection, query: Query, counts: str, records: str, values: dict[str, Any]) -> Page:
    found = database.execute(records, values).fetchall()
    tasks = tuple(schema.record(text) for text, _ in found[: query.limit])
    if query.counted:
        by_status = dict(database.execute(counts, values).fetchall())
    else:
        by_status = dict(Counter(task.status for task in tasks))
    end = (found[len(tasks) - 1][1], tasks[-1].id) if tasks and len(found) > len(tasks) else None
    return port.Page(sum(by_status.values()), by_status, tasks, end)


def _times(agent: str, hops: str | None, handed: str | None, own: int) -> int:
    """How often an agent holds a task: by its own lease, by hops of it, or by handoffs that it has accepted."""
    return sum((among or "").split(schema.BETWEEN).count(agent) for among in (hops, handed)) or (1 if own else 0)


INDEX_LOCK = "index"
_NOTE_BYTES = 80
_BROKEN = (sqlite3.Error, ValueError, LogDamaged)  # ValueError: a record that cannot be decoded
_inherited: list[_Connection] = []


class _Connection:
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


class Cache:
    """The cache of one data directory, as one process sees it. Safe for several threads."""

    def __init__(self, store: FilesystemStore) -> None:
        self._store = store
        self._path = store.paths.index
        self._idle: list[_Connection] = []

    def ask(self, question: Callable[[sqlite3.Connection], _Answer], *needs: str) -> _Answer:
        """Put a question to a cache that has seen every event of the log, and has the tables that it needs.

        Some are made when somebody asks: `audit`, with agents' health; `texts`, to search in; `lives`, the chronicle.
        """
        try:
            return self._ask(question, needs)
        except LogDamaged:
            if not self._store.merger.untangle():
                raise
        except OSError as error:
            raise failed(error, "read the index") from error
        return self._ask(question, needs)

    def _ask(self, question: Callable[[sqlite3.Connection], _Answer], needs: tuple[str, ...]) -> _Answer:
        with self._locked(exclusive=False) as held, suppress(*_BROKEN), self._connection(held) as database:
            if database is not None and self._is_current(database, needs):
                return question(database)
        if "texts" in needs:
            tables.require_full_text()
        self._store.refuse_unsound()  # what is new to the cache may never have been durable
        with self._locked(exclusive=True) as held:
            with suppress(*_BROKEN), self._connection(held) as database:
                if database is not None and self._catch_up(held, database, needs):
                    return question(database)
            try:
                with self._built(held, needs) as database:
                    return question(database)
            except (OSError, DiskFull) as error:
                if not isinstance(error, DiskFull) and error.errno not in NO_SPACE:
                    raise
            with closing(schema.connect(":memory:")) as database:
                self._fill(database, needs)
                return question(database)

    def rebuild(self) -> None:
        """Throw the cache away and build it from the files and the log."""
        with self._locked(exclusive=True) as held, self._built(held, ()):
            pass

    def close(self) -> None:
        """Close this process's connections."""
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()

    @contextmanager
    def _locked(self, *, exclusive: bool) -> Iterator[HeldLock]:
        held = self._store.locks.take(INDEX_LOCK, exclusive=exclusive)
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

    def _open(self, inode: int) -> _Connection:
        while self._idle:
            with suppress(IndexError):
                known = self._idle.pop()
                if known.inode == inode and known.pid == os.getpid():
                    return known
                known.close()
        return _Connection(self._path, inode)

    def _is_current(self, database: sqlite3.Connection, needs: tuple[str, ...]) -> bool:
        return self._store.reader.end() == schema.applied_end(database) and all(
            tables.is_text_fresh(database) if need == "texts" else schema.has_table(database, need) for need in needs
        )

    def _catch_up(self, held: HeldLock, database: sqlite3.Connection, needs: tuple[str, ...]) -> bool:
        """Apply what the log has and the cache has not; False when they do not belong together."""
        position = schema.applied_position(database)
        if position is None:
            return False
        if not self._store.reader.holds(position):
            self._store.log.replaced = True
            return False
        self._dirty(held)
        builder.catch_up(self._store, database, position)
        self._add(database, needs)
        self._clean(held)
        return True

    def _fill(self, database: sqlite3.Connection, needs: tuple[str, ...]) -> None:
        builder.build_tables(self._store, database)
        self._add(database, needs)

    def _add(self, database: sqlite3.Connection, needs: tuple[str, ...]) -> None:
        """Make the tables that take a look at the whole log or at every file."""
        if "texts" in needs:
            tables.refresh_text(self._store, database)
        missing = [need for need in needs if need != "texts" and not schema.has_table(database, need)]
        here = schema.applied_position(database) if missing else None
        if here is not None and "audit" in missing:
            tables.fill_audit(database, self._store.reader, here.seq)
            tables.fill_health(database, self._store.reader, here.seq)
        if here is not None and "lives" in missing:
            builder.add_chronicle(self._store, database, here.seq)

    @contextmanager
    def _built(self, held: HeldLock, needs: tuple[str, ...]) -> Iterator[sqlite3.Connection]:
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
                self._fill(database, needs)
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
