"""A merge lane as a file: its name, its header and its lines. Every clone makes the same bytes of the same commits.

Must not know how lanes are merged, nor write anything.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from aof._support.hashing import hexdigest
from aof.core.engine.merge.model import Merged
from aof.core.model.events import Event
from aof.core.model.task import Task
from aof.stores.filesystem.io.paths import Paths, folder_of
from aof.stores.filesystem.io.read import digest
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.lane_names import MERGED, NAME_DIGITS, segment_of
from aof.stores.filesystem.log.lanes import NOTHING_BEFORE, Header, LogPlace, MergedHeads
from aof.stores.filesystem.log.line_end import GENESIS
from aof.stores.filesystem.working_copy import markdown

_DAY = len("2026-01-01")
_replace = msgspec.structs.replace


class MergeLane(NamedTuple):
    """The file that a merge writes."""

    segment: str
    data: bytes


def lane_name(after: str, heads: tuple[str, ...], rule: int) -> str:
    """The same for the same fork, heads and rules."""
    return MERGED + hexdigest("\n".join((after, *sorted(heads), f"{rule}")).encode())[:NAME_DIGITS]


def sealed(merged: Merged, places: dict[str, LogPlace], paths: Paths) -> MergeLane:
    """The lane of a merge; its file is of the day of its last event."""
    name = lane_name(merged.after, merged.heads, merged.rule)
    after = NOTHING_BEFORE if merged.after == GENESIS else places[merged.after]
    heads = tuple(_replace(places[head], seq=0) for head in merged.heads)
    parts = [Header(name, after, MergedHeads(merged.rule, heads)).line()]
    closing = {(one.commit, one.event): one.task for one in merged.closings}
    previous, day = merged.after, ""
    for number, events in enumerate(merged.commits):
        for place, event in enumerate(events):
            task = closing.get((number, place))
            line, previous = chain.seal(event if task is None else _closed(event, task, paths), previous)
            parts.append(line)
            day = max(day, event.timestamp[:_DAY])
    return MergeLane(segment_of(day, name), b"".join(parts))


def _closed(event: Event, task: Task, paths: Paths) -> Event:
    """The last event of a task says what its file is."""
    layout = markdown.layout_after(task)
    if layout is None and task.layout is not None:
        layout = ""  # canonical again
    path = paths.relative(paths.task(folder_of(task), task.id))
    return _replace(event, files={path: digest(markdown.render(task))}, layout=layout)
