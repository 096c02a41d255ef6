"""What a unit of work asks beside its tasks: relatives, holders and keys, documents, handoffs and other records.

Must not change anything but documents, nor know any single one of them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from aof.core.errors.base import AofError
from aof.core.model import workflow
from aof.core.model.numbers import Numbers
from aof.core.model.run import Heartbeat, Run, RunResult, attributed
from aof.core.model.task import Task
from aof.stores.filesystem.io import measure
from aof.stores.filesystem.loaded_task import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.handoffs.record import Handoff
    from aof.core.model.task import FileLock
    from aof.documents.projection import Facts, Projection
    from aof.stores.filesystem.io.locks import HeldLock
    from aof.stores.filesystem.store import FilesystemStore


class IndexQuestions:
    """A part of the unit of work."""

    _store: FilesystemStore

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below."""
        return self._store.index.children(task_id) if self._store.waited.may_have_dependents(task_id) else ()

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


class RecordQuestions:
    """A part of the unit of work."""

    _store: FilesystemStore

    def task(self, task_id: str) -> Task | None:
        """The task as the log knows it."""
        raise NotImplementedError

    def _load(self, task_id: str) -> Loaded:
        raise NotImplementedError

    def run(self, task_id: str) -> Run | None:
        """The current or last run, from its file, else from the log."""
        task = self.task(task_id)
        if task is None or not task.retry.attempts:
            return None
        found = self._store.files.read_run(task_id, "run.json", Run, archived=task.archived)
        if found is not None and found.attempt == task.retry.attempts:
            return found
        return self._store.folded(task_id).run

    def result(self, task_id: str) -> RunResult | AofError | None:
        """What the current or last run has reported, if it has; an error where its file makes no sense."""
        task = self.task(task_id.partition("/")[0])
        if task is None:
            return None
        found = self._store.files.read_result(task_id, archived=task.archived)
        if isinstance(found, RunResult) and not found.run_id:
            return attributed(found, dict(workflow.held_leases(task)).get(task_id))
        return found

    def heartbeat(self, task_id: str) -> Heartbeat | None:
        """The last sign of life."""
        task = self.task(task_id.partition("/")[0])
        if task is None:
            return None
        return self._store.clone.last_sign(self._store.files, task_id, archived=task.archived)

    def numbers(self) -> Numbers:
        """How this clone numbers what it makes."""
        return self._store.clone.numbers()

    def handoffs(self, task_id: str) -> tuple[Handoff, ...]:
        """The handoffs of the task, from their files, else from the log."""
        task = self.task(task_id)
        return self._store.handed.of(task) if task is not None else ()

    def lacks(self, task_id: str, ref: str) -> bool:
        """Whether a file that should be among the task's own is not there."""
        folder = self._load(task_id).folder
        return folder is None or not os.path.isfile(f"{self._store.paths.files(folder, task_id)}/{ref}")

    def size(self, task_id: str, ref: str) -> tuple[int, int]:
        """How many files and lines a path among the task's own files has."""
        folder = self._load(task_id).folder
        return (1, 0) if folder is None else measure.measured(self._store.paths.files(folder, task_id), ref)

    def digest(self, task_id: str, ref: str) -> str | None:
        """The SHA-256 of one of the task's own files."""
        folder = self._load(task_id).folder
        return None if folder is None else measure.content_digest(self._store.paths.files(folder, task_id), ref)
