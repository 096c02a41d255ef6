"""What needs a person, in the index: a row for each, in their order, so that a page is read and no more.

Must not know where the database lies, nor what counts as needing a person.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from aof.core.runs.attention import Attention, AttentionPage, AttentionQuery, attention_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aof.core.model.task import Task

TABLE: Final = """
CREATE TABLE attention (
  turn TEXT, since TEXT, kind TEXT, task TEXT, item TEXT, person TEXT, PRIMARY KEY (turn, since, kind, task, item)
) WITHOUT ROWID;
CREATE INDEX attention_by_kind ON attention (kind, turn, since, task, item, person);
"""
_INSERT: Final = "INSERT OR REPLACE INTO attention VALUES (?, ?, ?, ?, ?, ?)"
_DELETE: Final = "DELETE FROM attention WHERE (turn, since, kind, task, item) = (?, ?, ?, ?, ?)"


def add(database: sqlite3.Connection, tasks: Iterable[Task]) -> None:
    """Put in what these tasks need."""
    rows = [one for task in tasks for one in attention_of(task)]
    if rows:
        database.executemany(_INSERT, rows)


def remove(database: sqlite3.Connection, tasks: Iterable[Task]) -> None:
    """Take out what these tasks needed, as they were."""
    rows = [one[:5] for task in tasks for one in attention_of(task)]
    if rows:
        database.executemany(_DELETE, rows)


def find(database: sqlite3.Connection, query: AttentionQuery) -> AttentionPage:
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
