"""The log's current file: which lane it belongs to, where it ends, and what is cut off and kept in quarantine."""

from __future__ import annotations

import os
from contextlib import suppress

from aof.errors import DiskFull, LogDamaged
from aof.store.files.disk import Disk, Seen, failed, read
from aof.store.files.log import chain
from aof.store.files.log.chain import NOTHING_BEFORE, Header, LogPlace, tail
from aof.store.files.log.layout import Layouts, PathSection, State, last_before, read_state
from aof.store.files.log.reader import broken
from aof.store.files.paths import (
    GENESIS,
    LANE_SUFFIX,
    PROCESS,
    TAIL_BYTES,
    Paths,
    Position,
    is_merge_lane,
    lane_of,
    segment_of,
    tail_of,
)

ROOT = "root"
_BYTES = 256


class Claims:
    """What this clone says of its lanes."""

    def __init__(self, paths: Paths, disk: Disk) -> None:
        self._paths = paths
        self._disk = disk
        self._root_note: Seen | None = None  # the note that says so, once it was read

    def note(self, lane: str, digest: str) -> None:
        """Say that a lane is ours, and with which hash we left it. Raises OSError."""
        fd = self._disk.open_cache(self._path(lane))
        try:
            self._disk.overwrite(fd, f"{digest} {self._place()}".ljust(_BYTES - 1).encode() + b"\n", 0)
        finally:
            os.close(fd)

    def is_root(self) -> bool:
        """Whether this clone began the log; an earlier version has noted how it left it, the first one only the day."""
        try:
            found = os.stat(f"{self._paths.lanes}/{ROOT}", follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if found is not None and self._root_note is not None and self._root_note.is_still(found):
            return True
        self._root_note = None
        if found is not None and self._noted("") is not None:
            self._root_note = Seen(found.st_ino, found.st_mtime_ns, found.st_size)
        return self._root_note is not None or (not self._any() and self._is_as_left())

    def _is_as_left(self) -> bool:
        with suppress(OSError):
            state = read_state(self._paths)
            if state is not None and not state.foreign:
                inode = os.stat(self._paths.log(state.segment)).st_ino
                return state.unstamped or (state.stamp is not None and state.stamp.inode == inode)
        return False

    def is_ours(self, before: State, file: LogFile) -> bool:
        """Whether we may append to the log's current file; `before` is how the last appender left the log."""
        lane, left = lane_of(file.segment), None
        if not file.segment:
            return not before.foreign  # nothing is there yet: who begins the log has its root lane
        if before.stamp is not None and not before.foreign:
            left = before.stamp.position
        inode = before.stamp.inode if before.stamp is not None else 0
        untouched = left is not None and inode == file.inode and file.has(left)
        if self._exists(lane):
            noted = self._noted(lane)
        elif (untouched or before.unstamped) and not self._any():  # an earlier version has noted no lanes
            noted = GENESIS
            self._try_note(lane, file.digest)
        else:
            noted = None
        if left is not None and self._noted(lane_of(left.segment)) is not None:
            self._try_note(lane_of(left.segment), left.digest)
        if noted is None or is_merge_lane(file.segment):
            return False
        if before.stamp is None:  # as after a power cut: nobody else writes here
            return True
        if left is not None and lane_of(left.segment) == lane:
            return untouched or left.digest == file.digest
        return noted == file.digest

    def _try_note(self, lane: str, digest: str) -> None:
        with suppress(OSError):  # what is not noted lets us begin another lane
            self.note(lane, digest)

    def _noted(self, lane: str) -> str | None:
        """The hash that we left the lane with; None where it is not ours."""
        try:
            data = read(self._path(lane))
        except OSError:
            return None
        digest, _, place = (data or b"").decode("utf-8", "replace").strip().partition(" ")
        return digest if place == self._place() else None

    def _exists(self, lane: str) -> bool:
        return os.path.lexists(self._path(lane))

    def _any(self) -> bool:
        with suppress(OSError):
            return bool(os.listdir(self._paths.lanes))
        return False

    def _path(self, lane: str) -> str:
        return f"{self._paths.lanes}/{lane or ROOT}"

    def _place(self) -> str:
        """What tells this data directory: a copy has another inode, and the same folder elsewhere another host."""
        found = os.stat(self._paths.root)
        return f"{found.st_dev} {found.st_ino} {os.uname().nodename}"


_CHUNK = 1 << 20


class LogFile:
    """The end of the log, as one process has seen it last."""

    def __init__(self, paths: Paths, disk: Disk, layouts: Layouts) -> None:
        self.disk = disk
        self.fd = -1
        self.segment = ""
        self.begin = 0
        self.end = 0
        self.seq = 0
        self.digest = GENESIS
        self._paths = paths
        self._layouts = layouts
        self.replaced = False
        self.inode = 0
        self.opening = 0
        self._retired: list[int] = []
        self._borrowed: list[int] = []
        self._pid = 0

    def _path(self, segment: str) -> str:
        return f"{self._paths.events}/{segment}{LANE_SUFFIX}"

    def borrow(self) -> int:
        """The open file, which stays open until it is given back; another thread may open the next one meanwhile."""
        while True:
            fd = self.fd
            self._borrowed.append(fd)
            if fd == self.fd:  # who opens the next one looks at what is borrowed after that
                return fd
            self._borrowed.remove(fd)

    def give_back(self, fd: int) -> None:
        """Say that a borrowed file is not needed any more."""
        self._borrowed.remove(fd)
        if self._retired:
            self._close_retired()

    def is_at(self, state: State) -> bool:
        """Whether this process knows the log up to where the last appender left it, so that nothing is to be read."""
        stamp = state.stamp
        return (
            stamp is not None
            and self._pid == PROCESS.id
            and (self.end, self.inode, self.segment) == (stamp.position.offset, stamp.inode, state.segment)
            and self.digest == stamp.position.digest
        )

    def refresh(self, state: State, *, moved: bool = True) -> bool:
        """Bring number, hash and end up to date; what is remembered must prove itself. Whether the state changed.

        `moved` says that files may have come or gone.
        """
        known_file = bool(state.segment) and state.segment == self.segment and self._pid == PROCESS.id
        if known_file and not (moved and self._is_elsewhere()):
            try:
                found = os.stat(self._path(state.segment))
            except FileNotFoundError:
                found = None
            if found is not None and found.st_ino == self.inode:
                known = min(self.end - self.begin, TAIL_BYTES)
                data = os.pread(self.fd, max(found.st_size - self.end, 0) + known, self.end - known)
                if not known or data.startswith(tail_of(self.digest)):
                    if len(data) > known:
                        self._refuse_other(data[known:])
                        self._take(data[known:])
                    return False
        segment, end, seq, digest = self.segment, self.end, self.seq, self.digest
        changed = self.rescan(state)
        try:
            if known_file and end and self.segment == segment and not self._continues(end, digest):
                self._prove(self.begin, self._hash_before())
                self.replaced = True
        except LogDamaged:  # what was known stays known, so that the next look finds the same
            self.end, self.seq, self.digest, self.inode = end, seq, digest, 0
            raise
        return changed

    def _is_elsewhere(self) -> bool:
        """Whether the log ends in another file than the one that is known; of the root lane alone, the state tells."""
        return self._layouts.layout() is not None and self.segment != self._layouts.path()[-1].name

    def rescan(self, state: State) -> bool:
        """Find the end again: the current file is the last one that has any event, or the one that was begun."""
        self.seq, self.digest = 0, GENESIS
        path = self._layouts.path()
        if state.segment and not self.replaced and not os.path.lexists(self._path(state.segment)):
            hint = "copy events/ aside, then restore it from a backup or version control, or run 'aof doctor'"
            raise LogDamaged(f"the log of {state.segment} is gone; nothing was changed", hint, day=state.segment)
        while path and path[-1].name != state.segment and self._is_empty(path[-1]):
            path = path[:-1]
        if not path:
            self.segment = ""
            return False
        self._enter(path[-1])
        self.end, data = tail(self.fd, self.begin)
        self._take(data)
        if not self.seq:  # it has no whole commit yet
            inode, self.inode = self.inode, 0  # who fails here looks again
            self.seq, self.digest = last_before(self._paths, path[:-1])
            self.inode = inode
        changed = state.segment != self.segment
        state.segment = self.segment
        return changed

    def _is_empty(self, section: PathSection) -> bool:
        return os.stat(self._path(section.name)).st_size == section.begin

    def _refuse_other(self, fresh: bytes) -> None:
        """What others have appended follows from what we know, or it is of another history."""
        end = fresh.find(b"\n") + 1
        if end and not chain.proves(fresh[:end], self.digest):
            raise broken(self.segment)

    def _continues(self, end: int, digest: str) -> bool:
        """Whether another file, put here by somebody, still has our history and goes on from it."""
        if os.pread(self.fd, TAIL_BYTES, end - TAIL_BYTES) != tail_of(digest):
            return False
        self._prove(end, digest)
        return True

    def _hash_before(self) -> str:
        return last_before(self._paths, self._layouts.path_to(self.segment)[:-1])[1]

    def _prove(self, start: int, digest: str) -> None:
        """Go on only if the chain holds from there to the end; a log that was mixed from two is none."""
        for line in os.pread(self.fd, max(self.end - start, 0), start).splitlines(keepends=True):
            if not chain.proves(line, digest):
                raise broken(self.segment)
            digest = chain.digest_of(line)

    def write(self, data: bytes, seq: int, digest: str) -> None:
        """Append lines, all or none of them."""
        try:
            written = self.disk.append(self.fd, data)
        except OSError as error:
            self._undo()
            raise failed(error, "append to the log") from error
        if written != len(data):
            self._undo()
            raise DiskFull("the disk took only a part of the change, which was undone", "free some space and try again")
        self.end += len(data)
        self.seq, self.digest = seq, digest

    def write_again(self, known: Position | None) -> bool:
        """Let the next flush write everything once more that lies behind a position, or all where there is none.

        Tells whether there was anything.
        """
        start = known.offset if known is not None and self.has(known) else self.begin
        if start == self.end:
            return False
        fd = self.disk.open_state(self._path(self.segment), create=False)  # the other one could only append
        try:
            while start < self.end and (data := os.pread(self.fd, min(_CHUNK, self.end - start), start)):
                self.disk.overwrite(fd, data, start)
                start += len(data)
        finally:
            os.close(fd)
        return True

    def has(self, known: Position) -> bool:
        """Whether the file has the event that a position stands behind."""
        if known.segment != self.segment or not TAIL_BYTES <= known.offset <= self.end:
            return False
        return os.pread(self.fd, TAIL_BYTES, known.offset - TAIL_BYTES) == tail_of(known.digest)

    def begin_day(self, day: str) -> None:
        """Begin the file of a new day in the same lane, durably."""
        segment = segment_of(day, lane_of(self.segment))
        try:
            if lane_of(segment):
                section = self._create(segment, self.place(), b"")
            else:
                os.close(self.disk.create(self._path(segment)))
                self.disk.sync_dir(self._paths.events)
                section = PathSection(segment)
        except OSError as error:
            raise failed(error, "begin the log of a new day") from error
        self._enter(section)

    def place(self) -> LogPlace:
        """The end of the log, as the header of a lane names it."""
        if self.digest == GENESIS:
            return NOTHING_BEFORE
        path = self._layouts.path_to(self.segment)
        if self.end == self.begin:  # nothing was written to this file yet: what came before it is what counts
            (section,) = [one for one in path if one.name == self.segment]
            earlier = path[: path.index(section)]
            for one in reversed(earlier):
                fd = os.open(self._path(one.name), os.O_RDONLY | os.O_CLOEXEC)
                try:
                    start, data = tail(fd, one.begin, one.end)
                finally:
                    os.close(fd)
                if (whole := chain.last_commit_end(data)[0]) > 0:
                    return LogPlace(f"{one.name}{LANE_SUFFIX}", start + whole, self.digest, self.seq)
        return LogPlace(f"{self.segment}{LANE_SUFFIX}", self.end, self.digest, self.seq)

    def begin_lane(self, segment: str, data: bytes, seq: int, digest: str) -> None:
        """Begin a lane behind the end of the log with its first commit, durably and all at once; raises OSError."""
        section = self._create(segment, self.place(), data)
        self._enter(section)
        self.end, self.seq, self.digest = section.begin + len(data), seq, digest

    def _create(self, segment: str, after: LogPlace, data: bytes) -> PathSection:
        line = Header(lane_of(segment), after).line()
        temporary = self._paths.temporary_file(f"{segment}{LANE_SUFFIX}")
        self.disk.write_durable(temporary, line + data)
        self.disk.rename(temporary, self._path(segment))
        self.disk.sync_dir(self._paths.events)
        return PathSection(segment, len(line))

    def close(self) -> None:
        """Close the open files."""
        for fd in (self.fd, *self._retired):
            if fd >= 0:
                os.close(fd)
        self.fd, self.segment, self._retired = -1, "", []

    def _close_retired(self) -> None:
        """Close what came before the current file, except for what somebody still flushes."""
        kept: list[int] = []
        with suppress(IndexError):
            while True:  # taken out one by one, so that two threads never close the same
                fd = self._retired.pop()
                if fd in self._borrowed:
                    kept.append(fd)
                else:
                    os.close(fd)
        self._retired += kept

    def _take(self, fresh: bytes) -> None:
        """Go on over what others have appended; an incomplete commit at the end goes aside."""
        if not fresh:
            return
        whole, last = chain.last_commit_end(fresh)
        if whole < len(fresh):
            torn, offset = fresh[whole:], self.end + whole
            self.disk.write_new(torn_name(self._paths, self.segment, offset, torn), torn)
            self.disk.truncate(self.fd, offset)
        if last is not None:
            self.end += whole
            self.seq, self.digest = last.seq, last.hash

    def _undo(self) -> None:
        with suppress(OSError):  # what stays behind is an incomplete tail, which the next appender sets aside
            self.disk.truncate(self.fd, self.end)

    def _enter(self, section: PathSection) -> None:
        """Open a file of the log; another thread may still flush the one before, and then that stays open."""
        before, self.fd = self.fd, self.disk.create(self._path(section.name))
        self.opening += 1
        if before >= 0:
            self._retired.append(before)
        self._close_retired()
        self.segment, self.inode, self._pid = section.name, os.fstat(self.fd).st_ino, PROCESS.id
        self.begin = self.end = section.begin


_SECTOR = 512


def torn_name(paths: Paths, day: str, offset: int, data: bytes) -> str:
    """A name for bytes cut from a day's log: a free one, or that of an attempt to keep the same bytes."""
    number, wanted = 0, f"{paths.torn}/{day}-{offset}.jsonl"
    name = wanted
    while os.path.lexists(name) and not data.startswith(read(name, limit=None) or b""):
        number += 1
        name = f"{wanted}.{number}"
    return name


def is_torn(data: bytes, whole: bytes) -> bool:
    """Whether a power cut may have left this of a new file: sectors that are right or empty, and perhaps no end."""
    if len(data) > len(whole) or (len(data) < len(whole) and len(data) % _SECTOR):
        return False
    for start in range(0, len(data), _SECTOR):
        sector = data[start : start + _SECTOR]
        if sector != whole[start : start + _SECTOR] and sector.strip(b"\0"):
            return False
    return True
