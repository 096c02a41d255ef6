"""Who may read and write the data directory: more than its setting wants is advice, and tightened with `--fix`.

What people and version control made is theirs, so this is not damage. Must not follow a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from aof.ports.working_copy import Problem
from aof.stores.filesystem.io import disk
from aof.stores.filesystem.store import FilesystemStore

_GROUP_AND_OTHERS = 0o077
_PRIVATE = ("tokens.json",)


def check(store: FilesystemStore) -> tuple[Problem, ...]:
    """One piece of advice for everything that is open to more, or to fewer, than it should be."""
    odd = [path for path, _ in _odd(store)]
    if not odd:
        return ()
    where = os.path.relpath(odd[0], store.paths.root)
    whom = "cannot be used by the whole group, or by others too" if store.shared else "can be reached by other users"
    what = f"{len(odd):,} files and folders {whom}, such as {where}"
    fix = "'aof doctor --fix' sets the modes; 'shared' in aof.toml says for whom: \"owner\" or \"group\""
    return (Problem("open_to_others", where, what, fix),)


def tighten(store: FilesystemStore) -> None:
    """Set the modes; what belongs to somebody else stays as it is."""
    for path, mode in list(_odd(store)):
        if path.endswith(_PRIVATE):
            continue  # closing it would make tokens valid that a clone may have brought
        with suppress(OSError):
            store.disk.set_mode(path, mode)
    store.disk.bind(store.paths.root, disk.shared_with(group=store.shared))


def _odd(store: FilesystemStore) -> Iterator[tuple[str, int]]:
    """What has another mode than it should, of those that this user may change; each with the right one.

    What lies in a folder that is closed is closed, whatever its own mode says.
    """
    own, waiting = os.geteuid(), [store.paths.root]
    while waiting:
        path = waiting.pop()
        try:
            found = os.stat(path, follow_symlinks=path == store.paths.root)
            folder = stat.S_ISDIR(found.st_mode)
            if not (folder or stat.S_ISREG(found.st_mode)):
                continue
            mode = disk.permission_bits(found.st_mode)
            if folder and (store.shared or mode & _GROUP_AND_OTHERS):
                waiting += sorted((f"{path}/{name}" for name in os.listdir(path)), reverse=True)
        except OSError:
            continue
        wanted = _wanted(mode, folder=folder, shared=store.shared and not path.endswith(_PRIVATE))
        if mode != wanted and own in (0, found.st_uid):
            yield path, wanted


def _wanted(mode: int, *, folder: bool, shared: bool) -> int:
    if not shared:
        return mode & ~_GROUP_AND_OTHERS & 0o777
    if folder:
        return disk.GROUP_FOLDER
    executable = 0o110 if mode & 0o100 else 0
    return 0o660 | executable
