"""Are the caches right: heads, index and counter? Where not, they are rebuilt; what is merely behind is fine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from aof.core.model.ids import is_task_id, split_task_id
from aof.ports.store import Scope
from aof.ports.working_copy import Problem
from aof.stores.base.fold import Folded
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.index import file, schema
from aof.stores.filesystem.io.paths import folder_of
from aof.stores.filesystem.store import FilesystemStore

_REBUILDS = "'aof doctor --fix' rebuilds it"
_RECORDS = f"SELECT {schema.name()}, record FROM tasks"


def check(case: Case) -> list[DoctorFinding]:
    """The caches that are wrong."""
    return [*_heads(case), *_index(case), *_counter(case)]


def _heads(case: Case) -> Iterator[DoctorFinding]:
    store = case.store
    suspects = [task_id for task_id, one in case.folded.items() if not _is_head(store, one)]
    wrong = [task_id for task_id in store.working_copy.preloaded(suspects) if not _is_head_now(store, task_id)]
    wrong = [task_id for task_id in wrong if not _is_late(case, task_id)]
    if not wrong:
        return

    def rebuild(_now: int) -> None:
        for task_id in wrong:
            with store.unit(Scope(write=frozenset({task_id}))):
                one = store.folded(task_id)
                if one.task is not None:
                    store.heads.put(task_id, one.task.rev, folder_of(one.task), next(iter(one.last_files.values())))

    what = f"the table of heads is wrong about {len(wrong)} tasks, such as {wrong[0]}"
    yield DoctorFinding(Problem("heads_wrong", "locks/heads", what, _REBUILDS), 4, rebuild, tuple(wrong))


def _is_head(store: FilesystemStore, one: Folded) -> bool:
    head = store.heads.get(one.task.id) if one.task is not None else None
    if head is None or one.task is None:
        return one.task is None
    mark = next(iter(one.last_files.values()), "")
    return (head.rev, head.folder) == (one.task.rev, folder_of(one.task)) and mark.startswith(head.digest)


def _is_head_now(store: FilesystemStore, task_id: str) -> bool:
    with store.unit(Scope(read=frozenset({task_id}))):
        return _is_head(store, store.folded(task_id))


def _is_late(case: Case, task_id: str) -> bool:
    """Whether the version came with its file from elsewhere, as `git pull` brings them: its head is noted by and by."""
    one, head = case.folded[task_id], case.store.heads.get(task_id)
    if one.task is None or (head is not None and head.rev > one.task.rev):
        return False
    if _is_head(case.store, one):  # noted while we looked
        return True
    here = case.scan.places.get(task_id) == [folder_of(one.task)]
    return here and case.scan.digests[task_id] in one.last_files.values() and case.store.lane_names.several()


def _index(case: Case) -> Iterator[DoctorFinding]:
    """Compare the rows with the log as far as the index has come; a missing or late index catches up by itself."""
    store = case.store
    held = store.locks.take(file.LOCK, exclusive=False)
    try:
        wrong = _wrong_rows(case)
    finally:
        store.locks.release((held,))
    wrong = {task_id for task_id in store.working_copy.preloaded(sorted(wrong)) if _still(case, task_id)}
    if wrong:
        what = f"the index is wrong about {len(wrong)} tasks, such as {min(wrong)}"
        yield DoctorFinding(
            Problem("index_wrong", "index.sqlite", what, _REBUILDS), 4, lambda _now: store.index.rebuild()
        )


def _still(case: Case, task_id: str) -> bool:
    """Whether the task has not changed since the log was read; else the index may well know more than that."""
    one = case.folded.get(task_id) or Folded()
    now = case.store.folded(task_id).task if is_task_id(task_id) else None
    return (now.rev if now else 0) == (one.task.rev if one.task else 0)


def _wrong_rows(case: Case) -> set[str]:
    if not os.path.isfile(case.store.paths.index):
        return {"all of them"} if os.path.lexists(case.store.paths.index) else set()
    database = None
    try:
        database = sqlite3.connect(f"file:{case.store.paths.index}?mode=ro", uri=True)
        version, seq = database.execute("SELECT version, seq FROM meta").fetchone() or (0, 0)
        if version != schema.VERSION:
            return set()
        found = {task_id: schema.record(blob) for task_id, blob in database.execute(_RECORDS)}
        edges = {(task, blocker) for task, blocker in database.execute("SELECT task, blocker FROM edges")}
    except (sqlite3.DatabaseError, msgspec.DecodeError):
        return {"all of them"}
    finally:
        if database is not None:
            database.close()
    tasks = {task_id: one.task for task_id, one in case.folded.items() if one.task is not None and one.task.rev <= seq}
    wrong = {
        task_id
        for task_id, task in tasks.items()
        if found.get(task_id) != msgspec.structs.replace(task, body="", layout=None)
        or {(task_id, blocker) for blocker in task.depends_on} - edges
    }
    wrong |= {task for task, blocker in edges if task in tasks and blocker not in tasks[task].depends_on}
    return wrong | (found.keys() - case.folded.keys())


def _counter(case: Case) -> Iterator[DoctorFinding]:
    store = case.store
    last = store.counter.peek()
    if last is None:
        return
    day, number = last
    numbers = store.clone.numbers()
    used = [split_task_id(task_id) for task_id in {*case.folded, *case.scan.places}]
    highest = numbers.last({given for on, given in used if on == day})
    if highest > number and numbers.room(number):
        what = f"the next ID would be {number + 1}, but {highest} is taken"
        problem = Problem("counter_behind", "locks/counter", what, _REBUILDS)
        yield DoctorFinding(problem, 4, lambda _now: store.counter.forget())


def sweep(store: FilesystemStore) -> None:
    """Remove temporary files that dead writers left; they harm nobody."""
    held = store.stripes.take_all()
    try:
        held += store.locks.acquire_all([(file.LOCK, True)])
        for entry in os.scandir(store.paths.temporary):
            if entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    store.disk.unlink(entry.path)
    finally:
        store.locks.release(held)
