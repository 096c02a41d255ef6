"""The documents of a data directory: they follow the log under their locks. Must not know any single document."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from aof.core.errors.base import AofError
from aof.core.model.ids import is_task_id
from aof.documents.projection import Facts, Projection, lock_of
from aof.ports.store import Scope, ScopeTooNarrow
from aof.stores.base import documents
from aof.stores.filesystem.documents.desk import FileDesk, ReadOnlyDesk, text_of
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.working_copy import markdown

if TYPE_CHECKING:
    from aof.stores.filesystem.io.locks import HeldLock
    from aof.stores.filesystem.parts import Parts


class Documents:
    """What one process has of them."""

    def __init__(self, parts: Parts, boot: str, *, durable: bool) -> None:
        self._parts = parts
        self._boot = boot
        self._durable = durable
        self._thought: dict[str, tuple[str, int]] = {}

    def follow(self, projection: Projection, held: list[HeldLock], facts: Facts) -> None:
        """Let a document catch up under its lock, which must be held and must not have been deleted."""
        if not self._parts.repairs:  # what the files lack is only thought of
            documents.follow(ReadOnlyDesk(self._parts.paths, self._parts.reader, self._thought), projection, facts)
            return
        name = lock_of(projection.name)
        lock = next((one for one in held if one.name == name), None)
        if lock is None or not os.fstat(lock.fd).st_nlink:
            raise ScopeTooNarrow(Scope(names=frozenset({name})))
        documents.follow(
            FileDesk(self._parts, lock, projection.path, self._boot, durable=self._durable), projection, facts
        )

    def foreseen(self, projection: Projection, paths: Iterable[str], facts: Facts) -> dict[str, str]:
        """What the files would be after the document caught up; nothing is written."""
        thought: dict[str, tuple[str, int]] = {}
        documents.follow(ReadOnlyDesk(self._parts.paths, self._parts.reader, thought), projection, facts)
        return {path: thought[path][0] if path in thought else text_of(self._parts.paths, path)[0] for path in paths}

    def text(self, path: str) -> str:
        """A document's file as it lies there."""
        thought = None if self._parts.repairs else self._thought.get(path)
        return text_of(self._parts.paths, path)[0] if thought is None else thought[0]

    def title(self, task_id: str) -> str | None:
        """The title of a task, from its file as it lies there."""
        parts = self._parts
        head = parts.heads.get(task_id) if is_task_id(task_id) else None
        if head is None:
            return None
        with suppress(OSError, AofError):
            data = read(parts.paths.task(head.folder, task_id))
            return markdown.parse(data).title if data is not None else None
        return None
