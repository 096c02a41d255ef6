"""What the log's lock file says: the current day, the flag of a failed flush, and the floor of numbers.

Written only by who holds the lock. Must not know the log's files.
"""

from __future__ import annotations

import os

from aof.core.errors import LogPoisoned

_BYTES = 64


class State:
    """The content of the lock file."""

    __slots__ = ("day", "floor", "poisoned")

    def __init__(self, day: str = "", floor: int = 0, *, poisoned: bool = False) -> None:
        self.day = day
        self.floor = floor
        self.poisoned = poisoned

    @staticmethod
    def read(fd: int) -> State | None:
        """None where the file is new or has lost its content."""
        words = os.pread(fd, _BYTES, 0).decode("ascii", "replace").split()
        match words:
            case ["sound" | "poisoned" as flag, day, floor] if floor.isdigit():
                return State("" if day == "-" else day, int(floor), poisoned=flag == "poisoned")
        return None

    def text(self) -> bytes:
        """One padded line."""
        flag = "poisoned" if self.poisoned else "sound"
        return f"{flag} {self.day or '-'} {self.floor}".ljust(_BYTES - 1).encode() + b"\n"


def poisoned() -> LogPoisoned:
    """What everybody is told until somebody has verified the log."""
    return LogPoisoned(
        "a flush of the log has failed; what came last may not be durable, and nothing is written until it is verified",
        "run 'aof doctor --fix'",
    )
