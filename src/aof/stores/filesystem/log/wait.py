"""Waiting for more of the log: a look at the size of one file, less and less often. Must not know its callers."""

from __future__ import annotations

from aof.ports.clock import Clock
from aof.stores.filesystem.log.reader import Reader

_SHORTEST_WAIT, _LONGEST_WAIT = 0.005, 0.25


def wait(reader: Reader, clock: Clock, after: int, timeout: float) -> bool:
    """Sleep until there is an event after that number; False when the time is over."""
    deadline = clock.monotonic() + timeout
    pause = _SHORTEST_WAIT
    known = None
    while True:
        end = reader.end()
        if end != known:
            known = end
            if reader.newest() > after:
                return True
        left = deadline - clock.monotonic()
        if left <= 0:
            return False
        clock.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_WAIT)
