"""The audit records of handoffs as JSON lines, one file per day: they follow from the log and are compared with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby

import msgspec

from aof.errors import LogDamaged
from aof.handoffs.audit import AuditRecord, audit_record, is_audited, line_of
from aof.kernel.model import is_day
from aof.store.directory import AuditProblem, Expired, Expires, Verified
from aof.store.files.disk import read
from aof.store.files.log import chain
from aof.store.files.log.layout import Layouts, PathSection
from aof.store.files.paths import GENESIS, Paths, day_of
from aof.support import nesting
from aof.support.typed import prepare_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.files.locks import HeldLock
    from aof.store.files.store import FilesystemStore

AUDIT_LOCK = "audit"
_NOTE_BYTES = 32
_TAIL_BYTES = 16_384
_SUFFIX = ".jsonl"
_DAY = len("2026-01-01")
_PROBLEMS_MOST = 1_000
_MOVED = ("record_reordered", "does not stand where it was written")
_decoder = msgspec.json.Decoder(prepare_type(AuditRecord))


class FilesystemAudit:
    """The audit files of a project in one data directory."""

    def __init__(self, store: FilesystemStore, project: str) -> None:
        self._store = store
        self._folder = f"{store.paths.root}/logs/{audit_folder_name(project)}/handoff-audit"
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
            return verify_audit(
                self._store.paths, {day: self._path(day) for day in self._days()}, self._noted(held), expires
            )

    def expired(self, before: str, expires: Expires) -> tuple[Expired, ...]:
        """What may go from the files of the days before one."""
        found = ((day, _without_expired(self._data(day), expires)[1]) for day in self._days() if day < before)
        return tuple(self._expired(day, count) for day, count in found if count)

    def prune(self, before: str, expires: Expires) -> tuple[Expired, ...]:
        """Rewrite the files without what may go; one that would be empty is removed."""
        done: list[Expired] = []
        with self._locked() as held:
            self._note(held, self._written(held))
            for day in self._days():
                kept, count = _without_expired(self._data(day), expires) if day < before else (b"", 0)
                if not count:
                    continue
                if kept:
                    temporary = self._store.paths.temporary_file(f"{day}.audit")
                    self._store.disk.write_durable(temporary, kept)
                    self._store.disk.replace(temporary, self._path(day))
                else:
                    self._store.disk.unlink(self._path(day))
                done.append(self._expired(day, count))
        return tuple(done)

    def _expired(self, day: str, count: int) -> Expired:
        return Expired(path=self._store.paths.relative(self._path(day)), records=count)

    def _path(self, day: str) -> str:
        return f"{self._folder}/{day}{_SUFFIX}"

    def _days(self) -> list[str]:
        """The days that have a file, oldest first."""
        with suppress(FileNotFoundError):
            names = os.listdir(self._folder)
            return sorted(name[:_DAY] for name in names if name[_DAY:] == _SUFFIX and is_day(name[:_DAY]))
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

    def _written(self, held: HeldLock) -> int:
        """The number of the last record that is in the files; a dead writer may not have noted it."""
        days = self._days()
        if not days:
            return self._noted(held)
        fd = os.open(self._path(days[-1]), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            lines = _end(fd, os.fstat(fd).st_size).splitlines(keepends=True)
        finally:
            os.close(fd)
        records = (record for line in reversed(lines) if (record := _record_in(line)) is not None)
        return max(self._noted(held), next((record.seq for record in records if record.seq), 0))

    def _noted(self, held: HeldLock) -> int:
        noted = os.pread(held.fd, _NOTE_BYTES, 0).strip()
        return int(noted) if noted.isdigit() else 0

    def _note(self, held: HeldLock, seq: int) -> None:
        self._store.disk.overwrite(held.fd, str(seq).encode().ljust(_NOTE_BYTES - 1) + b"\n", 0)

    @contextmanager
    def _locked(self) -> Iterator[HeldLock]:
        held = self._store.locks.take(AUDIT_LOCK)
        try:
            yield held
        finally:
            self._store.locks.release((held,))


def audit_folder_name(project: str) -> str:
    """A project's name as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip(".-")[:80] or "project"


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


def _record_in(line: bytes) -> AuditRecord | None:
    """The record that a line holds; None where it is no whole line of ours."""
    try:
        nesting.refuse_nesting(line)
        return _decoder.decode(line) if line.endswith(b"\n") else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _without_expired(data: bytes, expires: Expires) -> tuple[bytes, int]:
    """The lines that stay, and how many go; what is no record of ours stays."""
    lines = data.splitlines(keepends=True)
    records = {place: record for place, line in enumerate(lines) if (record := _record_in(line)) is not None}
    gone = {place for place, over in zip(records, expires(tuple(records.values())), strict=True) if over}
    return b"".join(line for place, line in enumerate(lines) if place not in gone), len(gone)


def verify_audit(paths: Paths, files: Mapping[str, str], noted: int, expires: Expires) -> Verified:
    """Compare everything; `files` are those with records, by day, and `noted` is the last record that they had."""
    log = _Log()
    for section in Layouts(paths).path():
        log.read(paths, section)
    log.end()
    problems = [*log.problems, *log.breaks(), *_Files(paths, log.records).problems(files, noted, expires)]
    return Verified(checked=len(log.records), problems=tuple(problems[:_PROBLEMS_MOST]))


class _Place(msgspec.Struct, frozen=True):
    """A line of the log: where it stands, what it is, and whether its hash follows from the line before."""

    path: str
    seq: int
    kind: str
    handoff_id: str | None
    proven: bool

    def problem(self, code: str, how: str) -> AuditProblem:
        """What is wrong with it."""
        of = f" ({self.kind} of handoff {self.handoff_id})" if self.handoff_id is not None else ""
        detail = f"event {self.seq}{of} in {self.path} {how}"
        return AuditProblem(code=code, path=self.path, detail=detail, seq=self.seq, handoff_id=self.handoff_id)


class _Log:
    """What the log says of its events, and which of them cannot be relied on. `records` have their day."""

    def __init__(self) -> None:
        self.records: dict[int, tuple[str, AuditRecord]] = {}
        self.problems: list[AuditProblem] = []
        self._places: list[_Place] = []
        self._digest = GENESIS
        self._whole = 0

    def read(self, paths: Paths, section: PathSection) -> None:
        """Take in a part of the log; a line without its end is not written yet."""
        path, day, offset = f"events/{section.name}.jsonl", day_of(section.name), section.begin
        with open(paths.log(section.name), "rb") as file:
            file.seek(section.begin)
            for number, line in enumerate(file, 2 if section.begin else 1):
                offset += len(line)
                if not line.endswith(b"\n") or offset > (section.end or offset):
                    return
                try:
                    self._take(path, day, line)
                except LogDamaged:
                    what = f"line {number} of {path} cannot be read: it was changed"
                    self.problems.append(AuditProblem(code="record_changed", path=path, detail=what))

    def end(self) -> None:
        """Forget the commit at the end that was not written whole."""
        for place in self._places[self._whole :]:
            self.records.pop(place.seq, None)
        del self._places[self._whole :]

    def _take(self, path: str, day: str, line: bytes) -> None:
        event = chain.decode_event(line)
        handoff = str(event.payload["handoffId"]) if is_audited(event.payload) else None
        place = _Place(path, event.seq, event.type, handoff, chain.proves(line, self._digest))
        self._digest = chain.digest_of(line)
        self._places.append(place)
        if event.commit[0] == event.commit[1]:
            self._whole = len(self._places)
        try:
            record = audit_record(event)
        except ValueError:
            self.problems.append(place.problem("record_unreadable", "is no whole audit record"))
            return
        if record is not None:
            self.records.setdefault(event.seq, (day, record))

    def breaks(self) -> Iterator[AuditProblem]:
        """What became of the events at which the chain breaks: the numbers on both sides tell."""
        known = {place.seq for place in self._places}
        before = 0
        for place in self._places:
            seq = place.seq
            if not place.proven:
                lacking = [one for one in range(before + 1, min(seq, before + _PROBLEMS_MOST)) if one not in known]
                for one in lacking:
                    what = f"event {one} was removed from {place.path}: event {seq} does not follow from {before}"
                    yield AuditProblem(code="record_removed", path=place.path, detail=what, seq=one)
                if not lacking:
                    changed = seq == before + 1
                    yield place.problem("record_changed", "was changed") if changed else place.problem(*_MOVED)
            before = seq


class _Files:
    """The files with records, compared with what the log says."""

    def __init__(self, paths: Paths, records: Mapping[int, tuple[str, AuditRecord]]) -> None:
        self._paths = paths
        self._records = records
        self._found: set[int] = set()
        self._highest = 0

    def problems(self, files: Mapping[str, str], noted: int, expires: Expires) -> Iterator[AuditProblem]:
        """Each line has to be the record of its event, in the order of the log, and none may be missing."""
        for day, file in files.items():
            path = self._paths.relative(file)
            for number, line in enumerate((read(file, limit=None) or b"").splitlines(keepends=True), 1):
                if line.endswith(b"\n"):  # else a dead writer has not finished it
                    yield from self._line(day, path, f"line {number} of {path}", line)
        yield from self._lacking(files, noted, expires)

    def _line(self, day: str, path: str, where: str, line: bytes) -> Iterator[AuditProblem]:
        record = _record_in(line)
        if record is None:
            yield AuditProblem(code="record_changed", path=path, detail=f"{where} cannot be read: it was changed")
            return
        seq = record.seq
        known_day, known = self._records.get(seq, ("", None))
        if known is None:
            yield _about(record, path, "record_unknown", f"{where} is not in the log")
        elif line != line_of(known):
            yield _about(known, path, "record_changed", f"{where} was changed")
        elif seq in self._found:
            yield _about(record, path, "record_repeated", f"{where} is there a second time")
        elif seq < self._highest or known_day != day:
            yield _about(record, path, _MOVED[0], f"{where} {_MOVED[1]}")
        self._found.add(seq)
        self._highest = max(self._highest, seq)

    def _lacking(self, files: Mapping[str, str], noted: int, expires: Expires) -> Iterator[AuditProblem]:
        lacking = [one for seq, one in self._records.items() if seq not in self._found and seq <= noted]
        over = expires(tuple(record for _, record in lacking))
        for (day, record), gone in zip(lacking, over, strict=True):
            if not gone:
                path = self._paths.relative(files.get(day) or f"{self._paths.root}/logs")
                yield _about(record, path, "record_removed", f"the record of event {record.seq} was removed")


def _about(record: AuditRecord, path: str, code: str, what: str) -> AuditProblem:
    detail = f"{what}: {record.event_type} of handoff {record.handoff_id}, {record.from_agent} → {record.to_agent}"
    return AuditProblem(code=code, path=path, detail=detail, seq=record.seq, handoff_id=record.handoff_id)
