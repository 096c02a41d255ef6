"""All events of single tasks, for what looks at many tasks in a row. Must not know what the events are read for."""

from __future__ import annotations

from collections.abc import Iterable

from aof.core.events import Event
from aof.stores.filesystem.reader import Position, Reader


class Histories:
    """Reads the log once for many tasks that are announced, and once for each that is not."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: tuple[Position, dict[str, list[Event]]] = (Position(), {})

    def of(self, task_id: str) -> list[Event]:
        """Everything that the log has of a task now."""
        until, known = self._known
        kept = known.get(task_id)
        if kept is None:
            return list(self._reader.of_tasks((task_id,)))
        last = kept[-1].seq if kept else 0
        return kept + [event for event in self._reader.of_tasks((task_id,), until) if event.seq > last]

    def announce(self, task_ids: Iterable[str], until: Position) -> None:
        """These will be asked for; the log reaches to that position at least. Forgets those announced before."""
        kept: dict[str, list[Event]] = {task_id: [] for task_id in task_ids}
        if kept:
            for event in self._reader.of_tasks(kept):
                kept[event.task_id].append(event)
        self._known = until, kept
