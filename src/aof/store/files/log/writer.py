"""The log: the commit point. Appends under its lock, flushes outside of it, cuts only what was never whole.

Before it appends it compares the log with what its last appender left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property

from aof.errors import CommitUnknown, LockTimeout
from aof.kernel.model import split_task_id
from aof.store.files import integrity
from aof.store.files.disk import Disk, clearly, failed, found_at, read
from aof.store.files.locks import HeldLock, Locks
from aof.store.files.log import chain
from aof.store.files.log.layout import (
    STAMP_AT,
    STAMP_BYTES,
    Flushed,
    Flushing,
    Layouts,
    Mark,
    PathSection,
    Stamp,
    State,
    commit_unknown,
    last_before,
    log_poisoned,
    older_files,
    read_state,
    segments,
)
from aof.store.files.log.reader import Reader
from aof.store.files.log.segment import ROOT, Claims, LogFile
from aof.store.files.paths import NAME_DIGITS, LogReplaced, Paths, Position, TipsApart, day_of, lane_of, segment_of

Builder = Callable[[int, str], tuple[bytes, int, str]]


class Log:
    """The log of one data directory, as one process sees it."""

    def __init__(
        self,
        paths: Paths,
        locks: Locks,
        disk: Disk,
        *,
        durable: bool,
        layouts: Layouts | None = None,
        beginning: Callable[[], None] = lambda: None,
    ) -> None:
        self.durable = durable
        self._beginning = beginning  # asked before the first event of all is written
        self._paths = paths
        self._locks = locks
        self._disk = disk
        self._flushing = Flushing(disk)
        self._layouts = layouts or Layouts(paths)
        self.file = LogFile(paths, disk, self._layouts)
        self._flushed = Flushed(paths.flushed, disk)
        self._guard = LogGuard(paths, self._layouts)
        self._apart = False
        self._foreign = False
        self._fd = -1  # the file of its state, where `_opened` says which one that is
        self._opened: os.stat_result | None = None
        self._folder = -1
        self._changed = 0  # when that was changed, as of the moment when the lock was taken
        self._secured = 0
        self._proven = 0  # when the log's folder was changed by somebody else, where every file follows from the others
        self._left: tuple[bytes, Stamp] | None = None

    @cached_property
    def _claims(self) -> Claims:
        return Claims(self._paths, self._disk)

    @property
    def position(self) -> Position:
        """Behind the last whole commit, as of the last look."""
        return Position(self.file.segment, self.file.end, self.file.seq, self.file.digest)

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return self.file.seq

    @property
    def replaced(self) -> bool:
        """Whether the log was replaced by another one, and no unit has started over since."""
        return self.file.replaced

    @replaced.setter
    def replaced(self, found: bool) -> None:
        self.file.replaced = found

    def owner(self) -> str | None:
        """The lane that this clone appends to: `root`, the name of a lane, or None before it has begun one."""
        with self._locked():
            state = self._state()
            self._look(state)
            return None if state.foreign else lane_of(state.segment) or ROOT

    def append(self, today: str, build: Builder, appended: Callable[[], None] | None = None) -> Position:
        """Append one commit and make it durable; returns the position after it.

        `build` is given the number and the hash of the last event and returns the lines, the new number and hash.
        `appended` is called under the lock once they are written.
        """
        file = self.file
        held = self._lock()
        try:
            state = self._sound()
            self._look(state)
            if self._apart:
                raise TipsApart
            if today > day_of(state.segment) and not state.foreign:
                self._roll_over(state, today)
            if file.replaced:
                raise LogReplaced
            data, seq, digest = build(max(file.seq, state.floor), file.digest)
            if state.foreign:
                self._begin_lane(state, today, (data, seq, digest))
            else:
                try:
                    file.write(data, seq, digest)
                finally:  # also of what was undone, which leaves a trace in the file's times
                    self._leave()
            if appended is not None:
                appended()
            fd = file.borrow()
            mark = self._flushing.written = Mark(file.opening, file.end)
            behind, inode = self.position, file.inode
        finally:
            self._locks.release((held,))
        try:
            self.flush(fd, mark)
        finally:
            file.give_back(fd)
        if self.durable:
            self._flushed.reached(inode, behind)
        return behind

    def add_lane(self, segment: str, data: bytes) -> None:
        """Put a whole lane there, durably and at once; what it builds on is durable before. Raises AofError."""
        path, temporary = self._paths.log(segment), self._paths.temporary_file(f"{segment}.jsonl")
        with self._locked():
            self._sound()
        self.flush_all()
        with clearly("write a merge lane"):
            integrity.require_lanes(self._paths, self._disk)
            self._disk.write_durable(temporary, data)
            self._disk.rename(temporary, path)
            self._disk.sync_dir(self._paths.events)

    def is_root_clone(self) -> bool:
        """Whether this clone has begun the log; it may append to another lane by now."""
        return self._claims.is_root()

    def flush(self, fd: int | None = None, mark: Mark | None = None) -> None:
        """Make a file of the log durable as far as it is written, or up to the mark; a failed flush poisons the log."""
        if fd is None:
            fd = self.file.borrow()
            try:
                self.flush(fd)
            finally:
                self.file.give_back(fd)
            return
        if not self.durable or fd < 0:
            return
        try:
            if mark is None:
                self._flushing.now(fd)
            else:
                self._flushing.upto(fd, mark)
        except CommitUnknown:
            with suppress(OSError, LockTimeout), self._locked():  # else this process notes it before it appends
                self._note_failure(self._state())
            raise

    def flush_all(self) -> None:
        """Make every file of the log durable, whoever wrote it."""
        for segment in self._layouts.names():
            fd = self._disk.create(self._paths.log(segment))
            try:
                self.flush(fd)
            finally:
                os.close(fd)

    def refresh(self, *, sound: bool = False) -> None:
        """Look where the log ends, and cut what a dead writer left half done; `sound` refuses a poisoned log."""
        with self._locked():
            self._look((self._sound if sound else self._state)())

    def restate(self, *, floor: int = 0) -> None:
        """Write the lock file again from the files, under a new boot: what a failed flush lost is known by then."""
        with self._locked():
            before, state = self._known(State.read(self._fd)), State(floor=floor)
            self.file.rescan(state)
            ours = self._claims.is_ours(before, self.file)
            state.foreign = not ours if self.file.segment else not self._claims.is_root()
            self._put(state)
            self._leave(foreign=state.foreign)
            if not self.file.segment:
                self._disk.overwrite(self._fd, b" " * (STAMP_BYTES - 1) + b"\n", STAMP_AT)
            # Last, for it may be of the log before: when anything above fails, the next opener still needs the note
            # to find that flushed events are missing. A cut before or after this line loses nothing: one that is
            # found blank or late only makes the next opener write the log once more.
            self._flushed.forget()

    def flushed(self) -> Position | None:
        """An event that was flushed, with everything before it; None where nobody has said."""
        return self._flushed.last()

    def left(self) -> Position | None:
        """Where the last appender left the log; None where nobody has said."""
        return self._layouts.left()

    def heal(self, since: str = "") -> None:
        """After a failed flush, and after verification: write the log's files from one on once more, to new places.

        The system may have dropped what it could not write, and flushing again would not tell. Raises OSError.
        """
        with self._locked():
            state = self._state()
            self._look(state)
            path = [section.name for section in self._layouts.path()]
            for segment in path[path.index(since) if since in path else 0 :]:
                temporary = f"{self._paths.temporary}/{segment}.jsonl"
                self._disk.write_durable(temporary, read(self._paths.log(segment), limit=None) or b"")
                self._disk.rename(temporary, self._paths.log(segment))
            self._disk.sync_dir(self._paths.events)
            self._look_at_folder()
            state.poisoned = self._flushing.failed = False
            self.file.rescan(state)
            self._secured = self.file.opening
            self._put(state)
            self._leave(foreign=state.foreign)

    def is_poisoned(self) -> bool:
        """Whether a flush has failed and nobody has healed the log since."""
        held = self._locks.take(self._paths.events, exclusive=False)
        try:
            state = read_state(self._paths)
        finally:
            self._locks.release((held,))
        return state is not None and state.poisoned

    def refuse_poisoned(self) -> None:
        """Raise LogPoisoned where the end of the log may not be durable: before answering from new events."""
        if self.is_poisoned():
            raise log_poisoned()

    def missing(self) -> Position | None:
        """What was appended last, where the log ends before it, or its beginning where nobody has appended anything.

        Raises LogPoisoned, and LogDamaged where something else is missing from the log's folder.
        """
        held = self._locks.take(self._paths.events, exclusive=False)
        try:
            state = read_state(self._paths)
            stamp = state.stamp if state is not None else None
            folder = held.changed
            size = _size(self._paths.log(stamp.position.segment)) if stamp is not None else 0
        finally:
            self._locks.release((held,))
        if state is not None and state.poisoned:
            raise log_poisoned()
        if stamp is None:  # a floor says that what lies beside the log was looked at when nobody knew its end
            known = state is not None and state.floor
            return None if known or last_before(self._paths, self._layouts.path())[0] else Position()
        if size < stamp.position.offset:
            return stamp.position
        if folder not in (stamp.folder, self._proven):
            integrity.prove(self._paths, self._layouts.path())
            self._proven = folder
        return None

    def close(self) -> None:
        """Close the open files."""
        self.file.close()
        self._flushed.close()
        if self._opened is not None:
            self._opened = None
            os.close(self._fd)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep all others from appending until the context ends."""
        with self._locked():
            yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        held = self._lock()
        try:
            yield
        finally:
            self._locks.release((held,))

    def _lock(self) -> HeldLock:
        """Lock the log's folder: two appenders would break the chain, also when somebody deletes lock files.

        The state of the log lies in a file that the same lock guards; one that was deleted is begun again.
        """
        held = self._locks.take(self._paths.events)
        try:
            known = self._opened
            if known is None or found_at(self._paths.state, known.st_ino, known.st_dev) is None:
                if known is not None:
                    self._opened = None
                    os.close(self._fd)
                self._fd = self._disk.open_cache(self._paths.state)
                self._opened = os.fstat(self._fd)
        except BaseException:
            self._locks.release((held,))
            raise
        self._folder, self._changed = held.fd, held.changed
        return held

    def _look_at_folder(self) -> None:
        """Look again: the holder of the lock has just changed the folder itself."""
        self._changed = os.fstat(self._folder).st_ctime_ns

    def _sound(self) -> State:
        state = State.read(self._fd, self._left) or self._state()
        if self._flushing.failed and not self._flushing.noted:
            self._note_failure(state)
        if state.poisoned:
            raise log_poisoned()
        self._flushing.failed = False  # somebody has healed the log since
        return state

    def _state(self) -> State:
        state = State.read(self._fd, self._left)
        if state is None:
            state = State()
            self._put(state)
        return state

    def _put(self, state: State) -> None:
        self._disk.overwrite(self._fd, state.text(), 0)

    def _note_failure(self, state: State) -> None:
        state.poisoned = True
        self._put(state)
        self._flushing.noted = True

    def _look(self, state: State) -> None:
        as_left = self._guard.as_left(state, self._changed)
        if as_left and self.file.is_at(state):
            return
        before = self._known(state)
        self._apart = not as_left and self._layouts.tips() > 1
        if not as_left and not self._guard.verify(state):
            self.file.replaced = True
        changed = self.file.refresh(state, moved=not as_left)
        if not as_left and state.foreign == self._claims.is_ours(before, self.file):
            state.foreign, changed = not state.foreign, True
        if changed:
            self._put(state)
        if self.durable and self._secured != self.file.opening:  # of what came before, no flush through it would tell
            as_left = not self.file.write_again(self._flushed.upto(self.file.inode)) and as_left
            self._secured = self.file.opening
        # Until a unit starts over, every process finds another log; until somebody merges, each finds several tips.
        if not as_left and not self.file.replaced and not self._apart:
            self._leave(foreign=state.foreign)

    def _leave(self, *, foreign: bool = False) -> None:
        """Say how the log was left, for the next appender to compare."""
        file = self.file
        if not file.segment:
            return
        try:
            behind = Position(file.segment, file.end, file.seq, file.digest)
            stamp = self._guard.stamp(self._changed, file.fd, behind)
            text = stamp.text()
            self._disk.overwrite(self._fd, text, STAMP_AT)
            self._left, self._foreign = (text, stamp), foreign
        except OSError:
            return  # a stamp that is missing or late only lets the next appender verify

    def _roll_over(self, state: State, today: str) -> None:
        """The day's first writer closes the old file for good before it begins the new one."""
        if self.durable and self.file.segment:
            try:
                self._flushing.now(self.file.fd)
            except CommitUnknown as error:  # others wait for that flush; who begins the day has changed nothing yet
                self._note_failure(state)
                raise log_poisoned() from error
        if not self.file.segment and not state.floor:
            self._beginning()
        if not self.file.segment and not self._claims.is_root():
            with suppress(OSError):  # then the root lane is another's from tomorrow on
                self._claims.note("", self.file.digest)
        self.file.begin_day(today)
        self._look_at_folder()
        self._secured = self.file.opening
        state.segment = self.file.segment
        self._put(state)

    def _begin_lane(self, state: State, today: str, commit: tuple[bytes, int, str]) -> None:
        """The log ends with what another clone wrote: a lane of our own begins there, with this commit."""
        data, seq, digest = commit
        segment = segment_of(
            max(today, day_of(state.segment)), chain.digest_of(data[: data.find(b"\n") + 1])[:NAME_DIGITS]
        )
        if self.durable and self.file.segment:
            self._flushing.now(self.file.fd)
        try:
            integrity.require_lanes(self._paths, self._disk)
            self._claims.note(lane_of(segment), digest)
            self.file.begin_lane(segment, data, seq, digest)
            self._look_at_folder()
        except OSError as error:
            if not os.path.lexists(self._paths.log(segment)):
                raise failed(error, "begin a lane of the log") from error
            self._flushing.failed, self._flushing.noted = True, False
            with suppress(OSError):  # it is there, and nobody can tell whether it stays
                self._note_failure(state)
            raise commit_unknown(error) from error
        self._secured = self.file.opening
        state.segment, state.foreign = segment, False
        with suppress(OSError):  # who looks next finds the lane
            self._put(state)
            self._leave()

    def _known(self, state: State | None) -> State:
        """How the log was left; where the lock file was deleted, as far as this process knows it."""
        if state is not None and state.stamp is not None:
            return State(state.segment, state.floor, foreign=state.foreign, stamp=state.stamp)
        if self._left is not None:
            return State(stamp=self._left[1], foreign=self._foreign)
        return State(state.segment, foreign=state.foreign) if state is not None else State()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


_LINE = 16
_CHUNK = 1 << 20
_WHOLE = b"whole".ljust(_LINE - 1) + b"\n"  # every event of the day's tasks is noted; else only the newer ones are


class Revs:
    """The last event of each task: a file per day of IDs with a line per task. Called under the log's lock."""

    def __init__(self, paths: Paths, disk: Disk, reader: Reader) -> None:
        self._paths = paths
        self._disk = disk
        self._reader = reader
        self._fds: dict[str, tuple[int, bool, os.stat_result]] = {}

    def newer(self, task_id: str, rev: int) -> bool:
        """Whether the log has an event of the task behind this one."""
        day, number = split_task_id(task_id)
        fd, whole, _ = self._table(day)
        noted = os.pread(fd, _LINE, number * _LINE).strip(b"\0 \n")
        if noted.isdigit():
            return int(noted) > rev and self._last(task_id) > rev
        if whole and not rev:
            return False
        last = self._last(task_id)
        self.put(task_id, last)  # looked up once, also where the task is only read
        return last > rev

    def put(self, task_id: str, seq: int) -> None:
        """Note an event that was just appended; one that is missing here is found in the log."""
        day, number = split_task_id(task_id)
        known = self._fds.get(day)  # looked at a moment ago, under the same lock
        fd = known[0] if known is not None else self._table(day)[0]
        self._disk.overwrite(fd, b"%015d\n" % seq, number * _LINE)

    def close(self) -> None:
        """Close the open files."""
        for fd, _, _ in self._fds.values():
            with suppress(OSError):
                os.close(fd)
        self._fds = {}

    def _table(self, day: str) -> tuple[int, bool, os.stat_result]:
        """The day's open file, and whether it is whole; one that was deleted or moved away is begun again."""
        path = f"{self._paths.revs}/{day}"
        known = self._fds.get(day)
        if known is not None:
            if found_at(path, known[2].st_ino, known[2].st_dev) is not None:
                return known
            del self._fds[day]
            os.close(known[0])
        fd = self._disk.open_cache(path)
        found = os.fstat(fd)
        if not found.st_size:
            whole = not self._mentioned(f'"taskId":"TASK-{day}-'.encode())
            self._disk.overwrite(fd, _WHOLE if whole else b" " * (_LINE - 1) + b"\n", 0)
        self._fds[day] = table = fd, os.pread(fd, _LINE, 0) == _WHOLE, found
        return table

    def _mentioned(self, text: bytes) -> bool:
        """Whether the log has this text anywhere."""
        for segment in segments(self._paths):
            with open(self._paths.log(segment), "rb") as file:
                rest = b""
                while data := file.read(_CHUNK):
                    if text in rest + data:
                        return True
                    rest = data[-len(text) :]
        return False

    def _last(self, task_id: str) -> int:
        return max((event.seq for event in self._reader.of_tasks((task_id,)) if event.files), default=0)


class LogGuard:
    """Checks that the files before the current one are as the last appender left them."""

    def __init__(self, paths: Paths, layouts: Layouts) -> None:
        self._paths = paths
        self._layouts = layouts
        self._folder = 0
        self._older = ""

    def as_left(self, state: State, changed: int) -> bool:
        """Whether folder and files look as the last appender left them; `changed` is when the log's folder was."""
        stamp = state.stamp
        if stamp is None or stamp.position.segment != state.segment or stamp.folder != changed:
            return False
        if stamp.older != self._older:  # this process has not looked at them yet
            self._older = self._files(self._before(state.segment))
            if stamp.older != self._older:
                return False
            self._folder = stamp.folder
        try:
            found = os.stat(f"{self._paths.events}/{state.segment}.jsonl")
        except FileNotFoundError:
            return False
        return (found.st_ctime_ns, found.st_size, found.st_ino) == (stamp.changed, stamp.position.offset, stamp.inode)

    def verify(self, state: State) -> bool:
        """Whether the log still has what was appended last; raises LogDamaged where it is not a whole history."""
        stamp, path = state.stamp, self._layouts.path()
        if stamp is None or not state.segment or not path:
            return True  # nobody has said what to expect, or all of it is gone, which looking for its end tells
        while path[-1].name > state.segment and not os.stat(self._paths.log(path[-1].name)).st_size:
            path = path[:-1]
        untouched = path[-1].name == state.segment and self._files(path[:-1]) == stamp.older
        if untouched:
            before = last_before(self._paths, path[:-1])
            proof = integrity.prove_last(self._paths, path[-1], before, stamp.position)
        else:
            proof = integrity.prove(self._paths, path, stamp.position)
        if not proof.known and proof.rest:
            raise integrity.lost_event(stamp.position)
        return proof.known

    def stamp(self, changed: int, fd: int, position: Position) -> Stamp:
        """What to leave behind."""
        if changed != self._folder or not self._older:
            self._folder, self._older = changed, self._files(self._before(position.segment))
        found = os.fstat(fd)
        return Stamp(changed, self._older, found.st_ino, found.st_ctime_ns, position)

    def _before(self, segment: str) -> tuple[PathSection, ...]:
        return self._layouts.path_to(segment)[:-1]

    def _files(self, path: Iterable[PathSection]) -> str:
        return older_files(self._paths, [section.name for section in path])
