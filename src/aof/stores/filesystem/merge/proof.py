"""Proves the whole of a log with lanes: every line, every header, and every merge lane by making it once more.

The path from the root to the tip shows only what a merge made of the lanes; that it made it of these very lanes, and by
the rules, shows itself here. Reads only. Must not know any rule of the merge.
"""

from __future__ import annotations

from aof._support.gc_pause import uncollected
from aof.core.engine.merge.history import merge
from aof.core.engine.merge.model import RULE, Lane
from aof.core.errors.base import AofError
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log import lanes
from aof.stores.filesystem.log.lanes import Header
from aof.stores.filesystem.log.layout import Layout, Segment
from aof.stores.filesystem.log.line_end import GENESIS
from aof.stores.filesystem.merge.lane_commits import LaneCommits, read_lanes
from aof.stores.filesystem.merge.merge_lane import lane_name, sealed


def prove_lanes(paths: Paths, layout: Layout) -> None:
    """Raise LogDamaged where a line or a header is not what its clone, or a merge, has written."""
    with uncollected():
        found = read_lanes(layout)
        by_name = {lane.name: lane for lane in found.lanes}
        for segment in layout.segments.values():
            if segment.header is not None:
                _prove_header(segment, segment.header, found)
                if segment.header.merge is not None:
                    _prove_merge(paths, segment, by_name[segment.header.lane], found)


def _prove_header(segment: Segment, header: Header, found: LaneCommits) -> None:
    if header.after.hash != GENESIS and found.places.get(header.after.hash) != header.after:
        raise lanes.refused(segment.name, "does not build on the commit that its header names")
    if not (read(segment.path, limit=None) or b"").startswith(header.line()):
        raise lanes.refused(segment.name, "has a header that AOF has not written so")


def _prove_merge(paths: Paths, segment: Segment, lane: Lane, found: LaneCommits) -> None:
    if lane_name(lane.after, lane.heads, lane.rule) != lane.name:
        raise lanes.refused(segment.name, "has the name of another merge: its header was changed")
    if lane.rule != RULE:
        return  # made by other rules than this version's; its lines and its name hold
    try:
        again = sealed(merge(found.lanes, lane.heads), found.places, paths)
    except (AofError, KeyError) as error:
        raise lanes.refused(segment.name, f"cannot be made of the lanes that it names: {error}") from None
    if (again.segment, again.data) != (segment.name, read(segment.path, limit=None)):
        raise lanes.refused(segment.name, "is not what comes of merging the lanes that it names")
