"""Handoffs on the disk.

A record for each, the files that a request puts among the child task's own, and the audit records as JSON lines,
which follow from the log and are compared with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby

import msgspec

from aof.errors import LogDamaged
from aof.handoffs import evolve as handoffs_evolve
from aof.handoffs.audit import AuditRecord, audit_record, is_audited, line_of
from aof.handoffs.delegation import attached
from aof.handoffs.evolve import evolve_handoff
from aof.handoffs.model import Handoff, by_age, is_format_1, is_handoff_id
from aof.kernel.model import Event, is_day
from aof.store.directory import AuditProblem, Expired, Expires, Verified
from aof.store.files.disk import Disk, digest, read
from aof.store.files.log import chain
from aof.store.files.log.layout import Layouts, PathSection
from aof.store.files.log.segment import is_torn
from aof.store.files.paths import GENESIS, Paths, day_of
from aof.store.fold import Folded
from aof.support import nesting
from aof.support.typed import prepare_type
from aof.tasks.model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.files.locks import HeldLock
    from aof.store.files.store import FilesystemStore


_encode = msgspec.json.Encoder().encode
_handoffs_decoder = msgspec.json.Decoder(prepare_type(Handoff))
_decoder_1 = msgspec.json.Decoder(prepare_type(handoffs_evolve.Handoff1))
_BEGIN = ("delegation.requested", "handoff.initiated")


def handoff_bytes(handoff: Handoff) -> bytes:
    """The file of a handoff: JSON that a person can read."""
    shown = handoffs_evolve.write_format_1(handoff) if is_format_1(handoff.id) else handoff
    return msgspec.json.format(_encode(shown), indent=2) + b"\n"


def parse_handoff(name: str, data: bytes) -> Handoff:
    """The handoff that a file holds. Raises DecodeError, or UnicodeDecodeError."""
    nesting.refuse_nesting(data)
    return (
        handoffs_evolve.read_format_1(_decoder_1.decode(data)) if is_format_1(name) else _handoffs_decoder.decode(data)
    )


class Handed:
    """What one commit does to the handoffs of a task."""

    def __init__(self) -> None:
        self.handoffs: dict[str, tuple[Handoff, int]] = {}
        self.attached: dict[str, bytes] = {}
        self.records: dict[str, bytes] = {}

    def finish(self, before: int, folder: str) -> dict[str, str]:
        """Under the log's lock the number before the commit is known: fill in, and tell what the files will be."""
        self.records = {
            name: handoff_bytes(msgspec.structs.replace(handoff, rev=before + place))
            for name, (handoff, place) in self.handoffs.items()
        }
        files = {f"handoffs/{name}.json": digest(data) for name, data in self.records.items()}
        return files | {f"{folder}/{place}": digest(data) for place, data in self.attached.items()}


class HandoffRecords:
    """The handoffs of one data directory."""

    def __init__(self, paths: Paths, disk: Disk, folded: Callable[[str], Folded]) -> None:
        self._paths = paths
        self._disk = disk
        self._folded = folded

    def of(self, task: Task) -> tuple[Handoff, ...]:
        """The handoffs of a task, as it names them."""
        names = [link.target_id for link in task.links if link.kind == "handoff"]
        found = [self._read(name) for name in names]
        if None in found:
            return tuple(self._folded(task.id).handoffs.values())
        return tuple(handoff for handoff in found if handoff is not None)

    def all(self) -> tuple[Handoff, ...]:
        """Every handoff that has a record, oldest first."""
        found = (self._read(name) for name in self._names())
        return tuple(sorted(filter(None, found), key=by_age))

    def among(self, tasks: Iterable[Task]) -> tuple[Handoff, ...]:
        """The handoffs of these tasks, oldest first."""
        return tuple(sorted((handoff for task in tasks for handoff in self.of(task)), key=by_age))

    def beginning(self, part: str) -> tuple[Handoff, ...]:
        """The handoffs whose IDs begin like this; a whole ID needs no look at the others."""
        names = [part] if is_handoff_id(part) else sorted(name for name in self._names() if name.startswith(part))
        return tuple(one for name in names if (one := self._read(name)) is not None)

    def unproven(self, last: int) -> list[str]:
        """The records that cannot be read, or were written after the log's last event."""
        found = ((name, self._read(name)) for name in self._names())
        return [self._paths.handoff(name) for name, handoff in found if handoff is None or handoff.rev > last]

    def _names(self) -> list[str]:
        with suppress(FileNotFoundError):
            return [name[: -len(".json")] for name in os.listdir(self._paths.handoffs) if name.endswith(".json")]
        return []

    def _read(self, name: str) -> Handoff | None:
        if not is_handoff_id(name):
            return None
        try:
            data = read(self._paths.handoff(name))
            return None if data is None else parse_handoff(name, data)
        except (msgspec.DecodeError, UnicodeDecodeError, OSError):
            return None

    def after(self, handed: Handed | None, event: Event, task: Task) -> Handed:
        """What the event adds to what a commit does."""
        handed = handed or Handed()
        name = event.payload["handoffId"]
        known, _ = handed.handoffs.get(name, (None, 0))
        if known is None and event.type not in _BEGIN:
            known = next((handoff for handoff in self.of(task) if handoff.id == name), None)
        elif known is None:
            known = self._read(name)
        handoff = evolve_handoff(known, event)
        if handoff is not None and handoff is not known:
            handed.handoffs[name] = (handoff, event.commit[0])
        handed.attached |= attached(event)
        return handed

    def write(self, handed: Handed, task_id: str, folder: str) -> None:
        """Make the files follow."""
        for name, data in handed.records.items():
            self._put(self._paths.handoff(name), data, task_id)
        for place, data in handed.attached.items():
            self._put(f"{self._paths.files(folder, task_id)}/{place}", data, task_id)

    def redo(self, folded: Folded, folder: str) -> None:
        """The same again, from what the log says. A file that is neither ours nor torn is a person's, and stays."""
        assert folded.task is not None
        task_id = folded.task.id
        for name, handoff in folded.handoffs.items():
            path, data = self._paths.handoff(name), handoff_bytes(handoff)
            if _content(path) != data:
                self._put(path, data, task_id)
        for place, data in folded.attached.items():
            path = f"{self._paths.files(folder, task_id)}/{place}"
            found = _content(path)
            if found != data and (found is None or digest(found) in folded.attachments or is_torn(found, data)):
                self._put(path, data, task_id)

    def _put(self, path: str, data: bytes, task_id: str) -> None:
        temporary = self._paths.temporary_file(f"{task_id}.handoff")
        self._disk.write_new(temporary, data)
        try:
            self._disk.replace(temporary, path)
        except FileNotFoundError:
            self._make(os.path.dirname(path))
            self._disk.rename(temporary, path)

    def _make(self, folder: str) -> None:
        """The folder, and those above it as far as they are missing."""
        if not os.path.isdir(os.path.dirname(folder)):
            self._make(os.path.dirname(folder))
        with suppress(FileExistsError):
            self._disk.make_dir(folder)


def _content(path: str) -> bytes | None:
    try:
        return read(path)
    except OSError:
        return None


AUDIT_LOCK = "audit"
_NOTE_BYTES = 32
_TAIL_BYTES = 16_384
_SUFFIX = ".jsonl"
_files_decoder = msgspec.json.Decoder(prepare_type(AuditRecord))


def audit_folder_name(project: str) -> str:
    """A project's name as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip(".-")[:80] or "project"


class FilesystemAudit:
    """Keeps the contract of `ports.audit.AuditFiles` for one data directory."""

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
        held = self._store.locks.take(AUDIT_LOCK)
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
        return _files_decoder.decode(line).seq if line.endswith(b"\n") else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _sorted_out(data: bytes, expires: Expires) -> tuple[bytes, int]:
    """The lines that stay, and how many go; what is no record of ours stays."""
    lines = data.splitlines(keepends=True)
    records = {place: _files_decoder.decode(line) for place, line in enumerate(lines) if seq_of(line) is not None}
    gone = {place for place, over in zip(records, expires(tuple(records.values())), strict=True) if over}
    return b"".join(line for place, line in enumerate(lines) if place not in gone), len(gone)


_MOST = 1_000  # problems that are told
_MOVED = ("record_reordered", "does not stand where it was written")
_verification_decoder = msgspec.json.Decoder(prepare_type(AuditRecord))


class _Place(msgspec.Struct, frozen=True):
    """A line of the log: where it stands, what it is, and whether its hash follows from the line before."""

    path: str
    seq: int
    kind: str
    handoff_id: str | None
    proven: bool

    def told(self, code: str, how: str) -> AuditProblem:
        """What is wrong with it."""
        of = f" ({self.kind} of handoff {self.handoff_id})" if self.handoff_id is not None else ""
        detail = f"event {self.seq}{of} in {self.path} {how}"
        return AuditProblem(code=code, path=self.path, detail=detail, seq=self.seq, handoff_id=self.handoff_id)


class _Recorded(msgspec.Struct, frozen=True):
    """The record of an event in the log, and the log's day."""

    day: str
    record: AuditRecord


def verify_audit(paths: Paths, files: Mapping[str, str], noted: int, expires: Expires) -> Verified:
    """Compare everything; `files` are those with records, by day, and `noted` is the last record that they had."""
    log = _Log()
    for section in Layouts(paths).path():
        log.read(paths, section)
    log.end()
    problems = [*log.problems, *log.breaks(), *_Files(paths, log.records).problems(files, noted, expires)]
    return Verified(checked=len(log.records), problems=tuple(problems[:_MOST]))


class _Log:
    """What the log says of its events, and which of them cannot be relied on."""

    def __init__(self) -> None:
        self.records: dict[int, _Recorded] = {}
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
            self.problems.append(place.told("record_unreadable", "is no whole audit record"))
            return
        if record is not None:
            self.records.setdefault(event.seq, _Recorded(day, record))

    def breaks(self) -> Iterator[AuditProblem]:
        """What became of the events at which the chain breaks: the numbers on both sides tell."""
        known = {place.seq for place in self._places}
        before = 0
        for place in self._places:
            seq = place.seq
            if not place.proven:
                lacking = [one for one in range(before + 1, min(seq, before + _MOST)) if one not in known]
                for one in lacking:
                    what = f"event {one} was removed from {place.path}: event {seq} does not follow from {before}"
                    yield AuditProblem(code="record_removed", path=place.path, detail=what, seq=one)
                if not lacking:
                    changed = seq == before + 1
                    yield place.told("record_changed", "was changed") if changed else place.told(*_MOVED)
            before = seq


class _Files:
    """The files with records, compared with what the log says."""

    def __init__(self, paths: Paths, records: Mapping[int, _Recorded]) -> None:
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
        try:
            nesting.refuse_nesting(line)
            record = _verification_decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield AuditProblem(code="record_changed", path=path, detail=f"{where} cannot be read: it was changed")
            return
        seq = record.seq
        known = self._records.get(seq)
        if known is None:
            yield _about(record, path, "record_unknown", f"{where} is not in the log")
        elif line != line_of(known.record):
            yield _about(known.record, path, "record_changed", f"{where} was changed")
        elif seq in self._found:
            yield _about(record, path, "record_repeated", f"{where} is there a second time")
        elif seq < self._highest or known.day != day:
            yield _about(record, path, _MOVED[0], f"{where} {_MOVED[1]}")
        self._found.add(seq)
        self._highest = max(self._highest, seq)

    def _lacking(self, files: Mapping[str, str], noted: int, expires: Expires) -> Iterator[AuditProblem]:
        lacking = [one for seq, one in self._records.items() if seq not in self._found and seq <= noted]
        over = expires(tuple(one.record for one in lacking))
        for one, gone in zip(lacking, over, strict=True):
            if not gone:
                path = self._paths.relative(files.get(one.day) or f"{self._paths.root}/logs")
                yield _about(one.record, path, "record_removed", f"the record of event {one.record.seq} was removed")


def _about(record: AuditRecord, path: str, code: str, what: str) -> AuditProblem:
    detail = f"{what}: {record.event_type} of handoff {record.handoff_id}, {record.from_agent} → {record.to_agent}"
    return AuditProblem(code=code, path=path, detail=detail, seq=record.seq, handoff_id=record.handoff_id)
