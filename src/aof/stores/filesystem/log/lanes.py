"""Headers of lanes: the first line of each file of the log that is not the root lane's.

It names the place in the log that the lane's first event builds on, and of a merge lane the commits that it brought
together. A header has no hash of its own, but its place has to have the event that it names. Must not know which lane
is whose, nor what the events mean.
"""

from __future__ import annotations

import os

import msgspec

from aof._support import nesting
from aof._support.typed import prepare_type
from aof.core.errors.storage import LaneRefused
from aof.stores.filesystem.log.lane_names import SUFFIX, is_merge, lane_of
from aof.stores.filesystem.log.line_end import GENESIS

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
        return self.file.removesuffix(SUFFIX)


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


_decoder = msgspec.json.Decoder(prepare_type(Header))
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
        raise refused(segment, "has no header that can be used: it has no first line")
    return parsed_header(line, segment), len(line) + 1


def parsed_header(line: bytes, segment: str) -> Header:
    """What the first line of a lane's file says; raises LaneRefused where it does not fit the file's name."""
    try:
        nesting.refuse_nesting(line)
        header = _decoder.decode(line)
        if header.lane != lane_of(segment):
            raise ValueError(f"it says that it is the lane {header.lane!r}")  # noqa: TRY301 - told as any other
        if (header.merge is not None) != is_merge(segment):
            raise ValueError("its name says that it is a merge, or its header does, but not both")  # noqa: TRY301
    except ValueError as error:  # also of msgspec and of text that is no UTF-8
        raise refused(segment, f"has no header that can be used: {error}") from None
    return header


def refused(segment: str, what: str, lacking: str = "") -> LaneRefused:
    """A file that is no lane of this log; or `lacking` is the one that should have what it builds on."""
    hint = f"get the file from the clone that wrote it, or move it out of events/: 'mv .aof/events/{segment}{SUFFIX} .'"
    if lacking:
        back = f"if {lacking} was cut or removed, get it back: 'git checkout HEAD -- .aof/events/{lacking}'"
        hint = f"{back}; else {hint}"
    return LaneRefused(f"events/{segment}{SUFFIX} {what}; nothing was changed", hint, day=segment)
