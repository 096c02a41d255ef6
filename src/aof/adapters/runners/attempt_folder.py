"""Where a worker runs: the folder of a run's attempts, which is locked for as long as a worker of it lives.

The lock belongs to an open file that the service takes before it claims and hands to the supervisor of the worker. The
kernel keeps it until nothing of the worker is left, whoever is killed, in whatever container; it needs no file of its
own that somebody could delete. Must not know tasks.
"""

from __future__ import annotations

import fcntl
import os

from aof._support.confined_folder import ConfinedFolder


def folder(root: str, place: str) -> str:
    """The folder that is locked."""
    return f"{root}/runs/{place}/attempts"


def take(files: ConfinedFolder, place: str) -> int | None:
    """A descriptor that holds the lock; None while a worker is there. Raises OSError where there can be none."""
    path = folder(files.root, place)
    files.make_folders(path)
    fd = files.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError:
        os.close(fd)
        raise
    return fd


def free(fd: int) -> None:
    """Let the lock go."""
    fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)
