"""Reading the log: events from any number on, of one task or of some types, and the whole chain verified.

Never changes anything. Must not know what the events are read for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from aof.core.errors.storage import LogDamaged
from aof.core.model.ids import is_day
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.bookmarks import Bookmarks
from aof.stores.filesystem.log.line_end import GENESIS, TAIL_BYTES, tail_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.events import Event
    from aof.ports.clock import Clock

_CHUNK = 1 << 20
_TASK = b'"taskId":"'
_SEQ = b'{"seq":'
_TALK = (b',"type":"protocol.', b',"type":"delegation.', b',"type":"document.')
_SUFFIX = ".jsonl"
_TYPE = b',"type":"'
_SHORTEST_WAIT, _LONGEST_WAIT = 0.005, 0.25  # seconds


class Position:
    """A place between two commits: a day's file, an offset in it, and the hash of the event before."""

    __slots__ = ("day", "digest", "offset", "seq")

    def __init__(self, day: str = "", offset: int = 0, seq: int = 0, digest: str = GENESIS) -> None:
        self.day = day
        self.offset = offset
        self.seq = seq
        self.digest = digest

    def text(self) -> str:
        """One line, without its end."""
        return f"{self.day or '-'} {self.offset} {self.seq} {self.digest}"

    @staticmethod
    def parse(words: list[str]) -> Position | None:
        """What `text` has written, split into words; None where it makes no sense."""
        match words:
            case [day, offset, seq, digest] if offset.isdigit() and seq.isdigit():
                return Position("" if day == "-" else day, int(offset), int(seq), digest)
        return None


class Reader:
    """A view of the log's files."""

    def __init__(self, paths: Paths, *, durable: bool, flush: Callable[[int], None] = os.fdatasync) -> None:
        self._paths = paths
        self._durable = durable
        self._flush = flush
        self._bookmarks = Bookmarks()

    def commits(self, start: Position) -> Iterator[tuple[Position, list[tuple[bytes, Event]]]]:
        """Whole commits from a position on, each with the position behind it and its lines."""
        here = start
        for day in log_days(self._paths):
            if day < here.day:
                continue
            offset = here.offset if day == here.day else 0
            lines: list[tuple[bytes, Event]] = []
            for line in self.lines(day, offset):
                offset += len(line)
                event = chain.decode(line)
                lines.append((line, event))
                if event.commit[0] == event.commit[1]:
                    here = Position(day, offset, event.seq, event.hash)
                    yield here, lines
                    lines = []

    def events(self, after: int = 0) -> Iterator[Event]:
        """Events with a greater number. What was read before that number is not read again."""
        here = self._start(after)
        try:
            for behind, lines in self.commits(here):
                for _, event in lines:
                    if event.seq > after:
                        yield event
                here = behind
        finally:
            if here.offset:
                self._bookmarks.put(here)

    def _start(self, after: int) -> Position:
        known = self._bookmarks.before(after) if after else None
        if known is None:
            return Position(self._day_before(after))
        if self.holds(known):
            return known
        self._bookmarks.drop(known)
        return self._start(after)

    def proven(self, start: Position) -> Iterator[tuple[Position, list[tuple[bytes, Event]]]]:
        """The same as `commits`, but the chain has to hold."""
        digest = start.digest
        for behind, lines in self.commits(start):
            for line, _ in lines:
                if not chain.proves(line, digest):
                    raise broken(behind.day)
                digest = chain.digest_of(line)
            yield behind, lines

    def of_tasks(self, wanted: Collection[str], start: Position | None = None) -> Iterator[Event]:
        """The events of some tasks only; the other lines are passed over without being decoded."""
        begin = start or Position()
        names = frozenset(task_id.encode() for task_id in wanted)
        for day in log_days(self._paths):
            if day < begin.day:
                continue
            for line in self.lines(day, begin.offset if day == begin.day else 0):
                at = line.find(_TASK) + len(_TASK)
                if line[at : line.find(b'"', at)] in names:
                    yield chain.decode(line)

    def holding(self, text: bytes, until: int) -> Iterator[tuple[str, Event]]:
        """The events up to a number whose lines hold the text, each with its day; no other line is decoded."""
        for day in log_days(self._paths):
            for line in self.lines(day, 0):
                if text in line:
                    event = chain.decode(line)
                    if event.seq > until:
                        return
                    yield day, event

    def unseen(self, start: Position, seen: Mapping[str, int]) -> tuple[Position, list[Event]]:
        """Where the log ends, and the events behind a position that are newer than what was seen of their task.

        The chain has to hold: a log that was mixed from two is not a base for any answer.
        """
        here, fresh, digest = start, [], start.digest
        for day in log_days(self._paths):
            if day < start.day:
                continue
            offset = start.offset if day == start.day else 0
            last = b""
            for last in self.lines(day, offset):
                if not chain.proves(last, digest):
                    raise broken(day)
                offset, digest = offset + len(last), chain.digest_of(last)
                at = last.find(_TASK) + len(_TASK)
                task_id = last[at : last.find(b'"', at)].decode()
                if int(last[len(_SEQ) : last.find(b",", len(_SEQ))]) > seen.get(task_id, 0):
                    fresh.append(chain.decode(last))
            if last:
                event = chain.decode(last)
                here = Position(day, offset, event.seq, event.hash)
        return here, fresh

    def ids(self) -> Iterator[str]:
        """The tasks that were ever created, each as often as it has events.

        What a message says of a task proves nothing, for the message may name one that never was.
        """
        for day in log_days(self._paths):
            for line in self.lines(day, 0):
                if line.startswith(_TALK, line.find(b",")):
                    continue
                at = line.find(_TASK) + len(_TASK)
                yield line[at : line.find(b'"', at)].decode()

    def holds(self, position: Position) -> bool:
        """Whether the log still has the event that the position stands behind."""
        if not position.offset:
            return position.digest in (GENESIS, self._hash_before(position.day))
        try:
            fd = os.open(self._paths.log(position.day), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            begin = position.offset - TAIL_BYTES
            return begin >= 0 and os.pread(fd, TAIL_BYTES, begin) == tail_of(position.digest)
        finally:
            os.close(fd)

    def end(self) -> tuple[str, int]:
        """The last day that anything was written to, and the size of its file: changes with everything appended."""
        for day in reversed(log_days(self._paths)):
            if size := os.stat(self._paths.log(day)).st_size:
                return day, size
        return "", 0

    def newest(self) -> int:
        """The number of the last whole commit's last event, found from behind."""
        for day in reversed(log_days(self._paths)):
            if (last := chain.last_event(self._paths.log(day))) is not None:
                return last.seq
        return 0

    def days(self) -> list[str]:
        """The days that have a log, oldest first."""
        return log_days(self._paths)

    def _hash_before(self, day: str) -> str:
        """The hash of the last event before a day."""
        for earlier in reversed(log_days(self._paths)):
            if earlier < day and (last := chain.last_event(self._paths.log(earlier))) is not None:
                return last.hash
        return GENESIS

    def _day_before(self, after: int) -> str:
        """The last day whose first event is not beyond the number."""
        best = ""
        if not after:
            return best
        for day in log_days(self._paths):
            first = next(self.lines(day, 0), None)
            if first is None:
                continue
            if chain.decode(first).seq > after + 1:
                break
            best = day
        return best

    def lines(self, day: str, offset: int) -> Iterator[bytes]:
        """The lines of whole commits, flushed before they are handed out."""
        fd = os.open(self._paths.log(day), os.O_RDONLY | os.O_CLOEXEC)
        try:
            start, data = chain.tail(fd)
            size = start + chain.last_commit_end(data)[0]
            if self._durable and size > offset:
                self._flush(fd)
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


def broken(day: str) -> LogDamaged:
    """What a log is that was mixed from two."""
    return LogDamaged(
        f"the log of {day} is not one history: its chain of hashes is broken",
        "put the log of one branch back, such as with 'git checkout --ours .aof/events', or run 'aof doctor'",
        day=day,
    )


def log_days(paths: Paths) -> list[str]:
    """The days that have a log, oldest first; raises LogDamaged where something else lies in the place of a file."""
    days: list[str] = []
    with os.scandir(paths.events) as entries:
        for entry in entries:
            if entry.name[10:] == _SUFFIX and is_day(entry.name[:10]):
                if not entry.is_file():
                    hint = "put the file back, or move what lies there away; nothing was changed"
                    raise LogDamaged(f"events/{entry.name} is not a file", hint, day=entry.name[:10])
                days.append(entry.name[:10])
    return sorted(days)


def end_position(reader: Reader) -> Position:
    """Where the log ends now."""
    for day in reversed(reader.days()):
        offset, last = 0, b""
        for last in reader.lines(day, 0):
            offset += len(last)
        if last:
            event = chain.decode(last)
            return Position(day, offset, event.seq, event.hash)
    return Position()


def events_after(reader: Reader, types: tuple[str, ...], start: Position) -> tuple[Position, list[Event]]:
    """Where the log ends, and the events of these types behind a position."""
    wanted = _beginnings(types)
    found: list[Event] = []
    here = start
    for day in reader.days():
        if day < start.day:
            continue
        offset = start.offset if day == start.day else 0
        last = b""
        for last in reader.lines(day, offset):
            offset += len(last)
            if last.startswith(wanted, last.find(b",")):
                found.append(chain.decode(last))
        if last:
            event = chain.decode(last)
            here = Position(day, offset, event.seq, event.hash)
    return here, found


def events_since(reader: Reader, types: tuple[str, ...], day: str) -> Iterator[Event]:
    """The events of these types from the beginning of a day on."""
    wanted = _beginnings(types)
    for one in reader.days():
        if one >= day:
            lines = reader.lines(one, 0)
            yield from (chain.decode(line) for line in lines if line.startswith(wanted, line.find(b",")))


def events_before(reader: Reader, types: tuple[str, ...], end: Position) -> Iterator[Event]:
    """The events of these types up to a position, newest first; a day is read when its first event is asked for."""
    wanted = _beginnings(types)
    for day in reversed(reader.days()):
        if end.day and day > end.day:
            continue
        lines = [line for line in reader.lines(day, 0) if line.startswith(wanted, line.find(b","))]
        for line in reversed(lines):
            event = chain.decode(line)
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
