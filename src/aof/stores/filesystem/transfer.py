"""A whole data directory as one file, and back. Caches and locks of this machine stay behind.

Must not know what the files mean: the log is verified by whoever opens the copy.
"""

from __future__ import annotations

import os
import tarfile
from contextlib import suppress

from aof.core.errors import Conflict, InvalidInput
from aof.ports.progress import Say, silent
from aof.stores.filesystem.store import FilesystemStore

_LEFT_BEHIND = ("index.sqlite", "locks", "tmp")
_MARK = "events"


def pack(store: FilesystemStore, target: str, say: Say = silent) -> int:
    """Write everything into a compressed tar file, as of one moment; tells how many files went in."""
    held = store.stripes.take_all()
    count = 0
    temporary = f"{target}.part"

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal count
        top = entry.name.split("/")[1] if "/" in entry.name else ""
        if top.startswith(_LEFT_BEHIND) or not (entry.isfile() or entry.isdir()):
            return None
        count += entry.isfile()
        say(f"{count:,} files")
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    try:
        store.log.refuse_poisoned()
        with tarfile.open(temporary, "w:gz", compresslevel=6) as archive:
            archive.add(store.paths.root, arcname=".aof", filter=wanted)
        os.replace(temporary, target)
    finally:
        store.locks.release(held)
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return count


def unpack(source: str, root: str, say: Say = silent) -> int:
    """Make a data directory from such a file; an existing one is never touched."""
    if os.path.isdir(f"{root}/{_MARK}"):
        raise Conflict(f"{root} is a data directory already", "import into another place with --data-dir DIR")
    count = 0
    try:
        with tarfile.open(source, "r:*") as archive:
            members = archive.getmembers()
            if not any(member.name == f".aof/{_MARK}" for member in members):
                raise InvalidInput(f"{source} holds no exported data directory", "make one with 'aof export FILE'")
            for member in members:
                if member.name == ".aof" or not member.name.startswith(".aof/"):
                    continue
                member.name = member.name[len(".aof/") :]
                os.makedirs(root, exist_ok=True)
                archive.extract(member, root, filter="data")
                count += member.isfile()
                say(f"{count:,} of {len(members):,} files")
    except (tarfile.TarError, EOFError) as error:
        why = str(error).partition("\n")[0].rstrip(":")  # the first line; others tell what was tried in vain
        raise InvalidInput(f"{source} cannot be read: {why}", "make a new one with 'aof export FILE'") from None
    FilesystemStore.create(root)
    return count
