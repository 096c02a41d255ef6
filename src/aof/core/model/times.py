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


def end_of(text: str) -> str:
    """The moment at which a due date is over: of a day its last one, of a moment itself. Raises ValueError."""
    moment = iso(millis(text))
    return f"{moment[:10]}T23:59:59.999Z" if len(text) == len("YYYY-MM-DD") else moment


def resolved(text: str, now: int) -> str:
    """A day, or a moment as AOF writes it, from how people say it: `today`, `+3d`, `2026-03-01`. Raises ValueError."""
    said = text.strip()
    if said.lower() in _DAYS:
        return day(now + _DAYS[said.lower()] * _UNITS["d"])
    if said[:1] in ("+", "-"):
        length = duration_ms(said[1:])
        if length is None:
            raise ValueError(said)
        return iso(now + length if said[0] == "+" else now - length)
    moment = iso(millis(said))
    return moment[:10] if len(said) == len("YYYY-MM-DD") else moment


MOMENTS = "2026-03-01, 2026-03-01T12:00Z, today, tomorrow, +3d or -12h"
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
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
