"""The index's tables, a task as a row of them, and a query as SQL. Must not know when the index is read or written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from aof.core.tasks.lifecycle import priority_rank
from aof.core.tasks.task import Task
from aof.ports.store import Query

VERSION = 4
TABLES = """
CREATE TABLE meta (version INTEGER, day TEXT, position INTEGER, seq INTEGER, digest TEXT);
CREATE TABLE tasks (
  id TEXT, status TEXT, rank INTEGER, created TEXT, words TEXT, routed TEXT, holder TEXT, tags TEXT,
  parent TEXT, resource TEXT, waits_until TEXT, key TEXT, archived INTEGER, hidden INTEGER, startable INTEGER,
  waits_for_children INTEGER, rev INTEGER, record BLOB, hop_holders TEXT, open_hops INTEGER
);
CREATE TABLE edges (task TEXT, blocker TEXT, PRIMARY KEY (task, blocker)) WITHOUT ROWID;
"""
INDEXES = """
CREATE UNIQUE INDEX by_id ON tasks (id);
CREATE INDEX by_number ON tasks (substr(id, 1, 15), length(id), id, archived);
CREATE INDEX by_status ON tasks (
  status, rank, created, substr(id, 1, 15), length(id), id,
  archived, hidden, startable, waits_until, waits_for_children, resource, holder, routed, hop_holders
);
CREATE INDEX by_parent ON tasks (parent) WHERE parent IS NOT NULL;
CREATE INDEX by_key ON tasks (key) WHERE key IS NOT NULL;
CREATE INDEX by_resource ON tasks (resource) WHERE resource IS NOT NULL;
CREATE INDEX by_blocker ON edges (blocker);
CREATE INDEX by_open_hops ON tasks (open_hops) WHERE open_hops = 1;
"""
UPSERT = "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# By day and number: as text, number 1000 would come before 999.
ORDERS = {"id": "substr(id, 1, 15), length(id), id", "schedule": "rank, created, substr(id, 1, 15), length(id), id"}

_BETWEEN = "\n"  # between the tags of a task: none holds a line break
_MOST = 2**62
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Task).decode
_UNMET = """NOT EXISTS (
  SELECT 1 FROM edges LEFT JOIN tasks AS blocker ON blocker.id = edges.blocker
  WHERE edges.task = tasks.id AND (blocker.status IS NULL OR blocker.status <> 'done'))"""
_CHILDREN = """(waits_for_children = 0 OR NOT EXISTS (
  SELECT 1 FROM tasks AS child WHERE child.parent = tasks.id
  AND child.status NOT IN ('done', 'cancelled', 'deadletter')))"""


def row(task: Task, record: bytes | None = None) -> tuple[Any, ...]:
    """A task as a row; its record as JSON may be at hand already."""
    tags = task.routing.tags
    return (
        task.id,
        task.status,
        priority_rank(task.priority),
        task.created_at,
        task.title.casefold(),
        None if task.gated else task.routing.agent,
        task.lease.agent if task.lease else None,
        _BETWEEN.join(("", *tags, "")) if tags else None,
        task.parent_id,
        task.resource,
        task.retry.not_before,
        task.key.value if task.key else None,
        task.archived,
        task.visibility in ("internal", "hidden"),
        task.cancel is None and not task.archived and not task.metadata.get("draft") and _takable(task),
        bool(task.metadata.get("waitForChildren")),
        task.rev,
        record or _encode(msgspec.structs.replace(task, body="", layout=None)),
        *(_of_hops(task) if task.gated else (None, 0)),
    )


def _takable(task: Task) -> bool:
    """Of a gated task a hop must be there to be taken."""
    return not task.gated or any(hop.get("status") == "ready" for hop in task.workflow["hops"])


def _of_hops(task: Task) -> tuple[str | None, int]:
    """Who holds hops of a gated task, and whether another one could be taken beside them."""
    from aof.core.workflows.state import has_open_hop, leases

    holders = [lease.agent for lease in leases(task)]
    return (_BETWEEN.join(("", *holders, "")) if holders else None), int(has_open_hop(task))


def record(blob: bytes) -> Task:
    """The task of a row, without its body."""
    return _decode(blob)


def page(query: Query) -> tuple[str, str, list[Any], tuple[int, int]]:
    """The query as two statements: counts by status and a page of records; their values, and the page's limits."""
    where, values = condition(query)
    counts = f"SELECT status, count(*) FROM tasks WHERE {where} GROUP BY status"
    found = f"SELECT record FROM tasks WHERE {where} ORDER BY {ORDERS[query.order]} LIMIT ? OFFSET ?"
    limit = -1 if query.limit is None else min(query.limit, _MOST)
    return counts, found, values, (limit, min(query.offset, _MOST))


def condition(query: Query) -> tuple[str, list[Any]]:
    """The query as a WHERE clause."""
    parts = [sql for sql, wanted in (("archived = 0", not query.archived), ("hidden = 0", not query.hidden)) if wanted]
    values: list[str] = []
    for sql, *given in (*_chosen(query), *_free(query)):
        parts.append(sql)
        values += given
    return (" AND ".join(parts) or "1", values) if all(map(_storable, values)) else ("0", [])


def _chosen(query: Query) -> Iterator[tuple[str, ...]]:
    """What somebody asked for by name."""
    if query.status:
        yield f"status IN ({_places(query.status)})", *query.status
    if query.agent is not None:
        free = " OR (holder IS NULL AND routed IS NULL)" if query.unrouted_too else ""
        hops = "instr(hop_holders, ?) > 0"
        yield f"(coalesce(holder, routed) = ? OR {hops}{free})", query.agent, f"{_BETWEEN}{query.agent}{_BETWEEN}"
    if query.tag is not None:
        yield "instr(tags, ?) > 0", f"{_BETWEEN}{query.tag}{_BETWEEN}"
    if query.search is not None:
        words = query.search.casefold()
        yield "(instr(words, ?) > 0 OR instr(lower(id), ?) > 0)", words, words
    if query.parent_id is not None:
        yield "parent = ?", query.parent_id


def _free(query: Query) -> Iterator[tuple[str, ...]]:
    """What waits for nothing."""
    if query.open_hops:
        yield ("open_hops = 1",)
    if query.runnable_at is not None:
        yield "status = ? AND startable = 1", query.waiting_in
        yield "(waits_until IS NULL OR waits_until <= ?)", query.runnable_at
        yield (_UNMET,)
        yield (_CHILDREN,)
    if query.busy_resources:
        yield f"(resource IS NULL OR resource NOT IN ({_places(query.busy_resources)}))", *query.busy_resources


def _places(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))


def _storable(text: str) -> bool:
    """Half of a surrogate pair is in no record, so nothing is found by it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
