"""What follows a merge: the files of the tasks that it changed, then manifest, index and what else is kept of the log.

Nothing is decided here: the log is right, and everything follows from it, as after a crash. Must not know how lanes are
merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aof.stores.base.fold import Folded, fold
from aof.stores.filesystem.io.locks import HeldLock
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.recovery import journal
from aof.stores.filesystem.working_copy.changes import examine
from aof.stores.filesystem.working_copy.manifest import Head
from aof.stores.filesystem.working_copy.scan import scan

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore


def nothing_is_lost(store: FilesystemStore, held: list[HeldLock]) -> bool:
    """Whether the log leads on from all that was written here, perhaps over a merge. The caller holds every stripe."""
    return all(map(store.reader.has_seen, _witnesses(store, held)))


def follow_tip(store: FilesystemStore, held: list[HeldLock]) -> None:
    """A merge leads elsewhere, and nothing is lost: the files of the tasks that it changed follow it.

    The caller holds every stripe. A person's edit that waits stays where it is. Can be done again wherever it stops.
    """
    store.log.refresh(sound=True)
    known = fold(event for _, lines in store.reader.proven(Position()) for _, event in lines)
    heads = store.heads.table()
    behind = [task_id for task_id, one in known.items() if not _is_head(one, heads.get(task_id))]
    try:
        store.histories.announce(behind, store.log.position)
        for task_id in behind:
            found = examine(store.paths, store.files, store.histories.announced(task_id), task_id)
            store.redo.merged(known[task_id], ours=found.edit is None and found.problem is None)
    finally:
        store.histories.announce((), Position())
    store.counter.forget()  # other clones' numbers are taken now
    store.begin_anew(held)


def tidy_files(store: FilesystemStore) -> None:
    """Another clone has merged, and git could not merge the files: those that no person has changed follow the log.

    The caller holds every stripe.
    """
    known = fold(event for _, lines in store.reader.proven(Position()) for _, event in lines)
    missing = [task_id for task_id, one in known.items() if one.task is not None and not store.files.present(task_id)]
    odd = list(dict.fromkeys((*scan(store.paths, store.heads).changed, *missing)))  # a cherry-pick brings some files
    try:
        store.histories.announce(odd, store.log.position)
        for task_id in odd:
            found = examine(store.paths, store.files, store.histories.announced(task_id), task_id)
            if found.folded.task is not None and found.edit is None and found.problem is None:
                store.redo.merged(found.folded, ours=True)
    finally:
        store.histories.announce((), Position())


def _is_head(one: Folded, head: Head | None) -> bool:
    mark = next(iter(one.last_files.values()), "")
    return head is not None and one.task is not None and head.rev == one.task.rev and mark.startswith(head.digest)


def _witnesses(store: FilesystemStore, held: list[HeldLock]) -> Iterator[Position]:
    """Where the log stood: after the last append, when all was synced, and after the last write under each stripe."""
    known = journal.load_checkpoint(store.paths)
    told = (store.log.left(), known.position if known is not None else None, *map(store.intents.last, held))
    return (position for position in told if position is not None)
