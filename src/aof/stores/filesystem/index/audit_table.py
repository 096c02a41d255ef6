"""Audit records in the index: filled from the log when they are first asked for, then kept up with it.

Must not know where the database lies, nor who may use it when.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

import msgspec

from aof._support.typed import prepare_type
from aof.core.handoffs.audit import AUDIT, AuditRecord, audit_record, line_of
from aof.core.model.events import Event
from aof.ports.audit import AuditQuery
from aof.stores.filesystem.log.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MARK = f'"{AUDIT}":{{'.encode()
_decoder = msgspec.json.Decoder(prepare_type(AuditRecord))
_KEYS = (("handoff", "handoff_id"), ("task", "task_id"), ("sender", "from_agent"), ("receiver", "to_agent"))
_TABLE = """
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY, day TEXT, handoff TEXT, task TEXT, sender TEXT, receiver TEXT, line TEXT
);
"""
_INDEXES = "".join(f"CREATE INDEX audit_by_{column} ON audit ({column});" for column, _ in _KEYS)
_INSERT = "INSERT OR REPLACE INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)"


def fill(database: sqlite3.Connection, reader: Reader, until: int) -> None:
    """Put in every record up to an event."""
    with database:
        database.executescript(_TABLE)
        database.executemany(_INSERT, _rows(reader.holding(_MARK, until)))
        database.executescript(_INDEXES)


def add(database: sqlite3.Connection, day: str, events: Iterable[Event]) -> None:
    """Put in the records among new events of a day."""
    database.executemany(_INSERT, _rows((day, event) for event in events))


def find(database: sqlite3.Connection, query: AuditQuery) -> list[AuditRecord]:
    """The records that match."""
    given = [(column, value) for column, key in _KEYS if (value := getattr(query, key)) is not None]
    conditions = " AND ".join(["seq > ?", *(f"{column} = ?" for column, _ in given)])
    sql = f"SELECT line FROM audit WHERE {conditions} ORDER BY seq LIMIT ?"
    limit = -1 if query.limit is None else query.limit
    found = database.execute(sql, (query.after, *(value for _, value in given), limit))
    return [_decoder.decode(line) for (line,) in found]


def lines(database: sqlite3.Connection, after: int) -> list[tuple[int, str, str]]:
    """The records behind an event as number, day and line."""
    return database.execute("SELECT seq, day, line FROM audit WHERE seq > ? ORDER BY seq", (after,)).fetchall()


def _rows(events: Iterable[tuple[str, Event]]) -> Iterator[tuple[Any, ...]]:
    for day, event in events:
        try:
            record = audit_record(event)
        except ValueError:  # what a foreign hand has written; whoever verifies the records is told
            continue
        if record is not None:
            task_id = record.context_snapshot.task_id
            whose = (record.handoff_id, task_id, record.from_agent, record.to_agent)
            yield (event.seq, day, *whose, line_of(record).decode())
