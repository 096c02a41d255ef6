"""Finds histories of several clones that are not merged yet; until they are, nothing else can be checked.

Git has brought files of both: a task may lie in two folders, and files may hold the marks of a merge. Only a merge of
the histories settles that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aof.documents.rebuilding.marks import is_marked, whole_sides
from aof.ports.working_copy import Problem
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.io.paths import DOCUMENTS
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.store import FilesystemStore

_SHOWN = 20
MERGE = "run 'aof merge', then 'git add -A .aof' and 'git commit'"


def check(case: Case) -> list[DoctorFinding]:
    """What waits for a merge: histories, or where there is one, documents that the merge driver keeps versions in."""
    tips = case.store.working_copy.tips()
    documents = [f"{case.store.paths.root}/{name}" for name in DOCUMENTS]
    return list(_waiting(case, tips, documents) if tips > 1 else _marked(case, documents, whole_sides))


def _waiting(case: Case, tips: int, documents: list[str]) -> Iterator[DoctorFinding]:
    store = case.store
    what = f"{tips} clones have written to the log since their histories were last merged"
    yield DoctorFinding(Problem("several_histories", "events/", what, MERGE), 1, lambda _now: _merge(store))
    doubled = [(task_id, places) for task_id, places in sorted(case.scan.places.items()) if len(places) > 1]
    for task_id, places in doubled[:_SHOWN]:
        where = ", ".join(store.paths.relative(store.paths.task(place, task_id)) for place in places)
        what = f"{task_id} lies in several folders: its clones have it in different states"
        yield DoctorFinding(Problem("task_in_two_folders", where, what, MERGE))
    files = [store.paths.task(place, one) for one in case.scan.changed for place in case.scan.places.get(one, ())]
    yield from _marked(case, [*files, *documents], lambda data: is_marked(data.decode("utf-8", "replace")))


def _marked(case: Case, paths: list[str], holds_marks: Callable[[bytes], object]) -> Iterator[DoctorFinding]:
    marked = [path for path in paths if _holds(path, holds_marks)]
    for path in marked[:_SHOWN]:
        what = "it has conflict markers of git"
        yield DoctorFinding(Problem("conflict_marks", case.store.paths.relative(path), what, MERGE))


def _merge(store: FilesystemStore) -> None:
    store.working_copy.merge(dry_run=False)


def _holds(path: str, holds_marks: Callable[[bytes], object]) -> bool:
    try:
        data = read(path)
    except OSError:
        return False
    return data is not None and bool(holds_marks(data))
