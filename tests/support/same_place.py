"""A copy that stands for the directory it was made of, as when a folder is moved or restored in its place.

A copied data directory finds that it is another clone, and begins a lane of its own. Most tests copy one only to begin
several times at the same point.
"""

from __future__ import annotations

import os

from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log.claims import Claims
from aof.stores.filesystem.log.line_end import GENESIS


def adopt(root: str | os.PathLike[str]) -> None:
    """Let a copy go on with the root lane."""
    Claims(Paths(os.fspath(root)), Disk()).note("", GENESIS)
