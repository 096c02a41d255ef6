"""The index of a data directory, as it is and as it should be."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from aof.api.fabric import Fabric
from aof.kernel.model import Policy
from aof.store.files.index import builder
from aof.store.files.store import FilesystemStore
from aof.store.fold import fold
from aof.store.port import Clock
from tests.support.disks import SteppingDisk
from tests.support.histories import SLOTS

Dump = tuple[list[Any], ...]
_ALL = (
    "SELECT * FROM tasks ORDER BY place",
    "SELECT * FROM edges ORDER BY task, blocker",
    "SELECT * FROM tallies ORDER BY 1, 2, 3, 4, 5, 6, 7",
)


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
        return tuple(database.execute(sql).fetchall() for sql in _ALL)

    return store_of(fabric).index._cache.ask(everything)


def from_the_log(fabric: Fabric) -> Dump:
    """What it should hold, worked out from the log alone."""
    tasks = [one.task for one in fold(fabric.store.events()).values() if one.task is not None]
    database = sqlite3.connect(":memory:")
    builder.fill_tables(database, tasks)
    return tuple(database.execute(sql).fetchall() for sql in _ALL)
