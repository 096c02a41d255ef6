"""Where a reader has been: whoever reads the news again need not read the whole day again.

Must not know the files: a bookmark says where something was, and its reader proves that it still is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.log.position import Position

_MOST = 8  # readers at different places at once


class Bookmarks:
    """The last places, in the order in which they were put. Threads may share it."""

    def __init__(self) -> None:
        self._places: tuple[Position, ...] = ()

    def before(self, seq: int) -> Position | None:
        """The last known place that is not behind the event."""
        known = [place for place in self._places if place.seq <= seq]
        return max(known, key=lambda place: place.seq, default=None)

    def put(self, place: Position) -> None:
        """Remember a place; the oldest of many is forgotten."""
        others = tuple(known for known in self._places if known.seq != place.seq)
        self._places = (*others, place)[-_MOST:]

    def drop(self, place: Position) -> None:
        """Forget a place that is no longer there."""
        self._places = tuple(known for known in self._places if known is not place)
