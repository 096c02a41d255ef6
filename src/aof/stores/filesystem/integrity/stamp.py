"""What the last appender left: how the log's folder and files looked, and its last event.

The next appender compares it with what is there. Anything else than the same inode, size and change time means that
somebody other than an appender was at work, and the log is verified before it is written to. The change time is
compared and not the modification time, because a program can set the latter back. Changes nothing.
"""

from __future__ import annotations

import os

from aof._support.hashing import hexdigest
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log.reader import Position

STAMP_BYTES = 256
_WORDS = 9


class Stamp:
    """The folder's change time, a digest of the older days' files, the current file, and the position at its end."""

    __slots__ = ("changed", "folder", "inode", "older", "position")

    def __init__(self, folder: int, older: str, inode: int, changed: int, position: Position) -> None:
        self.folder = folder
        self.older = older
        self.inode = inode
        self.changed = changed
        self.position = position

    def describes(self, found: os.stat_result) -> bool:
        """Whether the current file is as it was left."""
        return (found.st_ctime_ns, found.st_size, found.st_ino) == (self.changed, self.position.offset, self.inode)

    def text(self) -> bytes:
        """One padded line; the mark at its end shows that all of it was written."""
        said = f"{self.folder} {self.older} {self.inode} {self.changed} {self.position.text()} ."
        return said.ljust(STAMP_BYTES - 1).encode("ascii") + b"\n"

    @staticmethod
    def parse(text: str) -> Stamp | None:
        """None where nobody has left any, as in a new lock file or one of an earlier version."""
        words = text.split()
        if len(words) != _WORDS or words[-1] != ".":
            return None
        position = Position.parse(words[4:8])
        if position is None or not (words[0].isdigit() and words[2].isdigit() and words[3].isdigit()):
            return None
        return Stamp(int(words[0]), words[1], int(words[2]), int(words[3]), position)


def older_days(paths: Paths, days: list[str]) -> str:
    """A digest of how the files of these days look, without reading them."""
    seen: list[str] = []
    for day in days:
        found = os.stat(paths.log(day))
        seen.append(f"{day} {found.st_ino} {found.st_size} {found.st_ctime_ns}")
    return hexdigest("\n".join(seen).encode())[:16]
