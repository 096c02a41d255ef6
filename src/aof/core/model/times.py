"""Moments as UTC milliseconds inside, as ISO-8601 text outside. Must not know what time it is now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def iso(millis: int) -> str:
    """Write a moment the one way that AOF writes it, so that text order is time order."""
    seconds, rest = divmod(millis, 1000)
    return f"{_to_the_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:-6]


def millis(text: str) -> int:
    """Read an ISO-8601 moment; one without an offset is taken as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND


def day(millis: int) -> str:
    """The UTC day of a moment, as it stands in IDs and in the names of log files."""
    return iso(millis)[:10]


_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)"
_LONGEST = 366 * _UNITS["d"]
EXAMPLES = "90s, 30m, 2h or 1h30m"


def duration_ms(text: object) -> int | None:
    """So many milliseconds, at least one and at most a year; None when the text is no such duration."""
    if not isinstance(text, str) or re.fullmatch(rf"(?:{_PART})+", text, re.ASCII) is None:
        return None
    parts = re.findall(_PART, text, re.ASCII)
    if len({unit for _, unit in parts}) != len(parts):
        return None
    length = round(sum(float(count) * _UNITS[unit] for count, unit in parts))
    return length if 1 <= length <= _LONGEST else None
