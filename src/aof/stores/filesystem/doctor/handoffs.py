"""Handoffs: records that are not what the log says, and files that their tasks lack.

What lies among a task's own files may have been changed on purpose, so only what is missing there counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from aof.ports.store import Scope
from aof.ports.working_copy import Problem
from aof.stores.base.fold import Folded
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.io.paths import folder_of
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.records.handoffs import record
from aof.stores.filesystem.store import FilesystemStore


def check(case: Case) -> list[DoctorFinding]:
    """Look at all, and at what is odd once more under its lock."""
    handed = ((task_id, one) for task_id, one in case.folded.items() if one.handoffs)
    suspects = [task_id for task_id, one in handed if any(True for _ in _odd(case.store, one))]
    return [
        _finding(case.store, task_id, path)
        for task_id in case.store.working_copy.preloaded(suspects)
        for path in _again(case.store, task_id)
    ]


def _again(store: FilesystemStore, task_id: str) -> list[str]:
    with store.unit(Scope(read=frozenset({task_id}))):
        return list(_odd(store, store.folded(task_id)))


def _odd(store: FilesystemStore, folded: Folded) -> Iterator[str]:
    assert folded.task is not None
    for name, handoff in folded.handoffs.items():
        path = store.paths.handoff(name)
        if _content(path) != record(handoff):
            yield path
    if store.files.present(folded.task.id) != [folder_of(folded.task)]:
        return  # a person is moving it; its files are looked for afterwards
    for place in folded.attached:
        path = f"{store.paths.files(folder_of(folded.task), folded.task.id)}/{place}"
        if not os.path.lexists(path):
            yield path


def _content(path: str) -> bytes | None:
    try:
        return read(path)
    except OSError:
        return None


def _finding(store: FilesystemStore, task_id: str, path: str) -> DoctorFinding:
    def restore(_now: int) -> None:
        with store.unit(Scope(write=frozenset({task_id}))) as unit:
            task = unit.task(task_id)
            if os.path.lexists(path):
                store.files.keep_beside(path, f"{store.paths.torn}/{os.path.basename(path)}")
            if task is not None and unit.edit(task_id) is None:
                store.handed.redo(store.folded(task_id), folder_of(task))

    what = "is not what the log says" if os.path.lexists(path) else "is missing"
    fix = "'aof doctor --fix' restores it from the log"
    problem = Problem("handoff_file", store.paths.relative(path), f"a file of a handoff of {task_id} {what}", fix)
    return DoctorFinding(problem, 3, restore, (task_id,))
