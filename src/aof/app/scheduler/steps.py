"""What is to be done about one run, in the order in which it came: a message, the exit, the end of its session.

A step that raises is recorded and set aside, and the next one comes. Where the machine is in the way (a full disk, a
lock that others hold) the step is tried again a few times, and what came after it waits. Must not know what a step is
for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from aof.app.faults import Faults, Tell
from aof.core.errors.base import AofError, Conflict, NotFound, Refused
from aof.ports.clock import Clock

_TRIES: Final = 5
_MOST: Final = 1_000  # steps that wait

Step = tuple[str, Callable[[], Any]]  # what it is called, and what is done


class Steps:
    """The steps of one run."""

    def __init__(self, task_id: str, clock: Clock, faults: Faults, tell: Tell) -> None:
        self.try_at: float | None = None
        self._task_id = task_id
        self._clock = clock
        self._faults = faults
        self._tell = tell
        self._waiting: deque[Step] = deque()
        self._tries = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, *steps: Step, last: bool = False) -> None:
        """Carry out these after those that wait; `last` are the end of the run, which always finds room."""
        if len(self._waiting) >= _MOST and not last:
            self._tell("trouble", self._task_id, "a message was dropped: too many wait for the disk")
            return
        self._waiting.extend(steps)
        if self.try_at is None:
            self.carry_out()

    def carry_out(self) -> None:
        """Do what waits."""
        self.try_at = None
        while self._waiting:
            what, do = self._waiting[0]
            try:
                do()
            except (Conflict, Refused, NotFound) as error:
                self._tell("late", self._task_id, error.message)
            except Exception as error:  # noqa: BLE001 - the edge of one step
                if isinstance(error, AofError) and self._tries < _TRIES - 1:
                    self.try_at = self._clock.monotonic() + 2.0**self._tries
                    self._tries += 1
                    self._faults.note(f"{what} is tried again", self._task_id, error)
                    return
                self._faults.note(what, self._task_id, error)
            self._tries = 0
            self._waiting.popleft()
