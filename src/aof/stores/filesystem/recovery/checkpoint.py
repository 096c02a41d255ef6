"""The checkpoint: up to which event every file is written and synced, and under which boot that was.

It bounds what has to be redone after a power cut. Must not know how anything is redone.
"""

from __future__ import annotations

import os

from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log.reader import Position

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Checkpoint:
    """A position in the log and a boot."""

    __slots__ = ("boot", "position")

    def __init__(self, boot: str, position: Position) -> None:
        self.boot = boot
        self.position = position


def boot_id() -> str:
    """What tells one boot from the next; a clean restart of the machine looks like a power cut, which is safe."""
    try:
        with open(_BOOT_ID, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return f"no-boot-id-{os.uname().nodename}"


def load(paths: Paths) -> Checkpoint | None:
    """None where there is none, or none that makes sense."""
    data = read(paths.checkpoint)
    boot, *words = (data or b"-").decode("ascii", "replace").split() or [""]
    position = Position.parse(words)
    return Checkpoint(boot, position) if position is not None else None


def save(paths: Paths, disk: Disk, boot: str, position: Position) -> None:
    """Make everything durable, then say so."""
    disk.sync_all(paths.root)
    text = f"{boot} {position.text()}\n"
    temporary = paths.temporary_file("checkpoint")
    disk.write_durable(temporary, text.encode())
    disk.rename(temporary, paths.checkpoint)
    disk.sync_dir(paths.locks)
