"""How a document's files catch up with the log, on every store.

The usual way costs the same whatever the size of the file: look at the log behind what was applied, look at the file,
add the new text at its end. Where the file is not as AOF left it, it is read, and the projection says what is missing.
What a person writes meanwhile is noticed before a file is replaced, and then everything begins anew. Must not know any
single document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import msgspec

from aof.core.errors.base import Unavailable
from aof.core.model.events import Event
from aof.documents.projection import Facts, PastEvents, Projection

_TRIES = 20


class DocumentState(msgspec.Struct, frozen=True):
    """Where the log stood and what the file looked like when the document was last written, in the store's words."""

    place: str
    mark: str
    note: str = ""


class Desk(Protocol):
    """What a store offers for one document, under its lock."""

    def state(self) -> DocumentState | None:
        """What was kept last; None where that is lost, or about another log."""
        ...

    def keep(self, state: DocumentState) -> None:
        """Remember it, as far as that is possible: it can be lost at any time."""
        ...

    def intend(self, before: DocumentState | None, after: DocumentState) -> None:
        """Remember both: a file that looks as in the second was replaced, though nobody lived to say so."""
        ...

    def fresh(self, state: DocumentState | None, types: tuple[str, ...]) -> tuple[str, list[Event]]:
        """Where the log ends, and the events of these types behind the state; none where there is no state."""
        ...

    def past(self, place: str, types: tuple[str, ...]) -> Iterator[Event]:
        """The events of these types before a place in the log, newest first."""
        ...

    def mark(self, path: str) -> str:
        """What the file looks like now; it differs after every write."""
        ...

    def read(self, path: str) -> tuple[str, str]:
        """A file's text, and what it looked like before the first byte was read."""
        ...

    def append(self, path: str, mark: str, text: str) -> str | None:
        """Add text to the file if it still looks so, or has a part of this text already; how it looks then."""
        ...

    def replace(
        self, path: str, mark: str, text: str, written: Callable[[str], None], *, flushed: bool = True
    ) -> str | None:
        """Write a file anew, durably, if it still looks so; how it looks then, which `written` is told before."""
        ...


class _News(msgspec.Struct, frozen=True):
    """Where the log ends, and what a document has not been told yet, or not surely."""

    place: str
    fresh: Sequence[Event]
    past: PastEvents | None


class _Files:
    """The files as they were read, so that a change of any of them is noticed."""

    def __init__(self, desk: Desk, note: str) -> None:
        self._desk = desk
        self.note = note
        self._read: dict[str, tuple[str, str]] = {}

    def text(self, path: str) -> str:
        return self._seen(path)[0]

    def mark(self, path: str) -> str:
        return self._seen(path)[1]

    def _seen(self, path: str) -> tuple[str, str]:
        if path not in self._read:
            self._read[path] = self._desk.read(path)
        return self._read[path]


def follow(desk: Desk, projection: Projection, facts: Facts) -> None:
    """Let a document catch up. The caller holds its lock."""
    for _ in range(_TRIES):
        if _followed(desk, projection, facts):
            return
    raise Unavailable(
        f"somebody else goes on writing {projection.path}",
        "save it, then try again; the log has everything",
    )


def _followed(desk: Desk, projection: Projection, facts: Facts) -> bool:
    state = desk.state()
    place, fresh = desk.fresh(state, projection.types)
    mark = desk.mark(projection.path)
    ours = state is not None and state.mark == mark
    if state is not None and not fresh and ours:
        if place != state.place:
            desk.keep(DocumentState(place, mark, state.note))
        return True
    if state is not None and fresh and _extended(desk, projection, state, (place, fresh), facts):
        return True
    past = _past(desk, projection, state, place, ours=ours)
    return _rewritten(desk, projection, state, _News(place, fresh, past), facts)


def _past(
    desk: Desk, projection: Projection, state: DocumentState | None, place: str, *, ours: bool
) -> PastEvents | None:
    if ours:
        return None
    before = place if state is None else state.place
    return PastEvents(desk.past(before, projection.types), applied=state is not None)


def _extended(
    desk: Desk, projection: Projection, state: DocumentState, news: tuple[str, Sequence[Event]], facts: Facts
) -> bool:
    place, fresh = news
    more = projection.extend(state.note, fresh, facts)
    if more is None:
        return False
    mark = desk.append(projection.path, state.mark, more.text) if more.text else state.mark
    if mark is None or (not more.text and mark != desk.mark(projection.path)):
        return False
    desk.keep(DocumentState(place, mark, more.note))
    return True


def _rewritten(
    desk: Desk,
    projection: Projection,
    state: DocumentState | None,
    news: _News,
    facts: Facts,
) -> bool:
    place = news.place
    files = _Files(desk, state.note if state is not None and news.past is None else "")
    done = projection.rewrite(files, news.fresh, news.past, facts)
    mark = files.mark(projection.path)
    for path, text in done.texts.items():
        if text == files.text(path):
            continue
        main = path == projection.path
        intend = partial(_intend, desk, state, place, done.note) if main else _nothing
        written = desk.replace(path, files.mark(path), text, intend, flushed=done.flushed)
        if written is None:
            return False
        mark = written if main else mark
    desk.keep(DocumentState(place, mark, done.note))
    return True


def _intend(desk: Desk, state: DocumentState | None, place: str, note: str, written: str) -> None:
    desk.intend(state, DocumentState(place, written, note))


def _nothing(_written: str) -> None:
    """Files beside the document have no state of their own."""
