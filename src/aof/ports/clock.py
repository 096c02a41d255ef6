"""The clock as the application needs it. Above: everything that asks for the time. Below: the system, or a test."""

from __future__ import annotations

from typing import Protocol

from aof.core.runs.lease_clock import Boot


class Clock(Protocol):
    """Moments for records, durations for waiting."""

    def now(self) -> int:
        """The wall clock in UTC milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    def boot(self) -> Boot | None:
        """The count since the machine's start, the same for all its processes; None where there is none."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        ...
