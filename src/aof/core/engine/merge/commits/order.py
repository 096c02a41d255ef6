"""The canonical order of commits: what was seen comes first; what was concurrent, by its time, then by its hash.

Must not know what an event means.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from aof.core.engine.merge.commits.lanes import CommitPlace, Lanes, Span, newest
from aof.core.engine.merge.model import Lane
from aof.core.model.events import Event


class Original:
    """A commit as its author made it, and its number in the canonical order.

    `keys` says which task each of its events changes, once that is known; None for one that changes no record.
    """

    __slots__ = ("events", "keys", "place", "rank")

    def __init__(self, place: CommitPlace, events: tuple[Event, ...], rank: int) -> None:
        self.place = place
        self.events = events
        self.rank = rank
        self.keys: tuple[str | None, ...] = ()


def in_order(lanes: Lanes, span: Span) -> list[Original]:
    """All original commits of the span."""
    ordered: list[Original] = []
    for place in _places(lanes, span):
        ordered.append(Original(place, lanes.lanes[place.lane].commits[place.at].events, len(ordered)))
    return ordered


def repeated(lanes: Lanes, merged: Lane) -> Iterator[tuple[Event, Event]]:
    """The original events that a merge lane brought together, each with the one that repeats it there.

    A merge lane has one commit for each original, in canonical order, and its events come first in it; what else it
    has is the merge's own, and comes behind.
    """
    _, _, span = newest(lanes, [lanes.place(head) for head in merged.heads])
    for original, commit in zip(in_order(lanes, span), merged.commits, strict=False):
        yield from zip(original.events, commit.events, strict=False)


def _places(lanes: Lanes, span: Span) -> Iterator[CommitPlace]:
    """Lane by lane the commits are in order already; so only the first waiting commit of each lane is compared."""
    missing: dict[int, int] = {}
    wanted: dict[tuple[int, int], list[int]] = {}
    heap: list[tuple[str, str, CommitPlace]] = []

    def offer(place: CommitPlace) -> None:
        if place.at < span.ends[place.lane]:
            events = lanes.lanes[place.lane].commits[place.at].events
            heappush(heap, (events[0].timestamp, events[-1].hash, place))

    for lane in span.ends:
        needs = {other: count for other, count in span.base(lane).items() if count > span.begin(other)}
        missing[lane] = len(needs)
        for need in needs.items():
            wanted.setdefault(need, []).append(lane)
        if not needs:
            offer(CommitPlace(lane, span.begin(lane)))
    while heap:
        place = heappop(heap)[2]
        yield place
        offer(CommitPlace(place.lane, place.at + 1))
        for lane in wanted.get((place.lane, place.at + 1), ()):
            missing[lane] -= 1
            if not missing[lane]:
                offer(CommitPlace(lane, span.begin(lane)))
