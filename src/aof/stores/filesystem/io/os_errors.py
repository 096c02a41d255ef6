"""An operating system's error as one of ours. Must not know what was being done, other than by its name."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from aof._support.confined_folder import LinkInTheWay
from aof.core.errors.base import AofError
from aof.core.errors.storage import DiskFull, LinkRefused, StorageFailed
from aof.stores.filesystem.io import owners

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
    if error.errno in (errno.EACCES, errno.EPERM) and error.filename and (owner := owners.owner_of(error.filename)):
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
