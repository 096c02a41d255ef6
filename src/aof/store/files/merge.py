"""Brings the histories of several clones together.

Reads and proves all lanes, lets the rules merge them, writes the merge lane, and lets files and caches follow. Where a
merge by git has put the lines of several chains into one file, or a rebase has dropped a file that others build on,
each history gets a file of its own again first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from aof.errors import AofError, LogDamaged, MergePending
from aof.kernel.events import Event
from aof.merge.commits import Lanes, repeated
from aof.merge.history import merge
from aof.merge.model import RULE, Commit, Lane, Merged, Report
from aof.store.files import git_files, integrity, locks, markdown
from aof.store.files.changes import examine
from aof.store.files.disk import Disk, digest, read
from aof.store.files.integrity import scan
from aof.store.files.locks import HeldLock
from aof.store.files.log import chain
from aof.store.files.log.chain import NOTHING_BEFORE, Header, LogPlace, MergedHeads
from aof.store.files.log.layout import Layout, PathSection, Segment, last_before, segments
from aof.store.files.log.reader import Reader, broken
from aof.store.files.manifest import Head
from aof.store.files.paths import (
    GENESIS,
    HASH_MARK,
    LANE_SUFFIX,
    MERGED,
    NAME_DIGITS,
    TAIL_BYTES,
    Paths,
    Position,
    day_of,
    folder_of,
    is_merge_lane,
    is_segment,
    lane_of,
    segment_of,
    tail_of,
)
from aof.store.fold import Folded, fold
from aof.store.port import HashedEvent
from aof.support.hashing import hexdigest
from aof.support.typed import uncollected
from aof.tasks.model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.files.store import FilesystemStore


_DAY = len("2026-01-01")


class Merger:
    """Merges the lanes of one data directory."""

    def __init__(self, store: FilesystemStore) -> None:
        self._store = store

    def before_a_write(self) -> None:
        """Merge where git is idle, so that nobody's files change below it; raises MergePending."""
        going_on = git_files.in_progress(self._store.paths.root)
        if going_on is not None:
            raise _pending(going_on)
        self.merge(dry_run=False)

    def merge(self, *, dry_run: bool) -> Report | None:
        """Make one history of several; None where there is only one. With a dry run nothing is written."""
        store = self._store
        if git_files.is_running(store.paths.root):
            raise _pending(git_files.GIT_RUNNING)
        held = store.stripes.take_all()
        try:
            self._refresh(dry_run=dry_run)
            layout = store.reader.layout()
            if layout is None or len(layout.tips) == 1:
                if layout is not None and not dry_run:
                    if store.log.replaced:  # who has merged may have died before the files followed
                        self.follow(held)
                    tidy_files(store)
                return None
            with uncollected():
                found = read_lanes(layout)
                tips = [last_before(store.paths, layout.path(tip))[1] for tip in layout.tips]
                merged = merge(found.lanes, tips)
                segment, data = sealed_lane(merged, found.places, store.paths)
            if not dry_run:
                store.log.add_lane(segment, data)
                follow_tip(store, held)
            return merged.report
        finally:
            store.locks.release(held)

    def _refresh(self, *, dry_run: bool) -> None:
        try:
            self._store.log.refresh(sound=True)
        except LogDamaged:
            if dry_run or not self.take_apart():
                raise
            self._store.log.refresh(sound=True)

    def take_apart(self) -> bool:
        """Give each history a file of its own where one file holds several; whether that was so. Raises LogDamaged.

        The caller may hold stripes, but not the log.
        """
        with self._store.log.exclusively():
            return take_apart(self._store.paths, self._store.disk)

    def untangle(self) -> bool:
        """Take apart mixed files of the log in the course of another call: only where git is idle, and without errors.

        What a rebase has dropped comes back also while it goes on, for `aof merge` could not go on otherwise.
        """
        root = self._store.paths.root
        if not self._store.repairs or git_files.is_running(root):
            return False
        try:
            with self._store.log.exclusively():
                if restore_dropped_lanes(self._store.paths, self._store.disk):
                    return True
            return git_files.in_progress(root) is None and self.take_apart()
        except LogDamaged:
            return False

    def is_pending(self) -> bool:
        """Whether git is in the middle of bringing several histories together."""
        return self._store.reader.tips() > 1 and git_files.in_progress(self._store.paths.root) is not None

    def follow(self, held: list[HeldLock]) -> bool:
        """Let everything follow where another process or clone has merged; False where something was lost instead.

        The caller holds every stripe.
        """
        if not nothing_is_lost(self._store, held):
            return False
        follow_tip(self._store, held)
        return True


def _pending(why: str) -> MergePending:
    hint = "run 'aof merge', then 'git add -A .aof', and let git go on: 'git commit', or 'git rebase --continue'"
    if why == git_files.GIT_RUNNING:
        hint = "wait until it has ended (if it has died, remove .git/index.lock), then run 'aof merge'"
    return MergePending(f"other clones' work has come in and is not merged yet, and {why}; nothing was changed", hint)


def nothing_is_lost(store: FilesystemStore, held: list[HeldLock]) -> bool:
    """Whether the log leads on from all that was written here, perhaps over a merge. The caller holds every stripe."""
    known = locks.load_checkpoint(store.paths)
    # Where the log stood after the last append, when all was synced, and after the last write under each stripe.
    stood = (store.log.left(), known.position if known is not None else None, *map(store.intents.last, held))
    return all(store.reader.has_seen(position) for position in stood if position is not None)


def follow_tip(store: FilesystemStore, held: list[HeldLock]) -> None:
    """A merge leads elsewhere, and nothing is lost: the files of the tasks that it changed follow it.

    The caller holds every stripe. A person's edit that waits stays where it is. Can be done again wherever it stops.
    """
    store.log.refresh(sound=True)
    known = fold(event for _, lines in store.reader.proven(Position()) for _, event in lines)
    heads = store.heads.table()
    behind = [task_id for task_id, one in known.items() if not _is_head(one, heads.get(task_id))]
    try:
        store.histories.announce(behind, store.log.position)
        for task_id in behind:
            found = examine(store.paths, store.files, store.histories.announced(task_id), task_id)
            store.redo.merged(known[task_id], ours=found.edit is None and found.problem is None)
    finally:
        store.histories.announce((), Position())
    store.counter.forget()  # other clones' numbers are taken now
    store.begin_anew(held)


def tidy_files(store: FilesystemStore) -> None:
    """Another clone has merged, and git could not merge the files: those that no person has changed follow the log.

    The caller holds every stripe.
    """
    known = fold(event for _, lines in store.reader.proven(Position()) for _, event in lines)
    missing = [task_id for task_id, one in known.items() if one.task is not None and not store.files.present(task_id)]
    odd = list(dict.fromkeys((*scan(store.paths, store.heads).changed, *missing)))  # a cherry-pick brings some files
    try:
        store.histories.announce(odd, store.log.position)
        for task_id in odd:
            found = examine(store.paths, store.files, store.histories.announced(task_id), task_id)
            if found.folded.task is not None and found.edit is None and found.problem is None:
                store.redo.merged(found.folded, ours=True)
    finally:
        store.histories.announce((), Position())


def _is_head(one: Folded, head: Head | None) -> bool:
    mark = next(iter(one.last_files.values()), "")
    return head is not None and one.task is not None and head.rev == one.task.rev and mark.startswith(head.digest)


class LaneCommits(NamedTuple):
    """The lanes, and by the hash of each commit's last event the place where it ends."""

    lanes: list[Lane]
    places: dict[str, LogPlace]


def read_lanes(layout: Layout) -> LaneCommits:
    """Everything that any clone has written; raises LogDamaged where a line does not follow from the one before."""
    places: dict[str, LogPlace] = {}
    by_lane: dict[str, list[Segment]] = {}
    for name in sorted(layout.segments):
        by_lane.setdefault(lane_of(name), []).append(layout.segments[name])
    found = [_lane(name, files, places) for name, files in by_lane.items() if not name.startswith(MERGED)]
    for name, files in by_lane.items():
        if name.startswith(MERGED):  # what lies inside of one is built on by nobody
            inside: dict[str, LogPlace] = {}
            found.append(_lane(name, files, inside))
            places |= dict(list(inside.items())[-1:])
    return LaneCommits(found, places)


def _lane(name: str, files: list[Segment], places: dict[str, LogPlace]) -> Lane:
    first = files[0].header
    after = GENESIS if first is None else first.after.hash
    merge = first.merge if first is not None else None
    commits: list[Commit] = []
    digest = after
    for file in files:
        if file.header is not None and file.header.after.hash != digest:
            raise chain.refused_lane(file.name, "does not go on where the lane's file of the day before ends")
        for commit, place in _commits(file, digest):
            commits.append(commit)
            digest = place.hash
            places[digest] = place
    heads = tuple(head.hash for head in merge.heads) if merge is not None else ()
    return Lane(name, after, commits, heads, merge.rule if merge is not None else 0)


def _commits(file: Segment, digest: str) -> Iterator[tuple[Commit, LogPlace]]:
    """The whole commits of a file; what a dead writer left behind them is not there yet."""
    data = read(file.path, limit=None) or b""
    offset, events = file.begin, list[Event]()
    while end := data.find(b"\n", offset) + 1:
        line = data[offset:end]
        if not chain.proves(line, digest):
            raise broken(file.name)
        event = chain.decode_event(line)
        digest, offset = event.hash, end
        events.append(event)
        if event.commit[0] == event.commit[1]:
            yield Commit(tuple(events)), LogPlace(f"{file.name}{LANE_SUFFIX}", offset, digest, event.seq)
            events = []


def lane_name(after: str, heads: tuple[str, ...], rule: int) -> str:
    """The name of a merge lane: the same for the same fork, heads and rules."""
    return MERGED + hexdigest("\n".join((after, *sorted(heads), f"{rule}")).encode())[:NAME_DIGITS]


def sealed_lane(merged: Merged, places: dict[str, LogPlace], paths: Paths) -> tuple[str, bytes]:
    """The lane of a merge: the name of its file, which is of the day of its last event, and its bytes."""
    name = lane_name(merged.after, merged.heads, merged.rule)
    after = NOTHING_BEFORE if merged.after == GENESIS else places[merged.after]
    heads = tuple(msgspec.structs.replace(places[head], seq=0) for head in merged.heads)
    parts = [Header(name, after, MergedHeads(merged.rule, heads)).line()]
    closing = {(one.commit, one.event): one.task for one in merged.closings}
    previous, day = merged.after, ""
    for number, events in enumerate(merged.commits):
        for place, event in enumerate(events):
            task = closing.get((number, place))
            line, previous = chain.seal(event if task is None else _closed(event, task, paths), previous)
            parts.append(line)
            day = max(day, event.timestamp[:_DAY])
    return segment_of(day, name), b"".join(parts)


def _closed(event: Event, task: Task, paths: Paths) -> Event:
    """The last event of a task says what its file is."""
    layout = markdown.layout_after(task)
    if layout is None and task.layout is not None:
        layout = ""  # canonical again
    path = paths.relative(paths.task(folder_of(task), task.id))
    return msgspec.structs.replace(event, files={path: digest(markdown.render(task))}, layout=layout)


def prove_lanes(paths: Paths, layout: Layout) -> None:
    """Raise LogDamaged where a line or a header is not what its clone, or a merge, has written."""
    with uncollected():
        found = read_lanes(layout)
        by_name = {lane.name: lane for lane in found.lanes}
        for segment in layout.segments.values():
            if segment.header is not None:
                _prove_header(segment, segment.header, found)
                if segment.header.merge is not None:
                    _prove_merge(paths, segment, by_name[segment.header.lane], found)


def _prove_header(segment: Segment, header: Header, found: LaneCommits) -> None:
    if header.after.hash != GENESIS and found.places.get(header.after.hash) != header.after:
        raise chain.refused_lane(segment.name, "does not build on the commit that its header names")
    if not (read(segment.path, limit=None) or b"").startswith(header.line()):
        raise chain.refused_lane(segment.name, "has a header that AOF has not written so")


def _prove_merge(paths: Paths, segment: Segment, lane: Lane, found: LaneCommits) -> None:
    if lane_name(lane.after, lane.heads, lane.rule) != lane.name:
        raise chain.refused_lane(segment.name, "has the name of another merge: its header was changed")
    if lane.rule != RULE:
        return  # made by other rules than this version's; its lines and its name hold
    try:
        again = sealed_lane(merge(found.lanes, lane.heads), found.places, paths)
    except (AofError, KeyError) as error:
        raise chain.refused_lane(segment.name, f"cannot be made of the lanes that it names: {error}") from None
    if again != (segment.name, read(segment.path, limit=None)):
        raise chain.refused_lane(segment.name, "is not what comes of merging the lanes that it names")


def events_by_hash(reader: Reader, beginning: str) -> tuple[HashedEvent, ...]:
    """The events whose hashes begin so; those of the path come first."""
    path = reader.path()
    found = {
        event_hash: HashedEvent(event_hash, chain.decode_event(line).seq, f"{section.name}{LANE_SUFFIX}")
        for section in path
        for event_hash, line in _matching(reader, section, beginning)
    }
    layout = reader.layout()
    if layout is None:
        return tuple(found.values())
    beside = {
        event_hash: f"{name}{LANE_SUFFIX}"
        for name, segment in layout.segments.items()
        for event_hash, _ in _matching(reader, PathSection(name, segment.begin), beginning)
        if event_hash not in found
    }
    numbers = _numbers_on(path, layout) if beside else {}
    return (*found.values(), *(HashedEvent(one, numbers.get(one), file) for one, file in beside.items()))


def _matching(reader: Reader, section: PathSection, beginning: str) -> Iterator[tuple[str, bytes]]:
    mark = HASH_MARK + beginning.encode()
    for line in reader.lines(section):
        if line.startswith(mark, len(line) - TAIL_BYTES):
            yield chain.digest_of(line), line


def _numbers_on(path: tuple[PathSection, ...], layout: Layout) -> dict[str, int]:
    """The numbers of events on the path, by the hashes of the events beside it that they repeat."""
    passed = {lane_of(section.name) for section in path}
    numbers: dict[str, int] = {}
    replaced: dict[str, str] = {}  # what a merge beside the path repeats, which is an original of another one, too
    with uncollected():
        found = [lane for lane in read_lanes(layout).lanes if lane.commits]
        lanes = Lanes(found)
        for lane in found:
            if not lane.heads or lane.rule != RULE:
                continue
            for original, event in repeated(lanes, lane):
                if lane.name in passed:
                    numbers[original.hash] = event.seq
                else:
                    replaced[event.hash] = original.hash
    return numbers | {one: numbers[first] for one, first in replaced.items() if first in numbers}


def take_apart(paths: Paths, disk: Disk) -> bool:
    """Make one chain of every file, where one has several. Whether anything had to be; raises LogDamaged."""
    files = _LogFiles(paths)
    begun = os.path.lexists(paths.apart)
    if not files.mixed and not begun:
        return False
    for name in files.mixed:
        files.split(name)
    files.point_headers()
    if not begun and not files.forked:
        return False
    if not begun:  # who dies may leave headers that name a place where their line no longer is
        disk.write_durable(paths.apart, b"")
        disk.sync_dir(paths.locks)
    _write(paths, disk, files)
    disk.unlink(paths.apart)
    return True


def _write(paths: Paths, disk: Disk, files: _LogFiles) -> None:
    """New lanes first, then those whose headers change, then the files that lines are taken from."""
    ordered = sorted(files.all.values(), key=lambda one: (one.before is not None, one.name in files.mixed, one.name))
    changed = [(one.name, data) for one in ordered if (data := one.data()) != one.before]
    if any(lane_of(name) for name, _ in changed):
        integrity.require_lanes(paths, disk)
    for name, data in changed:
        temporary = paths.temporary_file(f"{name}{LANE_SUFFIX}")
        disk.write_durable(temporary, data)
        disk.rename(temporary, paths.log(name))
        disk.sync_dir(paths.events)


def restore_dropped_lanes(paths: Paths, disk: Disk) -> bool:
    """Bring back every lane that a header names; whether that is all of them. Otherwise nothing is changed."""
    here = {name: read(paths.log(name), limit=None) or b"" for name in segments(paths)}
    found: dict[str, bytes] = {}
    waiting = list(here)
    while waiting:
        name = waiting.pop()
        for place in _builds_on(name, found.get(name, here.get(name, b""))):
            if _has(found.get(place.segment, here.get(place.segment, b"")), place):
                continue
            data = git_files.version_before_rebase(paths.log(place.segment)) if is_segment(place.segment) else None
            if data is None or not _has(data, place) or not data.startswith(here.get(place.segment, b"")):
                return False
            found[place.segment] = data
            waiting.append(place.segment)
    for name, data in found.items():
        temporary = paths.temporary_file(f"{name}{LANE_SUFFIX}")
        disk.write_durable(temporary, data)
        disk.rename(temporary, paths.log(name))
    if found:
        disk.sync_dir(paths.events)
    return bool(found)


def _builds_on(name: str, data: bytes) -> Iterator[LogPlace]:
    if lane_of(name):
        header = chain.parsed_header(data.partition(b"\n")[0], name)
        heads = header.merge.heads if header.merge is not None else ()
        yield from (place for place in (header.after, *heads) if place.hash != GENESIS)


def _has(data: bytes, place: LogPlace) -> bool:
    return data[: place.offset].endswith(tail_of(place.hash)) and len(data) >= place.offset


class _ProvenLine(NamedTuple):
    """A line of the log, its event, and the hash that it builds on."""

    text: bytes
    event: Event
    previous: str


class _LaneFile:
    """A file as it is to be: its header if it has one, and the lines of one chain."""

    def __init__(self, name: str, header: Header | None, before: bytes | None) -> None:
        self.name = name
        self.header = header
        self.before = before
        self.lines: list[_ProvenLine] = []
        self.tail = b""

    @property
    def start(self) -> str | None:
        """The hash that its first line builds on, where a header says so."""
        return self.header.after.hash if self.header is not None else None

    def data(self) -> bytes:
        """Its bytes."""
        return b"".join([self.header.line() if self.header else b"", *(line.text for line in self.lines), self.tail])


class _LogFiles:
    """All files of a log, and which of them hold more than one chain."""

    def __init__(self, paths: Paths) -> None:
        self.all: dict[str, _LaneFile] = {}
        self.mixed: list[str] = []
        self.forked = False
        self._by_seq: dict[int, list[str]] = {}
        self._homes: dict[str, _LaneFile] = {}
        self._texts: dict[str, list[bytes]] = {}
        previous = GENESIS
        for name in sorted(segments(paths), key=lambda name: (bool(lane_of(name)), name)):
            data = read(paths.log(name), limit=None) or b""
            header, begin = chain.read_header(paths.log(name), name) if lane_of(name) else (None, 0)
            file = self.all[name] = _LaneFile(name, header, data)
            self._texts[name] = data[begin:].splitlines(keepends=True)
            last = self._in_order(file, header.after.hash if header is not None else previous)
            previous = last if header is None else previous

    def _in_order(self, file: _LaneFile, digest: str) -> str:
        """Take in a file whose lines follow each other; any other one is mixed. The hash at its end."""
        for text in self._texts[file.name]:
            if not text.endswith(b"\n"):  # a dead writer's: it is cut before anything is appended
                file.tail = text
                break
            if not chain.proves(text, digest):
                self.mixed.append(file.name)
                file.lines = []
                return digest
            file.lines.append(_ProvenLine(text, chain.decode_event(text), digest))
            digest = chain.digest_of(text)
        for line in file.lines:
            self._place(line, file)
        return digest

    def _place(self, line: _ProvenLine, file: _LaneFile) -> None:
        self._homes[line.event.hash] = file
        self._by_seq.setdefault(line.event.seq, []).append(line.event.hash)

    def split(self, name: str) -> None:
        """Give each chain of a file a file of its own."""
        file = self.all[name]
        texts: dict[str, bytes] = {}
        events: list[Event] = []
        for text in self._texts[name]:
            event = chain.decode_event(text)
            if chain.digest_of(text) != event.hash:
                raise broken(name)
            if event.hash not in self._homes and event.hash not in texts:
                events.append(event)
            texts[event.hash] = text
        waiting = sorted(events, key=lambda event: (event.seq, event.timestamp, event.hash))
        self.forked |= len(events) < len(texts)  # who died has moved the others
        stays, places = self._stays(file), {digest: place for place, digest in enumerate(texts)}
        reached: dict[str, int] = {}
        for event in waiting:
            previous = self._previous(texts[event.hash], event.seq, name)
            home = self._home(file, previous, event, stays)
            if reached.get(home.name, -1) > places[event.hash]:
                raise broken(name)
            reached[home.name] = places[event.hash]
            self.forked |= home is not file
            home.lines.append(_ProvenLine(texts[event.hash], event, previous))
            self._place(home.lines[-1], home)
            if home is file:
                stays = event.hash
        for one in self.all.values():
            if one.lines and one.lines[-1].event.commit[0] != one.lines[-1].event.commit[1] and not one.tail:
                raise broken(name)

    def _stays(self, file: _LaneFile) -> str:
        """The hash that the file goes on from: its header says so, or the root lane's day before."""
        if file.start is not None:
            return file.start
        days = [one for one in sorted(self.all) if not lane_of(one) and one < file.name and self.all[one].lines]
        return self.all[days[-1]].lines[-1].event.hash if days else GENESIS

    def _previous(self, text: bytes, seq: int, name: str) -> str:
        """The one line that this one follows from."""
        near = self._by_seq.get(seq - 1, [])
        for before in (*near, GENESIS):
            if chain.proves(text, before):
                return before
        for before, home in self._homes.items():  # numbers may leave a gap
            if home.lines and chain.proves(text, before):
                return before
        raise broken(name)

    def _home(self, file: _LaneFile, previous: str, event: Event, stays: str) -> _LaneFile:
        """The file that a line belongs in: where the one before is the last, or a lane that begins here."""
        if previous == stays:
            return file
        before = self._homes.get(previous)
        goes_on = before is not None and before is not file and not is_merge_lane(before.name)
        if before is not None and goes_on and before.lines[-1].event.hash == previous:
            if day_of(before.name) == day_of(file.name) and lane_of(before.name):
                return before
            lane = lane_of(before.name)
        else:
            lane = ""
        after = LogPlace("", 0, previous) if previous != GENESIS else NOTHING_BEFORE
        name = segment_of(day_of(file.name), lane or event.hash[:NAME_DIGITS])
        return self.all.setdefault(name, _LaneFile(name, Header(lane_of(name), after), None))

    def point_headers(self) -> None:
        """Let each header name the place where the line that it builds on lies now."""
        done: dict[str, LogPlace] = {}
        for file in self._parents_first():
            if file.header is not None:
                merge = file.header.merge
                heads = (
                    tuple(msgspec.structs.replace(done[one.hash], seq=0) for one in merge.heads)
                    if merge is not None
                    else ()
                )
                after = NOTHING_BEFORE if file.header.after.hash == GENESIS else done[file.header.after.hash]
                file.header = Header(
                    file.header.lane, after, None if merge is None else msgspec.structs.replace(merge, heads=heads)
                )
            offset = len(file.header.line()) if file.header is not None else 0
            for line in file.lines:
                offset += len(line.text)
                done[line.event.hash] = LogPlace(f"{file.name}{LANE_SUFFIX}", offset, line.event.hash, line.event.seq)

    def _parents_first(self) -> Iterable[_LaneFile]:
        """Each file after those that it builds on; raises LogDamaged where one builds on what is not there."""
        ordered: dict[str, _LaneFile] = {}
        waiting = list(self.all.values())
        while waiting:
            ready = [one for one in waiting if all(home.name in ordered for home in self._parents(one))]
            if not ready:
                raise chain.refused_lane(waiting[0].name, "builds on itself")
            ordered |= {one.name: one for one in ready}
            waiting = [one for one in waiting if one.name not in ordered]
        return ordered.values()

    def _parents(self, file: _LaneFile) -> list[_LaneFile]:
        if file.header is None:
            return []
        merge = file.header.merge
        hashes = [file.header.after.hash, *(one.hash for one in (merge.heads if merge is not None else ()))]
        missing = [one for one in hashes if one != GENESIS and one not in self._homes]
        if missing:
            raise chain.refused_lane(file.name, "builds on an event that is not there: it may be of another repository")
        return [self._homes[one] for one in hashes if one != GENESIS]
