"""The questions of a unit of work about what belongs to a task: runs, results, handoffs, its own files.

Must not change anything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aof.core.errors.base import AofError
from aof.core.model import workflow_state
from aof.core.model.run import Heartbeat, Run, RunResult, attributed
from aof.core.model.task import Task
from aof.stores.filesystem.io import measure
from aof.stores.filesystem.loaded_task import Loaded

if TYPE_CHECKING:
    from aof.core.model.handoffs.record import Handoff
    from aof.stores.filesystem.store import FilesystemStore


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
            return attributed(found, dict(workflow_state.held_leases(task)).get(task_id))
        return found

    def heartbeat(self, task_id: str) -> Heartbeat | None:
        """The last sign of life."""
        task = self.task(task_id.partition("/")[0])
        if task is None:
            return None
        return self._store.files.read_run(task_id, "run_heartbeat.json", Heartbeat, archived=task.archived)

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
