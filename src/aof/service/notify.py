"""The notifiers of a data directory: a command that is started, a file that grows.

What goes wrong is said on standard error and nowhere else.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence

import msgspec

from aof.kernel.ports import Notification, Notifier
from aof.support.confined_folder import ConfinedFolder
from aof.support.printable import clean


class _Everybody:
    """Tells one after the other; one that fails keeps no other from being told."""

    def __init__(self, notifiers: Sequence[Notifier]) -> None:
        self._notifiers = notifiers

    def notify(self, notification: Notification) -> bool:
        """Pass it on to all; False where one of them failed."""
        heard = True
        for one in self._notifiers:
            try:
                one.notify(notification)
            except Exception as error:  # noqa: BLE001 - the change is made, notified or not
                heard = False
                sys.stderr.write(f"aof: {notification.task_id}: nobody was notified: {clean(str(error))}\n")
        return heard


def notifier(
    root: str,
    command: Sequence[str],
    file: str | None,
    refused: Callable[[], str | None] = lambda: None,
    file_refused: Callable[[], str | None] = lambda: None,
) -> Notifier:
    """The notifiers of a data directory's settings; paths are relative to it.

    `refused` and `file_refused` tell why the command is not run, and the file not written.
    """
    chosen: list[Notifier] = []
    if command:
        chosen.append(CommandNotifier(command, folder=root, refused=refused))
    if file is not None:
        chosen.append(FileNotifier(root, file, file_refused))
    return _Everybody(chosen)


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


_GROWING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would wait for a reader


class FileNotifier:
    """Appends each notification in one write, so that lines of several processes do not mix.

    A file that nobody has allowed is not written; `refused` says why, and that is reported once.
    """

    def __init__(self, root: str, file: str, refused: Callable[[], str | None] = lambda: None) -> None:
        self._refused = refused
        self._said = False
        self._path = os.path.join(root, file)
        self._beneath = None if os.path.isabs(file) else ConfinedFolder(root)

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
