"""Numbers for task IDs: a counter with a lock of its own, taken alone. Gaps are fine, giving one twice is not.

The counter is a cache: under a new boot, or where it is lost, it is rebuilt from log, folders and archive. A process
that asks often gets more and more numbers at once, which it hands out without another look. A person may have given
such a number to a file of their own, so the creator of a task checks whether it is there. Which numbers are a clone's
to give, others say.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from aof.kernel.commands import Numbers
from aof.kernel.model import is_task_id, split_task_id, task_id
from aof.store.files.disk import Disk
from aof.store.files.locks import HeldLock, Locks
from aof.store.files.log.reader import Reader
from aof.store.files.paths import PROCESS, Paths

LOCK = "counter"
_BYTES = 96
_MOST_AT_ONCE = 4  # a gap that a person sees, when another process goes on behind them


class Counter:
    """Gives out IDs."""

    def __init__(
        self,
        paths: Paths,
        locks: Locks,
        disk: Disk,
        reader: Reader,
        boot_id: Callable[[], str],
        *,
        numbers: Callable[[], Numbers],
    ) -> None:
        self._paths = paths
        self._locks = locks
        self._disk = disk
        self._reader = reader
        self._boot = boot_id()
        self._numbers = numbers
        self._day = ""
        self._ours = range(0)
        self._at_once = 1
        self._turn = threading.Lock()
        self._pid = PROCESS.id

    def next(self, today: str) -> str:
        """The next ID; the day never goes back, whatever the clock does."""
        if self._pid != PROCESS.id:  # the numbers are the parent's, and one of its threads may have had the turn
            self._turn, self._pid, self._ours = threading.Lock(), PROCESS.id, range(0)
        with self._turn:
            if not self._ours or self._day < today:
                self._take_more(today)
            number, self._ours = self._ours[0], self._ours[1:]
            return task_id(self._day, number)

    def put_back(self, unused: str) -> None:
        """Hand out an ID once more that nothing was made under, if it is the last one that was handed out."""
        if self._pid != PROCESS.id:
            return
        with self._turn:
            last = self._ours.start - 1
            if unused == task_id(self._day, last):
                self._ours = range(last, self._ours.stop)

    def _take_more(self, today: str) -> None:
        numbers = self._numbers()
        held = self._locks.take(LOCK)
        try:
            day, number = self._last(held, today, numbers)
            last = number + min(self._at_once, numbers.room(number))
            self._note(held, day, last)
        finally:
            self._locks.release((held,))
        self._day, self._ours = day, range(number + 1, last + 1)
        self._at_once = min(self._at_once * 2, _MOST_AT_ONCE)

    def give_back(self) -> None:
        """Return the numbers that were taken and not handed out, unless somebody has taken more since."""
        unused, self._ours = self._ours, range(0)
        if not unused or self._pid != PROCESS.id:
            return
        held = self._locks.take(LOCK)
        try:
            if self._noted(held) == (self._day, unused[-1]):
                self._note(held, self._day, unused[0] - 1)
        finally:
            self._locks.release((held,))

    def peek(self) -> tuple[str, int] | None:
        """The day and the number that were given last; None where they would be worked out again."""
        held = self._locks.take(LOCK, exclusive=False)
        try:
            return self._noted(held)
        finally:
            self._locks.release((held,))

    def forget(self) -> None:
        """Let the next number be worked out again."""
        held = self._locks.take(LOCK)
        try:
            self._disk.overwrite(held.fd, b" " * (_BYTES - 1) + b"\n", 0)
        finally:
            self._locks.release((held,))

    def _note(self, held: HeldLock, day: str, number: int) -> None:
        self._disk.overwrite(held.fd, f"{self._boot} {day} {number}".ljust(_BYTES - 1).encode() + b"\n", 0)

    def _noted(self, held: HeldLock) -> tuple[str, int] | None:
        match os.pread(held.fd, _BYTES, 0).decode("ascii", "replace").split():
            case [boot, day, number] if boot == self._boot and number.isdigit():
                return day, int(number)
        return None

    def _last(self, held: HeldLock, today: str, numbers: Numbers) -> tuple[str, int]:
        """The day, and the number to go on after; one that is not, or no longer, this clone's is not gone on after."""
        noted = self._noted(held)
        if noted is not None and noted[0] >= today and numbers.room(noted[1]):
            return noted
        day = today if noted is None else max(today, noted[0])
        return day, numbers.last(self._used(day))

    def _used(self, day: str) -> set[int]:
        """Every number that was ever used on a day, also by a person."""
        used: set[int] = set()
        runs = self._paths.run(""), self._paths.run("", archived=True)  # these may be all that is left of a task
        for folder in (*(folder for _, folder in self._paths.folders), *runs):
            for entry in os.scandir(folder):
                used.add(_number(entry.name.split(".")[0], day))
        used.update(_number(name, day) for name in self._reader.ids())
        return used


def _number(name: str, day: str) -> int:
    if not is_task_id(name):
        return 0
    its_day, number = split_task_id(name)
    return number if its_day == day else 0
