"""Moments as UTC milliseconds inside, as ISO-8601 text outside. Must not know what time it is now."""

from __future__ import annotations

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
