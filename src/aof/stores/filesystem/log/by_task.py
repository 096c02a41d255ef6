"""All events of single tasks, for what looks at many tasks in a row. Must not know what the events are read for."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from aof.core.model.events import Event
from aof.stores.filesystem.log.reader import Position, Reader


class Histories:
    """Reads the log once for many tasks that are announced, and once for each that is not. Safe for several threads."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._turn = threading.Lock()
        self._until = Position()
        self._known: dict[str, list[Event]] = {}

    def of(self, task_id: str) -> list[Event]:
        """Everything that the log has of a task now."""
        with self._turn:
            if task_id in self._known:
                self._go_on()
                return list(self._known[task_id])
        return list(self._reader.of_tasks((task_id,)))

    def announce(self, task_ids: Iterable[str], until: Position) -> None:
        """These will be asked for; the log reaches to that position at least. Forgets those announced before."""
        kept: dict[str, list[Event]] = {task_id: [] for task_id in task_ids}
        if kept:
            for event in self._reader.of_tasks(kept):
                kept[event.task_id].append(event)
        with self._turn:
            self._until, self._known = until, kept

    def _go_on(self) -> None:
        """Take in what was appended since, for all that were announced; what was read then may be in there again."""
        for here, lines in self._reader.commits(self._until):
            self._until = here
            for _, event in lines:
                kept = self._known.get(event.task_id)
                if kept is not None and (not kept or kept[-1].seq < event.seq):
                    kept.append(event)
