"""Notifications as lines of JSON in a file, for whoever reads along. Must not know when somebody is told."""

from __future__ import annotations

import os

import msgspec

from aof.beneath import Beneath
from aof.ports.notifier import Notification

_GROWING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class FileNotifier:
    """Appends each notification in one write, so that lines of several processes do not mix."""

    def __init__(self, root: str, file: str) -> None:
        self._path = os.path.join(root, file)  # noqa: PTH118 - pathlib costs start-up time
        self._beneath = None if os.path.isabs(file) else Beneath(root)  # noqa: PTH117 - as above

    def notify(self, notification: Notification) -> None:
        """Append a line; a relative path stays in the data directory, and no link leads it out."""
        fd = os.open(self._path, _GROWING, 0o600) if self._beneath is None else self._opened(self._beneath)
        try:
            os.write(fd, msgspec.json.encode(notification) + b"\n")
        finally:
            os.close(fd)

    def _opened(self, beneath: Beneath) -> int:
        beneath.begin()
        return beneath.open(self._path, _GROWING)
