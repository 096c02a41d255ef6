"""Verifying the log's files from the first event to the last: the first one that is wrong is named, nothing is changed.

Must not know locks, nor what the events mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from aof.core.errors.storage import LogDamaged
from aof.core.model.events import Event
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.lanes import read_header, refused
from aof.stores.filesystem.log.layout import PathSection
from aof.stores.filesystem.log.position import Position

_CHUNK = 1 << 20
HINT = "copy events/ aside, then restore it from a backup or version control, or run 'aof doctor'; nothing was changed"


class Proof:
    """How far the log holds: `end` of its last whole commit, `rest` bytes behind that, `known` if it has an event."""

    def __init__(self, known: Position | None = None) -> None:
        self.end = Position()
        self.rest = 0
        self.known = known is None or not known.seq
        self._known = known

    def section(self, paths: Paths, section: PathSection) -> None:
        """Verify the next part of the path; raises LogDamaged that names the first wrong event."""
        day = section.name
        if self.rest:
            raise wrong(self.end.segment, self.end.seq + 1, "is incomplete, and later files follow it")
        here = Position(day, section.begin, self.end.seq, self.end.digest)
        digest, offset = here.digest, section.begin
        if section.begin:
            self._header(paths, day)
        for line in _lines(paths.log(day), section):
            if not line.endswith(b"\n"):
                offset += len(line)
                break
            event = _proven(line, digest, here, day)
            digest, offset = event.hash, offset + len(line)
            if event.commit[0] == event.commit[1]:
                here = Position(day, offset, event.seq, digest)
                if self._known is not None and (offset, digest) == (self._known.offset, self._known.digest):
                    self.known = self.known or day == self._known.segment
        self.end, self.rest = here, offset - here.offset

    def _header(self, paths: Paths, segment: str) -> None:
        """A lane's header has to name the event that its first one builds on."""
        after = read_header(paths.log(segment), segment)[0].after
        if (after.hash, after.seq) != (self.end.digest, self.end.seq):
            raise refused(segment, f"does not build on event {self.end.seq}, which comes before it")


def _proven(line: bytes, digest: str, before: Position, day: str) -> Event:
    try:
        event = chain.decode(line)
    except LogDamaged:
        raise wrong(day, before.seq + 1, "cannot be read") from None
    if not chain.proves(line, digest):
        raise wrong(day, event.seq, f"does not follow from event {before.seq}, or was changed")
    if event.seq <= before.seq:
        raise wrong(day, event.seq, f"has a number that is not greater than {before.seq}")
    return event


def prove(paths: Paths, path: Iterable[PathSection], known: Position | None = None) -> Proof:
    """Verify a path from the first event on."""
    proof = Proof(known)
    for section in path:
        proof.section(paths, section)
    return proof


def prove_last(paths: Paths, last: PathSection, before: tuple[int, str], known: Position | None) -> Proof:
    """Verify the last part only, where those before are as they were left; `before` is their last number and hash."""
    proof = Proof(known)
    proof.end = Position("", 0, *before)
    proof.section(paths, last)
    return proof


def wrong(day: str, seq: int, what: str) -> LogDamaged:
    """The first event that is wrong."""
    return LogDamaged(f"event {seq} in events/{day}.jsonl {what}", HINT, day=day, seq=seq)


def lost(known: Position) -> LogDamaged:
    """What was appended and is gone."""
    return LogDamaged(
        f"events/{known.segment}.jsonl lacks event {known.seq}, which was acknowledged: it was cut or changed",
        HINT,
        day=known.segment,
        seq=known.seq,
    )


def _lines(path: str, section: PathSection) -> Iterator[bytes]:
    """The lines of a part of a file; the last one may have no end."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        rest, offset = b"", section.begin
        while data := os.pread(fd, _CHUNK if section.end is None else min(_CHUNK, section.end - offset), offset):
            offset += len(data)
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            for line in lines:
                yield line + b"\n"
        if rest:
            yield rest
    finally:
        os.close(fd)
