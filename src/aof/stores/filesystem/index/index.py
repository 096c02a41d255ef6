"""The index: answers questions about many tasks from a cache in SQLite, which has seen every event of the log.

Must not know how that cache is kept up, nor what the answers are for.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence

from aof.core.model.ids import NUMBER_DIGITS, is_task_id, matches, split_task_id
from aof.ports import store as ports
from aof.ports.lists import Query
from aof.stores.filesystem.index import queries, schema
from aof.stores.filesystem.index.file import Cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.core.handoffs.audit import AuditRecord
    from aof.core.model.task import Task
    from aof.core.org.health.agent_health import AgentHealth
    from aof.core.runs.attention import AttentionPage, AttentionQuery
    from aof.core.runs.chronicle import FlowFacts, SpanPage, SpanQuery
    from aof.ports.audit import AuditQuery
    from aof.ports.lists import Place
    from aof.ports.store import Page
    from aof.stores.filesystem.store import FilesystemStore

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

        return self._cache.ask(each, searched=any(query.search is not None for query in asked))

    def shown(self, query: Query) -> tuple[dict[str, int], list[queries.Shown], Place | None]:
        """The same for a list: counts, what a row needs of each task, and where the page ends if others follow."""
        counts, records, values = queries.asked(query)

        def both(database: sqlite3.Connection) -> tuple[dict[str, int], list[queries.Shown], Place | None]:
            found = [queries.Shown(*one) for one in database.execute(queries.showing(records), values)]
            page = found[: query.limit]
            end = (page[-1].key, page[-1].id) if page and len(found) > len(page) else None
            return dict(database.execute(counts, values).fetchall()), page, end

        return self._cache.ask(both, searched=query.search is not None)

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form stands for, archived ones included."""
        last = part.rpartition("-")[2]
        if last.isdecimal() and len(last) <= NUMBER_DIGITS:
            ends = [name for (name,) in self._rows(_NUMBERED, int(last)) if name.endswith(f"-{part}")]
            if len(ends) == 1:
                return tuple(matches(part, ends))
        return tuple(matches(part, self._names(f"instr('-' || {schema.name()}, ?) > 0", f"-{part}")))

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
        from aof.stores.filesystem.index import attention_table

        return self._cache.ask(lambda database: attention_table.find(database, query))

    def last_seen(self) -> dict[str, str]:
        """When each name was last seen in the log."""
        from aof.stores.base import chronicle

        return self._cache.ask(chronicle.last_seen, chronicled=True)

    def run_spans(self, query: SpanQuery) -> SpanPage:
        """A page of runs, the last one first."""
        from aof.stores.base import chronicle

        return self._cache.ask(lambda database: chronicle.run_spans(database, query), chronicled=True)

    def flow_facts(self, since: str) -> FlowFacts:
        """What moved, was finished and was run."""
        from aof.stores.base import chronicle

        return self._cache.ask(lambda database: chronicle.flow_facts(database, since), chronicled=True)

    def audited(self, query: AuditQuery) -> tuple[AuditRecord, ...]:
        """The audit records that match, in the order of the log."""
        from aof.stores.filesystem.index import audit_table

        return tuple(self._cache.ask(lambda database: audit_table.find(database, query), audited=True))

    def audit_lines(self, after: int) -> list[tuple[int, str, str]]:
        """The audit records behind an event: number, day and line."""
        from aof.stores.filesystem.index import audit_table

        return self._cache.ask(lambda database: audit_table.lines(database, after), audited=True)

    def health(self) -> dict[str, AgentHealth]:
        """What the log says last of each agent's health."""
        from aof.stores.filesystem.index import health_table

        return self._cache.ask(health_table.all_of, audited=True)

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
    return ports.Page(sum(by_status.values()), by_status, tasks, end)


def _times(agent: str, hops: str | None, handed: str | None, own: int) -> int:
    """How often an agent holds a task: by its own lease, by hops of it, or by handoffs that it has accepted."""
    return sum((among or "").split(schema.BETWEEN).count(agent) for among in (hops, handed)) or (1 if own else 0)
