"""Which handoffs wait for an answer. Must not know when one is late.

Only tasks that were handed to somebody are looked at, and each again only when it has changed: every answer raises a
task's version.
"""

from __future__ import annotations

from collections.abc import Iterable

from aof.core.handoffs import unanswered
from aof.core.model.handoffs.record import Handoff
from aof.core.model.task import Task
from aof.ports.store import Store


class Pending:
    """Remembers what it has read for as long as a task stays as it was."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, Handoff | None]] = {}

    def among(self, tasks: Iterable[Task]) -> tuple[Handoff, ...]:
        """The handoffs of these tasks that have no answer and of which nothing was said yet, in the tasks' order."""
        handed = [task for task in tasks if any(link.kind == "handoff" for link in task.links)]
        self._known = {task.id: self._looked(task) for task in handed}
        return tuple(handoff for _, handoff in self._known.values() if handoff is not None)

    def _looked(self, task: Task) -> tuple[int, Handoff | None]:
        known = self._known.get(task.id)
        if known is not None and known[0] == task.rev:
            return known

        last = next(reversed(self._store.handoffs((task,))), None)
        waits = last is not None and last.state == "requested" and not unanswered.is_said(task, last.id)
        return task.rev, last if waits else None
