"""Who may read and write what AOF makes: the owner, or a group. Must not touch the disk.

A data directory says it by the mode of its `events/` folder, so every process that writes there makes the same files,
whatever its umask is. What people and version control made keeps its mode.
"""

from __future__ import annotations

import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

PRIVATE_FOLDER: Final = 0o700
GROUP_FOLDER: Final = 0o2770
_BITS: Final = 0o7777


class Modes:
    """The modes of new folders and files. `exact` ones are set whatever the umask says."""

    __slots__ = ("exact", "file", "folder")

    def __init__(self, folder: int = PRIVATE_FOLDER) -> None:
        self.exact = bool(folder & stat.S_ISGID and folder & stat.S_IWGRP)
        self.folder = GROUP_FOLDER if self.exact else folder & 0o777 | PRIVATE_FOLDER
        self.file = self.folder & 0o666


def shared_with(group: bool) -> Modes:  # noqa: FBT001 - the one thing that there is to say
    """The modes of a new data directory."""
    return Modes(GROUP_FOLDER if group else PRIVATE_FOLDER)


def of(found: int) -> int:
    """The permission bits of what `stat` tells."""
    return found & _BITS
