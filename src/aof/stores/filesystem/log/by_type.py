"""Events of some types only, forwards from a position and backwards from one; other lines are not decoded.

Must not know what the events are read for.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.core.model.events import Event
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.reader import Position, Reader

_TYPE = b',"type":"'


def behind(reader: Reader) -> Position:
    """Where the log ends now."""
    for day in reversed(reader.days()):
        offset, last = 0, b""
        for last in reader.lines(day, 0):
            offset += len(last)
        if last:
            event = chain.decode(last)
            return Position(day, offset, event.seq, event.hash)
    return Position()


def after(reader: Reader, types: tuple[str, ...], start: Position) -> tuple[Position, list[Event]]:
    """Where the log ends, and the events of these types behind a position."""
    wanted = _beginnings(types)
    here, found = start, list[Event]()
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


def since(reader: Reader, types: tuple[str, ...], day: str) -> Iterator[Event]:
    """The events of these types from the beginning of a day on."""
    wanted = _beginnings(types)
    for one in reader.days():
        if one >= day:
            lines = reader.lines(one, 0)
            yield from (chain.decode(line) for line in lines if line.startswith(wanted, line.find(b",")))


def before(reader: Reader, types: tuple[str, ...], end: Position) -> Iterator[Event]:
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


def _beginnings(types: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(_TYPE + one.encode() for one in types)
