"""Living below a version control: what keeps it from mixing histories, and what follows when it brings another log.

Must not know which system it is, beyond the two files that tell git what to leave alone.
"""

from __future__ import annotations

import os
from stat import S_ISREG
from typing import TYPE_CHECKING

from aof.core.errors import LogDamaged
from aof.stores.filesystem.paths import DIRECTORIES, IGNORED, UNMERGED, UNSHARED
from aof.stores.filesystem.stripes import EVERY_STRIPE

if TYPE_CHECKING:
    from aof.stores.filesystem.disk import Disk
    from aof.stores.filesystem.store import FilesystemStore


def prepare(root: str, disk: Disk) -> None:
    """Say what is not to be committed, what is not to be merged, and that empty folders stay.

    Git removes a folder with its last file, also below those who use it.
    """
    for name, lines in ((".gitignore", IGNORED), (".gitattributes", UNMERGED)):
        if not os.path.lexists(f"{root}/{name}"):
            disk.write_durable(f"{root}/{name}", "".join(f"{line}\n" for line in lines).encode())
    keep_out(f"{root}/.gitignore", disk)
    for name in DIRECTORIES:
        keep = f"{root}/{name}/.gitkeep"
        ignored = f"{name.split('/')[0]}/" in IGNORED or f"{name}/" in IGNORED
        if not ignored and not os.path.lexists(keep):
            os.close(disk.create(keep))


def keep_out(path: str, disk: Disk) -> None:
    """Add what an older version did not know of; a person's own lines stay, and one with '!' behind ours decides."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return  # somebody's link or a folder: theirs to look after
    with os.fdopen(fd, "rb") as file:
        text = file.read() if S_ISREG(os.fstat(fd).st_mode) else b""
    known = {line.strip() for line in text.splitlines()}
    missing = [line.encode() for line in UNSHARED if line.encode() not in known]
    if text and missing:
        start = text if text.endswith(b"\n") else text + b"\n"
        disk.write_durable(path, start + b"".join(line + b"\n" for line in missing))


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
