"""The index: answers questions about many tasks from a cache in SQLite, which has seen every event of the log.

Must not know how that cache is kept up, nor what the answers are for.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any

from aof.core.ids import matches
from aof.ports.store import Page, Query
from aof.stores.filesystem import rows
from aof.stores.filesystem.cache import Cache

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore


class Index:
    """The index of one data directory."""

    def __init__(self, store: FilesystemStore) -> None:
        self._cache = Cache(store)

    def find(self, query: Query) -> Page:
        """One page of tasks, with counts over all that match."""
        counts, records, values, limits = rows.page(query)

        def both(database: sqlite3.Connection) -> Page:
            found = database.execute(records, [*values, *limits]).fetchall()
            tasks = tuple(rows.record(blob) for (blob,) in found)
            if query.counted:
                by_status = dict(database.execute(counts, values).fetchall())
            else:
                by_status = dict(Counter(task.status for task in tasks))
            return Page(sum(by_status.values()), by_status, tasks)

        return self._cache.ask(both)

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form stands for, archived ones included."""
        sql = f"SELECT id FROM tasks WHERE instr('-' || id, ?) > 0 ORDER BY {rows.ORDERS['id']}"
        return tuple(matches(part, self._names(sql, f"-{part}")))

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below."""
        return self._names(f"SELECT id FROM tasks WHERE parent = ? ORDER BY {rows.ORDERS['id']}", task_id)

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for this one."""
        sql = f"SELECT task AS id FROM edges WHERE blocker = ? ORDER BY {rows.ORDERS['id']}"
        return self._names(sql, task_id)

    def resource_holders(self, resource: str) -> tuple[str, ...]:
        """The running tasks that occupy the resource."""
        of_it = "resource = ? AND status = 'in-progress'"
        return self._names(f"SELECT id FROM tasks WHERE {of_it} ORDER BY {rows.ORDERS['id']}", resource)

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds."""
        of_it = "status = 'in-progress' AND (holder = ? OR instr(hop_holders, char(10) || ? || char(10)) > 0)"
        return self._names(f"SELECT id FROM tasks WHERE {of_it} ORDER BY {rows.ORDERS['id']}", agent, agent)

    def resources_in_use(self) -> dict[str, int]:
        """How many running tasks occupy each resource."""
        running = "resource IS NOT NULL AND status = 'in-progress'"
        return dict(self._rows(f"SELECT resource, count(*) FROM tasks WHERE {running} GROUP BY 1"))

    def key_owner(self, key: str) -> str | None:
        """The task that was created with this key."""
        found = self._names(f"SELECT id FROM tasks WHERE key = ? ORDER BY {rows.ORDERS['id']}", key)
        return next(iter(found), None)

    def reachable(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """All dependency edges on the ways that lead from a task."""
        sql = """WITH RECURSIVE way(id) AS (VALUES (?) UNION SELECT blocker FROM edges JOIN way ON edges.task = way.id)
                 SELECT edges.task, edges.blocker FROM edges JOIN way ON edges.task = way.id ORDER BY 1, 2"""
        edges: dict[str, list[str]] = {}
        for task, blocker in self._rows(sql, task_id):
            edges.setdefault(task, []).append(blocker)
        return {task: tuple(blockers) for task, blockers in edges.items()}

    def rebuild(self) -> None:
        """Throw the cache away and build it anew."""
        self._cache.rebuild()

    def close(self) -> None:
        """Close what this process has open."""
        self._cache.close()

    def _names(self, sql: str, *values: str) -> tuple[str, ...]:
        return tuple(name for (name,) in self._rows(sql, *values))

    def _rows(self, sql: str, *values: str) -> list[Any]:
        return self._cache.ask(lambda database: database.execute(sql, values).fetchall())
