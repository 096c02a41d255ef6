"""Notifications as lines of JSON in a file. Must not know when to notify."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable

import msgspec

from aof._support.confined_folder import ConfinedFolder
from aof._support.printable import clean
from aof.ports.notifier import Notification

_GROWING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would wait for a reader


class FileNotifier:
    """Appends each notification in one write, so that lines of several processes do not mix.

    A file that nobody has allowed is not written; `refused` says why, and that is reported once.
    """

    def __init__(self, root: str, file: str, refused: Callable[[], str | None] = lambda: None) -> None:
        self._refused = refused
        self._said = False
        self._path = os.path.join(root, file)  # noqa: PTH118 - pathlib costs start-up time
        self._beneath = None if os.path.isabs(file) else ConfinedFolder(root)  # noqa: PTH117 - as above

    def notify(self, notification: Notification) -> None:
        """Append a line; a relative path stays in the data directory, and no link leads it out."""
        if why := self._refused():
            if not self._said:
                sys.stderr.write(f"aof: nobody was notified: {clean(why)}\n")
            self._said = True
            return
        fd = os.open(self._path, _GROWING, 0o600) if self._beneath is None else self._opened(self._beneath)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(f"{self._path} is not a regular file")
            os.write(fd, msgspec.json.encode(notification) + b"\n")
        finally:
            os.close(fd)

    def _opened(self, beneath: ConfinedFolder) -> int:
        beneath.begin()
        return beneath.open(self._path, _GROWING)
