"""What the operating system tells: its errors as ours, whose a file is, and which file system a folder lies on.

Must not know what was being done, other than by its name.
"""

from __future__ import annotations

import errno
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager

from aof._support.confined_folder import LinkInTheWay
from aof.core.errors.base import AofError
from aof.core.errors.storage import DiskFull, LinkRefused, StorageFailed

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TABLE = "/proc/self/mountinfo"
_UNKNOWN = ("unknown", "unknown")
_FIELDS = 6  # before the dash, as proc(5) has them
_REMOTE = frozenset(
    {"9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs", "ocfs2",
     "orangefs", "pvfs2", "vboxsf", "virtiofs", "vmhgfs"}
)  # fmt: skip
_REMOTE_BEGINNINGS = ("nfs", "smb", "fuse.")
# Of what runs in user space, these keep their data on a disk of this machine. Everything else may be anywhere.
_LOCAL_FUSE = frozenset({
    "fuse.bindfs", "fuse.encfs", "fuse.exfat", "fuse.exfat-fuse", "fuse.ext2", "fuse.ext3", "fuse.ext4",
    "fuse.fuse-overlayfs", "fuse.fuse2fs", "fuse.gocryptfs", "fuse.cryfs", "fuse.mergerfs", "fuse.ntfs", "fuse.ntfs-3g",
    "fuse.overlayfs", "fuse.unionfs", "fuse.unionfs-fuse", "fuse.zfs",
})  # fmt: skip


def failed(error: OSError, doing: str) -> AofError:
    """What to raise when something could not be done and nothing was changed."""
    if error.errno in NO_SPACE:
        return DiskFull(f"no space left to {doing}; nothing was changed", "free some space and try again")
    if isinstance(error, LinkInTheWay):
        return LinkRefused(
            f"could not {doing}: {error.filename} is a symbolic link, and links are not followed; nothing was changed",
            "put what it leads to in its place, or remove it; 'aof doctor' lists all links",
            path=error.filename,
        )
    hint = "check the disk and the permissions"
    if error.errno in (errno.EACCES, errno.EPERM) and error.filename and (owner := owner_of(error.filename)):
        hint = f"it belongs to {owner}; 'aof init --shared group' makes a data directory for several users"
    return StorageFailed(
        f"could not {doing}: {error.strerror}; nothing was changed",
        hint,
        path=error.filename,
    )


@contextmanager
def clearly(doing: str) -> Iterator[None]:
    """Nobody above the store has to know the operating system's errors."""
    try:
        yield
    except OSError as error:
        raise failed(error, doing) from error


def owner_of(path: str) -> str | None:
    """The user that a file belongs to, unless that is the one who asks; None also where the system does not tell."""
    try:
        owner = os.stat(path, follow_symlinks=False).st_uid
    except OSError:
        return None
    return None if owner == os.geteuid() else _name(owner)


def runs_as(pid: int) -> str | None:
    """The same for a process."""
    return owner_of(f"/proc/{pid}")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def is_remote(kind: str) -> bool:
    """Whether a file system of this type is shared over a network or between machines, or could be."""
    return kind in _REMOTE or (kind.startswith(_REMOTE_BEGINNINGS) and kind not in _LOCAL_FUSE)


def file_system(folder: str, table: str = _TABLE) -> tuple[str, str]:
    """The type and the device of the file system that a folder lies on; `unknown` where the system does not tell."""
    try:
        with open(table, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return _UNKNOWN
    real = os.fsencode(os.path.realpath(folder))
    mounts = [mount for line in lines if (mount := _mount(line)) is not None and _holds(mount[1], real)]
    device = _device(real)  # a mount further up may hide one further down
    found, longest = _UNKNOWN, -1
    for _, point, kind, source in [mount for mount in mounts if mount[0] == device] or mounts:
        if len(point) >= longest:  # the last one of equals lies on top
            found, longest = (kind, source), len(point)
    return found


def _mount(line: bytes) -> tuple[bytes, bytes, str, str] | None:
    """The device number, the place, the type and the source that a line tells of."""
    before, _, behind = line.partition(b" - ")
    fields, rest = before.split(b" "), behind.split(b" ")
    if len(fields) < _FIELDS or len(rest) < 2:  # noqa: PLR2004 - the type and the source
        return None
    return fields[2], _plain(fields[4]), os.fsdecode(_plain(rest[0])), os.fsdecode(_plain(rest[1]))


def _device(real: bytes) -> bytes:
    try:
        number = os.lstat(real).st_dev
    except OSError:
        return b""
    return f"{os.major(number)}:{os.minor(number)}".encode()


def _holds(point: bytes, real: bytes) -> bool:
    return real == point or real.startswith(point.rstrip(b"/") + b"/")


def _plain(field: bytes) -> bytes:
    """Blanks, line breaks and backslashes stand in the table as octal numbers."""
    first, *parts = field.split(b"\\")
    return first + b"".join(_octal(part[:3]) + part[3:] for part in parts)


def _octal(digits: bytes) -> bytes:
    try:
        return bytes((int(digits, 8) & 0xFF,))
    except ValueError:
        return b"\\" + digits
