"""Are the audit records what was written? The log is compared with its own chain, the files with the log.

Each record that was changed, removed or put elsewhere is named. Changes nothing. Must not know how long records are
kept: it asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from aof._support import nesting
from aof._support.typed import prepare_type
from aof.core.errors.storage import LogDamaged
from aof.core.handoffs.audit import AuditRecord, audit_record, is_audited, line_of
from aof.ports.audit import AuditProblem, Expires, Verified
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.lane_names import day_of
from aof.stores.filesystem.log.layout import Layouts, PathSection
from aof.stores.filesystem.log.line_end import GENESIS

_MOST = 1_000  # problems that are told
_MOVED = ("record_reordered", "does not stand where it was written")
_decoder = msgspec.json.Decoder(prepare_type(AuditRecord))


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


def verify(paths: Paths, files: Mapping[str, str], noted: int, expires: Expires) -> Verified:
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
        event = chain.decode(line)
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
            record = _decoder.decode(line)
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
