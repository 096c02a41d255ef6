"""A whole data directory as one file, and back. Caches and locks of this machine stay behind, and so do secrets.

Must not know what the files mean: the log is verified when the copy is opened.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aof._support.printable import clean
from aof.core.errors.base import Conflict, InvalidInput
from aof.ports.progress import Say, silent
from aof.stores.filesystem.archive.entries import TOP, Archive, ArchiveEntry, travels
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.store import FilesystemStore

_MARK = "events"
_RENAME = "rename it, and export again"


def pack(store: FilesystemStore, target: str, say: Say = silent) -> int:
    """Write everything into a compressed tar file, as of one moment; returns how many files it holds."""
    held = store.stripes.take_all()
    count = 0
    temporary = f"{target}.part"

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal count
        inner = entry.name[len(TOP) + 1 :]
        if not (entry.isfile() or entry.isdir()) or (inner and not travels(inner)):
            return None
        if clean(entry.name) != entry.name:
            raise InvalidInput(f"{clean(entry.name)} has a name that no import would take", _RENAME)
        count += entry.isfile()
        say(f"{count:,} files")
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    try:
        store.refuse_unsound()
        with tarfile.open(temporary, "w:gz", compresslevel=6, dereference=False) as archive:
            archive.add(store.paths.root, arcname=TOP, filter=wanted)
        os.replace(temporary, target)
    finally:
        store.locks.release(held)
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return count


def unpack(source: str, root: str, say: Say = silent, disk: Disk | None = None) -> int:
    """Make a data directory from such a file; an existing one is never touched.

    Everything is written to a new folder beside it, which gets its name when it is complete.
    """
    disk = disk or Disk()
    root = os.path.abspath(root)
    if os.path.isdir(f"{root}/{_MARK}"):
        raise Conflict(f"{root} is a data directory already", "import into another place with --data-dir DIR")
    if os.path.lexists(root) and (not os.path.isdir(root) or os.path.islink(root) or os.listdir(root)):
        hint = "import into another place with --data-dir DIR, or move what is there away"
        raise Conflict(f"{root} is there already, and is not an empty folder", hint)
    os.makedirs(os.path.dirname(root), exist_ok=True)
    with open(source, "rb") as packed, _new_folder(root) as folder:
        count = 0
        for entry in Archive(source, packed).entries():
            _take(disk, folder, entry, source)
            count += not entry.is_folder
            say(f"{count:,} files")
        if not os.path.isdir(f"{folder}/{_MARK}"):
            raise InvalidInput(f"{source} holds no exported data directory", "make one with 'aof export FILE'")
        FilesystemStore.create(folder, disk)
        disk.sync_all(folder)
        disk.unbind()
        disk.rename(folder, root)
        disk.sync_dir(os.path.dirname(root))
    return count


@contextmanager
def _new_folder(root: str) -> Iterator[str]:
    """A folder beside the data directory, only ours; what an import that was killed has left there is removed."""
    parent, name = os.path.split(root)
    prefix = f".{name}.import-"
    for left in sorted(os.listdir(parent)):
        if left.startswith(prefix):
            _remove_if_left(f"{parent}/{left}")
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # says that somebody is at work here, as long as the process lives
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(fd)


def _remove_if_left(folder: str) -> None:
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(fd)


def _take(disk: Disk, folder: str, entry: ArchiveEntry, source: str) -> None:
    """Write one entry. Nothing but what was made here lies in the folder, so no link can lead out of it."""
    path = folder
    parts = entry.name.split("/")
    for part in parts if entry.is_folder else parts[:-1]:
        path = f"{path}/{part}"
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise _clash(source, entry.name)
        except FileNotFoundError:
            disk.make_dir(path)
    if entry.is_folder:
        return
    path = f"{folder}/{entry.name}"
    if os.path.lexists(path):
        raise _clash(source, entry.name)
    fd = disk.create(path)
    try:
        for chunk in entry.chunks():
            written = 0
            while written < len(chunk):
                written += disk.append(fd, chunk[written:])
    finally:
        os.close(fd)


def _clash(source: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"{source} holds '{clean(name)[:200]}' twice, as a file and a folder, or in spellings that are one name here",
        "make a new one with 'aof export FILE'; nothing was written",
    )
