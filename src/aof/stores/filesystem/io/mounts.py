"""Which file system a folder lies on, and whether that is one whose locks can be relied on.

The kernel lists mounts in the order in which they were made: of several at one place, the last one is what is seen.
Must not know what the folder is for.
"""

from __future__ import annotations

import os

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
