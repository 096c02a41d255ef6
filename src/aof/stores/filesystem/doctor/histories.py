"""Finds histories of several clones that are not merged yet; until they are, nothing else can be checked.

Git has brought files of both: a task may lie in two folders, and files may hold the marks of a merge. Only a merge of
the histories settles that.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.documents.rebuilding.marks import is_marked
from aof.ports.working_copy import Problem
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.io.paths import DOCUMENTS
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.store import FilesystemStore

_SHOWN = 20
MERGE = "run 'aof merge', then 'git add -A .aof' and 'git commit'"


def check(case: Case) -> list[DoctorFinding]:
    """What waits for a merge; nothing where there is one history."""
    tips = case.store.working_copy.tips()
    return [] if tips == 1 else list(_waiting(case, tips))


def _waiting(case: Case, tips: int) -> Iterator[DoctorFinding]:
    store = case.store
    what = f"{tips} clones have written to the log since their histories were last merged"
    yield DoctorFinding(Problem("several_histories", "events/", what, MERGE), 1, lambda _now: _merge(store))
    doubled = [(task_id, places) for task_id, places in sorted(case.scan.places.items()) if len(places) > 1]
    for task_id, places in doubled[:_SHOWN]:
        where = ", ".join(store.paths.relative(store.paths.task(place, task_id)) for place in places)
        what = f"{task_id} lies in several folders: its clones have it in different states"
        yield DoctorFinding(Problem("task_in_two_folders", where, what, MERGE))
    files = [store.paths.task(place, one) for one in case.scan.changed for place in case.scan.places.get(one, ())]
    marked = [path for path in (*files, *(f"{store.paths.root}/{name}" for name in DOCUMENTS)) if _holds_marks(path)]
    for path in marked[:_SHOWN]:
        what = "it has conflict markers of git"
        yield DoctorFinding(Problem("conflict_marks", store.paths.relative(path), what, MERGE))


def _merge(store: FilesystemStore) -> None:
    store.working_copy.merge(dry_run=False)


def _holds_marks(path: str) -> bool:
    try:
        data = read(path)
    except OSError:
        return False
    return data is not None and is_marked(data.decode("utf-8", "replace"))
