"""The chain: how an event becomes a line of the log, how a line proves itself, and the last line of a file.

A line ends with the SHA-256 of the hash before it and of its own text, so that nothing can be changed, taken out or put
in unnoticed. The end of a file is found from behind, which costs the same however long the file is. Changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from aof._support import nesting
from aof._support.hashing import hexdigest
from aof._support.typed import prepare_type
from aof.core.errors.storage import LogDamaged
from aof.core.model.events import Event
from aof.stores.filesystem.log.line_end import CLOSE, MARK, TAIL_BYTES

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(prepare_type(Event))
_WINDOW = 1 << 16


def seal(event: Event, previous: str) -> tuple[bytes, str]:
    """The event's line, and the hash that the next one builds on."""
    text = _encode(event)[:-1]
    digest = hexdigest(previous.encode() + text)
    return b"%b%b%b%b" % (text, MARK, digest.encode(), CLOSE), digest


def decode(line: bytes) -> Event:
    """Read a line; raises LogDamaged where it is none."""
    try:
        if line.count(b"[") + line.count(b"{") > nesting.MOST:
            nesting.refuse_nesting(line)
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LogDamaged(
            f"a line of the log cannot be read: {error}", "run 'aof doctor'; nothing was changed", line=line[:80].hex()
        ) from None


def proves(line: bytes, previous: str) -> bool:
    """Whether the line's hash follows from its text and the hash before it."""
    if len(line) <= TAIL_BYTES or not line.endswith(CLOSE) or line[-TAIL_BYTES : -TAIL_BYTES + len(MARK)] != MARK:
        return False
    claimed = line[-TAIL_BYTES + len(MARK) : -len(CLOSE)]
    return hexdigest(previous.encode() + line[:-TAIL_BYTES]).encode() == claimed


def follows(previous: str, lines: Sequence[bytes]) -> str | None:
    """The hash at the end of lines that follow one another, the first the hash before it; None where one does not."""
    for line in lines:
        if not proves(line, previous):
            return None
        previous = digest_of(line)
    return previous


def digest_of(line: bytes) -> str:
    """The hash that a line ends with."""
    return line[-TAIL_BYTES + len(MARK) : -len(CLOSE)].decode("ascii", "replace")


def last_commit_end(data: bytes) -> tuple[int, Event | None]:
    """Where the last complete commit in the data ends, and its last event.

    The data begins at a commit's beginning. What lies behind that end was never completely written.
    """
    end = data.rfind(b"\n") + 1
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1) + 1
        event = decode(data[start:end])
        place, size = event.commit
        if place == size:
            return end, event
        end = start
    return 0, None


def tail(fd: int, begin: int = 0, end: int | None = None) -> tuple[int, bytes]:
    """The end of an open log file, with at least one whole commit if there is any: where it begins, and the bytes.

    Its events begin at an offset, and another may stand for its end.
    """
    size = os.fstat(fd).st_size if end is None else end
    window = _WINDOW
    while window < size - begin:
        data = os.pread(fd, window, size - window)
        first = _first_commit(data)
        if first is not None and last_commit_end(data[first:])[0]:
            return size - window + first, data[first:]
        window *= 16
    return begin, os.pread(fd, size - begin, begin) if size > begin else b""


def last_commit(fd: int, begin: int = 0, end: int | None = None) -> tuple[int, Event | None]:
    """Where the last whole commit of an open log file ends, or of a part of it, and its last event."""
    start, data = tail(fd, begin, end)
    whole, last = last_commit_end(data)
    return start + whole, last


def _first_commit(data: bytes) -> int | None:
    """Where the first commit that begins inside the window begins; None when none does."""
    position = data.find(b"\n") + 1
    while 0 < position < len(data):
        end = data.find(b"\n", position)
        if end < 0:
            return None
        if decode(data[position : end + 1]).commit[0] == 1:
            return position
        position = end + 1
    return None


def last_event(path: str, begin: int = 0, end: int | None = None) -> Event | None:
    """The last event of the last whole commit in a file, or in a part of it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return last_commit(fd, begin, end)[1]
    finally:
        os.close(fd)
