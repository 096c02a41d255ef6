"""Brings the files of a document up to date with the log, whatever store keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from aof.documents.projection import Facts, PastEvents, Projection
from aof.errors import Unavailable
from aof.kernel.events import Event

_TRIES = 20


class DocumentState(msgspec.Struct, frozen=True):
    """Where the log stood and what the file looked like when the document was last written, in the store's words."""

    place: str
    mark: str
    note: str = ""


class StoredDocument(Protocol):
    """One document as a store keeps it: its files, and how far in the log they are. Its lock is held."""

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

    def replace(self, path: str, mark: str, text: str, written: Callable[[str], None], *, flushed: bool) -> str | None:
        """Write a file anew, durably, if it still looks so; how it looks then, which `written` is told before."""
        ...


def follow_log(document: StoredDocument, projection: Projection, facts: Facts) -> str:
    """Let a document catch up, and answer with the projection's note. The caller holds its lock."""
    for _ in range(_TRIES):
        if (note := _catch_up(document, projection, facts)) is not None:
            return note
    raise Unavailable(
        f"somebody else goes on writing {projection.path}",
        "save it, then try again; the log has everything",
    )


def _catch_up(document: StoredDocument, projection: Projection, facts: Facts) -> str | None:
    """Append what is new, or write the files anew; None where somebody else has written one meanwhile."""
    state = document.state()
    place, fresh = document.fresh(state, projection.types)
    mark = document.mark(projection.path)
    as_left = state is not None and state.mark == mark
    if state is not None and not fresh and as_left:
        if place != state.place:
            document.keep(DocumentState(place, mark, state.note))
        return state.note
    if state is not None and fresh and (more := projection.extend(state.note, fresh, facts)) is not None:
        after = document.append(projection.path, state.mark, more.text) if more.text else state.mark
        if after is not None and (more.text or after == document.mark(projection.path)):
            document.keep(DocumentState(place, after, more.note))
            return more.note
    past = None
    if not as_left:
        before = place if state is None else state.place
        past = PastEvents(document.past(before, projection.types), applied=state is not None)
    files = _FilesAsRead(document, state.note if state is not None and past is None else "")
    done = projection.rewrite(files, fresh, past, facts)
    mark = files.read(projection.path)[1]

    def intend(written: str) -> None:
        document.intend(state, DocumentState(place, written, done.note))

    for path, text in done.texts.items():
        before_text, before_mark = files.read(path)
        if text == before_text:
            continue
        is_main = path == projection.path  # files beside it have no state of their own
        written = document.replace(
            path, before_mark, text, intend if is_main else lambda _written: None, flushed=done.flushed
        )
        if written is None:
            return None
        mark = written if is_main else mark
    document.keep(DocumentState(place, mark, done.note))
    return done.note


class _FilesAsRead:
    """The files as they were first read, so that a change of any of them is noticed."""

    def __init__(self, document: StoredDocument, note: str) -> None:
        self._document = document
        self.note = note
        self._read: dict[str, tuple[str, str]] = {}

    def text(self, path: str) -> str:
        """The text of a file."""
        return self.read(path)[0]

    def read(self, path: str) -> tuple[str, str]:
        """The text of a file, and what it looked like."""
        if path not in self._read:
            self._read[path] = self._document.read(path)
        return self._read[path]
