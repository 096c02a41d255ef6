"""Looks at runs: whether each task has one at a time, and whether their files are what the log says.

Signs of life are in no event, and are not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from aof.core.model.run import Run, attempt_folder
from aof.ports.store import Scope
from aof.ports.working_copy import Problem
from aof.stores.base.fold import Folded
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.store import FilesystemStore
from aof.stores.filesystem.working_copy.files import document


def check(case: Case) -> list[DoctorFinding]:
    """What is wrong."""
    return [*_doubled(case), *_unlike(case)]


def _doubled(case: Case) -> list[DoctorFinding]:
    """Runs that began while the one before had not ended: two agents hold the task. A person has to stop one."""
    return [
        DoctorFinding(_two_leases(*runs[-2:]), tasks=(task_id,))
        for task_id, one in case.folded.items()
        for runs in one.by_hop().values()
        if len(runs) > 1 and runs[-2].status == runs[-1].status == "running"
    ]


def _two_leases(first: Run, second: Run) -> Problem:
    what = (
        f"{first.agent_id} ({first.run_id}) and {second.agent_id} ({second.run_id}) were both given {first.task_id}, "
        "and neither has ended; the log's lease is the second one's"
    )
    fix = f"stop the run of {first.agent_id}, whose writes are refused, and keep what it has done with the task"
    return Problem("two_leases", f"runs/{first.task_id}", what, fix)


def _unlike(case: Case) -> list[DoctorFinding]:
    """Look at all files, and at what is odd once more under its lock."""
    suspects = [task_id for task_id, one in case.folded.items() if any(True for _ in _odd(case.store, one))]
    return [
        _finding(case.store, task_id, path, there=there)
        for task_id in case.store.working_copy.preloaded(suspects)
        for path, there in _again(case.store, task_id)
    ]


def _again(store: FilesystemStore, task_id: str) -> list[tuple[str, bool]]:
    with store.unit(Scope(read=frozenset({task_id}))):
        return list(_odd(store, store.folded(task_id)))


def _odd(store: FilesystemStore, folded: Folded) -> Iterator[tuple[str, bool]]:
    """Each file that is not as the log says, and whether there is one."""
    if folded.task is None or not folded.runs:
        return
    top = store.paths.run(folded.task.id, archived=folded.task.archived)
    last = {hop: runs[-1] for hop, runs in folded.by_hop().items()}
    for run in folded.runs:
        folder = top if run.hop is None else f"{top}/hops/{run.hop}"
        place = folder if run is last[run.hop] else f"{folder}/attempts/{attempt_folder(run)}"
        result = folded.results.get(run.run_id)
        for name, wanted in (("run.json", document(run)), ("run_result.json", document(result) if result else None)):
            found = _content(f"{place}/{name}")
            if found != wanted:
                yield f"{place}/{name}", found is not None


def _content(path: str) -> bytes | None:
    """None where there is nothing; what is not a file differs from everything."""
    try:
        return read(path)
    except OSError:
        return b"" if os.path.lexists(path) else None


def _finding(store: FilesystemStore, task_id: str, path: str, *, there: bool) -> DoctorFinding:
    def restore(_now: int) -> None:
        with store.unit(Scope(write=frozenset({task_id}))) as unit:
            for odd, exists in _odd(store, store.folded(task_id)):
                if exists:
                    store.files.keep_beside(odd, f"{store.paths.torn}/{task_id}.{os.path.basename(odd)}")
            if unit.edit(task_id) is None:
                store.redo.task(store.folded(task_id))

    what = "differs from what the log says" if there else "is missing"
    code = "run_file_differs" if there else "run_file_missing"
    where = store.paths.relative(path)
    fix = "'aof doctor --fix' restores it from the log"
    problem = Problem(code, where, f"the file of a run of {task_id} {what}", fix)
    return DoctorFinding(problem, 3, restore, (task_id,))
