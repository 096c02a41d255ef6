"""The chain of a log, proven event by event: what every crash and every race must leave behind."""

from __future__ import annotations

from aof.errors import LogDamaged
from aof.store.files.log import chain
from aof.store.files.log.reader import Reader
from aof.store.files.paths import Position


def verify(reader: Reader, start: Position | None = None) -> Position:
    """Check number, place and hash of every event; the position behind the last one. Raises LogDamaged."""
    here = start or Position()
    for behind, lines in reader.commits(here):
        for place, (line, event) in enumerate(lines, 1):
            if not chain.proves(line, here.digest) or event.seq <= here.seq or event.commit != (place, len(lines)):
                raise LogDamaged(
                    f"the log's chain is broken at event {event.seq} in {behind.segment}.jsonl",
                    "restore the file from a backup or from version control; nothing was changed",
                    seq=event.seq,
                    day=behind.segment,
                )
            here = Position(behind.segment, behind.offset, event.seq, event.hash)
    return here
