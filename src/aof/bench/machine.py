"""Where the figures come from: without the disk, the processors and the load they mean nothing.

Must not know what is measured.
"""

from __future__ import annotations

import array
import fcntl
import os
import platform
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from aof import __version__
from aof.store.files.disk import file_system

_NO_DISK = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_GET_FLAGS, _SET_FLAGS, _TOP_OF_TREES = 0x80086601, 0x40086602, 0x00020000  # from linux/fs.h; the flag is chattr's T


def is_disk(folder: Path) -> bool:
    """False for a file system in memory, where a flush does nothing."""
    return file_system(str(folder))[0] not in _NO_DISK


def has_journal(device: str) -> bool:
    """False only for an ext4 that surely has none."""
    name = Path(device).name
    return not Path("/proc/fs/ext4", name).exists() or any(Path("/proc/fs/jbd2").glob(f"{name}-*"))


def spread_out(folder: Path) -> None:
    """Let each folder made in this one begin in a part of the disk of its own, where the system can (ext4).

    Without a journal, ext4 takes up no inode that was freed within the last minutes, and steps over each of them, one
    by one, for every new file. What another run or another process has deleted nearby would make each new file cost
    up to a millisecond; so it should not lie nearby. What a subject deletes itself still counts.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            flags = array.array("l", [0])
            fcntl.ioctl(fd, _GET_FLAGS, flags)
            flags[0] |= _TOP_OF_TREES
            fcntl.ioctl(fd, _SET_FLAGS, flags)
    finally:
        os.close(fd)


def describe(folder: Path) -> dict[str, str]:
    """One line each, for the header and for the JSON."""
    kind, device = file_system(str(folder))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "folder": str(folder),
        "file system": f"{kind} on {device}" + ("" if has_journal(device) else ", without a journal"),
        "machine": f"{platform.system()} {platform.release()}, {os.cpu_count()} x {_processor()}, load {load}",
        "python": f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        "aof": __version__,
    }


def _processor() -> str:
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
