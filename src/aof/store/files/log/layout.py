"""Which files the log has, in which order they are read, and up to where they are complete.

Finds the one path from the root lane to the tip. Keeps what each writer notes for the next one: a stamp of the files,
and up to where they are flushed.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # as threading.Lock, without the rest of that module
from collections.abc import Iterable, Sequence
from contextlib import suppress

from aof.errors import CommitUnknown, LogDamaged, LogPoisoned
from aof.store.files import paths as files_paths
from aof.store.files.disk import READING, Disk, read
from aof.store.files.log import chain
from aof.store.files.paths import GENESIS, PROCESS, TAIL_BYTES, Paths, Position, lane_of, tail_of
from aof.support.hashing import hexdigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.files.log.chain import Header, LogPlace


STAMP_BYTES = 256
_WORDS = 9
_BYTES = 160
_SAID_EVERY = 16_384  # bytes of the log: what a process that begins writes once more to be sure of it
STAMP_AT = 64
_FOREIGN = "foreign"  # nobody here appends to the current segment


class Stamp:
    """What an appender leaves for the next one, so that this need not read the log.

    It has the change time of the folder, a digest of the earlier files, the current file, and the position at its end.
    """

    __slots__ = ("changed", "folder", "inode", "older", "position")

    def __init__(self, folder: int, older: str, inode: int, changed: int, position: Position) -> None:
        self.folder = folder
        self.older = older
        self.inode = inode
        self.changed = changed
        self.position = position

    def text(self) -> bytes:
        """One padded line; the mark at its end shows that all of it was written."""
        said = f"{self.folder} {self.older} {self.inode} {self.changed} {self.position.text()} ."
        return said.ljust(STAMP_BYTES - 1).encode("ascii") + b"\n"

    @staticmethod
    def parse(text: str) -> Stamp | None:
        """None where nobody has left any, as in a new lock file or one of an earlier version."""
        words = text.split()
        if len(words) != _WORDS or words[-1] != ".":
            return None
        position = Position.parse(words[4:8])
        if position is None or not (words[0].isdigit() and words[2].isdigit() and words[3].isdigit()):
            return None
        return Stamp(int(words[0]), words[1], int(words[2]), int(words[3]), position)


def older_files(paths: Paths, segments: Iterable[str]) -> str:
    """A digest of how these files look, without reading them."""
    seen: list[str] = []
    for segment in segments:
        found = os.stat(paths.log(segment))
        seen.append(f"{segment} {found.st_ino} {found.st_size} {found.st_ctime_ns}")
    return hexdigest("\n".join(seen).encode())[:16]


class Flushed:
    """The note in `locks/flushed` of up to where the log is durable."""

    def __init__(self, path: str, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._fd = -1
        self._noted: Position | None = None

    def reached(self, inode: int, behind: Position) -> None:
        """Everything before the position is durable in that file; said of the first one, and now and then."""
        noted = self._noted
        if noted is not None and noted.segment == behind.segment and behind.offset - noted.offset <= _SAID_EVERY:
            return
        self._noted = behind
        text = f"{inode} {behind.text()}".ljust(_BYTES - 1).encode() + b"\n"
        try:
            self._disk.overwrite(self._fd if self._fd >= 0 else self._open(), text, 0)
        except OSError:
            return  # nobody has said then

    def forget(self) -> None:
        """Say nothing; raises OSError, for what is said of another log must not stay."""
        self._noted = None
        self._disk.overwrite(self._open(), b" " * (_BYTES - 1) + b"\n", 0)

    def last(self) -> Position | None:
        """The last position that is noted as durable, in whichever file."""
        with suppress(OSError):
            return Position.parse(os.pread(self._open(), _BYTES, 0).decode("ascii", "replace").split()[1:])
        return None

    def upto(self, inode: int) -> Position | None:
        """The last position in this file that is noted as durable; None where there is no note."""
        with suppress(OSError):
            noted, *words = os.pread(self._open(), _BYTES, 0).decode("ascii", "replace").split() or [""]
            return Position.parse(words) if noted == str(inode) else None
        return None

    def close(self) -> None:
        """Close the open file."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> int:
        if self._fd < 0:
            self._fd = self._disk.open_cache(self._path)
        return self._fd


class Mark:
    """How far the log was written: which opening of which file, and up to where in it."""

    __slots__ = ("end", "opening")

    def __init__(self, opening: int = 0, end: int = 0) -> None:
        self.opening = opening
        self.end = end


class Flushing:
    """The flushes of one process."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.written = Mark()
        self.failed = False
        self.noted = False
        self._flushed = Mark()
        self._turn = allocate_lock()
        self._pid = PROCESS.id

    def upto(self, fd: int, mark: Mark) -> None:
        """Return when everything up to the mark is durable; raises CommitUnknown."""
        if self._pid != PROCESS.id:  # another thread may have had its turn when this process was forked
            self._turn, self._pid = allocate_lock(), PROCESS.id
        with self._turn:
            if self.failed:
                raise commit_unknown()
            if self._flushed.opening == mark.opening and self._flushed.end >= mark.end:
                return
            written = self.written
            self.now(fd)
            self._flushed = written if written.opening == mark.opening else mark

    def now(self, fd: int) -> None:
        """Flush an open file; raises CommitUnknown. A flush that failed is never tried again."""
        try:
            self.disk.flush(fd)
        except OSError as error:
            self.failed, self.noted = True, False
            raise commit_unknown(error) from error


class State:
    """The content of the lock file."""

    __slots__ = ("floor", "foreign", "poisoned", "segment", "stamp")

    def __init__(
        self,
        segment: str = "",
        floor: int = 0,
        *,
        poisoned: bool = False,
        foreign: bool = False,
        stamp: Stamp | None = None,
    ) -> None:
        self.segment = segment
        self.floor = floor
        self.poisoned = poisoned
        self.foreign = foreign
        self.stamp = stamp

    @property
    def unstamped(self) -> bool:
        """Whether the first version appended here: it noted the day, and left no stamp. Git carries no such note."""
        return bool(self.segment) and self.stamp is None and not self.foreign

    @staticmethod
    def read(fd: int, left: tuple[bytes, Stamp] | None = None) -> State | None:
        """None where the file is new or has lost its content; `left` is a stamp that needs no parsing."""
        data = os.pread(fd, STAMP_AT + STAMP_BYTES, 0)
        match data[:STAMP_AT].decode("ascii", "replace").split():
            case ["sound" | "poisoned" as flag, segment, floor, *more] if floor.isdigit() and more in ([], [_FOREIGN]):
                if left is not None and data[STAMP_AT:] == left[0]:
                    stamp: Stamp | None = left[1]
                else:
                    stamp = Stamp.parse(data[STAMP_AT:].decode("ascii", "replace"))
                return State(
                    "" if segment == "-" else segment,
                    int(floor),
                    poisoned=flag == "poisoned",
                    foreign=bool(more),
                    stamp=stamp,
                )
        return None

    def text(self) -> bytes:
        """One padded line."""
        flag = "poisoned" if self.poisoned else "sound"
        foreign = f" {_FOREIGN}" if self.foreign else ""
        return f"{flag} {self.segment or '-'} {self.floor}{foreign}".ljust(STAMP_AT - 1).encode() + b"\n"


def read_state(paths: Paths) -> State | None:
    """The content of the lock file for who does not write it; None where there is none."""
    try:
        fd = os.open(paths.state, READING)
    except OSError:
        return None
    try:
        return State.read(fd)
    except OSError:  # what is no file holds no state
        return None
    finally:
        os.close(fd)


def log_poisoned() -> LogPoisoned:
    """The refusal until somebody has verified the log."""
    return LogPoisoned(
        "a flush of the log has failed; what came last may not be durable, and nothing is written until it is verified",
        "run 'aof doctor --fix'",
    )


def commit_unknown(error: OSError | None = None) -> CommitUnknown:
    """The caller's error when a flush has failed."""
    why = f" ({error.strerror})" if error is not None else ""
    return CommitUnknown(
        f"the log could not be flushed{why}; the change may or may not be durable",
        "run 'aof doctor', which verifies the log; then look whether the change is there",
    )


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
                raise chain.refused_lane(segment.name, f"says that it begins the log, and names {after.file}")
        elif not self.has(after):
            what = f"builds on event {after.seq} in {after.file}, which is not there: it may be of another repository"
            raise chain.refused_lane(segment.name, what, after.file)
        elif files_paths.is_merge_lane(after.segment) and after.offset != self.segments[after.segment].size:
            raise chain.refused_lane(
                segment.name, f"builds on a place inside {after.file}, which was written as a whole"
            )
        for head in segment.heads:
            if not self.has(head):
                raise chain.refused_lane(segment.name, f"merges an event in {head.file} that is not there", head.file)

    def has(self, place: LogPlace) -> bool:
        """Whether the event that the place names ends there."""
        found = self.segments.get(place.segment)
        return found is not None and place.file == f"{found.name}{files_paths.LANE_SUFFIX}" and found.holds(place)

    def find(self, digest: str) -> LogPlace | None:
        """Where the event with this hash ends, whichever file it was moved to."""
        mark = tail_of(digest)
        for segment in self.segments.values():
            at = (read(segment.path, limit=None) or b"").find(mark)
            if at >= segment.begin:
                return chain.LogPlace(f"{segment.name}{files_paths.LANE_SUFFIX}", at + len(mark), digest)
        return None

    def path(self, tip: str) -> tuple[PathSection, ...]:
        """The path from the root to the end of a file."""
        sections: list[PathSection] = []
        seen: set[str] = set()
        here, end = self.segments[tip], None
        while True:
            if here.name in seen:
                raise chain.refused_lane(here.name, "builds on itself")
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
        return {at: upto for at, upto in vector.items() if not files_paths.is_merge_lane(at)}

    def chosen(self, last: Position | None) -> str:
        """The tip to follow: of several, the one whose path has what this clone appended last."""
        if last is not None:
            place = chain.LogPlace(f"{last.segment}{files_paths.LANE_SUFFIX}", last.offset, last.digest)
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
            if files_paths.is_segment(stem):
                if not is_file:
                    hint = "put the file back, or move what lies there away; nothing was changed"
                    raise LogDamaged(f"events/{stem}{files_paths.LANE_SUFFIX} is not a file", hint, day=stem)
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
        state = read_state(self._paths)
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
    suffix = files_paths.LANE_SUFFIX
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
    header, begin = chain.read_header(path, name)
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
