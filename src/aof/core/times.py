"""Moments as UTC milliseconds inside, as ISO-8601 text outside. Must not know what time it is now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@lru_cache(maxsize=256)
def iso(millis: int) -> str:
    """Write a moment the one way that AOF writes it, so that text order is time order."""
    return (_EPOCH + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")[:-6] + "Z"


def millis(text: str) -> int:
    """Read an ISO-8601 moment; one without an offset is taken as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND


def day(millis: int) -> str:
    """The UTC day of a moment, as it stands in IDs and in the names of log files."""
    return iso(millis)[:10]
