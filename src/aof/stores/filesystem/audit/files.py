"""The audit records of handoffs as JSON lines, one file per day of the log. They follow from the log.

Nothing is written in a commit: whoever reads, and the scheduler, lets the files catch up. How far they have come is
noted in the lock's file, so that a line that somebody has removed is missed. Must not know how long a record is kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby

import msgspec

from aof._support import nesting
from aof._support.typed import prepare_type
from aof.core.handoffs.audit import AuditRecord
from aof.core.model.ids import is_day
from aof.ports.audit import Expired, Expires, Verified
from aof.stores.filesystem.audit import verification
from aof.stores.filesystem.io.read import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.io.locks import HeldLock
    from aof.stores.filesystem.store import FilesystemStore

LOCK = "audit"
_NOTE_BYTES = 32
_TAIL_BYTES = 16_384
_SUFFIX = ".jsonl"
_decoder = msgspec.json.Decoder(prepare_type(AuditRecord))


def folder_name(project: str) -> str:
    """A project's name as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip(".-")[:80] or "project"


class FilesystemAudit:
    """Keeps the contract of `ports.audit.AuditFiles` for one data directory."""

    def __init__(self, store: FilesystemStore, project: str) -> None:
        self._store = store
        self._folder = f"{store.paths.root}/logs/{folder_name(project)}/handoff-audit"
        self._followed: object = None  # where the log ended before the files last caught up

    def exist(self) -> bool:
        """Whether any record was written."""
        return bool(self._days())

    def follow(self) -> None:
        """Append what the log has and the files have not; a line that a dead writer left unfinished is cut first."""
        end = self._store.reader.end()
        if end == self._followed:
            return
        with self._locked() as held:
            written = self._written(held)
            new = self._store.index.audit_lines(written)
            for day, rows in groupby(new, key=lambda row: row[1]):
                self._append(day, "".join(line for _, _, line in rows).encode())
            if new:
                self._note(held, new[-1][0])
        self._followed = end

    def verify(self, expires: Expires) -> Verified:
        """Compare the log with itself, and the files with the log."""
        with self._locked() as held:
            return verification.verify(
                self._store.paths, {day: self._path(day) for day in self._days()}, self._noted(held), expires
            )

    def expired(self, before: str, expires: Expires) -> tuple[Expired, ...]:
        """What may go from the files of the days before one."""
        found = ((day, _sorted_out(self._data(day), expires)[1]) for day in self._days() if day < before)
        return tuple(self._told(day, count) for day, count in found if count)

    def prune(self, before: str, expires: Expires) -> tuple[Expired, ...]:
        """Rewrite the files without what may go; one that would be empty is removed."""
        done: list[Expired] = []
        with self._locked() as held:
            self._note(held, self._written(held))
            for day in self._days():
                kept, count = _sorted_out(self._data(day), expires) if day < before else (b"", 0)
                if not count:
                    continue
                if kept:
                    self._replace(day, kept)
                else:
                    self._store.disk.unlink(self._path(day))
                done.append(self._told(day, count))
        return tuple(done)

    def _told(self, day: str, count: int) -> Expired:
        return Expired(path=self._store.paths.relative(self._path(day)), records=count)

    def _path(self, day: str) -> str:
        return f"{self._folder}/{day}{_SUFFIX}"

    def _days(self) -> list[str]:
        """The days that have a file, oldest first."""
        with suppress(FileNotFoundError):
            names = os.listdir(self._folder)
            return sorted(name[:10] for name in names if name[10:] == _SUFFIX and is_day(name[:10]))
        return []

    def _data(self, day: str) -> bytes:
        return read(self._path(day), limit=None) or b""

    def _append(self, day: str, data: bytes) -> None:
        disk = self._store.disk
        fd = self._opened(self._path(day))
        try:
            size = os.fstat(fd).st_size
            end = _end(fd, size)
            whole = size - len(end) + end.rfind(b"\n") + 1
            if whole < size:
                disk.truncate(fd, whole)
            while data:
                data = data[disk.append(fd, data) :]
        finally:
            os.close(fd)

    def _opened(self, path: str) -> int:
        with suppress(FileNotFoundError):
            return self._store.disk.create(path)
        folders = self._folder[len(self._store.paths.root) + 1 :].split("/")
        for depth in range(1, len(folders) + 1):
            with suppress(FileExistsError):
                self._store.disk.make_dir("/".join((self._store.paths.root, *folders[:depth])))
        return self._store.disk.create(path)

    def _replace(self, day: str, data: bytes) -> None:
        temporary = self._store.paths.temporary_file(f"{day}.audit")
        self._store.disk.write_durable(temporary, data)
        self._store.disk.replace(temporary, self._path(day))

    def _written(self, held: HeldLock) -> int:
        """The number of the last record that is in the files; a dead writer may not have noted it."""
        days = self._days()
        lines = self._last_lines(days[-1]) if days else []
        return max(self._noted(held), next((seq for line in reversed(lines) if (seq := seq_of(line))), 0))

    def _last_lines(self, day: str) -> list[bytes]:
        """The last lines of a file: at least one whole one, where there is any."""
        fd = os.open(self._path(day), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return _end(fd, os.fstat(fd).st_size).splitlines(keepends=True)
        finally:
            os.close(fd)

    def _noted(self, held: HeldLock) -> int:
        noted = os.pread(held.fd, _NOTE_BYTES, 0).strip()
        return int(noted) if noted.isdigit() else 0

    def _note(self, held: HeldLock, seq: int) -> None:
        self._store.disk.overwrite(held.fd, str(seq).encode().ljust(_NOTE_BYTES - 1) + b"\n", 0)

    @contextmanager
    def _locked(self) -> Iterator[HeldLock]:
        held = self._store.locks.take(LOCK)
        try:
            yield held
        finally:
            self._store.locks.release((held,))


def _end(fd: int, size: int) -> bytes:
    """The end of a file, from the beginning of a line on; the whole file where it has only one."""
    length = _TAIL_BYTES
    while True:
        start = max(size - length, 0)
        data = os.pread(fd, size - start, start)
        first = data.find(b"\n") + 1
        if not start:
            return data
        if 0 < first < data.rfind(b"\n"):
            return data[first:]
        length *= 2


def seq_of(line: bytes) -> int | None:
    """The number of the event that a line is the record of; None where it is no whole line of ours."""
    try:
        nesting.refuse_nesting(line)
        return _decoder.decode(line).seq if line.endswith(b"\n") else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _sorted_out(data: bytes, expires: Expires) -> tuple[bytes, int]:
    """The lines that stay, and how many go; what is no record of ours stays."""
    lines = data.splitlines(keepends=True)
    records = {place: _decoder.decode(line) for place, line in enumerate(lines) if seq_of(line) is not None}
    gone = {place for place, over in zip(records, expires(tuple(records.values())), strict=True) if over}
    return b"".join(line for place, line in enumerate(lines) if place not in gone), len(gone)
