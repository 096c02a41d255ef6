"""How the files of the log hang together: the one path from its root to the tip, and whether there are several tips.

With the root lane alone the path is its days, and no file is opened for that. Otherwise the headers say what follows
what. A tip is the end of a lane that no other lane goes on from, and that no other one has seen: where two clones have
worked, there are two. Readers then follow the path that this clone has written last. Reads only. Must not know what the
events mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from aof.core.errors.storage import LogDamaged
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log import chain, lane_names, lanes
from aof.stores.filesystem.log.lane_names import lane_of
from aof.stores.filesystem.log.line_end import GENESIS, TAIL_BYTES, tail_of
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.log.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.log.lanes import Header, LogPlace

Vector = dict[str, int]


class PathSection:
    """A part of a file that belongs to the path: from an offset on, up to another or to its end."""

    __slots__ = ("begin", "end", "name")

    def __init__(self, name: str, begin: int = 0, end: int | None = None) -> None:
        self.name = name
        self.begin = begin
        self.end = end


class Segment:
    """A file of the log: its header if it has one, where its events begin, and its size."""

    __slots__ = ("begin", "header", "name", "path", "size")

    def __init__(self, name: str, path: str, size: int, header: Header | None, begin: int) -> None:
        self.name = name
        self.path = path
        self.size = size
        self.header = header
        self.begin = begin

    @property
    def heads(self) -> tuple[LogPlace, ...]:
        """What a merge lane brought together."""
        merge = self.header.merge if self.header is not None else None
        return merge.heads if merge is not None else ()

    def end(self) -> int:
        """Where its last whole commit ends."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return chain.last_commit(fd, self.begin)[0]
        finally:
            os.close(fd)

    def holds(self, place: LogPlace) -> bool:
        """Whether the event that the place names ends there."""
        begin = place.offset - TAIL_BYTES
        if begin < self.begin:
            return False
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, TAIL_BYTES, begin) == tail_of(place.hash)
        finally:
            os.close(fd)


class Layout:
    """The files of a log in which there are lanes beside the root lane, as they were at one moment."""

    def __init__(self, paths: Paths, names: Sequence[str]) -> None:
        self.segments = {name: _segment(paths, name) for name in names}
        self.root = sorted(name for name in names if not lane_of(name))
        for segment in self.segments.values():
            if segment.header is not None:
                self._check(segment, segment.header)
        self.tips = self._tips()

    def _check(self, segment: Segment, header: Header) -> None:
        after = header.after
        if after.hash == GENESIS:
            if (after.file, after.offset) != ("", 0):
                raise lanes.refused(segment.name, f"says that it begins the log, and names {after.file}")
        elif not self.has(after):
            what = f"builds on event {after.seq} in {after.file}, which is not there: it may be of another repository"
            raise lanes.refused(segment.name, what, after.file)
        elif lane_names.is_merge(after.segment) and after.offset != self.segments[after.segment].size:
            raise lanes.refused(segment.name, f"builds on a place inside {after.file}, which was written as a whole")
        for head in segment.heads:
            if not self.has(head):
                raise lanes.refused(segment.name, f"merges an event in {head.file} that is not there", head.file)

    def has(self, place: LogPlace) -> bool:
        """Whether the event that the place names ends there."""
        found = self.segments.get(place.segment)
        return found is not None and place.file == f"{found.name}{lane_names.SUFFIX}" and found.holds(place)

    def find(self, digest: str) -> LogPlace | None:
        """Where the event with this hash ends, whichever file it was moved to."""
        mark = tail_of(digest)
        for segment in self.segments.values():
            at = (read(segment.path, limit=None) or b"").find(mark)
            if at >= segment.begin:
                return lanes.LogPlace(f"{segment.name}{lane_names.SUFFIX}", at + len(mark), digest)
        return None

    def path(self, tip: str) -> tuple[PathSection, ...]:
        """From the root to the end of a file."""
        sections: list[PathSection] = []
        seen: set[str] = set()
        here, end = self.segments[tip], None
        while True:
            if here.name in seen:
                raise lanes.refused(here.name, "builds on itself")
            seen.add(here.name)
            sections.append(PathSection(here.name, here.begin, end))
            if here.header is None:
                sections += [PathSection(day) for day in reversed(self.root) if day < here.name]
                break
            after = here.header.after
            if after.hash == GENESIS:
                break
            here, end = self.segments[after.segment], after.offset
        return tuple(reversed(sections))

    def _tips(self) -> tuple[str, ...]:
        """The files that end with something that no other lane has seen; empty ones go with what they build on."""
        written = [one for one in self.segments.values() if one.size > one.begin]
        followed: dict[str, int] = {day: self.segments[day].size for day in self.root[:-1]}
        for place in (place for one in written for place in _builds_on(one)):
            followed[place.segment] = max(place.offset, followed.get(place.segment, 0))
        begun = [day for day in self.root if self.segments[day].size]
        followed |= {day: self.segments[day].size for day in begun[:-1]}
        ends = [one for one in written if followed.get(one.name, 0) < one.size and _unseen(one, followed)]
        if len(ends) > 1:
            vectors = {one.name: self.vector(one.name, one.end()) for one in ends}
            seen_by: dict[str, list[str]] = {}
            for name, vector in vectors.items():
                for file in vector:
                    seen_by.setdefault(file, []).append(name)
            ends = [one for one in ends if not _is_covered(vectors, seen_by, one.name)]
        return tuple(sorted(self._last(one.name) for one in ends)) or (max(self.segments),)

    def _last(self, tip: str) -> str:
        """The file in which a lane goes on: that of a new day may have been begun, and nothing be written to it."""
        if not lane_of(tip):
            return self.root[-1]
        for one in self.segments.values():
            if one.size > one.begin or one.header is None or one.header.lane != lane_of(tip):
                continue
            if (one.header.after.segment, one.header.after.offset) == (tip, self.segments[tip].size):
                return self._last(one.name)
        return tip

    def vector(self, name: str, offset: int) -> Vector:
        """How far a place has seen each file: what a merge lane brought together counts, and not the lane itself."""
        vector: Vector = {}
        waiting = [(name, offset)]
        while waiting:
            at, upto = waiting.pop()
            if vector.get(at, -1) >= upto:
                continue
            segment = self.segments[at]
            known, vector[at] = at in vector, upto
            if known:
                continue
            if segment.header is None:
                waiting += [(day, self.segments[day].size) for day in self.root if day < at]
            waiting += [(place.segment, place.offset) for place in _builds_on(segment)]
        return {at: upto for at, upto in vector.items() if not lane_names.is_merge(at)}

    def chosen(self, last: Position | None) -> str:
        """The tip to follow: of several, the one whose path has what this clone appended last."""
        if last is not None:
            place = lanes.LogPlace(f"{last.segment}{lane_names.SUFFIX}", last.offset, last.digest)
            found = place if self.has(place) else self.find(last.digest)
            for tip in self.tips if found is not None else ():
                if found is not None and passes(self.path(tip), found):
                    return tip
        return self.tips[0]


class Listing:
    """The names in the folder of the log at one moment, and what they say by themselves."""

    __slots__ = ("entries", "path", "segments")

    def __init__(self, entries: list[tuple[str, bool]]) -> None:
        self.entries = entries
        self.segments: list[str] = []
        for stem, is_file in entries:
            if lane_names.is_segment(stem):
                if not is_file:
                    hint = "put the file back, or move what lies there away; nothing was changed"
                    raise LogDamaged(f"events/{stem}{lane_names.SUFFIX} is not a file", hint, day=stem)
                self.segments.append(stem)
        has_lanes = any(map(lane_of, self.segments))
        self.path = None if has_lanes else tuple(map(PathSection, self.segments))


class Layouts:
    """What one part of a process knows of the log's files; it looks at their headers again when the folder changed."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._listing = Listing([])
        self._known: tuple[list[str], int, Layout] | None = None

    def names(self) -> list[str]:
        """The segments, sorted; raises LogDamaged where something else lies in the place of a file."""
        return self._list().segments

    def _list(self) -> Listing:
        """The folder as it is now; its names are taken apart where they are not those of the last time."""
        entries = _entries(self._paths)
        if entries != self._listing.entries:
            self._listing = Listing(entries)
        return self._listing

    def layout(self) -> Layout | None:
        """How the files hang together; None where there is the root lane only."""
        return self._layout(self._list())

    def _layout(self, listing: Listing) -> Layout | None:
        if listing.path is not None:
            return None
        changed = os.stat(self._paths.events).st_ctime_ns
        known = self._known
        if known is None or known[:2] != (listing.segments, changed):
            known = self._known = (listing.segments, changed, Layout(self._paths, listing.segments))
        return known[2]

    def path(self) -> tuple[PathSection, ...]:
        """The path to the tip, or to that of several tips which this clone has written last."""
        listing = self._list()
        layout = self._layout(listing)
        if layout is None:
            return listing.path or ()
        return layout.path(layout.tips[0] if len(layout.tips) == 1 else layout.chosen(self.left()))

    def tips(self) -> int:
        """How many ends the log has; more than one where clones have worked and nobody has merged them yet."""
        layout = self.layout()
        return 1 if layout is None else len(layout.tips)

    def left(self) -> Position | None:
        """Where the last appender has left the log; None where nobody has said."""
        try:
            fd = os.open(f"{self._paths.locks}/log", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            state = State.read(fd)
        finally:
            os.close(fd)
        return state.stamp.position if state is not None and state.stamp is not None else None

    def path_to(self, segment: str) -> tuple[PathSection, ...]:
        """The path to the end of a file; empty where there is none of that name."""
        listing = self._list()
        if segment not in listing.segments:
            return ()
        layout = self._layout(listing)
        if layout is None:
            return (listing.path or ())[: listing.segments.index(segment) + 1]
        return layout.path(segment)


def segments(paths: Paths) -> list[str]:
    """The files of the log without their suffix, sorted."""
    return Listing(_entries(paths)).segments


def _entries(paths: Paths) -> list[tuple[str, bool]]:
    """What may be a segment in the folder of the log, without its suffix, and whether it is a file; sorted."""
    suffix = lane_names.SUFFIX
    with os.scandir(paths.events) as entries:
        return sorted(
            (entry.name[: -len(suffix)], entry.is_file(follow_symlinks=False))
            for entry in entries
            if entry.name.endswith(suffix)
        )


def passes(path: Iterable[PathSection], place: LogPlace) -> bool:
    """Whether a path leads over a place, as its file and offset say."""
    return any(
        section.name == place.segment and (section.end is None or place.offset <= section.end) for section in path
    )


def last_before(paths: Paths, path: Sequence[PathSection]) -> tuple[int, str]:
    """The number and the hash of the last event on a path."""
    for section in reversed(path):
        last = chain.last_event(paths.log(section.name), section.begin, section.end)
        if last is not None:
            return last.seq, last.hash
    return 0, GENESIS


def _segment(paths: Paths, name: str) -> Segment:
    path = paths.log(name)
    size = os.stat(path).st_size
    if not lane_of(name):
        return Segment(name, path, size, None, 0)
    header, begin = lanes.read_header(path, name)
    return Segment(name, path, size, header, begin)


def _builds_on(segment: Segment) -> tuple[LogPlace, ...]:
    if segment.header is None:
        return ()
    after = segment.header.after
    return segment.heads if after.hash == GENESIS else (after, *segment.heads)


def _unseen(segment: Segment, followed: Vector) -> bool:
    """Whether anything whole lies behind what others go on from; a dead writer may have left something incomplete."""
    upto = followed.get(segment.name)
    return upto is None or segment.end() > upto


def _is_covered(vectors: dict[str, Vector], seen_by: dict[str, list[str]], one: str) -> bool:
    """Whether another tip has seen all that this one has: among those that have seen its rarest file, mostly itself."""
    others = min((seen_by[file] for file in vectors[one]), key=len, default=list(vectors))
    return any(_covers(vectors, other, one) for other in others)


def _covers(vectors: dict[str, Vector], other: str, one: str) -> bool:
    """Whether a tip has seen all that another has; of two that have seen the same, the first by name stands."""
    if other == one:
        return False
    theirs, ours = vectors[other], vectors[one]
    if any(theirs.get(at, -1) < upto for at, upto in ours.items()):
        return False
    return theirs != ours or other < one
