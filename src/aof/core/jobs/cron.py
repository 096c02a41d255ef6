"""Cron expressions: five fields, read strictly. Must not know time zones, nor what time it is now."""

from __future__ import annotations

from datetime import date
from typing import Final, NamedTuple

from aof.core.errors.base import InvalidInput

_LONGEST: Final = 200
_MACROS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SUNDAY: Final = 7


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()  # the first one stands for the least value


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, _SUNDAY, _WEEKDAYS),
)


class Cron(NamedTuple):
    """What an expression allows. Weekdays count from Sunday, which is 0.

    `either` says that both fields of days are restricted: then a day needs to match only one of them, as everywhere
    with cron. `hourly` says that the hours are not fixed times of day, so that the real time counts and not the
    clock on the wall.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    hourly: bool

    def on(self, day: date) -> bool:
        """Whether the expression allows this day."""
        if day.month not in self.months:
            return False
        by_number, by_name = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_number or by_name if self.either else by_number and by_name


def parse(text: object) -> Cron | InvalidInput:
    """The expression, or what is wrong with it."""
    if not isinstance(text, str) or not text.isascii() or len(text) > _LONGEST:
        return _wrong("a cron expression is a short text")
    words = _MACROS.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        return _wrong(f"a cron expression has {len(_FIELDS)} fields, and this one has {len(words)}")
    found: list[frozenset[int]] = []
    for field, word in zip(_FIELDS, words, strict=True):
        values = _values(field, word.lower())
        if isinstance(values, InvalidInput):
            return values
        found.append(values)
    minutes, hours, days, months, weekdays = found
    return Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=frozenset(day % _SUNDAY for day in weekdays),
        either=not words[2].startswith("*") and not words[4].startswith("*"),
        hourly=words[1].startswith("*"),
    )


def _values(field: _Field, word: str) -> frozenset[int] | InvalidInput:
    """All values of a field: a list of single values and ranges, each with a step if it has one."""
    found: set[int] = set()
    for part in word.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            low, high = field.least, min(field.most, 6) if field.words == _WEEKDAYS else field.most
        else:
            low = _number(field, first)
            high = _last(field, last) if dash else field.most if slash else low
        every = int(step) if step.isdecimal() and len(step) <= 2 else 0 if slash else 1  # noqa: PLR2004 - two digits
        if not (field.least <= low <= high <= field.most) or not 1 <= every <= field.most:
            return _wrong(f"'{part[:40]}' is not a valid {field.name} ({field.least} to {field.most})")
        found.update(range(low, high + 1, every))
    return frozenset(found)


def _last(field: _Field, word: str) -> int:
    """The number at the end of a range: a week may end with Sunday, though it also begins with it."""
    return _SUNDAY if field.words is _WEEKDAYS and word == _WEEKDAYS[0] else _number(field, word)


def _number(field: _Field, word: str) -> int:
    """The number that a word stands for; -1 for what is none."""
    if word in field.words:
        return field.least + field.words.index(word)
    return int(word) if word.isdecimal() and len(word) <= 2 else -1  # noqa: PLR2004 - two digits


def _wrong(what: str) -> InvalidInput:
    return InvalidInput(
        what, "give minute, hour, day of month, month and day of week, such as '30 6 * * mon-fri', or @daily"
    )
