"""The version of the format in `aof.toml`: a log with lanes has version 2, which an older AOF refuses.

The line is changed where it stands, and all else in the file stays. Must not know any other setting.
"""

from __future__ import annotations

import re

from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read

LANES = 2
_LINE = re.compile(rb"^schemaVersion[ \t]*=[ \t]*([0-9]+)", re.MULTILINE)
_TABLE = re.compile(rb"^[ \t]*\[", re.MULTILINE)


def require_lanes(paths: Paths, disk: Disk) -> None:
    """Before the first lane is there: let older versions refuse the data directory. Raises OSError."""
    path = f"{paths.root}/aof.toml"
    before = read(path)
    after = raised(before or b"")
    if after == before:
        return
    temporary = paths.temporary_file("aof.toml")
    disk.write_durable(temporary, after)
    (disk.rename if before is None else disk.replace)(temporary, path)
    disk.sync_dir(paths.root)


def raised(text: bytes) -> bytes:
    """The file with a version that knows lanes; a higher one stays."""
    first = _TABLE.search(text)
    top = first.start() if first is not None else len(text)
    found = _LINE.search(text, 0, top)
    if found is None:
        return b"schemaVersion = %d\n" % LANES + text
    if int(found[1]) >= LANES:
        return text
    return text[: found.start(1)] + b"%d" % LANES + text[found.end(1) :]
