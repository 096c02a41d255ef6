"""Lanes that a rebase has dropped: git leaves out merge commits, and with them the merge lane that others build on.

The branch still has them where it was before. A lane is taken from there only if it has the very events that headers
name, and only whole or as more of what is here, so nothing that is here is lost. Must not know what the events mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log import lane_names, lanes
from aof.stores.filesystem.log.lanes import LogPlace
from aof.stores.filesystem.log.layout import segments
from aof.stores.filesystem.log.line_end import GENESIS, tail_of
from aof.stores.filesystem.working_copy import stages


def restore(paths: Paths, disk: Disk) -> bool:
    """Bring back every lane that a header names; whether that is all of them. Otherwise nothing is changed."""
    here = {name: read(paths.log(name), limit=None) or b"" for name in segments(paths)}
    found: dict[str, bytes] = {}
    waiting = list(here)
    while waiting:
        name = waiting.pop()
        for place in _builds_on(name, found.get(name, here.get(name, b""))):
            if _has(found.get(place.segment, here.get(place.segment, b"")), place):
                continue
            data = stages.before_rebase(paths.log(place.segment)) if lane_names.is_segment(place.segment) else None
            if data is None or not _has(data, place) or not data.startswith(here.get(place.segment, b"")):
                return False
            found[place.segment] = data
            waiting.append(place.segment)
    for name, data in found.items():
        temporary = paths.temporary_file(f"{name}{lane_names.SUFFIX}")
        disk.write_durable(temporary, data)
        disk.rename(temporary, paths.log(name))
    if found:
        disk.sync_dir(paths.events)
    return bool(found)


def _builds_on(name: str, data: bytes) -> Iterator[LogPlace]:
    if lane_names.lane_of(name):
        header = lanes.parsed_header(data.partition(b"\n")[0], name)
        heads = header.merge.heads if header.merge is not None else ()
        yield from (place for place in (header.after, *heads) if place.hash != GENESIS)


def _has(data: bytes, place: LogPlace) -> bool:
    return data[: place.offset].endswith(tail_of(place.hash)) and len(data) >= place.offset
