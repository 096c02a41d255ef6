"""Is every task's file what the log says? What a person did to one is left to the core, which judges edits."""

from __future__ import annotations

from aof.ports.store import Scope
from aof.ports.working_copy import Problem
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.doctor.log import restore, version_of
from aof.stores.filesystem.io.paths import folder_of
from aof.stores.filesystem.io.read import digest
from aof.stores.filesystem.store import FilesystemStore
from aof.stores.filesystem.working_copy import markdown
from aof.stores.filesystem.working_copy.changes import Examined, examine

_RESTORE = "'aof doctor --fix', or the next command on the task, restores it from the log"


def check(case: Case) -> tuple[list[DoctorFinding], list[str]]:
    """What is wrong, and which tasks wait with an edit."""
    found: list[DoctorFinding] = []
    edited: list[str] = []
    suspects = [task_id for task_id in sorted({*case.folded, *case.scan.places}) if not _as_expected(case, task_id)]
    for task_id in case.store.working_copy.preloaded(suspects):
        with case.store.unit(Scope(read=frozenset({task_id}))):
            examined = examine(case.store.paths, case.store.files, case.store.histories.of(task_id), task_id)
            finding = _finding(case.store, task_id, examined)
        if finding is not None:
            found.append(finding)
        if examined.edit is not None and (finding is None or finding.heal is None):
            edited.append(task_id)
    return found, edited


def _as_expected(case: Case, task_id: str) -> bool:
    """The quick look, at what was read before."""
    one = case.folded.get(task_id)
    if one is None or one.task is None or case.scan.places.get(task_id) != [folder_of(one.task)]:
        return False
    mark = case.scan.digests[task_id]
    return mark in one.last_files.values() or mark == digest(markdown.render(one.task))


def _finding(store: FilesystemStore, task_id: str, examined: Examined) -> DoctorFinding | None:
    task = examined.folded.task
    folders = store.files.present(task_id)
    where = ", ".join(store.paths.relative(store.paths.task(folder, task_id)) for folder in folders)
    if task is None and any(version_of(store, task_id, folder) for folder in folders):
        fix = "'aof doctor --fix' puts it into the log as the file has it"
        problem = Problem("task_not_in_log", where, f"the log knows nothing of {task_id}", fix)
        return DoctorFinding(problem, 2, lambda now: restore(store, task_id, now), (task_id,))
    if examined.problem is not None:
        error = examined.problem
        problem = Problem(error.code, where, error.message, error.hint)
        heal = (lambda _now: _aside(store, task_id)) if task is not None else None
        return DoctorFinding(problem, 2, heal, (task_id,))
    if examined.edit is not None and task is not None and len(folders) > 1:
        what = f"{task_id} lies in several folders, and somebody has changed one of the files"
        fix = "'aof doctor --fix', or the next command on the task, merges them and keeps what cannot be merged"
        return DoctorFinding(Problem("task_in_two_folders", where, what, fix))
    if examined.edit is not None or examined.intact or task is None:
        return None
    if not folders:
        where = store.paths.relative(store.paths.task(folder_of(task), task_id))
        problem = Problem("task_file_missing", where, f"the file of {task_id} is missing", _RESTORE)
    elif len(folders) > 1:
        problem = Problem("task_in_two_folders", where, f"{task_id} lies in several folders", _RESTORE)
    else:
        problem = Problem("task_file_differs", where, f"the file is an older version of {task_id}", _RESTORE)
    return DoctorFinding(problem, 2, lambda _now: _redo(store, task_id), (task_id,))


def _aside(store: FilesystemStore, task_id: str) -> None:
    store.working_copy.quarantine(task_id)


def _redo(store: FilesystemStore, task_id: str) -> None:
    with store.unit(Scope(write=frozenset({task_id}))):
        examined = examine(store.paths, store.files, store.histories.of(task_id), task_id)
        if examined.edit is None and examined.problem is None:
            store.redo.task(examined.folded)
