"""Numbers for task IDs: a counter with a lock of its own, taken alone. Gaps are fine, giving one twice is not.

The counter is a cache: under a new boot, or where it is lost, it is rebuilt from log, folders and archive.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from aof.core.ids import is_task_id, split_task_id, task_id
from aof.stores.filesystem.disk import Disk
from aof.stores.filesystem.locks import Held, Locks
from aof.stores.filesystem.paths import Paths
from aof.stores.filesystem.reader import Reader

LOCK = "counter"
_BYTES = 96
LARGEST = 100_000_000  # a person may name a file as they like; the numbers after it must still be IDs


class Counter:
    """Gives out IDs."""

    def __init__(self, paths: Paths, locks: Locks, disk: Disk, reader: Reader, boot_id: Callable[[], str]) -> None:
        self._paths = paths
        self._locks = locks
        self._disk = disk
        self._reader = reader
        self._boot = boot_id()

    def next(self, today: str) -> str:
        """The next ID; the day never goes back, whatever the clock does."""
        held = self._locks.acquire(LOCK)
        assert held is not None
        try:
            day, number = self._last(held, today)
            number += 1
            while self._taken(task_id(day, number)):
                number += 1
            self._disk.overwrite(held.fd, f"{self._boot} {day} {number}".ljust(_BYTES - 1).encode() + b"\n", 0)
        finally:
            self._locks.release((held,))
        return task_id(day, number)

    def peek(self) -> tuple[str, int] | None:
        """The day and the number that were given last; None where they would be worked out anew."""
        held = self._locks.acquire(LOCK, exclusive=False)
        assert held is not None
        try:
            return self._noted(held)
        finally:
            self._locks.release((held,))

    def forget(self) -> None:
        """Let the next number be worked out anew."""
        held = self._locks.acquire(LOCK)
        assert held is not None
        try:
            self._disk.overwrite(held.fd, b" " * (_BYTES - 1) + b"\n", 0)
        finally:
            self._locks.release((held,))

    def _noted(self, held: Held) -> tuple[str, int] | None:
        match os.pread(held.fd, _BYTES, 0).decode("ascii", "replace").split():
            case [boot, day, number] if boot == self._boot and number.isdigit():
                return day, int(number)
        return None

    def _last(self, held: Held, today: str) -> tuple[str, int]:
        noted = self._noted(held)
        return noted if noted is not None and noted[0] >= today else (today, self._highest(today))

    def _taken(self, task: str) -> bool:
        """Whether a person has given this ID to a file of their own."""
        return any(os.access(f"{folder}{task}.md", os.F_OK) for _, folder in self._paths.folders)

    def _highest(self, day: str) -> int:
        """The highest number that was ever used on a day, also by a person."""
        highest = 0
        runs = self._paths.run(""), self._paths.run("", archived=True)  # these may be all that is left of a task
        for folder in (*(folder for _, folder in self._paths.folders), *runs):
            for entry in os.scandir(folder):
                highest = max(highest, _number(entry.name.split(".")[0], day))
        for used in self._reader.ids():
            highest = max(highest, _number(used, day))
        return highest


def _number(name: str, day: str) -> int:
    if not is_task_id(name):
        return 0
    its_day, number = split_task_id(name)
    return number if its_day == day and number < LARGEST else 0
