"""What writers of the log note for the next one: its state, a stamp of its files, and how far it is durable.

The state is in the log's lock file and written only by its holder: the current segment, whether it is another clone's,
whether a flush has failed, the floor of numbers, and the last stamp. The stamp says how the log's folder and files
looked; anything else than the same inode, size and change time means that somebody other than an appender was at work,
and the log is verified before it is written to. The change time is compared and not the modification time, because a
program can set the latter back.

The system reports a lost write only to processes that had the file open by then, and forgets what it could not write.
So every writer notes how far a flush has succeeded, and a process that opens the log first rewrites what lies behind
that note. A note that is missing, late or about another file only costs time.

Threads share an open file, of which the system reports a lost write once. So they flush one after the other, a flush
counts for everything that was appended before it began, and after a failed one no caller gets a success. Must not know
how the log is written.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # as threading.Lock, without the rest of that module
from collections.abc import Iterable
from contextlib import suppress

from aof._support.hashing import hexdigest
from aof.core.errors.storage import CommitUnknown, LogPoisoned
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log.position import Position

STAMP_BYTES = 256
_WORDS = 9
_BYTES = 160
STAMP_AT = 64
_FOREIGN = "foreign"  # nobody here appends to the current segment


class Stamp:
    """The folder's change time, a digest of the files before, the current file, and the position at its end."""

    __slots__ = ("changed", "folder", "inode", "older", "position")

    def __init__(self, folder: int, older: str, inode: int, changed: int, position: Position) -> None:
        self.folder = folder
        self.older = older
        self.inode = inode
        self.changed = changed
        self.position = position

    def describes(self, found: os.stat_result) -> bool:
        """Whether the current file is as it was left."""
        return (found.st_ctime_ns, found.st_size, found.st_ino) == (self.changed, self.position.offset, self.inode)

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
    """The note of one data directory."""

    def __init__(self, path: str, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._fd = -1

    def note(self, inode: int, behind: Position) -> None:
        """Everything before the position is durable in that file."""
        with suppress(OSError):
            self._disk.overwrite(self._open(), f"{inode} {behind.text()}".ljust(_BYTES - 1).encode() + b"\n", 0)

    def forget(self) -> None:
        """Say nothing; raises OSError, for what is said of another log must not stay."""
        self._disk.overwrite(self._open(), b" " * (_BYTES - 1) + b"\n", 0)

    def last(self) -> Position | None:
        """Where any file was durable last."""
        with suppress(OSError):
            return Position.parse(os.pread(self._open(), _BYTES, 0).decode("ascii", "replace").split()[1:])
        return None

    def upto(self, inode: int) -> Position | None:
        """Where the file was durable last; None where nobody has said."""
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


def poisoned() -> LogPoisoned:
    """The refusal until somebody has verified the log."""
    return LogPoisoned(
        "a flush of the log has failed; what came last may not be durable, and nothing is written until it is verified",
        "run 'aof doctor --fix'",
    )


def unknown(error: OSError | None = None) -> CommitUnknown:
    """The caller's error when a flush has failed."""
    why = f" ({error.strerror})" if error is not None else ""
    return CommitUnknown(
        f"the log could not be flushed{why}; the change may or may not be durable",
        "run 'aof doctor', which verifies the log; then look whether the change is there",
    )
