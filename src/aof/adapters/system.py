"""The real clock: the only place that reads one."""

from __future__ import annotations

import time


class SystemClock:
    """Keeps the contract of `ports.clock.Clock`."""

    def now(self) -> int:
        """The wall clock in UTC milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        time.sleep(seconds)
