"""What follows when a version control brings another log. Must not know which system it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aof.core.errors import LogDamaged
from aof.stores.filesystem.stripes import EVERY_STRIPE

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore


def start_over(store: FilesystemStore) -> None:
    """The log is another one than before: heads and index follow it, unless the files know more than it does."""
    held = store.locks.acquire_all(EVERY_STRIPE)
    try:
        store.log.refresh(sound=True)
        newest = store.recovery.highest_rev()
        if newest > store.log.seq:
            raise LogDamaged(
                f"the log was replaced by one that lacks event {newest}, which the file of a task was written by",
                "put the log and the tasks of one branch back, or run 'aof doctor'; nothing was changed",
                seq=newest,
            )
        store.begin_anew(held)
    finally:
        store.locks.release(held)
