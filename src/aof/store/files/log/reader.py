"""Reading the log: events from any number on, of one task or of some types, and the whole chain verified.

Never changes anything. Must not know what the events are read for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from aof.errors import LogDamaged
from aof.store.files.log import chain
from aof.store.files.log.layout import Layout, Layouts, PathSection, last_before
from aof.store.files.paths import GENESIS, LANE_SUFFIX, TAIL_BYTES, Bookmarks, Paths, Position, day_of, tail_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.events import Event
    from aof.store.port import Clock

_CHUNK = 1 << 20
_TASK = b'"taskId":"'
_SEQ = b'{"seq":'
_TALK = (b',"type":"protocol.', b',"type":"delegation.', b',"type":"document.')
_TYPE = b',"type":"'
_SHORTEST_WAIT, _LONGEST_WAIT = 0.005, 0.05  # seconds: a look costs 15 µs, and a page should show a change at once


class Reader:
    """A view of the log's files."""

    def __init__(self, paths: Paths, *, durable: bool, flush: Callable[[int], None] = os.fdatasync) -> None:
        self._paths = paths
        self._durable = durable
        self._flush = flush
        self.layouts = Layouts(paths)
        self._bookmarks = Bookmarks()
        self._durable_as: tuple[int, int, int] | None = None  # what the file looked like that was flushed last

    def path(self) -> tuple[PathSection, ...]:
        """The parts of the log's files from its root to its tip."""
        return self.layouts.path()

    def _file(self, section: PathSection) -> str:
        return f"{self._paths.events}/{section.name}{LANE_SUFFIX}"

    def layout(self) -> Layout | None:
        """How the files hang together where there are lanes; None with the root lane alone."""
        return self.layouts.layout()

    def tips(self) -> int:
        """How many ends the log has; more than one where clones have worked and nobody has merged them yet."""
        return self.layouts.tips()

    def has_seen(self, position: Position) -> bool:
        """Whether nothing up to a position is lost: it is on the path, or a merge on the path brought it in."""
        if self.holds(position):
            return True
        layout = self.layouts.layout()
        if layout is None:
            return False
        place: chain.LogPlace | None = chain.LogPlace(
            f"{position.segment}{LANE_SUFFIX}", position.offset, position.digest
        )
        if place is not None and not layout.has(place):
            place = layout.find(position.digest)
        if place is None:
            return False
        tip = self.path()[-1].name
        known = layout.vector(tip, layout.segments[tip].end())
        seen = layout.vector(place.segment, place.offset)
        return all(known.get(at, -1) >= upto for at, upto in seen.items())

    def sections(self, start: Position) -> Iterator[tuple[PathSection, int]]:
        """The parts of the path from a position on, each with the offset to begin at."""
        path = self.path()
        at = next((at for at, section in enumerate(path) if section.name == start.segment), None)
        if at is None:
            yield from ((section, section.begin) for section in path if section.name > start.segment)
            return
        yield path[at], max(start.offset, path[at].begin)
        yield from ((section, section.begin) for section in path[at + 1 :])

    def commits(self, start: Position) -> Iterator[tuple[Position, list[tuple[bytes, Event]]]]:
        """Whole commits from a position on, each with the position behind it and its lines."""
        for section, begin in self.sections(start):
            lines: list[tuple[bytes, Event]] = []
            offset = begin
            for line in self.lines(section, begin):
                offset += len(line)
                event = chain.decode_event(line)
                lines.append((line, event))
                if event.commit[0] == event.commit[1]:
                    yield Position(section.name, offset, event.seq, event.hash), lines
                    lines = []

    def events(self, after: int = 0) -> Iterator[Event]:
        """Events with a greater number. What was read before that number is not read again."""
        before = here = self._start(after)
        try:
            for behind, lines in self.commits(here):
                for _, event in lines:
                    if event.seq > after:
                        yield event
                before, here = here, behind
        finally:
            for place in (before, here):  # a reader that goes on looks at the last event again, to know the log by it
                if place.offset:
                    self._bookmarks.put(place)

    def _start(self, after: int) -> Position:
        known = self._bookmarks.before(after) if after else None
        if known is None:
            return Position(self._segment_before(after))
        if self.holds(known):
            return known
        self._bookmarks.drop(known)
        return self._start(after)

    def proven(self, start: Position) -> Iterator[tuple[Position, list[tuple[bytes, Event]]]]:
        """Like `commits`, and raises LogDamaged where the chain does not hold."""
        digest = start.digest
        for behind, lines in self.commits(start):
            last = chain.follows(digest, [line for line, _ in lines])
            if last is None:
                raise broken(behind.segment)
            digest = last
            yield behind, lines

    def of_tasks(self, wanted: Collection[str], start: Position | None = None) -> Iterator[Event]:
        """The events of some tasks only; the other lines are passed over without being decoded."""
        names = frozenset(task_id.encode() for task_id in wanted)
        for section, offset in self.sections(start or Position()):
            for line in self.lines(section, offset):
                at = line.find(_TASK) + len(_TASK)
                if line[at : line.find(b'"', at)] in names:
                    yield chain.decode_event(line)

    def holding(self, text: bytes, until: int) -> Iterator[tuple[str, Event]]:
        """The events up to a number whose lines hold the text, each with its day; no other line is decoded."""
        for section in self.path():
            for line in self.lines(section):
                if text in line:
                    event = chain.decode_event(line)
                    if event.seq > until:
                        return
                    yield day_of(section.name), event

    def unseen(self, start: Position, seen: Mapping[str, int]) -> tuple[Position, list[Event]]:
        """Where the log ends, and the events behind a position that are newer than what was seen of their task.

        The chain has to hold: a log that was mixed from two is not a base for any answer.
        """
        here, fresh, digest = start, [], start.digest
        for section, begin in self.sections(start):
            offset, last = begin, b""
            for last in self.lines(section, begin):
                if not chain.proves(last, digest):
                    raise broken(section.name)
                offset, digest = offset + len(last), chain.digest_of(last)
                at = last.find(_TASK) + len(_TASK)
                task_id = last[at : last.find(b'"', at)].decode()
                if int(last[len(_SEQ) : last.find(b",", len(_SEQ))]) > seen.get(task_id, 0):
                    fresh.append(chain.decode_event(last))
            if last:
                event = chain.decode_event(last)
                here = Position(section.name, offset, event.seq, event.hash)
        return here, fresh

    def ids(self) -> Iterator[str]:
        """The tasks that were ever created, each as often as it has events.

        What a message says of a task proves nothing, for the message may name one that never was.
        """
        for section in self.path():
            for line in self.lines(section):
                if line.startswith(_TALK, line.find(b",")):
                    continue
                at = line.find(_TASK) + len(_TASK)
                yield line[at : line.find(b'"', at)].decode()

    def holds(self, position: Position) -> bool:
        """Whether the path of the log still has the event that the position stands behind."""
        path = self.path()
        at = next((at for at, section in enumerate(path) if section.name == position.segment), None)
        section = PathSection(position.segment) if at is None else path[at]
        if position.offset <= section.begin:
            before = [one for one in path if one.name < position.segment] if at is None else path[:at]
            return position.digest in (GENESIS, last_before(self._paths, before)[1])
        begin = position.offset - TAIL_BYTES
        if at is None or begin < section.begin or position.offset > (section.end or position.offset):
            return False
        try:
            fd = os.open(self._file(section), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return os.pread(fd, TAIL_BYTES, begin) == tail_of(position.digest)
        finally:
            os.close(fd)

    def end(self) -> tuple[str, int]:
        """The last segment that anything was written to, and the size of its file: changes with everything appended."""
        for section in reversed(self.path()):
            size = os.stat(self._file(section)).st_size if section.end is None else section.end
            if size > section.begin:
                return section.name, size
        return "", 0

    def newest(self) -> int:
        """The number of the last whole commit's last event, found from behind."""
        return last_before(self._paths, self.path())[0]

    def _segment_before(self, after: int) -> str:
        """The last segment whose first event is not beyond the number."""
        best = ""
        if not after:
            return best
        for section in self.path():
            first = next(self.lines(section), None)
            if first is None:
                continue
            if chain.decode_event(first).seq > after + 1:
                break
            best = section.name
        return best

    def lines(self, section: PathSection, offset: int | None = None) -> Iterator[bytes]:
        """The lines of whole commits, flushed before they are handed out."""
        offset = section.begin if offset is None else offset
        fd = os.open(self._file(section), os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = chain.last_commit(fd, section.begin)[0] if section.end is None else section.end
            if self._durable and size > offset:
                self._make_durable(fd)
            rest = b""
            while offset < size:
                data = os.pread(fd, min(_CHUNK, size - offset), offset)
                if not data:
                    return
                offset += len(data)
                lines = (rest + data).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    yield line + b"\n"
        finally:
            os.close(fd)

    def last(self, section: PathSection) -> tuple[int, Event | None]:
        """Where the last whole commit of a part ends, and its last event, flushed before it is handed out."""
        fd = os.open(self._file(section), os.O_RDONLY | os.O_CLOEXEC)
        try:
            offset, event = chain.last_commit(fd, section.begin, section.end)
            if self._durable and event is not None:
                self._make_durable(fd)
            return offset, event
        finally:
            os.close(fd)

    def _make_durable(self, fd: int) -> None:
        """Flush a file, unless nobody has written to it since it was flushed here."""
        found = os.fstat(fd)
        looks = found.st_ino, found.st_size, found.st_ctime_ns
        if looks != self._durable_as:
            self._flush(fd)
            self._durable_as = looks


def broken(day: str) -> LogDamaged:
    """What a log is that was mixed from two."""
    return LogDamaged(
        f"the log of {day} is not one history: its chain of hashes is broken",
        "put the log of one branch back, such as with 'git checkout --ours .aof/events', or run 'aof doctor'",
        day=day,
    )


def end_position(reader: Reader) -> Position:
    """Where the log ends now."""
    for section in reversed(reader.path()):
        offset, event = reader.last(section)
        if event is not None:
            return Position(section.name, offset, event.seq, event.hash)
    return Position()


def events_after(reader: Reader, types: tuple[str, ...], start: Position) -> tuple[Position, list[Event]]:
    """Where the log ends, and the events of these types behind a position."""
    wanted = _beginnings(types)
    found: list[Event] = []
    here = start
    for section, begin in reader.sections(start):
        offset, last = begin, b""
        for last in reader.lines(section, begin):
            offset += len(last)
            if last.startswith(wanted, last.find(b",")):
                found.append(chain.decode_event(last))
        if last:
            event = chain.decode_event(last)
            here = Position(section.name, offset, event.seq, event.hash)
    return here, found


def events_since(reader: Reader, types: tuple[str, ...], day: str) -> Iterator[Event]:
    """The events of these types from the beginning of a day on."""
    wanted = _beginnings(types)
    for section in reader.path():
        if day_of(section.name) >= day:
            lines = reader.lines(section)
            yield from (chain.decode_event(line) for line in lines if line.startswith(wanted, line.find(b",")))


def events_before(reader: Reader, types: tuple[str, ...], end: Position) -> Iterator[Event]:
    """The events of these types up to a position, newest first; a file is read when its first event is asked for."""
    wanted = _beginnings(types)
    path = reader.path()
    upto = next((at for at, section in enumerate(path) if section.name == end.segment), len(path) - 1)
    for section in reversed(path[: upto + 1]):
        lines = [line for line in reader.lines(section) if line.startswith(wanted, line.find(b","))]
        for line in reversed(lines):
            event = chain.decode_event(line)
            if event.seq <= end.seq:
                yield event


def wait_for_more(reader: Reader, clock: Clock, after: int, timeout: float) -> bool:
    """Sleep until there is an event after that number; False when the time is over."""
    deadline = clock.monotonic() + timeout
    pause = _SHORTEST_WAIT
    known = None
    while True:
        end = reader.end()
        if end != known:
            known = end
            if reader.newest() > after:
                return True
        left = deadline - clock.monotonic()
        if left <= 0:
            return False
        clock.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_WAIT)


def _beginnings(types: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(_TYPE + one.encode() for one in types)


class Histories:
    """Reads the log once for many tasks that are announced, and once for each that is not. Safe for several threads."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._turn = threading.Lock()
        self._until = Position()
        self._known: dict[str, list[Event]] = {}

    def of(self, task_id: str) -> list[Event]:
        """Everything that the log has of a task now."""
        with self._turn:
            if task_id in self._known:
                self._go_on()
                return list(self._known[task_id])
        return list(self._reader.of_tasks((task_id,)))

    def announced(self, task_id: str) -> list[Event]:
        """The events of a task as read when it was announced: for callers that keep all others from writing."""
        with self._turn:
            kept = self._known.get(task_id)  # another thread may have announced others since
        return list(self._reader.of_tasks((task_id,))) if kept is None else list(kept)

    def announce(self, task_ids: Iterable[str], until: Position) -> None:
        """These will be asked for; the log reaches to that position at least. Forgets those announced before."""
        kept: dict[str, list[Event]] = {task_id: [] for task_id in task_ids}
        if kept:
            for event in self._reader.of_tasks(kept):
                kept[event.task_id].append(event)
        with self._turn:
            self._until, self._known = until, kept

    def _go_on(self) -> None:
        """Take in what was appended since, for all that were announced; what was read then may be in there again."""
        for here, lines in self._reader.commits(self._until):
            self._until = here
            for _, event in lines:
                kept = self._known.get(event.task_id)
                if kept is not None and (not kept or kept[-1].seq < event.seq):
                    kept.append(event)
