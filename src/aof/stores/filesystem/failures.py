"""An operating system's error as one of ours. Must not know what was being done, other than by its name."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from aof.core.errors import DiskFull, StorageFailed

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def failed(error: OSError, doing: str) -> DiskFull | StorageFailed:
    """What to raise when something could not be done and nothing was changed."""
    if error.errno in NO_SPACE:
        return DiskFull(f"no space left to {doing}; nothing was changed", "free some space and try again")
    return StorageFailed(
        f"could not {doing}: {error.strerror}; nothing was changed",
        "check the disk and the permissions",
        path=error.filename,
    )


@contextmanager
def clearly(doing: str) -> Iterator[None]:
    """Nobody above the store has to know the operating system's errors."""
    try:
        yield
    except OSError as error:
        raise failed(error, doing) from error
