"""Makes a data directory. Must not know what is kept in it later."""

from __future__ import annotations

import os
from contextlib import suppress

from aof.stores.filesystem.integrity import waited
from aof.stores.filesystem.io.disk import Disk, shared_with
from aof.stores.filesystem.io.paths import DIRECTORIES, Paths
from aof.stores.filesystem.log.claims import Claims
from aof.stores.filesystem.log.line_end import GENESIS
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.recovery import journal, lost_log
from aof.stores.filesystem.working_copy import git_files


def create(root: str, disk: Disk, *, shared: bool) -> bool:
    """Make a data directory; what is there already stays, with its modes. Tells whether it is new.

    Raises LogDamaged where the log of what is there is gone.
    """
    fresh = not os.path.isdir(f"{root}/events")
    if fresh and os.path.isdir(f"{root}/tasks"):  # somebody has deleted or moved away the folder of the log
        lost_log.refuse_remains(Paths(root))
    modes = shared_with(group=shared) if fresh else None
    disk.bind(root, modes)
    with suppress(FileExistsError):
        disk.make_dir(root)
    if modes is not None and not os.listdir(root):  # an empty folder that somebody made for us
        with suppress(PermissionError):
            disk.set_mode(root, modes.folder)
    for name in DIRECTORIES:
        with suppress(FileExistsError):
            disk.make_dir(f"{root}/{name}")
    git_files.prepare(root, disk)
    if fresh:
        table = waited.Waited(Paths(root).waited, disk)
        table.rebuild(())
        table.close()
        Claims(Paths(root), disk).note("", GENESIS)
        journal.save_checkpoint(Paths(root), disk, journal.boot_id(), Position())
    return fresh
