"""How often something may happen: so many times at once, and so many times per second in the long run.

Must not know what is counted. Time is an argument.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_MOST: Final = 4_096  # keys that are remembered; the one that was used least lately is forgotten


class Buckets:
    """One token bucket per key."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: float) -> bool:
        """Take one, if there is one left."""
        level, at = self._levels.get(key, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._per_second)
        taken = level >= 1
        self._levels[key] = (level - 1 if taken else level, now)
        self._levels.move_to_end(key)
        if len(self._levels) > _MOST:
            self._levels.popitem(last=False)
        return taken
