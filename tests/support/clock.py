"""A clock that stands still until a test moves it; sleeping only moves it on."""

from __future__ import annotations

from aof.kernel.model import millis

MONDAY = millis("2026-03-02T09:00:00Z")
DAY = 24 * 60 * 60 * 1000


class ManualClock:
    """Implements `store.port.Clock` without ever waiting."""

    def __init__(self, now: int = MONDAY) -> None:
        self.time = now
        self.ticks = 0.0

    def now(self) -> int:
        """The moment that the test has set."""
        return self.time

    def monotonic(self) -> float:
        """Grows with every sleep."""
        return self.ticks

    def boot(self) -> None:
        """There is no count since a start: only the wall clock is left."""

    def sleep(self, seconds: float) -> None:
        """Time passes, nobody waits."""
        self.ticks += seconds
        self.time += int(seconds * 1000)
