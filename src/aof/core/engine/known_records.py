"""What is known while a command's needs are still being found out. Must not know any command."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aof.core.model.ids import is_task_id
from aof.core.model.lifecycle import FINISHED
from aof.core.model.records import Needs, Records
from aof.core.model.task import Task


class Known:
    """What has been loaded so far, with nothing instead of an error for what has not."""

    def __init__(self, records: Records) -> None:
        self.records = msgspec.structs.replace(records, tasks=_Loaded(records.tasks))

    def task(self, task_id: str) -> Task | None:
        """The task, if it has been loaded and is there."""
        return self.records.look(task_id)

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below, as far as known."""
        return self.records.children.get(task_id, ())

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for it, as far as known."""
        return self.records.dependents.get(task_id, ())

    def above(self, task_id: str) -> set[str]:
        """Every ancestor, once they have been asked for."""
        return ids(self.records.above.get(task_id, ()))

    def gatekeepers(self, parent_id: str | None) -> Needs:
        """The tasks that decide whether a task may be created or run below the parent.

        A cancellation reaches every unfinished task below it in the same commit, so an unfinished parent answers for
        all that stands above it. A finished one is passed over by the cancellation: then all ancestors are asked.
        """
        parent = ids([parent_id])
        tasks = [task for task in map(self.task, parent) if task is not None]
        finished = frozenset(task.id for task in tasks if task.status in FINISHED)
        return Needs(read=frozenset(parent.union(*map(self.above, finished))), above=finished)


class _Loaded(dict[str, Task | None]):
    """Tasks by ID, None for those that have not been loaded."""

    def __missing__(self, key: str) -> None:
        return None


def ids(found: Iterable[object]) -> set[str]:
    """Those that can be task IDs; the others name nothing that could be loaded."""
    return {task_id for task_id in found if isinstance(task_id, str) and is_task_id(task_id)}
