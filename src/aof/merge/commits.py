"""The commits of several clones: how lanes hang together, what an author had seen, and the canonical order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

from aof.errors import UnmergeableHistory
from aof.kernel.events import Event
from aof.merge.model import GENESIS, Lane

Seen = dict[int, int]  # by lane, how many of its commits


class CommitPlace(NamedTuple):
    """One commit: the number of its lane, and its own number in it."""

    lane: int
    at: int


ROOT: Final = CommitPlace(-1, -1)  # before the first commit of all
_AGAIN: Final = "restore it from git, or remove its file: `aof merge` writes it again"


class Lanes:
    """All lanes, found by the hashes of their commits."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = sorted(lanes, key=lambda lane: (lane.name, lane.after, _first(lane)))
        self._places: dict[str, CommitPlace] = {}
        self._heads: dict[int, tuple[CommitPlace, ...]] = {}
        for number, lane in enumerate(self.lanes):
            if lane.heads:  # nothing builds on its middle, which may begin with the very lines of an original
                last = len(lane.commits) - 1
                self._places.setdefault(lane.commits[last].events[-1].hash, CommitPlace(number, last))
        for number, lane in enumerate(self.lanes):
            if not lane.heads:
                for index, commit in enumerate(lane.commits):
                    self._places[commit.events[-1].hash] = CommitPlace(number, index)
        self._after = [ROOT if lane.after == GENESIS else self.place(lane.after) for lane in self.lanes]

    def place(self, digest: str) -> CommitPlace:
        """Where the commit with this hash is."""
        found = self._places.get(digest)
        if found is None:
            raise UnmergeableHistory(
                f"a lane builds on the commit {digest[:12]}, which no lane has or ends with",
                "fetch the whole history (`git fetch --unshallow` in a shallow clone), or restore events/ from git",
            )
        return found

    def after(self, lane: int) -> CommitPlace:
        """The commit that a lane builds on."""
        return self._after[lane]

    def hash_of(self, place: CommitPlace) -> str:
        """The hash of a commit's last event."""
        return self.lanes[place.lane].commits[place.at].events[-1].hash

    def heads(self, place: CommitPlace) -> tuple[CommitPlace, ...]:
        """The original commits that a commit stands for: itself, or the heads of its merge lane."""
        lane = self.lanes[place.lane]
        if not lane.heads:
            return (place,)
        if place.lane not in self._heads:
            self._heads[place.lane] = self._merged(place.lane)
        return self._heads[place.lane]

    def _merged(self, number: int) -> tuple[CommitPlace, ...]:
        lane = self.lanes[number]
        found = tuple(self.place(head) for head in lane.heads)
        if any(self.lanes[head.lane].heads for head in found):
            raise UnmergeableHistory(f"the merge lane {lane.name} names another merge lane as a head", _AGAIN)
        if self.fork(found) != self._after[number]:
            raise UnmergeableHistory(f"the merge lane {lane.name} does not begin where its heads fork", _AGAIN)
        return found

    def path(self, place: CommitPlace) -> list[CommitPlace]:
        """The way from the root to a commit: its lanes, each with the last commit of it that is on the way."""
        steps: list[CommitPlace] = []
        while place != ROOT:
            steps.append(place)
            if len(steps) > len(self.lanes):
                raise UnmergeableHistory("lanes build on each other in a circle", "restore events/ from git")
            place = self._after[place.lane]
        return steps[::-1]

    def fork(self, places: Iterable[CommitPlace]) -> CommitPlace:
        """The last commit that is on the way to all of these."""
        paths = [self.path(place) for place in places]
        common = ROOT
        for level in zip(*paths, strict=False):
            lane, index = level[0].lane, min(step.at for step in level)
            if any(step.lane != lane for step in level):
                break
            common = CommitPlace(lane, index)
            if any(step.at != index for step in level):
                break
        return common


def _first(lane: Lane) -> str:
    return lane.commits[0].events[-1].hash if lane.commits else ""


class Span:
    """The original commits between a fork and some heads, and what their authors had seen of them."""

    def __init__(self, lanes: Lanes, heads: Iterable[CommitPlace], fork: CommitPlace) -> None:
        self.lanes = lanes
        self.fork = fork
        self._base: dict[int, Seen] = {}
        self.ends: dict[int, int] = {}
        for head in heads:
            self._add(self._seen_by(head))

    def _add(self, seen: Seen) -> None:
        for lane, count in seen.items():
            self.ends[lane] = max(count, self.ends.get(lane, 0))

    def begin(self, lane: int) -> int:
        """The number of a lane's first commit behind the fork."""
        return self.fork.at + 1 if lane == self.fork.lane else 0

    def base(self, lane: int) -> Seen:
        """What the writer of a lane had seen of others before it began."""
        return self._base[lane]

    def saw(self, later: CommitPlace, earlier: CommitPlace) -> bool:
        """Whether the author of one commit had seen another."""
        if later.lane == earlier.lane:
            return later.at > earlier.at
        if self._common(earlier) or self._common(later):
            return not self._common(later)
        return self._base[later.lane].get(earlier.lane, 0) > earlier.at

    def unseen(self, heads: Sequence[CommitPlace]) -> tuple[CommitPlace, ...]:
        """Those of the span's heads that the author of no other one had seen; costs no more than to read what each saw.

        A head on the common path was seen by every other that is not.
        """
        fresh = [head for head in heads if not self._common(head)]
        seen: Seen = {}
        for lane, count in (*heads, *(one for head in fresh for one in self._base[head.lane].items())):
            seen[lane] = max(count, seen.get(lane, count))
        return tuple(head for head in fresh or heads if seen[head.lane] <= head.at)

    def _seen_by(self, place: CommitPlace) -> Seen:
        """What is known with this commit, itself included."""
        waiting = [place]
        while waiting:  # no recursion: years of merges lie on top of each other
            lane = waiting[-1].lane
            missing = [
                before for before in self._before(lane) if before.lane not in self._base and not self._common(before)
            ]
            if lane in self._base or not missing:
                waiting.pop()
                if lane not in self._base:
                    self._base[lane] = self._joined(self._before(lane))
            elif len(waiting) > 2 * len(self.lanes.lanes):
                raise UnmergeableHistory("lanes build on each other in a circle", "restore events/ from git")
            else:
                waiting.append(missing[0])
        return self._joined(self.lanes.heads(place))

    def _before(self, lane: int) -> tuple[CommitPlace, ...]:
        """The original commits that a lane builds on."""
        if lane == self.fork.lane:
            return ()
        after = self.lanes.after(lane)
        return () if self._common(after) else self.lanes.heads(after)

    def _common(self, place: CommitPlace) -> bool:
        return place == ROOT or (place.lane == self.fork.lane and place.at <= self.fork.at)

    def _joined(self, places: Iterable[CommitPlace]) -> Seen:
        seen: Seen = {}
        for place in places:
            if self._common(place):
                continue
            for lane, count in (*self._base[place.lane].items(), (place.lane, place.at + 1)):
                seen[lane] = max(count, seen.get(lane, 0))
        return seen


def newest(lanes: Lanes, places: Iterable[CommitPlace]) -> tuple[tuple[CommitPlace, ...], CommitPlace, Span]:
    """The heads among these commits (no author of another one has seen them), their fork, and the span between."""
    candidates = sorted({head for place in places for head in lanes.heads(place)})
    span = Span(lanes, candidates, lanes.fork(candidates))
    heads = span.unseen(candidates)
    fork = lanes.fork(heads)
    return heads, fork, Span(lanes, heads, fork)


def open_tips(given: Sequence[Lane]) -> tuple[str, ...]:
    """The ends of lanes that nobody has seen, sorted. Where there is one, there is nothing to merge.

    A merge lane that has everything counts alone, however many lanes it brought together.
    """
    lanes = Lanes([lane for lane in given if lane.commits])
    ends = [CommitPlace(number, len(lane.commits) - 1) for number, lane in enumerate(lanes.lanes)]
    known = {lanes.after(end.lane) for end in ends}
    known.update(head for end in ends for head in lanes.heads(end) if head != end)
    leaves = [end for end in ends if end not in known]
    if not leaves:
        return ()
    heads, _, _ = newest(lanes, leaves)
    whole = [leaf for leaf in leaves if set(lanes.heads(leaf)) == set(heads)]
    if whole:
        return (lanes.hash_of(max(whole)),)
    return tuple(sorted(lanes.hash_of(leaf) for leaf in leaves if not _dominated(lanes, leaf, leaves)))


def _dominated(lanes: Lanes, leaf: CommitPlace, leaves: Iterable[CommitPlace]) -> bool:
    """Whether another leaf knows all that this one knows, and more."""
    for other in leaves:
        if other != leaf:
            heads, _, _ = newest(lanes, (leaf, other))
            if set(heads) == set(lanes.heads(other)) and set(heads) != set(lanes.heads(leaf)):
                return True
    return False


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
    """All original commits of the span, by time, and none before one that its author had seen."""
    return [
        Original(place, lanes.lanes[place.lane].commits[place.at].events, rank)
        for rank, place in enumerate(_places(lanes, span))
    ]


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


def chained(span: Span, commits: Iterable[Original]) -> bool:
    """Whether each of these authors had seen the commit before, so that no two worked at the same time."""
    before: CommitPlace | None = None
    for original in commits:
        here = original.place
        if before is not None and before.lane != here.lane and not span.saw(here, before):
            return False
        before = here
    return True
