"""What looks after the files of all tasks at once: finds what people did, names new files, puts a refused file aside.

Must not judge an edit; that is the core's part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aof.core.errors.base import InvalidInput
from aof.core.tasks.manual_edit import BIRTHPLACES
from aof.ports.store import Scope
from aof.stores.filesystem.io.read import digest, read, seen
from aof.stores.filesystem.log.reader import Position
from aof.stores.filesystem.working_copy import new_file
from aof.stores.filesystem.working_copy.changes import examine
from aof.stores.filesystem.working_copy.scan import scan

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore

_AT_ONCE = 2_000


def unsettled(store: FilesystemStore) -> Iterator[str]:
    """The tasks whose files are not what the log wrote; the log is read once for many of them."""
    store.stripes.finish_left()
    return announced(store, scan(store.paths, store.heads).changed)


def announced(store: FilesystemStore, task_ids: list[str]) -> Iterator[str]:
    """The same tasks, one by one; their events are read beforehand, for many at once."""
    try:
        for start in range(0, len(task_ids), _AT_ONCE):
            some = task_ids[start : start + _AT_ONCE]
            if store.repairs:  # which may cut a dead writer's tail
                store.log.refresh()
            store.histories.announce(some, store.log.position)
            yield from some
    finally:
        store.histories.announce((), Position())


def nameless(store: FilesystemStore) -> tuple[str, ...]:
    """New files without an ID as name, relative to the data directory."""
    return tuple(map(store.paths.relative, scan(store.paths, store.heads).nameless))


def name(store: FilesystemStore, path: str, now: int) -> str:
    """Give a new file an ID; what could not become a task keeps its name."""
    whole = f"{store.paths.root}/{path}"
    folder = os.path.basename(os.path.dirname(whole))
    if folder not in BIRTHPLACES:
        raise InvalidInput(f"a new task cannot begin in {folder}/", "put the file into backlog/ or ready/")
    try:
        data = read(whole) or b""
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", "put a regular file there") from None
    new_file.read(data, "")
    task_id = store.reserve_id(now)
    while store.files.present(task_id):
        task_id = store.reserve_id(now)
    store.disk.rename(whole, store.paths.task(folder, task_id))
    return task_id


def put_aside(store: FilesystemStore, task_id: str) -> tuple[str, ...]:
    """Keep a file that cannot be taken in under another name, and restore the log's version in its place."""
    kept: list[str] = []
    with store.unit(Scope(write=frozenset({task_id}))):
        examined = examine(store.paths, store.files, store.histories.of(task_id), task_id)
        if examined.folded.task is None or (examined.problem is None and examined.edit is None):
            return ()
        for folder in store.files.present(task_id):
            path = store.paths.task(folder, task_id)
            if _is_ours(path, examined.folded.digests):
                continue
            if (state := examined.seen.get(folder)) is not None and state != seen(path):
                raise InvalidInput(f"{store.paths.relative(path)} is being written", "run the command again")
            copy = store.files.free_name(f"{path}.conflict")
            store.disk.rename(path, copy)
            kept.append(store.paths.relative(copy))
        store.redo.task(examined.folded)
    return tuple(kept)


def _is_ours(path: str, digests: dict[str, int]) -> bool:
    try:
        data = read(path)
    except OSError:
        return False
    return data is not None and digest(data) in digests
