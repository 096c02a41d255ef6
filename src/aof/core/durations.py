"""Lengths of time as people write them: `90s`, `30m`, `1h30m`. Must not know what is timed."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)"
_WHOLE: Final = re.compile(rf"(?:{_PART})+\Z", re.ASCII)
_LONGEST: Final = 366 * _UNITS["d"]
EXAMPLES: Final = "90s, 30m, 2h or 1h30m"


def duration_ms(text: object) -> int | None:
    """So many milliseconds, at least one and at most a year; None when the text is no such duration."""
    if not isinstance(text, str) or _WHOLE.match(text) is None:
        return None
    parts = re.findall(_PART, text, re.ASCII)
    if len({unit for _, unit in parts}) != len(parts):
        return None
    length = round(sum(float(count) * _UNITS[unit] for count, unit in parts))
    return length if 1 <= length <= _LONGEST else None
