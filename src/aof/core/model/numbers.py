"""Which numbers a clone gives to what it makes on a day, so that two clones rarely give the same one.

The clone that began the history counts from one. Any other counts in a block of its own, which follows from its random
token. A merge of histories gives numbers of a third kind to what was numbered twice all the same, and no counter ever
comes near them. Must not know what is numbered, nor where a token is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from aof._support.hashing import hexdigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

LARGEST: Final = 100_000_000  # a person may name a file as they like; the numbers after it must still be IDs
BLOCK_SIZE: Final = 1_000
FIRST_OF_BLOCKS: Final = 100_000
FIRST_DERIVED: Final = 1_000_000  # what a merge gives out, up to the next line
FIRST_AFTER_DERIVED: Final = 10_000_000  # where the first clone goes on, after more numbers than a day has ever seen
_LIKELY = 8  # blocks that a clone may have filled on one day; looking at more only costs time
_BLOCKS = range(FIRST_OF_BLOCKS // BLOCK_SIZE, FIRST_DERIVED // BLOCK_SIZE)


class Numbers:
    """How one clone counts: `clone` is its token, empty for the one that began the history.

    Where that one is alone, and no other clone has ever written, it goes on after any number that it finds.
    """

    __slots__ = ("alone", "clone")

    def __init__(self, clone: str = "", *, alone: bool = True) -> None:
        self.clone = clone
        self.alone = alone and not clone

    def last(self, used: Iterable[int]) -> int:
        """The number to go on after, of all that were used on a day: at least one that follows is free."""
        given = set(used)
        if self.alone:
            return _before_a_free_one({0}, given, _is_small)
        if not self.clone:
            begins = {0, FIRST_AFTER_DERIVED - 1} if FIRST_OF_BLOCKS - 1 in given else {0}
            return _before_a_free_one(begins, given, _is_first_ones)
        for turn in count():
            block = self._block(turn)
            last = max((number for number in given if number in block), default=block.start - 1)
            if last < block[-1]:
                return last
        raise AssertionError  # there is always another block to look at

    def room(self, last: int) -> int:
        """How many numbers follow this one without a gap; none where it is not, or no longer, this clone's to count."""
        if self.alone:
            return LARGEST
        if not self.clone:
            first = range(FIRST_OF_BLOCKS)
            rest = range(FIRST_AFTER_DERIVED - 1, LARGEST)
            return next((space[-1] - last for space in (first, rest) if last in space), 0)
        blocks = map(self._block, range(_LIKELY))
        return next((block[-1] - last for block in blocks if block.start - 1 <= last < block.stop), 0)

    def next(self, used: Iterable[int]) -> int:
        """The next free number."""
        return self.last(used) + 1

    def _block(self, turn: int) -> range:
        """The numbers of the clone's first block, or of one that it begins when those before it are full."""
        chosen = _BLOCKS[int(hexdigest(f"{self.clone}/{turn}".encode())[:12], 16) % len(_BLOCKS)]
        return range(chosen * BLOCK_SIZE + 1, (chosen + 1) * BLOCK_SIZE)


def _before_a_free_one(begins: set[int], used: set[int], is_ours: Callable[[int], bool]) -> int:
    """The largest number of ours, or beginning of ours, that a free number of ours follows."""
    candidates = begins.union(filter(is_ours, used))
    return max(one for one in candidates if is_ours(one + 1) and one + 1 not in used)


def _is_small(number: int) -> bool:
    return number < LARGEST


def _is_first_ones(number: int) -> bool:
    return number < FIRST_OF_BLOCKS or FIRST_AFTER_DERIVED <= number < LARGEST
