"""When a job is due: at the times of a cron expression in a time zone, or once; and what is done about missed times.

A fixed time of day that the clock jumps over counts as soon after the jump, and one that comes twice counts once. Where
the hours are not fixed (`*`, `*/2`), every real hour counts. Must not know what time it is now, nor what a job does.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, Literal
from zoneinfo import ZoneInfo

from aof.core.errors.base import InvalidInput
from aof.core.jobs.cron import Cron
from aof.core.model.times import iso, millis

Missed = Literal["skip", "once", "all"]
MISSED: Final[tuple[Missed, ...]] = ("skip", "once", "all")
GRACE_MS: Final = 300_000  # what is later than this was missed
MOST_MISSED: Final = 100
_DAYS: Final = 366 * 9  # 29 February may be eight years away
_DAY: Final = timedelta(days=1)
_ZONE: Final = 64
_LAST: Final = millis("9000-01-01")


def zone(name: str) -> tzinfo | InvalidInput:
    """The time zone of that name. Its rules are a table that the system brings along."""
    if name == "UTC":
        return UTC
    try:
        if len(name) <= _ZONE and name.isascii():
            return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # no such file, a folder, not the name of a zone at all
        pass
    return InvalidInput(
        f"there is no time zone '{name[:80]}' on this machine", "use a name such as Europe/Berlin, or UTC"
    )


def moment(text: str, where: tzinfo) -> int | InvalidInput:
    """A time that a person gave; without an offset it is meant in the job's time zone."""
    try:
        given = datetime.fromisoformat(text)
        found = millis((given if given.tzinfo is not None else given.replace(tzinfo=where)).isoformat())
    except (ValueError, OverflowError):
        found = _LAST
    if 0 <= found < _LAST:
        return found
    return InvalidInput(f"'{text[:80]}' is not a time", "give a time such as 2026-03-02T09:00 or 2026-03-02T09:00Z")


def next_after(cron: Cron, where: tzinfo, after: int) -> int | None:
    """The first due time after a moment; None where no such day comes, as with 30 February."""
    first = _local_day(after, where) - _DAY
    for number in range(_DAYS):
        day = first + number * _DAY
        later = [one for one in _on(cron, where, day) if one > after]
        if later:  # a time that was jumped over may lie behind the first ones of the next day
            return min((*later, *(one for one in _on(cron, where, day + _DAY) if one > after)))
    return None


def latest(cron: Cron, where: tzinfo, after: int, until: int, most: int) -> tuple[int, ...]:
    """The newest due times after one moment and up to another, oldest first; at most so many."""
    found: set[int] = set()
    enough: date | None = None
    earliest = _local_day(max(after, 0), where) - _DAY
    day = _local_day(until, where) + _DAY
    for _ in range(_DAYS):
        if day < earliest or (enough is not None and enough - day > _DAY):
            break
        found.update(one for one in _on(cron, where, day) if after < one <= until)
        enough = day if enough is None and len(found) >= most else enough
        day -= _DAY
    return tuple(sorted(found)[-most:])


def _on(cron: Cron, where: tzinfo, day: date) -> Iterator[int]:
    """All due times of a local day, in no order that counts."""
    if not cron.on(day):
        return
    for hour in cron.hours:
        for minute in cron.minutes:
            wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=where)
            once = wall.astimezone(UTC)
            again = wall.replace(fold=1).astimezone(UTC)
            if once != again and cron.hourly:
                if once < again:  # it comes twice; were it the other way round, it would not come at all
                    yield _ms(once)
                    yield _ms(again)
            else:
                yield _ms(once)


def _ms(when: datetime) -> int:
    return millis(when.isoformat())


def _local_day(at: int, where: tzinfo) -> date:
    return datetime.fromisoformat(iso(at)).astimezone(where).date()


def due(times: Cron | int, where: tzinfo, missed: Missed, handled: int, now: int) -> tuple[int, ...]:
    """The due times that are to be made up for now, oldest first, after the last one that was handled.

    `once` makes up for the newest only, `all` for the newest hundred; `skip` is like `once`, but leaves out what is
    late by more than a few minutes.
    """
    since = max(handled, now - GRACE_MS - 1) if missed == "skip" else handled
    if isinstance(times, int):
        return (times,) if since < times <= now else ()
    return latest(times, where, since, now, MOST_MISSED if missed == "all" else 1)
