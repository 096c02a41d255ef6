"""Notifications to a command: started with an argument list, never a shell, with the JSON on its standard input."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import msgspec

from aof.ports.notifier import Notification

_PATIENCE = 10.0  # seconds


class CommandNotifier:
    """Runs a program for each notification, in the data directory, and waits for it within bounds."""

    def __init__(self, command: Sequence[str], folder: str, patience: float = _PATIENCE) -> None:
        self._command = list(command)
        self._folder = folder
        self._patience = patience

    def notify(self, notification: Notification) -> None:
        """Start it. Raises OSError or SubprocessError where it cannot be started, fails or takes too long."""
        subprocess.run(  # noqa: S603 - the command is the settings', and the text of a task is never part of it
            self._command,
            input=msgspec.json.encode(notification) + b"\n",
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=self._patience,
            check=True,
        )
