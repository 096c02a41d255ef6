"""What the files of the log are called, and whether there are any beside the root lane's. Must not read any lane.

`<day>.jsonl` is of the root lane, `<day>.<lane>.jsonl` of a lane that one clone appends to, `<day>.m<hash>.jsonl` a
merge lane, which nobody appends to.
"""

from __future__ import annotations

import os

from aof.core.model.ids import is_day

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.io.paths import Paths

SUFFIX = ".jsonl"
MERGED = "m"
NAME_DIGITS = 12
_DAY = len("2026-01-01")


def is_segment(stem: str) -> bool:
    """Whether a file of this name, without its suffix, belongs to the log."""
    return is_day(stem[:_DAY]) and (len(stem) == _DAY or (stem[_DAY] == "." and _is_lane(stem[_DAY + 1 :])))


def _is_lane(name: str) -> bool:
    digits = name.removeprefix(MERGED)
    return len(digits) == NAME_DIGITS and not digits.strip("0123456789abcdef")


def day_of(segment: str) -> str:
    """The day of a segment."""
    return segment[:_DAY]


def lane_of(segment: str) -> str:
    """The lane of a segment; empty for the root lane."""
    return segment[_DAY + 1 :]


def is_merge(segment: str) -> bool:
    """Whether it is a merge lane, which nobody appends to."""
    return segment[_DAY + 1 : _DAY + 2] == MERGED


def segment_of(day: str, lane: str) -> str:
    """The file of a lane on a day, without its suffix."""
    return f"{day}.{lane}" if lane else day


class LaneNames:
    """Looks at the folder of the log once for each change of it."""

    def __init__(self, paths: Paths) -> None:
        self._folder = paths.events
        self._known: tuple[int, bool, bool, bool] | None = None

    def none(self) -> bool:
        """Whether nothing was ever written to the log."""
        return self._looked()[1]

    def several(self) -> bool:
        """Whether there is a lane beside the root lane."""
        return self._looked()[2]

    def merged(self) -> bool:
        """Whether there is a merge lane."""
        return self._looked()[3]

    def _looked(self) -> tuple[int, bool, bool, bool]:
        changed = os.stat(self._folder).st_mtime_ns
        if self._known is None or self._known[0] != changed:
            stems = (name.removesuffix(SUFFIX) for name in os.listdir(self._folder) if name.endswith(SUFFIX))
            names = [stem for stem in stems if is_segment(stem)]
            self._known = changed, not names, any(map(lane_of, names)), any(map(is_merge, names))
        return self._known
