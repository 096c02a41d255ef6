"""Verifying the log's files from the first event to the last: the first one that is wrong is named, nothing is changed.

Must not know locks, nor what the events mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from aof.core.errors.storage import LogDamaged
from aof.core.model.events import Event
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.reader import Position

_CHUNK = 1 << 20
_HINT = "restore events/ from a backup or from version control, or run 'aof doctor'; nothing was changed"


class Proof:
    """How far the log holds: `end` of its last whole commit, `rest` bytes behind that, `known` if it has an event."""

    def __init__(self, known: Position | None = None) -> None:
        self.end = Position()
        self.rest = 0
        self.known = known is None or not known.seq
        self._known = known

    def day(self, paths: Paths, day: str) -> None:
        """Verify the file of the next day; raises LogDamaged that names the first wrong event."""
        if self.rest:
            raise wrong(self.end.day, self.end.seq + 1, "is incomplete, and later days follow it")
        here = Position(day, 0, self.end.seq, self.end.digest)
        digest, offset = here.digest, 0
        for line in _lines(paths.log(day)):
            if not line.endswith(b"\n"):
                offset += len(line)
                break
            event = _proven(line, digest, here, day)
            digest, offset = event.hash, offset + len(line)
            if event.commit[0] == event.commit[1]:
                here = Position(day, offset, event.seq, digest)
                if self._known is not None and (offset, digest) == (self._known.offset, self._known.digest):
                    self.known = self.known or day == self._known.day
        self.end, self.rest = here, offset - here.offset


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


def prove(paths: Paths, days: list[str], known: Position | None = None) -> Proof:
    """Verify these days, which are all there are, from the first event on."""
    proof = Proof(known)
    for day in days:
        proof.day(paths, day)
    return proof


def prove_last(paths: Paths, day: str, before: tuple[int, str], known: Position | None) -> Proof:
    """Verify the last day only, where the ones before are as they were left; `before` is their last number and hash."""
    proof = Proof(known)
    proof.end = Position("", 0, *before)
    proof.day(paths, day)
    return proof


def wrong(day: str, seq: int, what: str) -> LogDamaged:
    """The first event that is wrong."""
    return LogDamaged(f"event {seq} in events/{day}.jsonl {what}", _HINT, day=day, seq=seq)


def lost(known: Position) -> LogDamaged:
    """What was appended and is gone."""
    return LogDamaged(
        f"events/{known.day}.jsonl lacks event {known.seq}, which was acknowledged: it was cut or changed",
        _HINT,
        day=known.day,
        seq=known.seq,
    )


def _lines(path: str) -> Iterator[bytes]:
    """The file's lines; the last one may have no end."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        rest = b""
        while data := os.read(fd, _CHUNK):
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            for line in lines:
                yield line + b"\n"
        if rest:
            yield rest
    finally:
        os.close(fd)
