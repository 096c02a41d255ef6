"""The index's database file: how it is opened, and how far it has come. Must not know what is in its tables."""

from __future__ import annotations

import sqlite3

from aof._support.confined_folder import LinkInTheWay, is_link
from aof.stores.filesystem.index import schema
from aof.stores.filesystem.log.reader import Position


def connect(path: str) -> sqlite3.Connection:
    """Open a database that other means protect and that may be lost."""
    if is_link(path):
        raise LinkInTheWay(path)
    database = sqlite3.connect(path, timeout=10, isolation_level="DEFERRED", check_same_thread=False)
    database.execute("PRAGMA page_size = 8192")
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA temp_store = MEMORY")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def is_audited(database: sqlite3.Connection) -> bool:
    """Whether the audit records are in it, as they are where somebody has asked for them before."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit'").fetchone() is not None


def is_searched(database: sqlite3.Connection) -> bool:
    """Whether the texts of the tasks are in it, as they are where somebody has searched before."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone() is not None


def position(database: sqlite3.Connection) -> Position | None:
    """Behind which event of the log the tables stand; None when another version of AOF has filled them."""
    found = database.execute("SELECT version, day, position, seq, digest FROM meta").fetchone()
    if found is None or found[0] != schema.VERSION:
        return None
    return Position(*found[1:])
