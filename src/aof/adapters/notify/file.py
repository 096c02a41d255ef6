"""Notifications as lines of JSON in a file, for whoever reads along. Must not know when somebody is told."""

from __future__ import annotations

import os

import msgspec

from aof.ports.notifier import Notification


class FileNotifier:
    """Appends each notification in one write, so that lines of several processes do not mix."""

    def __init__(self, root: str, file: str) -> None:
        self._path = os.path.join(root, file)  # noqa: PTH118 - pathlib costs start-up time

    def notify(self, notification: Notification) -> None:
        """Append a line."""
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, msgspec.json.encode(notification) + b"\n")
        finally:
            os.close(fd)
