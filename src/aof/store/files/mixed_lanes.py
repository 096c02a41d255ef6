"""Files of the log that git has mixed or dropped: each history gets a file of its own again.

A merge by git may put the lines of several chains into one file, and a rebase may drop a file that others build on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from aof.kernel.events import Event
from aof.store.files import git_files, integrity
from aof.store.files.disk import Disk, read
from aof.store.files.log import chain
from aof.store.files.log.chain import NOTHING_BEFORE, Header, LogPlace
from aof.store.files.log.layout import segments
from aof.store.files.log.reader import broken
from aof.store.files.paths import (
    GENESIS,
    LANE_SUFFIX,
    NAME_DIGITS,
    Paths,
    day_of,
    is_merge_lane,
    is_segment,
    lane_of,
    segment_of,
    tail_of,
)


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
