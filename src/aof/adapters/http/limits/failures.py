"""Failed authentications by address: the first few are answered at once, further ones late, and a flood not at all.

Only who has no valid token is slowed down, so nobody at the same address is locked out. Must not know tokens.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import anyio

from aof.adapters.http.limits.rate import Buckets

_BURST: Final = 20
_LATE: Final = 1.0  # seconds
_WAITING: Final = 32  # late answers per address at a time


class Failures:
    """What each address has done lately."""

    def __init__(self, per_minute: float) -> None:
        self._buckets = Buckets(per_minute / 60, _BURST)
        self._waiting: Counter[str] = Counter()

    def is_shed(self, address: str) -> bool:
        """Whether so many wait at this address that a further one gets no late answer."""
        return self._waiting[address] >= _WAITING

    async def slowed(self, address: str) -> bool:
        """Wait as long as the address has earned; False when it is not worth an answer of its own."""
        if self._buckets.take(address, anyio.current_time()):
            return True
        if self.is_shed(address):
            return False
        self._waiting[address] += 1
        try:
            await anyio.sleep(_LATE)
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]
        return True
