"""Notices that the log is gone, or a part of it, before anybody is told that there is nothing.

A log that another one has replaced, as a switch of branches does, is not lost: what else lies in the data directory
belongs to it. Reads only. Must not know how a log is restored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from aof.core.errors.base import AofError
from aof.core.errors.storage import LogDamaged
from aof.core.model.ids import is_task_id
from aof.stores.filesystem.integrity import takeover
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.recovery import journal
from aof.stores.filesystem.working_copy import git_index, markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore

_FIX = (
    "put the missing files of events/ back from a backup or from version control, over none that is there; if there is "
    "no copy, 'aof doctor --fix' begins a new log with what the tasks' files say"
)


def refuse(store: FilesystemStore, missing: Position) -> None:
    """The log ends before what was appended last: raise LogDamaged unless another log was put in its place."""
    if store.reader.tips() > 1 or (missing.seq and store.reader.has_seen(missing)):
        return None
    last = store.reader.newest()
    if not last:
        return refuse_empty(store)
    newest = store.recovery.highest_rev()
    if newest > last:
        raise _damaged(f"the log lacks event {newest}, which the file of a task was written by", newest)
    return takeover.refuse_alone(store)


def refuse_empty(store: FilesystemStore) -> None:
    """The log is empty: raise LogDamaged where anything shows that it was not."""
    refuse_remains(store.paths)
    known = journal.load_checkpoint(store.paths)
    noted = store.log.left(), known.position if known is not None else None, store.log.flushed()
    if any(one is not None and one.seq for one in noted) or next(store.heads.ids(), None) is not None:
        found = "locks/"
    elif _is_indexed(store.paths):
        found = "index.sqlite"
    else:
        return
    tracked = list(git_index.tracked(store.paths.root))
    if not tracked or any(path.startswith("events/") and path.endswith(".jsonl") for path in tracked):
        raise _empty(found)  # else what git has checked out is a state before the first event


def refuse_remains(paths: Paths) -> None:
    """The same for what lies beside the log; it is not asked what is noted of the log itself."""
    found = next(remains(paths), None)
    if found is not None:
        raise _empty(paths.relative(found))


def remains(paths: Paths) -> Iterator[str]:
    """What only follows from events: the files of tasks with a number, runs, handoffs. A person's new file has none."""
    for _, folder in paths.folders:
        yield from (entry.path for entry in _entries(folder) if _is_ours(entry))
    for folder in (paths.runs, f"{paths.root}/archive/runs"):
        for entry in _entries(folder):
            if is_task_id(entry.name) and any(
                os.path.lexists(f"{entry.path}/{name}") for name in ("run.json", "hops", "attempts")
            ):
                yield entry.path
    yield from (entry.path for entry in _entries(paths.handoffs) if entry.name.endswith(".json"))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        return list(found)
    return []


def _is_ours(entry: os.DirEntry[str]) -> bool:
    """Whether an event wrote the file."""
    name = entry.name.removesuffix(".md")
    if name == entry.name or not is_task_id(name) or not entry.is_file(follow_symlinks=False):
        return False
    with suppress(OSError, AofError):
        task = markdown.parse(read(entry.path) or b"")
        return task.id == name and task.rev > 0
    return False


def _is_indexed(paths: Paths) -> bool:
    from aof.stores.filesystem.doctor import indexed

    known: Position | None = indexed.position(paths)
    return known is not None and known.seq > 0


def _empty(found: str) -> LogDamaged:
    return _damaged(f"the log is empty, but {found} shows that it was not: the files in events/ are gone", 0)


def _damaged(what: str, seq: int) -> LogDamaged:
    return LogDamaged(f"{what}; nothing was changed", _FIX, seq=seq)
