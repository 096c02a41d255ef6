"""A query as SQL over the index's tables, and what a list shows of a task: SQLite reads it, no record is decoded.

A page is put together from lanes: ranges of rows that lie in the wanted order already, so that each is read only as far
as the page goes. How many match is not counted but looked up in the tallies, where they know what is asked for. Must
not know when the index is read or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aof.kernel.model import FINISHED, STATUSES, priority_rank
from aof.store.files.index import schema, tables
from aof.store.lists import NEVER, OPEN, Query, Row
from aof.support import words
from aof.tasks.fields import LISTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_AT_HOPS = """SELECT json_extract(value, '$.lease.agent') FROM json_each(record, '$.workflow.hops')
               WHERE json_type(value, '$.lease') IS NOT NULL LIMIT 1"""
_FIELDS = (
    "json_extract(record, '$.id')",
    "json_extract(record, '$.title')",
    "json_extract(record, '$.status')",
    "json_extract(record, '$.priority')",
    f"""CASE WHEN json_type(record, '$.workflow.template') IS NOT NULL THEN ({_AT_HOPS})
        ELSE coalesce(json_extract(record, '$.lease.agent'), json_extract(record, '$.routing.agent')) END""",
    "json_extract(record, '$.blocked.reason')",
    "coalesce(json_extract(record, '$.archived'), 0)",
    "key",
    *(f"json_extract(record, '$.{row.key}')" for row in LISTED),
)
_MOST = 2**62
_DUE = "(waits_until IS NULL OR waits_until <= :moment)"
_NUMBER = schema.number()
_UNFINISHED = f"NOT IN ({', '.join(repr(status) for status in sorted(FINISHED))})"
_DONE_PLACES = ", ".join(schema.found("edges.blocker", folder) for folder in ("done", "archive"))
_DONE = f"""SELECT 1 FROM tasks AS blocker WHERE blocker.place IN ({_DONE_PLACES})
  AND blocker.status = 'done' AND {schema.name("blocker.place")} = edges.blocker"""
_ANY_PLACE = ", ".join("?" * len(schema.FOLDERS))
# Whether other tasks hold a task: its ID twice, and all its places.
HOLD = f"""UPDATE tasks SET held =
  EXISTS (SELECT 1 FROM edges WHERE task = ? AND NOT EXISTS ({_DONE}))
  OR (waits_for_children IS NOT NULL
      AND EXISTS (SELECT 1 FROM tasks AS child WHERE child.parent = ? AND child.status {_UNFINISHED}))
  WHERE place IN ({_ANY_PLACE}) AND held < 2"""
RECORD = f"SELECT record FROM tasks WHERE place IN ({_ANY_PLACE})"
PARENT = f"SELECT parent FROM tasks WHERE place IN ({_ANY_PLACE})"
_DAY = schema.DAY
_CREATED, _UPDATED = "substr(turn, 2)", schema.UPDATED
# What a page is ordered by, then by ID, as in `store/memory.py`.
_KEYS = {
    "id": "0",
    "schedule": "turn",
    "created": _CREATED,
    "updated": _UPDATED,
    "due": f"ifnull(due, '{NEVER}')",
    "title": "words",
    "status": schema.folder_number(),
}
# A text in a title or an ID, all of them in small letters.
_NAMED = "(instr(title, :words) > 0 OR instr(id, :words) > 0)"
RUNNING = schema.within("in-progress")
# A look at the records of what runs now: few, and a text that reads like this only costs another look.
LOCKING = f"""{RUNNING} AND instr(record, '"locks":[') > 0"""


class Shown:
    """What a list shows of one task."""

    __slots__ = ("agent", "fields", "folder", "id", "key", "priority", "reason", "status", "title")

    def __init__(  # noqa: PLR0917 - in the order of the columns
        self,
        id: str,  # noqa: A002 - what it is called everywhere
        title: str,
        status: str,
        priority: str,
        agent: str | None,
        reason: str | None,
        archived: int,
        key: str | int,
        *listed: Any,
    ) -> None:
        self.id = id
        self.title = title
        self.status = status
        self.priority = priority
        self.agent = agent
        self.reason = reason
        self.fields = {row.key: one for row, one in zip(LISTED, listed, strict=True) if one is not None}
        self.key = key
        self.folder = "archive" if archived else status

    def row(self, state: str | None) -> Row:
        """The task as a row of a list, with what is odd about its file."""
        return Row(
            id=self.id,
            title=self.title,
            status=self.status,
            priority=self.priority,
            agent=self.agent,
            reason=self.reason,
            fields=self.fields,
            state=state,
        )


def showing(records: str) -> str:
    """The statement, changed to select what a list shows of each task in place of its record."""
    return f"SELECT {', '.join(_FIELDS)} FROM ({records})"


def asked(query: Query) -> tuple[str, str, dict[str, Any]]:
    """The SQL of a query: statements for counts by status and for a page of records, and the values of both."""
    values: dict[str, Any] = {}
    shared = list(_shared(query, values))
    every = [*shared, *_others(query, values)]
    found = _found(query.search, values) if query.search is not None else ""
    key = _relevance(query.search or "", values) if query.order == "relevance" else _KEYS[query.order]
    behind = tuple(_behind(query, key, values))
    for name, value in values.items():
        if isinstance(value, str) and not _storable(value):
            every = shared = ["0"]
            values[name] = ""
    lanes = [" AND ".join((lane, *every)) for lane in _lanes(query)] or ["tasks WHERE 0"]
    limit = -1 if query.limit is None else min(query.limit, _MOST) + 1  # one more tells whether others follow
    offset = min(query.offset, _MOST)
    counts = _tallied(query, shared) if _is_tallied(query) else found + _counted(lanes)
    lanes = [" AND ".join((lane, *behind)) for lane in lanes]
    values |= {"limit": limit, "offset": offset, "upto": -1 if limit < 0 else limit + offset}
    return counts, found + _page(query, key, lanes), values


def _page(query: Query, key: str, lanes: list[str]) -> str:
    way = " DESC" if query.reverse else ""
    by = "" if query.order == "id" else f"key{way}, "
    columns = f"place, {key} AS key, record"
    inner = f"SELECT * FROM (SELECT {columns} FROM {{}} ORDER BY {by}place{way} LIMIT :upto)"
    together = " UNION ALL ".join(map(inner.format, lanes))
    return f"SELECT record, key FROM ({together}) ORDER BY {by}{_NUMBER}{way} LIMIT :limit OFFSET :offset"


def _behind(query: Query, key: str, values: dict[str, Any]) -> Iterator[str]:
    """What comes after a place in the order."""
    if query.behind is None:
        return
    values["key"], values["number"] = query.behind[0], schema.place(schema.FOLDERS[0], query.behind[1])
    yield f"({key}, {_NUMBER}) {'<' if query.reverse else '>'} (:key, :number)"


def _counted(lanes: list[str]) -> str:
    together = " UNION ALL ".join(f"SELECT status FROM {lane}" for lane in lanes)
    return f"SELECT status, count(*) FROM ({together}) GROUP BY 1"


def _is_tallied(query: Query) -> bool:
    return not any(
        (
            query.tag is not None,
            query.search is not None,
            query.parent_id is not None,
            query.priority is not None,
            query.among is not None,
            query.at_hops,
            query.without,
            query.unfinished,
            query.dependent,
            query.waiting,
            query.open_hops,
            query.open_handoffs,
            query.created != OPEN,
            query.updated != OPEN,
            query.due != OPEN,
        )
    )


def _tallied(query: Query, shared: list[str]) -> str:
    parts = [*shared, *_in_status(query)]
    if query.runnable_at is None:
        parts += [] if query.archived else ["archived = 0"]
        return f"SELECT status, sum(tasks) FROM tallies WHERE {' AND '.join(parts) or '1'} GROUP BY 1"
    every = " AND ".join((_free(query), *parts))
    return f"""SELECT status, sum(tasks) FROM (
      SELECT status, tasks FROM tallies WHERE waits = 0 AND {every}
      UNION ALL SELECT status, 1 FROM tasks INDEXED BY by_wait WHERE waits_until <= :moment AND {every}
    ) GROUP BY 1"""


def _lanes(query: Query) -> Iterator[str]:
    """Ranges of rows, each in the order that is asked for as far as an index can give it: a table and a condition."""
    wanted = tuple(dict.fromkeys(query.status)) or STATUSES
    if query.open_hops:
        free = "(waits_for_children IS NULL OR held = 0)"
        yield f"tasks WHERE hops IS NOT NULL AND substr(hops, 1, 1) = '+' AND {free} AND {schema.within('in-progress')}"
        return
    if query.at_hops:
        free = f" AND +held = 0 AND {_DUE}" if query.runnable_at is not None else ""
        yield f"tasks WHERE hops = '='{free}"
        return
    if query.open_handoffs:
        current = () if query.archived else (f"NOT ({schema.within('archive')})",)
        yield " AND ".join(("tasks INDEXED BY by_handed WHERE handed IS NOT NULL", *current, *_in_status(query)))
        return
    if query.runnable_at is not None:
        if query.waiting_in in wanted:
            narrowed = _is_narrowed(query) and query.waiting_in in STATUSES
            rows = f"tasks NOT INDEXED WHERE {_in_folder(query, query.waiting_in)} AND" if narrowed else "tasks WHERE"
            lanes = _held(query) if query.waiting else (f"{_free(query)} AND {_DUE}",)
            yield from (f"{rows} {lane}" for lane in lanes)
        return
    for status in wanted:
        if status not in schema.OVER and query.order == "schedule" and not _is_narrowed(query):
            yield from (f"tasks WHERE status = '{status}' AND held = {held}" for held in range(3))
        elif status in STATUSES:
            yield _rows_of(query, status)
    if query.archived:
        yield " AND ".join((_rows_of(query, "archive"), *_in_status(query)))


def _is_narrowed(query: Query) -> bool:
    """Whether all that can be on the page is known by its number."""
    return query.among is not None or query.search is not None


def _rows_of(query: Query, folder: str) -> str:
    if query.order == "updated" and not _is_narrowed(query) and query.agent is None and query.parent_id is None:
        return f"tasks INDEXED BY by_updated WHERE {schema.in_folder(folder)}"
    return f"tasks WHERE {_in_folder(query, folder)}"


def _in_folder(query: Query, folder: str) -> str:
    """The condition for the rows of a folder, as few of them as can be looked at."""
    if query.among is not None:
        return f"place IN ({', '.join(str(schema.place(folder, task_id)) for task_id in query.among)})"
    if query.search is not None:
        return f"place IN (SELECT {schema.place_of_number(folder, 'number')} FROM found)"
    return schema.within(folder)


def _held(query: Query) -> Iterator[str]:
    """What other tasks hold or must not start, and what waits for its time or a resource."""
    busy = ", ".join(f":busy{number}" for number in range(len(query.busy_resources)))
    yield f"status = '{query.waiting_in}' AND held = 0 AND (waits_until > :moment OR resource IN ({busy}))"
    yield from (f"status = '{query.waiting_in}' AND held = {held}" for held in (1, 2))


def _free(query: Query) -> str:
    """The condition for what no other task holds."""
    depends = f" AND EXISTS (SELECT 1 FROM edges WHERE task = {schema.name()})" if query.dependent else ""
    return f"status = '{query.waiting_in}' AND held = 0{depends}" if query.waiting_in in STATUSES else "0"


def _in_status(query: Query) -> tuple[str, ...]:
    known = [repr(status) for status in query.status if status in STATUSES]
    return (f"status IN ({', '.join(known)})",) if query.status else ()


def _shared(query: Query, values: dict[str, Any]) -> Iterator[str]:
    """What can be asked of a task as of a tally."""
    if not query.hidden:
        yield "hidden = 0"
    if query.agent is not None:
        values["agent"] = query.agent
        yield "(whose = :agent OR whose = 0)" if query.unrouted_too else "(whose <> 0 AND whose = :agent)"
    if query.busy_resources:
        busy = {f"busy{number}": resource for number, resource in enumerate(query.busy_resources)}
        values |= busy
    if query.busy_resources and not query.waiting:
        yield f"resource NOT IN ({', '.join(f':{name}' for name in busy)})"
    if query.without:
        yield f"{_NUMBER} NOT IN ({_numbers(query.without)})"
    if query.runnable_at is not None:
        values["moment"] = query.runnable_at


def _numbers(task_ids: Iterable[str]) -> str:
    return ", ".join(str(schema.place(schema.FOLDERS[0], task_id)) for task_id in task_ids)


def _others(query: Query, values: dict[str, Any]) -> Iterator[str]:
    """What can be asked of a task only."""
    if query.tag is not None:
        values["tag"] = f"{schema.BETWEEN}{query.tag}{schema.BETWEEN}"
        yield "instr(tags, :tag) > 0"
    if query.search is not None and (query.open_hops or query.at_hops or query.open_handoffs):
        yield f"{_NUMBER} IN (SELECT number FROM found)"
    if query.parent_id is not None:
        values["parent"] = query.parent_id
        yield "parent = :parent"
    if query.among is not None:
        yield f"{_NUMBER} IN ({_numbers(query.among)})"
    if query.priority is not None:
        values["priority"] = priority_rank(query.priority)
        yield "CAST(substr(turn, 1, 1) AS INTEGER) = :priority"
    if query.unfinished:
        yield f"status {_UNFINISHED}"
    spans = (("created", _CREATED, query.created), ("updated", _UPDATED, query.updated), ("due", "due", query.due))
    for name, column, (since, before) in spans:
        if since is not None:
            values[f"{name}_since"] = since
            yield f"{column} >= :{name}_since"
        if before is not None:
            values[f"{name}_before"] = before
            yield f"{column} < :{name}_before"


def _found(text: str, values: dict[str, Any]) -> str:
    """What a statement begins with that looks for tasks by a text: their numbers, as the table `found`."""
    values["words"] = said = text.casefold()
    named = f"SELECT rowid AS number FROM names WHERE {_NAMED}"
    if grams := tables.match_part(said):
        values["grams"] = grams
        named += " AND names MATCH :grams"
    if sought := words.wanted(text):
        values["match"] = tables.match_text(sought)
        named += " UNION SELECT rowid FROM texts WHERE texts MATCH :match"
    return f"WITH found AS ({named}) "


def _relevance(text: str, values: dict[str, Any]) -> str:
    """The expression for the part that holds all that is sought, as in `store/memory.py`."""
    named = f"SELECT 1 FROM names WHERE rowid = {_NUMBER} AND {_NAMED}"
    cases = [f"WHEN EXISTS ({named}) THEN {len(tables.TEXT_COLUMNS)}"]
    for place, column in enumerate(tables.TEXT_COLUMNS if (sought := words.wanted(text)) else ()):
        values[f"in_{column}"] = tables.match_text(sought, column)
        found = f"SELECT rowid FROM texts WHERE texts MATCH :in_{column}"
        cases.append(f"WHEN {_NUMBER} IN ({found}) THEN {len(tables.TEXT_COLUMNS) - place}")
    return f"CASE {' '.join(cases)} ELSE 0 END"


def _storable(text: str) -> bool:
    """Half of a surrogate pair is in no record, so nothing is found by it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
