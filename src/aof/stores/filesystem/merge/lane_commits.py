"""All lanes of a log as the core merges them: their commits, and where each commit ends. Reads and proves every line.

Must not know how lanes are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from aof.core.engine.merge.model import Commit, Lane
from aof.core.model.events import Event
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log import chain, lane_names, lanes
from aof.stores.filesystem.log.lanes import LogPlace
from aof.stores.filesystem.log.layout import Layout, Segment
from aof.stores.filesystem.log.line_end import GENESIS
from aof.stores.filesystem.log.reader import broken


class LaneCommits(NamedTuple):
    """The lanes, and by the hash of each commit's last event the place where it ends."""

    lanes: list[Lane]
    places: dict[str, LogPlace]


def read_lanes(layout: Layout) -> LaneCommits:
    """Everything that any clone has written; raises LogDamaged where a line does not follow from the one before."""
    places: dict[str, LogPlace] = {}
    by_lane: dict[str, list[Segment]] = {}
    for name in sorted(layout.segments):
        by_lane.setdefault(lane_names.lane_of(name), []).append(layout.segments[name])
    found = [_lane(name, files, places) for name, files in by_lane.items() if not name.startswith(lane_names.MERGED)]
    for name, files in by_lane.items():
        if name.startswith(lane_names.MERGED):  # what lies inside of one is built on by nobody
            inside: dict[str, LogPlace] = {}
            found.append(_lane(name, files, inside))
            places |= dict(list(inside.items())[-1:])
    return LaneCommits(found, places)


def _lane(name: str, files: list[Segment], places: dict[str, LogPlace]) -> Lane:
    first = files[0].header
    after = GENESIS if first is None else first.after.hash
    merge = first.merge if first is not None else None
    commits: list[Commit] = []
    digest = after
    for file in files:
        if file.header is not None and file.header.after.hash != digest:
            raise lanes.refused(file.name, "does not go on where the lane's file of the day before ends")
        for commit, place in _commits(file, digest):
            commits.append(commit)
            digest = place.hash
            places[digest] = place
    heads = tuple(head.hash for head in merge.heads) if merge is not None else ()
    return Lane(name, after, commits, heads, merge.rule if merge is not None else 0)


def _commits(file: Segment, digest: str) -> Iterator[tuple[Commit, LogPlace]]:
    """The whole commits of a file; what a dead writer left behind them is not there yet."""
    data = read(file.path, limit=None) or b""
    offset, events = file.begin, list[Event]()
    while end := data.find(b"\n", offset) + 1:
        line = data[offset:end]
        if not chain.proves(line, digest):
            raise broken(file.name)
        event = chain.decode(line)
        digest, offset = event.hash, end
        events.append(event)
        if event.commit[0] == event.commit[1]:
            yield Commit(tuple(events)), LogPlace(f"{file.name}{lane_names.SUFFIX}", offset, digest, event.seq)
            events = []
