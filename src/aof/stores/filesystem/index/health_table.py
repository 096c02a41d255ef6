"""What the log says last of each agent's health, in the index; filled and kept up like the audit records.

Must not know where the database lies, nor who may use it when.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from aof.core.model.events import Event
from aof.core.org.health.agent_health import AgentHealth, health_of
from aof.stores.filesystem.log.reader import Reader

_MARK = b',"type":"agent.'
_TABLE = "CREATE TABLE health (agent TEXT PRIMARY KEY, available INTEGER, since TEXT, reason TEXT);"


def fill(database: sqlite3.Connection, reader: Reader, until: int) -> None:
    """Put in what every event up to one says."""
    with database:
        database.executescript(_TABLE)
        add(database, (event for _, event in reader.holding(_MARK, until)))


def add(database: sqlite3.Connection, events: Iterable[Event]) -> None:
    """Put in what new events say."""
    found = [one for event in events if (one := health_of(event)) is not None]
    rows = [(one.agent, one.available, one.since, one.reason) for one in found]
    database.executemany("INSERT OR REPLACE INTO health VALUES (?, ?, ?, ?)", rows)


def all_of(database: sqlite3.Connection) -> dict[str, AgentHealth]:
    """Everybody that the log says something of."""
    found = database.execute("SELECT agent, available, since, reason FROM health ORDER BY agent")
    return {
        agent: AgentHealth(agent=agent, available=bool(available), since=since, reason=reason)
        for agent, available, since, reason in found
    }
