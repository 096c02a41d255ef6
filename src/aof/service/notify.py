"""The notifiers of a data directory: a command that is started, a file that grows.

What goes wrong is said on standard error and nowhere else.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from aof.config import NotifySettings
from aof.kernel.ports import CommandLine, Notification, Notifier, Trust
from aof.scheduler.steps import notification_command, notification_file_command, untrusted_refusal
from aof.support.confined_folder import ConfinedFolder
from aof.support.printable import clean


class SettingsNotifier:
    """Tells the command and the file of the settings, one after the other; one that fails does not keep the other back.

    What nobody has trusted is not used, and that is said once. Paths are relative to the data directory.
    """

    def __init__(self, root: str, settings: NotifySettings, trust: Trust) -> None:
        self._trust = trust
        self._said: set[str] = set()
        self._ways: list[tuple[CommandLine | None, Notifier]] = []
        if settings.command:
            self._ways.append((notification_command(settings.command), CommandNotifier(settings.command, root)))
        if (file := settings.file) is not None:
            outside = notification_file_command(file) if os.path.isabs(file) else None
            self._ways.append((outside, FileNotifier(root, file)))

    def notify(self, notification: Notification) -> bool:
        """Pass it on to both; False where one of them failed."""
        heard = True
        for command, one in self._ways:
            if command is not None and not self._trust.covers(command):
                if command.source not in self._said:
                    sys.stderr.write(f"aof: nobody was notified: {clean(untrusted_refusal(command))}\n")
                self._said.add(command.source)
                continue
            try:
                one.notify(notification)
            except Exception as error:  # noqa: BLE001 - the change is made, notified or not
                heard = False
                sys.stderr.write(f"aof: {notification.task_id}: nobody was notified: {clean(str(error))}\n")
        return heard


_PATIENCE = 10.0  # seconds
OF_THE_CALLER = frozenset({"AOF_RUN_SECRET", "AOF_MESSAGE_NONCE"})  # what proves who a worker is, and nobody else


class CommandNotifier:
    """Runs a program for each notification, in the data directory, and waits for it within bounds."""

    def __init__(self, command: Sequence[str], folder: str) -> None:
        self._command = list(command)
        self._folder = folder

    def notify(self, notification: Notification) -> None:
        """Start it. Raises OSError or SubprocessError where it cannot be started, fails or takes too long."""
        subprocess.run(  # noqa: S603 - the command is the settings', and the text of a task is never part of it
            self._command,
            input=msgspec.json.encode(notification) + b"\n",
            cwd=self._folder,
            env={name: value for name, value in os.environ.items() if name not in OF_THE_CALLER},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=True,
        )


_GROWING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would wait for a reader


class FileNotifier:
    """Appends each notification in one write, so that lines of several processes do not mix."""

    def __init__(self, root: str, file: str) -> None:
        self._path = os.path.join(root, file)
        self._beneath = None if os.path.isabs(file) else ConfinedFolder(root)

    def notify(self, notification: Notification) -> None:
        """Append a line; a relative path stays in the data directory, and no link leads it out."""
        if self._beneath is None:
            fd = os.open(self._path, _GROWING, 0o600)
        else:
            self._beneath.begin()
            fd = self._beneath.open(self._path, _GROWING)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(f"{self._path} is not a regular file")
            os.write(fd, msgspec.json.encode(notification) + b"\n")
        finally:
            os.close(fd)
