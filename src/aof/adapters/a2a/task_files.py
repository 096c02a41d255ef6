"""Files that come from a peer as files of a task: below its own folder, under names that no peer chooses.

Must not know whether the peer works for us or we for it.
"""

from __future__ import annotations

import os
import re
from typing import Final

from aof._support.confined_folder import ConfinedFolder
from aof._support.hashing import hexdigest
from aof.app.fabric import Fabric
from aof.core.model.task import Task

_NAME: Final = 80  # characters
_TRIES: Final = 5


def folder_of(fabric: Fabric, task: Task) -> str:
    """The folder of the task's own files; it moves with the task."""
    files = fabric.store.working_copy
    assert files is not None, "whoever talks to peers has a data directory"
    return f"{files.root}/{fabric.store.path_of(task).removesuffix('.md')}"


def safe_name(given: str, seed: str) -> str:
    """A digest of the seed, with what is harmless of a name that a peer gave."""
    harmless = re.sub(r"[^A-Za-z0-9._-]+", "-", given).strip(".-")[-_NAME:] or "artifact"
    return f"{hexdigest(seed.encode())[:8]}-{harmless}"


def save(fabric: Fabric, task_id: str, files: dict[str, bytes]) -> None:
    """Write files below the folder of a task that others may move meanwhile."""
    for _ in range(_TRIES):
        folder = folder_of(fabric, fabric.get(task_id))
        for path, data in files.items():
            write(folder, path, data)
        if folder_of(fabric, fabric.get(task_id)) == folder:
            return


def size_of(folder: str) -> tuple[int, int]:
    """How many files lie directly in a folder, and their bytes together."""
    try:
        with os.scandir(folder) as entries:
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in entries]
    except OSError:
        return 0, 0
    return len(sizes), sum(sizes)


def write(folder: str, path: str, data: bytes) -> None:
    """Write one file below a task's folder: whole or not at all, and never through a link."""
    files = ConfinedFolder(os.path.dirname(folder))
    target = f"{folder}/{path}"
    files.make_folders(os.path.dirname(target))
    place, name = files.at(target)
    part = f".{name}.{os.getpid()}.part"
    opened = files.open(f"{os.path.dirname(target)}/{part}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    with open(opened, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
