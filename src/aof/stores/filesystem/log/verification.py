"""How far the chain of hashes was verified, and on from there. Must not know who asks.

What was verified once is remembered as a position, and that position is looked at again each time: a log that was
replaced or cut is verified from its beginning.
"""

from __future__ import annotations

import threading

from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.log.reader import Reader


class ChainVerification:
    """The verification of one log. Safe for several threads."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._turn = threading.Lock()
        self._until = Position()

    def go_on(self, most: int | None) -> int:
        """Verify at most so many further events; the number of the last one that is proven. Raises LogDamaged."""
        with self._turn:
            if not self._reader.holds(self._until):
                self._until = Position()
            first = self._until.seq
            for here, _ in self._reader.proven(self._until):
                self._until = here
                if most is not None and here.seq - first >= most:
                    break
            return self._until.seq
