"""The chain: how an event becomes a line of the log and proves itself by the hash before it.

The headers that lanes begin with.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from aof.errors import LaneRefused, LogDamaged
from aof.kernel.events import Event
from aof.store.files.paths import GENESIS, HASH_MARK, LANE_SUFFIX, LINE_CLOSE, TAIL_BYTES, is_merge_lane, lane_of
from aof.support import nesting
from aof.support.hashing import hexdigest
from aof.support.typed import prepare_type

_encode = msgspec.json.Encoder().encode
_chain_decoder = msgspec.json.Decoder(prepare_type(Event))
_WINDOW = 1 << 16


def seal(event: Event, previous: str) -> tuple[bytes, str]:
    """The event's line, and the hash that the next one builds on."""
    text = _encode(event)[:-1]
    digest = hexdigest(previous.encode() + text)
    return b"%b%b%b%b" % (text, HASH_MARK, digest.encode(), LINE_CLOSE), digest


def decode_event(line: bytes) -> Event:
    """Read a line; raises LogDamaged where it is none."""
    try:
        if line.count(b"[") + line.count(b"{") > nesting.MOST_NESTED:
            nesting.refuse_nesting(line)
        return _chain_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LogDamaged(
            f"a line of the log cannot be read: {error}", "run 'aof doctor'; nothing was changed", line=line[:80].hex()
        ) from None


def proves(line: bytes, previous: str) -> bool:
    """Whether the line's hash follows from its text and the hash before it."""
    if (
        len(line) <= TAIL_BYTES
        or not line.endswith(LINE_CLOSE)
        or line[-TAIL_BYTES : -TAIL_BYTES + len(HASH_MARK)] != HASH_MARK
    ):
        return False
    claimed = line[-TAIL_BYTES + len(HASH_MARK) : -len(LINE_CLOSE)]
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
    return line[-TAIL_BYTES + len(HASH_MARK) : -len(LINE_CLOSE)].decode("ascii", "replace")


def last_commit_end(data: bytes) -> tuple[int, Event | None]:
    """Where the last complete commit in the data ends, and its last event.

    The data begins at a commit's beginning. What lies behind that end was never completely written.
    """
    end = data.rfind(b"\n") + 1
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1) + 1
        event = decode_event(data[start:end])
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
        if decode_event(data[position : end + 1]).commit[0] == 1:
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


_MOST_BYTES = 1 << 20  # of a header: a merge of thousands of lanes


class LogPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of a commit: a file of the log, the offset behind it, the hash of its last event, and its number."""

    file: str
    offset: int
    hash: str
    seq: int = 0

    @property
    def segment(self) -> str:
        """The file without its suffix; empty where nothing comes before."""
        return self.file.removesuffix(LANE_SUFFIX)


class MergedHeads(msgspec.Struct, frozen=True):
    """What a merge lane brought together, and the number of the rules that it was made by."""

    rule: int
    heads: tuple[LogPlace, ...]


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line of a lane's file."""

    lane: str
    after: LogPlace
    merge: MergedHeads | None = None

    def line(self) -> bytes:
        """As it stands in the file."""
        return msgspec.json.encode(self) + b"\n"


_lanes_decoder = msgspec.json.Decoder(prepare_type(Header))
NOTHING_BEFORE = LogPlace("", 0, GENESIS)


def read_header(path: str, segment: str) -> tuple[Header, int]:
    """The header of a lane's file, and where its events begin; raises LaneRefused where there is none."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = 4096
        data = os.pread(fd, size, 0)
        while b"\n" not in data and len(data) == size < _MOST_BYTES:
            size *= 16
            data = os.pread(fd, size, 0)
    finally:
        os.close(fd)
    line, end, _ = data.partition(b"\n")
    if not end:
        raise refused_lane(segment, "has no header that can be used: it has no first line")
    return parsed_header(line, segment), len(line) + 1


def parsed_header(line: bytes, segment: str) -> Header:
    """What the first line of a lane's file says; raises LaneRefused where it does not fit the file's name."""
    try:
        nesting.refuse_nesting(line)
        header = _lanes_decoder.decode(line)
        if header.lane != lane_of(segment):
            raise ValueError(f"it says that it is the lane {header.lane!r}")  # noqa: TRY301 - told as any other
        if (header.merge is not None) != is_merge_lane(segment):
            raise ValueError("its name says that it is a merge, or its header does, but not both")  # noqa: TRY301
    except ValueError as error:  # also of msgspec and of text that is no UTF-8
        raise refused_lane(segment, f"has no header that can be used: {error}") from None
    return header


def refused_lane(segment: str, what: str, lacking: str = "") -> LaneRefused:
    """A file that is no lane of this log; or `lacking` is the one that should have what it builds on."""
    away = f"'mv .aof/events/{segment}{LANE_SUFFIX} .'"
    hint = f"get the file from the clone that wrote it, or move it out of events/: {away}"
    if lacking:
        back = f"if {lacking} was cut or removed, get it back: 'git checkout HEAD -- .aof/events/{lacking}'"
        hint = f"{back}; else {hint}"
    return LaneRefused(f"events/{segment}{LANE_SUFFIX} {what}; nothing was changed", hint, day=segment)
