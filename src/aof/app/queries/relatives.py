"""Tasks and those around them: which is whose child, and what a task's relatives are. Must not change anything."""

from __future__ import annotations

from collections.abc import Sequence

from aof.app.portable.service import Snapshots
from aof.app.queries import graph
from aof.core.model import run
from aof.ports import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.queries.read_models import Reading
    from aof.core.model.task import Task


class Families(Snapshots):
    """Questions about relatives; a part of the fabric."""

    _reading: Reading

    def tasks(self, **filters: Any) -> tuple[Task, ...]:
        """Whole records, without their bodies: for who draws more of a task than a row has."""
        return self.store.find(self._reading.query(**filters)).tasks

    def branches(self, **filters: Any) -> list[tuple[str, str]]:
        """The IDs of the tasks that match, children below their parents, each with the branch that leads to it."""
        return graph.branches({task.id: task.parent_id for task in self.tasks(**filters)})

    def relatives(self, task_ids: Sequence[str]) -> dict[str, Task]:
        """Some tasks as the log knows them; whatever is not there, or waits with an edit, is left out."""
        found: dict[str, Task] = {}
        for task_id in task_ids:
            try:
                with self.store.unit(store.Scope(read=frozenset({task_id}))) as unit:
                    task = unit.task(task_id)
            except store.ScopeTooNarrow:
                continue
            if task is not None:
                found[task_id] = task
        return found

    def lease_ends(self, task_ids: Sequence[str]) -> dict[str, int]:
        """When each lease ends, in UTC milliseconds, with the last sign of life counted in."""
        ends: dict[str, int] = {}
        for task_id in task_ids:
            try:
                with self.store.unit(store.Scope(read=frozenset({task_id}))) as unit:
                    task = unit.task(task_id)
                    if task is not None and task.lease is not None:
                        ends[task_id] = run.lease_end(task.lease, unit.heartbeat(task_id))
            except store.ScopeTooNarrow:
                continue
        return ends
