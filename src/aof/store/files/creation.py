"""Makes a data directory, and notices where one was before: that its log is gone, or a part of it.

Tells also what the index alone still knows of a lost log.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

import msgspec

from aof.errors import AofError, LogDamaged
from aof.kernel.model import is_task_id
from aof.store.files import git_files, integrity, locks, manifest, markdown
from aof.store.files.disk import Disk, read, shared_with
from aof.store.files.index import schema
from aof.store.files.log.segment import Claims
from aof.store.files.paths import DIRECTORIES, GENESIS, Paths, Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.files.store import FilesystemStore


def create_data_directory(root: str, disk: Disk, *, shared: bool) -> bool:
    """Make a data directory; what is there already stays, with its modes. Tells whether it is new.

    Raises LogDamaged where the log of what is there is gone.
    """
    fresh = not os.path.isdir(f"{root}/events")
    if fresh and os.path.isdir(f"{root}/tasks"):  # somebody has deleted or moved away the folder of the log
        refuse_remains(Paths(root))
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
        table = manifest.BlockerTable(Paths(root).blockers, disk)
        table.rebuild(())
        table.close()
        Claims(Paths(root), disk).note("", GENESIS)
        locks.save_checkpoint(Paths(root), disk, locks.boot_id(), Position())
    return fresh


_FIX = (
    "put the missing files of events/ back from a backup or from version control, over none that is there; if there is "
    "no copy, 'aof doctor --fix' begins a new log with what the tasks' files say"
)


def refuse_lost_log(store: FilesystemStore, missing: Position) -> None:
    """The log ends before what was appended last: raise LogDamaged unless another log was put in its place."""
    if store.reader.tips() > 1 or (missing.seq and store.reader.has_seen(missing)):
        return None
    last = store.reader.newest()
    if not last:
        return refuse_empty_log(store)
    newest = store.recovery.highest_rev()
    if newest > last:
        raise _damaged(f"the log lacks event {newest}, which the file of a task was written by", newest)
    return integrity.refuse_alone(store)


def refuse_empty_log(store: FilesystemStore) -> None:
    """The log is empty: raise LogDamaged where anything shows that it was not."""
    refuse_remains(store.paths)
    known = locks.load_checkpoint(store.paths)
    noted = store.log.left(), known.position if known is not None else None, store.log.flushed()
    if any(one is not None and one.seq for one in noted) or next(store.heads.ids(), None) is not None:
        found = "locks/"
    elif (indexed := indexed_position(store.paths)) is not None and indexed.seq:
        found = "index.sqlite"
    else:
        return
    tracked = git_files.tracked(store.paths.root)
    if not tracked or any(path.startswith("events/") and path.endswith(".jsonl") for path in tracked):
        raise _empty(found)  # else what git has checked out is a state before the first event


def refuse_remains(paths: Paths) -> None:
    """Raise LogDamaged where files that only follow from events lie beside the log."""
    found = next(remains_of_log(paths), None)
    if found is not None:
        raise _empty(paths.relative(found))


def remains_of_log(paths: Paths) -> Iterator[str]:
    """What only follows from events: files of tasks with a `rev`, runs, handoffs. A person's new file has none."""
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


def _empty(found: str) -> LogDamaged:
    return _damaged(f"the log is empty, but {found} shows that it was not: the files in events/ are gone", 0)


def _damaged(what: str, seq: int) -> LogDamaged:
    return LogDamaged(f"{what}; nothing was changed", _FIX, seq=seq)


def indexed_position(paths: Paths) -> Position | None:
    """Up to where the index has read the log."""
    with suppress(sqlite3.Error), closing(_open(paths)) as database:
        found = database.execute("SELECT day, position, seq, digest FROM meta").fetchone()
        return Position.parse([str(found[0]) or "-", *map(str, found[1:])]) if found else None
    return None


def indexed_revs(paths: Paths) -> dict[str, int]:
    """The last event of each task."""
    with suppress(sqlite3.Error, msgspec.DecodeError, msgspec.ValidationError), closing(_open(paths)) as database:
        found = database.execute(f"SELECT {schema.name()}, record FROM tasks")
        return {str(task_id): schema.record(blob).rev for task_id, blob in found}
    return {}


def _open(paths: Paths) -> sqlite3.Connection:
    if not os.path.isfile(paths.index):  # a pipe in its place would be waited for
        raise sqlite3.OperationalError
    return sqlite3.connect(f"file:{paths.index}?mode=ro", uri=True)
