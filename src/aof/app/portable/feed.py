"""The portable log for many followers: translated once for all of them, as it grows.

What an event means depends on everything before it, so a translation reads the log from its beginning. Only the last
lines are kept; a follower that resumes further back has the past translated for itself. Must not know any surface.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from threading import Lock
from typing import Any, Final

from aof._support import gc_pause
from aof.app.portable.log import Translation, lines
from aof.core.model.events import Event

Line = dict[str, Any]
Page = tuple[int, list[Line]]  # the last event that was looked at, and what is portable up to it
_KEPT: Final = 2_000  # lines
_PAGE: Final = 500  # lines


class PortableFeed:
    """The lines after any event. Several threads may ask at once."""

    def __init__(self, events: Callable[[int], Iterator[Event]]) -> None:
        self._events = events
        self._lock = Lock()
        self._begin_again()

    def _begin_again(self) -> None:
        self._translation = Translation()
        self._last: Event | None = None
        self._kept: deque[Line] = deque(maxlen=_KEPT)
        self._from = 0  # every line after this event is kept

    def after(self, seq: int) -> Page | None:
        """A page of lines after the event; None where they are not kept any more."""
        with self._lock:
            self._catch_up()
            if seq < self._from:
                return None
            page = list(islice((line for line in self._kept if line["sequence"] > seq), _PAGE))
            head = self._last.seq if self._last is not None else 0
        return page[-1]["sequence"] if len(page) == _PAGE else max(head, seq), page

    def past(self, seq: int) -> Iterator[Page]:
        """Pages of lines after the event, up to where the last lines are kept from."""
        until = self._from
        found = (line for line in lines(self._until(until)) if line["sequence"] > seq)
        while page := list(islice(found, _PAGE)):
            yield page[-1]["sequence"], page
        yield until, []

    def _until(self, seq: int) -> Iterator[Event]:
        for event in self._events(0):
            if event.seq > seq:
                return
            yield event

    def _catch_up(self) -> None:
        """Translate what has come. A log that another one has taken the place of is read from its beginning."""
        last = self._last
        news = self._events(last.seq - 1 if last is not None else 0)
        if last is not None and next(news, None) != last:
            self._begin_again()
            news = self._events(0)
        with gc_pause.uncollected():
            for event in news:
                self._add(event)

    def _add(self, event: Event) -> None:
        line = self._translation.line(event)
        self._last = event
        if line is None:
            return
        if len(self._kept) == _KEPT:
            self._from = self._kept[0]["sequence"]
        self._kept.append(line)
