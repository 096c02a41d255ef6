"""Documents without files: texts that follow the log in memory. Must not know any single document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from aof.core.model.events import Event
from aof.stores.base.documents import DocumentState


class Shelf(Protocol):
    """What is kept of documents, each text with the number of its version, and the log."""

    texts: dict[str, tuple[str, int]]
    states: dict[str, DocumentState]

    @property
    def log(self) -> Sequence[Event]:
        """Every event."""
        ...


class MemoryDesk:
    """Keeps the contract of `stores.base.documents.Desk`. The caller holds the store's lock."""

    def __init__(self, shelf: Shelf, name: str) -> None:
        self._shelf = shelf
        self._name = name

    def state(self) -> DocumentState | None:
        """What was kept last; in the beginning nothing was applied."""
        return self._shelf.states.get(self._name, DocumentState("0", ""))

    def keep(self, state: DocumentState) -> None:
        """Remember it."""
        self._shelf.states[self._name] = state

    def fresh(self, state: DocumentState | None, types: tuple[str, ...]) -> tuple[str, list[Event]]:
        """The events behind the number that was kept."""
        start = 0 if state is None else int(state.place)
        log = self._shelf.log
        return str(len(log)), [event for event in log[start:] if event.type.startswith(types)]

    def past(self, place: str, types: tuple[str, ...]) -> Iterator[Event]:
        """The events up to a number, newest first."""
        return (event for event in reversed(self._shelf.log[: int(place)]) if event.type.startswith(types))

    def mark(self, path: str) -> str:
        """The number of its version."""
        return str(self._shelf.texts[path][1]) if path in self._shelf.texts else ""

    def read(self, path: str) -> tuple[str, str]:
        """The text and its version."""
        return self._shelf.texts.get(path, ("", 0))[0], self.mark(path)

    def append(self, path: str, mark: str, text: str) -> str | None:
        """Add to the text."""
        return self.replace(path, mark, self.read(path)[0] + text, str) if mark else None

    def intend(self, before: DocumentState | None, after: DocumentState) -> None:
        """Nobody dies in between."""

    def replace(
        self,
        path: str,
        mark: str,
        text: str,
        written: Callable[[str], object],  # noqa: ARG002 - the contract's form
        *,
        flushed: bool = True,  # noqa: ARG002 - the contract's form
    ) -> str | None:
        """Put another text in its place."""
        if mark != self.mark(path):
            return None
        self._shelf.texts[path] = (text, int(mark or 0) + 1)
        return self.mark(path)
