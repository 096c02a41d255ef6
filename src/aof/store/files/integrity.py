"""Whether the data directory is what was written: verifies the log from its first event on.

Decides what follows when git has replaced the log, and scans for task files that differ from the log.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator
from hashlib import sha256
from logging import Logger

from aof.errors import LineEndingsConverted, LogDamaged
from aof.kernel.events import Event
from aof.kernel.model import is_task_id, split_task_id
from aof.store.files import locks
from aof.store.files.disk import Disk, digest, read
from aof.store.files.log import chain
from aof.store.files.log.chain import read_header, refused_lane
from aof.store.files.log.layout import PathSection
from aof.store.files.log.reader import Reader
from aof.store.files.manifest import Manifest
from aof.store.files.paths import Paths, Position
from aof.store.fold import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.files.store import FilesystemStore
    from aof.tasks.model import Task


_CHUNK = 1 << 20
INTEGRITY_HINT = (
    "copy events/ aside, then restore it from a backup or version control, or run 'aof doctor'; nothing was changed"
)


class Proof:
    """How far the log holds: `end` of its last whole commit, `rest` bytes behind that, `known` if it has an event."""

    def __init__(self, known: Position | None = None) -> None:
        self.end = Position()
        self.rest = 0
        self.known = known is None or not known.seq
        self._known = known

    def section(self, paths: Paths, section: PathSection) -> None:
        """Verify the next part of the path; raises LogDamaged that names the first wrong event."""
        day = section.name
        if self.rest:
            raise wrong_event(self.end.segment, self.end.seq + 1, "is incomplete, and later files follow it")
        here = Position(day, section.begin, self.end.seq, self.end.digest)
        digest, offset = here.digest, section.begin
        if section.begin:
            self._header(paths, day)
        for line in _lines(paths.log(day), section):
            if not line.endswith(b"\n"):
                offset += len(line)
                break
            event = _proven(line, digest, here, day)
            digest, offset = event.hash, offset + len(line)
            if event.commit[0] == event.commit[1]:
                here = Position(day, offset, event.seq, digest)
                if self._known is not None and (offset, digest) == (self._known.offset, self._known.digest):
                    self.known = self.known or day == self._known.segment
        self.end, self.rest = here, offset - here.offset

    def _header(self, paths: Paths, segment: str) -> None:
        """A lane's header has to name the event that its first one builds on."""
        after = read_header(paths.log(segment), segment)[0].after
        if (after.hash, after.seq) != (self.end.digest, self.end.seq):
            raise refused_lane(segment, f"does not build on event {self.end.seq}, which comes before it")


def _proven(line: bytes, digest: str, before: Position, day: str) -> Event:
    try:
        event = chain.decode_event(line)
    except LogDamaged:
        raise wrong_event(day, before.seq + 1, "cannot be read") from None
    if not chain.proves(line, digest):
        raise wrong_event(day, event.seq, f"does not follow from event {before.seq}, or was changed")
    if event.seq <= before.seq:
        raise wrong_event(day, event.seq, f"has a number that is not greater than {before.seq}")
    return event


def prove(paths: Paths, path: Iterable[PathSection], known: Position | None = None) -> Proof:
    """Verify a path from the first event on."""
    proof = Proof(known)
    for section in path:
        proof.section(paths, section)
    return proof


def prove_last(paths: Paths, last: PathSection, before: tuple[int, str], known: Position | None) -> Proof:
    """Verify the last part only, where those before are as they were left; `before` is their last number and hash."""
    proof = Proof(known)
    proof.end = Position("", 0, *before)
    proof.section(paths, last)
    return proof


def wrong_event(day: str, seq: int, what: str) -> LogDamaged:
    """The first event that is wrong."""
    return LogDamaged(f"event {seq} in events/{day}.jsonl {what}", INTEGRITY_HINT, day=day, seq=seq)


def lost_event(known: Position) -> LogDamaged:
    """What was appended and is gone."""
    return LogDamaged(
        f"events/{known.segment}.jsonl lacks event {known.seq}, which was acknowledged: it was cut or changed",
        INTEGRITY_HINT,
        day=known.segment,
        seq=known.seq,
    )


def _lines(path: str, section: PathSection) -> Iterator[bytes]:
    """The lines of a part of a file; the last one may have no end."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        rest, offset = b"", section.begin
        while data := os.pread(fd, _CHUNK if section.end is None else min(_CHUNK, section.end - offset), offset):
            offset += len(data)
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            for line in lines:
                yield line + b"\n"
        if rest:
            yield rest
    finally:
        os.close(fd)


class ChainVerification:
    """The verification of one log. Safe for several threads."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._turn = threading.Lock()
        self._until = Position()

    def go_on(self, most: int | None) -> int:
        """Verify at most so many further events; the number of the last one that is proven. Raises LogDamaged."""
        with self._turn:
            if not self._reader.holds(self._until):
                self._until = Position()
            first = self._until.seq
            for here, _ in self._reader.proven(self._until):
                self._until = here
                if most is not None and here.seq - first >= most:
                    break
            return self._until.seq


def refuse_or_take_over(store: FilesystemStore, missing: Position) -> None:
    """The log lacks an event that was durable: damage, unless it was replaced together with the tasks."""
    lost = LogDamaged(
        f"the log lacks event {missing.seq}, which was durable",
        INTEGRITY_HINT,
        seq=missing.seq,
    )
    if not store.repairs:
        raise lost
    try:
        start_over(store)
    except LogDamaged as damage:
        raise lost from damage


def start_over(store: FilesystemStore) -> None:
    """The log is another one than before: heads and index follow it, if the tasks' files belong to it."""
    held = store.locks.acquire_all(locks.EVERY_STRIPE)
    try:
        store.log.refresh(sound=True)
        if store.reader.layout() is not None and store.merger.follow(held):
            return
        if not store.merger.is_pending():  # a rebase has brought a part of the log by now, and mixes the files
            newest = store.recovery.highest_rev()
            if newest > store.log.seq and store.reader.tips() == 1:
                raise _lacking(newest)
            if not store.log.seq:
                store.refuse_lost_log()
            refuse_alone(store)
        store.begin_anew(held)
        _log().warning(
            "the log was replaced as a whole, as by a switch of branches; it ends with event %d", store.log.seq
        )
    finally:
        store.locks.release(held)


def refuse_cut(store: FilesystemStore) -> None:
    """Raise LogDamaged where the log was cut while nobody knew its end, as after `locks/` was deleted too.

    Asked before the log's end is looked for: what was acknowledged must not be taken for what a dead writer left. Only
    the file of a task that the log knows is a proof; one of another birth is another history's, and bytes that another
    lane wrote are another clone's. While histories wait for their merge, git may have mixed the files of all.
    """
    if store.reader.tips() > 1:
        return
    last = store.reader.newest()
    later = [(task_id, rev) for task_id, rev in store.recovery.revs() if rev > last]
    known = fold(event for _, lines in store.reader.proven(Position()) for _, event in lines) if later else {}
    for task_id, rev in later:
        task = known[task_id].task if task_id in known else None
        folders = store.files.present(task_id) if task is not None else ()
        found = [_bytes(store.paths.task(one, task_id)) for one in folders]
        if task is not None and any(_is_of(task, data) and not store.files.lanes.wrote(digest(data)) for data in found):
            raise _lacking(rev)


def _is_of(task: Task, data: bytes) -> bool:
    """Whether the file was born as this task, in the form that AOF writes."""
    lines = data.split(b"\n")
    born = (f"createdAt: {json.dumps(task.created_at)}", f"createdBy: {json.dumps(task.created_by)}")
    return all(one.encode() in lines for one in born)


def _lacking(seq: int) -> LogDamaged:
    return LogDamaged(
        f"the log lacks event {seq}, which the file of a task was written by",
        "put the log and the tasks of one branch back, or run 'aof doctor'; nothing was changed",
        seq=seq,
    )


def refuse_alone(store: FilesystemStore) -> None:
    """Raise LogDamaged where the log was changed and the files were not: then it was cut or rewritten.

    Switching branches changes both. Where heads and log disagree about a task, its file must be the log's.
    """
    known, heads = (
        fold(event for _, lines in store.reader.proven(Position()) for _, event in lines),
        store.heads.table(),
    )
    told = False
    for task_id in sorted({*known, *heads}):
        one, head = known.get(task_id), heads.get(task_id)
        mark = next(iter(one.last_files.values()), "") if one is not None else ""
        if head is not None and mark.startswith(head.digest):
            continue
        found = [digest(_bytes(store.paths.task(folder, task_id))) for folder in store.files.present(task_id)]
        if mark in found or not (mark or found):
            told = True
        elif head is not None and any(one.startswith(head.digest) for one in found):
            raise _rewritten(f"{task_id} was last written by event {head.rev}, and its file agrees", head.rev)
    if not told:
        raise _rewritten("the tasks' files are those of the log before", store.log.seq)


def _rewritten(why: str, seq: int) -> LogDamaged:
    return LogDamaged(
        f"the log was cut or rewritten, and not replaced together with the tasks: {why}",
        INTEGRITY_HINT,
        seq=seq,
    )


def _bytes(path: str) -> bytes:
    try:
        return read(path) or b""
    except OSError:
        return b""


def _log() -> Logger:
    import logging  # only who finds another log has something to say

    return logging.getLogger(__name__)


_MOST_DAYS = 10_000
_SHOWN = 3
RESTORE_LINE_ENDINGS = (
    "nothing is lost: write '* -text' into .gitattributes of the data directory ('aof init' does it), then let git "
    "write its files again: 'git rm -rq --cached .aof' and 'git checkout HEAD -- .aof'; without git, remove each "
    "carriage return at the end of a line in events/*.jsonl"
)


def has_converted_line_endings(paths: Paths) -> list[str]:
    """The days whose log has converted line endings; an event never holds a carriage return as such."""
    try:
        names = sorted(name for name in os.listdir(paths.events) if name.endswith(".jsonl"))
    except OSError:
        return []
    return [name.removesuffix(".jsonl") for name in names[:_MOST_DAYS] if _has_crlf(f"{paths.events}/{name}")]


def explain_line_endings(paths: Paths, damage: LogDamaged) -> LogDamaged:
    """The damage, or LineEndingsConverted where that is its cause."""
    days = has_converted_line_endings(paths)
    if not days:
        return damage
    shown = ", ".join(days[:_SHOWN]) + (" and other days" if len(days) > _SHOWN else "")
    what = f"line endings were converted to CR LF in the log of {shown}; nothing was changed"
    return LineEndingsConverted(what, RESTORE_LINE_ENDINGS, day=days[0])


def _has_crlf(path: str) -> bool:
    try:
        return b"\r\n" in (read(path) or b"")
    except OSError:
        return False


VERSION_WITH_LANES = 2
_LINE = re.compile(rb"^schemaVersion[ \t]*=[ \t]*([0-9]+)", re.MULTILINE)
_TABLE = re.compile(rb"^[ \t]*\[", re.MULTILINE)


def require_lanes(paths: Paths, disk: Disk) -> None:
    """Before the first lane is there: let older versions refuse the data directory. Raises OSError."""
    path = f"{paths.root}/aof.toml"
    before = read(path)
    after = with_raised_version(before or b"")
    if after == before:
        return
    temporary = paths.temporary_file("aof.toml")
    disk.write_durable(temporary, after)
    (disk.rename if before is None else disk.replace)(temporary, path)
    disk.sync_dir(paths.root)


def with_raised_version(text: bytes) -> bytes:
    """The file with a version that knows lanes; a higher one stays."""
    first = _TABLE.search(text)
    top = first.start() if first is not None else len(text)
    found = _LINE.search(text, 0, top)
    if found is None:
        return b"schemaVersion = %d\n" % VERSION_WITH_LANES + text
    if int(found[1]) >= VERSION_WITH_LANES:
        return text
    return text[: found.start(1)] + b"%d" % VERSION_WITH_LANES + text[found.end(1) :]


class Scan:
    """What was found, in the order of IDs.

    `changed` are tasks whose file is changed, moved, doubled, missing, new or not known; `places` is where each task
    has a file; `nameless` are Markdown files without an ID as name; `others` is whatever else lies there; `newest` is
    the highest number of an event that surely was committed.
    """

    __slots__ = ("changed", "digests", "nameless", "newest", "others", "places")

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.digests: dict[str, str] = {}
        self.nameless: list[str] = []
        self.newest = 0
        self.others: list[str] = []
        self.places: dict[str, list[str]] = {}


def scan(paths: Paths, heads: Manifest) -> Scan:
    """Compare every file with the head of its task: 100,000 files in seconds."""
    found = Scan()
    known = heads.table()
    found.newest = max((head.rev for head in known.values()), default=0)
    odd: set[str] = set()
    for folder, path in paths.folders:
        for entry in os.scandir(path):
            name = entry.name
            task_id = name[:-3]
            if not name.endswith(".md") or not is_task_id(task_id):
                (found.nameless if _could_be_new(entry) else found.others).append(entry.path)
                continue
            found.places.setdefault(task_id, []).append(folder)
            digest = found.digests[task_id] = _digest(path + name)
            head = known.get(task_id)
            if head is None or head.folder != folder or not digest.startswith(head.digest) or not digest:
                odd.add(task_id)
    odd |= {task_id for task_id, places in found.places.items() if len(places) > 1}
    odd |= known.keys() - found.places.keys()
    found.changed = sorted(odd, key=split_task_id)
    found.nameless.sort()
    found.others.sort()
    return found


def _digest(path: str) -> str:
    try:
        data = read(path)
    except OSError:
        return ""
    return "" if data is None else sha256(data).hexdigest()


def _could_be_new(entry: os.DirEntry[str]) -> bool:
    """A person's Markdown file: not hidden, no editor's, and no README that describes the folder."""
    name = entry.name
    if not name.endswith(".md") or name.startswith((".", "#", "~")) or name.lower() == "readme.md":
        return False
    return entry.is_file(follow_symlinks=False)
