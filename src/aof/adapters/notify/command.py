"""Notifications to a command: started with an argument list, never a shell, with the JSON on its standard input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

import msgspec

from aof.ports.notifier import Notification

_PATIENCE = 10.0  # seconds
OF_THE_CALLER = frozenset({"AOF_RUN_SECRET", "AOF_MESSAGE_NONCE"})  # what proves who a worker is, and nobody else


class CommandNotifier:
    """Runs a program for each notification, in the data directory, and waits for it within bounds.

    A command that nobody has allowed is not run; `refused` says why, and that is reported once.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: str,
        patience: float = _PATIENCE,
        refused: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._command = list(command)
        self._folder = folder
        self._patience = patience
        self._refused = refused
        self._said = False

    def notify(self, notification: Notification) -> None:
        """Start it. Raises OSError or SubprocessError where it cannot be started, fails or takes too long."""
        if why := self._refused():
            if not self._said:
                sys.stderr.write(f"aof: nobody was notified: {why}\n")
            self._said = True
            return
        subprocess.run(  # noqa: S603 - the command is the settings', and the text of a task is never part of it
            self._command,
            input=msgspec.json.encode(notification) + b"\n",
            cwd=self._folder,
            env={name: value for name, value in os.environ.items() if name not in OF_THE_CALLER},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=self._patience,
            check=True,
        )
