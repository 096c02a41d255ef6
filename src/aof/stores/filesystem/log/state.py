"""What the log's lock file says: the day, whether a flush has failed, the floor of numbers, and the last stamp.

Written only by the holder of the lock. Must not know the log's files.
"""

from __future__ import annotations

import os

from aof.core.errors.storage import LogPoisoned
from aof.stores.filesystem.integrity.stamp import STAMP_BYTES, Stamp

STAMP_AT = 64


class State:
    """The content of the lock file."""

    __slots__ = ("day", "floor", "poisoned", "stamp")

    def __init__(self, day: str = "", floor: int = 0, *, poisoned: bool = False, stamp: Stamp | None = None) -> None:
        self.day = day
        self.floor = floor
        self.poisoned = poisoned
        self.stamp = stamp

    @staticmethod
    def read(fd: int, left: tuple[bytes, Stamp] | None = None) -> State | None:
        """None where the file is new or has lost its content; `left` is a stamp that needs no parsing."""
        data = os.pread(fd, STAMP_AT + STAMP_BYTES, 0)
        match data[:STAMP_AT].decode("ascii", "replace").split():
            case ["sound" | "poisoned" as flag, day, floor] if floor.isdigit():
                if left is not None and data[STAMP_AT:] == left[0]:
                    stamp: Stamp | None = left[1]
                else:
                    stamp = Stamp.parse(data[STAMP_AT:].decode("ascii", "replace"))
                return State("" if day == "-" else day, int(floor), poisoned=flag == "poisoned", stamp=stamp)
        return None

    def text(self) -> bytes:
        """One padded line."""
        flag = "poisoned" if self.poisoned else "sound"
        return f"{flag} {self.day or '-'} {self.floor}".ljust(STAMP_AT - 1).encode() + b"\n"


def poisoned() -> LogPoisoned:
    """The refusal until somebody has verified the log."""
    return LogPoisoned(
        "a flush of the log has failed; what came last may not be durable, and nothing is written until it is verified",
        "run 'aof doctor --fix'",
    )
