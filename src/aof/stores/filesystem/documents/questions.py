"""What a unit of work does with documents. Must not know any single document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aof.documents.projection import Facts, Projection
    from aof.stores.filesystem.io.locks import HeldLock
    from aof.stores.filesystem.store import FilesystemStore


class DocumentQuestions:
    """A part of the unit of work."""

    _store: FilesystemStore
    _held: list[HeldLock]

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds."""
        raise NotImplementedError

    def follow(self, projection: Projection) -> None:
        """Let a document's files catch up with the log."""
        facts: Facts = self
        self._store.documents.follow(projection, self._held, facts)

    def document(self, path: str) -> str:
        """The text of a document's file, as it lies there."""
        return self._store.documents.text(path)

    def foreseen(self, projection: Projection, paths: Iterable[str]) -> dict[str, str]:
        """What the files would be after the document caught up; nothing is written."""
        facts: Facts = self
        return self._store.documents.foreseen(projection, paths, facts)

    def title(self, task_id: str) -> str | None:
        """The title of a task, from its file as it lies there."""
        return self._store.documents.title(task_id)
