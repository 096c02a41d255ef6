"""Looks after a whole data directory: checks and repairs it, rebuilds its index, writes it to a file and back.

Must not know what is checked or copied.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from aof.adapters.system import SystemClock
from aof.app.fabric import Fabric
from aof.app.maintenance import service
from aof.config import load_settings
from aof.core.errors.storage import SettingsUnusable
from aof.entrypoints.bootstrap import (
    TrustedCommands,
    deliveries,
    find_data_dir,
    may_write,
    open_fabric,
    opened_store,
    plan_data_dir,
    read_only_store,
    writable,
)
from aof.ports.clock import Clock
from aof.ports.progress import Say, silent
from aof.ports.working_copy import Problem
from aof.stores.filesystem.archive import transfer
from aof.stores.filesystem.doctor import links
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.records.places import OrgPath


def rebuild_index(fabric: Fabric) -> None:
    """Discard the index and rebuild it."""
    files = writable(fabric.store).working_copy
    files.rebuild_index()


def diagnose(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    fix: bool = False,
    clock: Clock | None = None,
    disk: Disk | None = None,
    say: Say = silent,
) -> service.Diagnosis:
    """Doctor on a data directory, also on one that cannot be opened in the usual way."""
    root = find_data_dir(data_dir, needs="tasks")
    try:
        settings = load_settings(root)
    except SettingsUnusable as error:
        problem = Problem(error.code, "aof.toml", error.message, error.hint)
        return service.Diagnosis(ok=False, problems=(problem,))

    if linked := links.standing(root):
        return service.Diagnosis(ok=False, problems=tuple(linked))
    clock = clock or SystemClock()
    if not may_write(root):
        raise read_only_store(root, settings, clock).refusal()
    store = opened_store(root, settings, clock, disk, doctor=True)
    try:
        found = service.doctor(store, clock, settings.policy(), org=OrgPath(root, disk), fix=fix, say=say)
    finally:
        store.close()
    if settings.notify.channels:
        found = replace(found, advice=(*found.advice, *deliveries().advice(root, TrustedCommands(root))))
    return found


def export_data_dir(data_dir: str | os.PathLike[str] | None, target: str, say: Say = silent) -> int:
    """Write a whole data directory into one file; returns how many files it holds."""
    with open_fabric(data_dir) as fabric:
        return transfer.pack(writable(fabric.store), target, say)


def import_data_dir(data_dir: str | os.PathLike[str] | None, source: str, say: Say = silent) -> tuple[str, int]:
    """Make a data directory from such a file; returns its path and how many files it has."""
    root, _ = plan_data_dir(data_dir)
    return root, transfer.unpack(source, root, say)
