"""All notifiers of a data directory as one. What goes wrong is said on standard error and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from aof._support.printable import clean
from aof.adapters.notify.command import CommandNotifier
from aof.adapters.notify.file import FileNotifier
from aof.ports.notifier import Notification, Notifier


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
