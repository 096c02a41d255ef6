"""The log: the commit point. Appends under its lock, flushes outside of it, cuts only what was never whole.

`events/<day>.jsonl` holds the lines. The log's lock file says which day is current, whether a flush has failed, and
below which number no event may begin. The system reports a lost write once per open file, and threads share one. So
they flush one after the other, a flush counts for everything that was appended before it began, and after a failed one
no caller gets a success. Must not know what the events mean.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # as threading.Lock, without the rest of that module
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from aof.core.errors.storage import CommitUnknown, LockTimeout
from aof.stores.filesystem.integrity.guard import LogGuard
from aof.stores.filesystem.integrity.log_identity import LogReplaced
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.locks import HeldLock, Locks
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log.reader import Position, log_days
from aof.stores.filesystem.log.segment import LogFile
from aof.stores.filesystem.log.state import STAMP_AT, Flushed, Stamp, State, poisoned

LOCK = "log"
Builder = Callable[[int, str], tuple[bytes, int, str]]


class Mark(NamedTuple):
    """How far the log was written: which opening of which file, and up to where in it."""

    opening: int = 0
    end: int = 0


class Flushing:
    """The flushes of one process."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.written = Mark()
        self.failed = False
        self.noted = False
        self._flushed = Mark()
        self._turn = allocate_lock()
        self._pid = os.getpid()

    def upto(self, fd: int, mark: Mark) -> None:
        """Return when everything up to the mark is durable; raises CommitUnknown."""
        if self._pid != os.getpid():  # another thread may have had its turn when this process was forked
            self._turn, self._pid = allocate_lock(), os.getpid()
        with self._turn:
            if self.failed:
                raise unknown()
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
            raise unknown(error) from error


def unknown(error: OSError | None = None) -> CommitUnknown:
    """The caller's error when a flush has failed."""
    why = f" ({error.strerror})" if error is not None else ""
    return CommitUnknown(
        f"the log could not be flushed{why}; the change may or may not be durable",
        "run 'aof doctor', which verifies the log; then look whether the change is there",
    )


class Log:
    """The log of one data directory, as one process sees it."""

    def __init__(self, paths: Paths, locks: Locks, disk: Disk, *, durable: bool) -> None:
        self.durable = durable
        self._paths = paths
        self._locks = locks
        self._disk = disk
        self._flushing = Flushing(disk)
        self._file = LogFile(paths, disk)
        self._flushed = Flushed(paths.flushed, disk)
        self._guard = LogGuard(paths)
        self._folder = -1
        self._secured = 0
        self._left: tuple[bytes, Stamp] | None = None

    @property
    def position(self) -> Position:
        """Behind the last whole commit, as of the last look."""
        return Position(self._file.day, self._file.end, self._file.seq, self._file.digest)

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return self._file.seq

    @property
    def replaced(self) -> bool:
        """Whether the log was replaced by another one, and no unit has started over since."""
        return self._file.replaced

    @replaced.setter
    def replaced(self, found: bool) -> None:
        self._file.replaced = found

    def append(self, today: str, build: Builder, appended: Callable[[], None] | None = None) -> Position:
        """Append one commit and make it durable; returns the position after it.

        `build` is given the number and the hash of the last event and returns the lines, the new number and hash.
        `appended` is called under the lock once they are written.
        """
        file = self._file
        with self._locked() as held:
            state = self._ready(held, today)
            if file.replaced:
                raise LogReplaced
            data, seq, digest = build(max(file.seq, state.floor), file.digest)
            try:
                file.write(data, seq, digest)
            finally:  # also of what was undone, which leaves a trace in the file's times
                self._leave(held)
            if appended is not None:
                appended()
            fd = file.borrow()
            mark = self._flushing.written = Mark(file.opening, file.end)
            behind, inode = self.position, file.inode
        try:
            self.flush(fd, mark)
        finally:
            file.give_back(fd)
        if self.durable:
            self._flushed.note(inode, behind)
        return behind

    def flush(self, fd: int | None = None, mark: Mark | None = None) -> None:
        """Make a file of the log durable as far as it is written, or up to the mark; a failed flush poisons the log."""
        if fd is None:
            fd = self._file.borrow()
            try:
                self.flush(fd)
            finally:
                self._file.give_back(fd)
            return
        if not self.durable or fd < 0:
            return
        try:
            if mark is None:
                self._flushing.now(fd)
            else:
                self._flushing.upto(fd, mark)
        except CommitUnknown:
            with suppress(OSError, LockTimeout), self._locked() as held:  # else this process notes it before it appends
                self._note_failure(held, self._state(held))
            raise

    def flush_all(self) -> None:
        """Make every day's file durable, whoever wrote it."""
        for day in log_days(self._paths):
            fd = self._disk.create(self._paths.log(day))
            try:
                self.flush(fd)
            finally:
                os.close(fd)

    def refresh(self, *, sound: bool = False) -> None:
        """Look where the log ends, and cut what a dead writer left half done; `sound` refuses a poisoned log."""
        with self._locked() as held:
            self._look(held, (self._sound if sound else self._state)(held))

    def restate(self, *, floor: int = 0) -> None:
        """Write the lock file again from the files, under a new boot: what a failed flush lost is known by then."""
        with self._locked() as held:
            state = State(floor=floor)
            self._file.rescan(state)
            self._put(held, state)
            self._leave(held)
            # Last, for it may be of the log before: when anything above fails, the next opener still needs the note
            # to find that flushed events are missing. A cut before or after this line loses nothing: one that is
            # found blank or late only makes the next opener write the log once more.
            self._flushed.forget()

    def flushed(self) -> Position | None:
        """An event that was flushed, with everything before it; None where nobody has said."""
        return self._flushed.last()

    def heal(self, since: str = "") -> None:
        """After a failed flush, and after verification: write the log's files from a day on once more, to new places.

        The system may have dropped what it could not write, and flushing again would not tell. Raises OSError.
        """
        with self._locked() as held:
            state = self._state(held)
            self._look(held, state)
            for day in log_days(self._paths):
                if day >= since:
                    temporary = f"{self._paths.temporary}/{day}.jsonl"
                    self._disk.write_durable(temporary, read(self._paths.log(day), limit=None) or b"")
                    self._disk.rename(temporary, self._paths.log(day))
            self._disk.sync_dir(self._paths.events)
            state.poisoned = self._flushing.failed = False
            self._file.rescan(state)
            self._secured = self._file.opening
            self._put(held, state)
            self._leave(held)

    def is_poisoned(self) -> bool:
        """Whether a flush has failed and nobody has healed the log since."""
        held = self._locks.take(LOCK, exclusive=False)
        try:
            state = State.read(held.fd)
        finally:
            self._locks.release((held,))
        return state is not None and state.poisoned

    def refuse_poisoned(self) -> None:
        """For who is about to answer from events that nobody has answered from before; raises LogPoisoned."""
        if self.is_poisoned():
            raise poisoned()

    def close(self) -> None:
        """Close the open files."""
        self._file.close()
        self._flushed.close()

    @contextmanager
    def _locked(self) -> Iterator[HeldLock]:
        """The log's lock, and its folder's: two appenders would break the chain, also when somebody deletes locks."""
        held = [self._locks.take(LOCK)]
        try:
            held.append(self._locks.take(self._paths.events))
            self._folder = held[1].fd
            yield held[0]
        finally:
            self._locks.release(held)

    def _sound(self, held: HeldLock) -> State:
        state = self._state(held)
        if self._flushing.failed and not self._flushing.noted:
            self._note_failure(held, state)
        if state.poisoned:
            raise poisoned()
        self._flushing.failed = False  # somebody has healed the log since
        return state

    def _ready(self, held: HeldLock, today: str) -> State:
        state = self._sound(held)
        self._look(held, state)
        if today > state.day:
            self._roll_over(held, state, today)
        return state

    def _state(self, held: HeldLock) -> State:
        state = State.read(held.fd, self._left)
        if state is None:
            state = State()
            self._put(held, state)
        return state

    def _put(self, held: HeldLock, state: State) -> None:
        self._disk.overwrite(held.fd, state.text(), 0)

    def _note_failure(self, held: HeldLock, state: State) -> None:
        state.poisoned = True
        self._put(held, state)
        self._flushing.noted = True

    def _look(self, held: HeldLock, state: State) -> None:
        as_left = self._guard.as_left(state, self._folder)
        if as_left and self._file.is_at(state):
            return
        if not as_left and not self._guard.verify(state):
            self._file.replaced = True
        if self._file.look(state):
            self._put(held, state)
        if self.durable and self._secured != self._file.opening:  # of what came before, no flush through it would tell
            as_left = not self._file.write_again(self._flushed.upto(self._file.inode)) and as_left
            self._secured = self._file.opening
        if not as_left and not self._file.replaced:  # until a unit starts over, every process finds another log
            self._leave(held)

    def _leave(self, held: HeldLock) -> None:
        """Say how the log was left, for the next appender to compare."""
        if self._file.day:
            with suppress(OSError):  # one that is missing or late only lets the next appender verify
                stamp = self._guard.stamp(self._folder, self._file.fd, self.position)
                text = stamp.text()
                self._disk.overwrite(held.fd, text, STAMP_AT)
                self._left = text, stamp

    def _roll_over(self, held: HeldLock, state: State, today: str) -> None:
        """The day's first writer closes the old file for good before it begins the new one."""
        if self.durable and self._file.day:
            try:
                self._flushing.now(self._file.fd)
            except CommitUnknown as error:  # others wait for that flush; who begins the day has changed nothing yet
                self._note_failure(held, state)
                raise poisoned() from error
        self._file.begin(today)
        self._secured = self._file.opening
        state.day = today
        self._put(held, state)
