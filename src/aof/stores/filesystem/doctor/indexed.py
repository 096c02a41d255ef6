"""What the index alone still knows of the log, where the log itself cannot be relied on. Changes nothing."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress

import msgspec

from aof.stores.filesystem.index import schema
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log.position import Position


def position(paths: Paths) -> Position | None:
    """Up to where the index has read the log."""
    with suppress(sqlite3.Error), closing(_open(paths)) as database:
        found = database.execute("SELECT day, position, seq, digest FROM meta").fetchone()
        return Position.parse([str(found[0]) or "-", *map(str, found[1:])]) if found else None
    return None


def revs(paths: Paths) -> dict[str, int]:
    """The last event of each task."""
    with suppress(sqlite3.Error, msgspec.DecodeError, msgspec.ValidationError), closing(_open(paths)) as database:
        found = database.execute(f"SELECT {schema.name()}, record FROM tasks")
        return {str(task_id): schema.record(blob).rev for task_id, blob in found}
    return {}


def _open(paths: Paths) -> sqlite3.Connection:
    if not os.path.isfile(paths.index):  # a pipe in its place would be waited for
        raise sqlite3.OperationalError
    return sqlite3.connect(f"file:{paths.index}?mode=ro", uri=True)
