"""The real clock: the only place that reads the wall clock. Must not know what the time is for."""

from __future__ import annotations

import time
from functools import cache

from aof.runs import model as runs_model

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class SystemClock:
    """Implements `store.port.Clock`."""

    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)

    def now(self) -> int:
        """The wall clock in UTC milliseconds."""
        return time.time_ns() // 1_000_000

    def boot(self) -> runs_model.Boot | None:
        """The count since the machine's start, where the system tells one start from the next."""
        started = _boot_id()
        return runs_model.Boot(started, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000) if started else None


@cache
def _boot_id() -> str:
    try:
        with open(_BOOT_ID, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""
