"""Events found by their hashes, on the path and beside it.

What another clone wrote has another hash in the merge lane that repeats it. The lane has the original commits in their
canonical order, so the event that repeats one is known without merging again. Reads only. Must not know any other rule
of the merge.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof._support.gc_pause import uncollected
from aof.core.engine.merge.commits.lanes import Lanes
from aof.core.engine.merge.commits.order import repeated
from aof.core.engine.merge.model import RULE
from aof.ports.store import HashedEvent
from aof.stores.filesystem.log import chain, lane_names
from aof.stores.filesystem.log.layout import Layout, PathSection
from aof.stores.filesystem.log.line_end import MARK, TAIL_BYTES
from aof.stores.filesystem.log.reader import Reader
from aof.stores.filesystem.merge.lane_commits import read_lanes


def hashed(reader: Reader, beginning: str) -> tuple[HashedEvent, ...]:
    """The events whose hashes begin so; those of the path come first."""
    path = reader.path()
    found = {
        event_hash: HashedEvent(event_hash, chain.decode(line).seq, f"{section.name}{lane_names.SUFFIX}")
        for section in path
        for event_hash, line in _matching(reader, section, beginning)
    }
    layout = reader.layout()
    if layout is None:
        return tuple(found.values())
    beside = {
        event_hash: f"{name}{lane_names.SUFFIX}"
        for name, segment in layout.segments.items()
        for event_hash, _ in _matching(reader, PathSection(name, segment.begin), beginning)
        if event_hash not in found
    }
    numbers = _numbers_on(path, layout) if beside else {}
    return (*found.values(), *(HashedEvent(one, numbers.get(one), file) for one, file in beside.items()))


def _matching(reader: Reader, section: PathSection, beginning: str) -> Iterator[tuple[str, bytes]]:
    mark = MARK + beginning.encode()
    for line in reader.lines(section):
        if line.startswith(mark, len(line) - TAIL_BYTES):
            yield chain.digest_of(line), line


def _numbers_on(path: tuple[PathSection, ...], layout: Layout) -> dict[str, int]:
    """By the hash of an event beside the path, the number of the one on the path that repeats it."""
    passed = {lane_names.lane_of(section.name) for section in path}
    numbers: dict[str, int] = {}
    replaced: dict[str, str] = {}  # what a merge beside the path repeats, which is an original of another one, too
    with uncollected():
        found = [lane for lane in read_lanes(layout).lanes if lane.commits]
        lanes = Lanes(found)
        for lane in found:
            if not lane.heads or lane.rule != RULE:
                continue
            for original, event in repeated(lanes, lane):
                if lane.name in passed:
                    numbers[original.hash] = event.seq
                else:
                    replaced[event.hash] = original.hash
    return numbers | {one: numbers[first] for one, first in replaced.items() if first in numbers}
