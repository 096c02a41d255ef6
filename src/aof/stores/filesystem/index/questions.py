"""The questions of a unit of work that the index answers: relatives, holders, keys. Must not change anything."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aof.core.model.task import FileLock
    from aof.stores.filesystem.store import FilesystemStore


class IndexQuestions:
    """A part of the unit of work."""

    _store: FilesystemStore

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below."""
        return self._store.index.children(task_id)

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for this one."""
        return self.dependents_of((task_id,))[task_id]

    def above(self, task_id: str) -> tuple[str, ...]:
        """The ancestors, from the parent up."""
        return self._store.index.above(task_id)

    def tree(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """The children of the task and of everything below it."""
        return self._store.index.tree(task_id)

    def dependents_of(self, task_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The tasks that wait for each of these."""
        asked = [task_id for task_id in task_ids if self._store.waited.may_have_dependents(task_id)]
        found = self._store.index.dependents_of(asked) if asked else {}
        return {task_id: found.get(task_id, ()) for task_id in task_ids}

    def reachable(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """All dependency edges on the ways that lead from this task."""
        return self._store.index.reachable(task_id)

    def resource_holders(self, resource: str) -> tuple[str, ...]:
        """The running tasks that occupy the resource."""
        return self._store.index.resource_holders(resource)

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds."""
        return self._store.index.held_by(agent)

    def file_locks(self) -> dict[str, tuple[FileLock, ...]]:
        """The locks on files, by the running tasks that hold them."""
        return {task.id: task.locks for task in self._store.index.locking()}

    def key_owner(self, key: str) -> str | None:
        """The task that was created with this key."""
        return self._store.index.key_owner(key)
