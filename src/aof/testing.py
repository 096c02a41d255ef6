"""For your own tests: a fabric that needs no disk, and a clock that only the test moves.

    clock = FakeClock()
    fabric = memory_fabric(actor="pm", clock=clock)
    task = fabric.create("Write the report")
    fabric.claim(task.task_id, agent="writer", ttl=60)
    clock.sleep(61)
    fabric.recover()

Everything that the fabric answers and refuses is the same as on a data directory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from aof.api.fabric import Fabric
from aof.kernel.model import Policy, iso, millis
from aof.org.model import OrgChart
from aof.runs.model import Boot
from aof.store.memory import FixedChart, FixedWorkflows, MemoryStore
from aof.store.port import Clock

__all__ = ["FakeClock", "memory_fabric"]


class FakeClock:
    """A clock that stands still until somebody sleeps. Safe for several threads."""

    def __init__(self, start: str = "2026-01-05T09:00:00Z") -> None:
        self._now = millis(start)
        self._monotonic = 0.0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"FakeClock({iso(self._now)!r})"

    def now(self) -> int:
        """The moment in UTC milliseconds."""
        return self._now

    def monotonic(self) -> float:
        """The seconds that were slept."""
        return self._monotonic

    def boot(self) -> Boot:
        """The same count, which `set` does not touch."""
        return Boot("fake", round(self._monotonic * 1000))

    def sleep(self, seconds: float) -> None:
        """Let that much time pass, at once."""
        with self._lock:
            self._monotonic += max(seconds, 0.0)
            self._now += max(round(seconds * 1000), 0)

    def set(self, moment: str) -> None:
        """Turn the wall clock to a moment, also to an earlier one, as an administrator would."""
        with self._lock:
            self._now = millis(moment)


def memory_fabric(
    actor: str = "tester",
    clock: Clock | None = None,
    policy: Policy | None = None,
    org: OrgChart | None = None,
    workflows: Sequence[dict[str, Any]] = (),
) -> Fabric:
    """A fabric of its own in memory; by default on a fake clock, and without an org chart or workflows."""
    clock = clock or FakeClock()
    return Fabric(
        MemoryStore(clock),
        clock,
        policy or Policy(),
        actor,
        org=FixedChart(org) if org is not None else None,
        workflows=FixedWorkflows(*workflows),
    )
