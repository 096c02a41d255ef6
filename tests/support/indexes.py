"""The index of a data directory, as it is and as it should be."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from aof.app.fabric import Fabric
from aof.core.policy import Policy
from aof.ports.clock import Clock
from aof.stores.filesystem import rows
from aof.stores.filesystem.store import FilesystemStore
from aof.stores.fold import fold
from tests.support.disks import SteppingDisk
from tests.support.histories import SLOTS

Dump = tuple[list[Any], list[Any]]
_ALL = "SELECT * FROM tasks ORDER BY id", "SELECT * FROM edges ORDER BY task, blocker"


def open_fabric(root: Path, clock: Clock) -> Fabric:
    """A fabric that never syncs, with slots for the resources of random histories."""
    store = FilesystemStore(str(root), clock, durable=False, disk=SteppingDisk(), boot_id=lambda: "the-same-boot")
    return Fabric(store, clock, Policy(resource_slots=SLOTS), "pm")


def store_of(fabric: Fabric) -> FilesystemStore:
    """The store behind a fabric."""
    assert isinstance(fabric.store, FilesystemStore)
    return fabric.store


def caught_up(fabric: Fabric) -> Dump:
    """Everything that the index holds when it is asked now."""

    def everything(database: sqlite3.Connection) -> Dump:
        tasks, edges = (database.execute(sql).fetchall() for sql in _ALL)
        return tasks, edges

    return store_of(fabric).index._cache.ask(everything)


def from_the_log(fabric: Fabric) -> Dump:
    """What it should hold, worked out from the log alone."""
    tasks = [one.task for _, one in sorted(fold(fabric.store.events()).items()) if one.task is not None]
    database = sqlite3.connect(":memory:")
    database.executescript(rows.TABLES)
    database.executemany(rows.UPSERT, map(rows.row, tasks))
    edges = sorted((task.id, blocker) for task in tasks for blocker in task.depends_on)
    return database.execute(_ALL[0]).fetchall(), edges
