"""A place in the log, as lock files, checkpoint and index write it down. Must not know the files."""

from __future__ import annotations

from aof.stores.filesystem.log.line_end import GENESIS


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
