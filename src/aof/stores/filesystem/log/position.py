"""A place in the log, as lock files, checkpoint and index write it down, and the places where readers have been.

Must not know the files: a position says where something was, and its reader proves that it still is.
"""

from __future__ import annotations

from aof.stores.filesystem.log.line_end import GENESIS

_MOST = 8  # readers at different places at once


class Position:
    """A place between two commits: a segment (a file of the log), an offset in it, and the hash of the event before."""

    __slots__ = ("digest", "offset", "segment", "seq")

    def __init__(self, segment: str = "", offset: int = 0, seq: int = 0, digest: str = GENESIS) -> None:
        self.segment = segment
        self.offset = offset
        self.seq = seq
        self.digest = digest

    def text(self) -> str:
        """One line, without its end."""
        return f"{self.segment or '-'} {self.offset} {self.seq} {self.digest}"

    @staticmethod
    def parse(words: list[str]) -> Position | None:
        """What `text` has written, split into words; None where it makes no sense."""
        match words:
            case [segment, offset, seq, digest] if offset.isdigit() and seq.isdigit():
                return Position("" if segment == "-" else segment, int(offset), int(seq), digest)
        return None


class Bookmarks:
    """The last places, so that who reads the news again need not read the whole day again. Threads may share it."""

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
