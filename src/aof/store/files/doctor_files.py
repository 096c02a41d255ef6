"""What the doctor says of all that follows from the log: the files of tasks, runs and handoffs, and the caches.

What looks wrong at first is looked at once more, under the task's lock. Must not know what is wrong with the log.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec

from aof.errors import AofError
from aof.kernel.commands import ImportEdit
from aof.kernel.events import Draft
from aof.kernel.model import STATUSES, is_task_id, split_task_id
from aof.runs.model import attempt_folder
from aof.store.directory import Problem
from aof.store.files import markdown
from aof.store.files.changes import Examined, examine, same_task
from aof.store.files.definitions import ORG_CHART
from aof.store.files.disk import Seen, digest, read, seen, unfit
from aof.store.files.handoffs import handoff_bytes
from aof.store.files.index import index, schema
from aof.store.files.integrity import Scan
from aof.store.files.paths import folder_of
from aof.store.files.store import FilesystemStore
from aof.store.files.task_files import document
from aof.store.files.unit import Loaded
from aof.store.fold import Folded
from aof.store.port import Scope
from aof.tasks.model import Task
from aof.workflows.model import workflow_of

DOCTOR = "doctor"
_NOT_RESTORED = ("id", "rev", "updatedAt", "layout")
_ON_NEXT_COMMAND = "'aof doctor --fix', or the next command on the task, restores it from the log"
_RESTORES = "'aof doctor --fix' restores it from the log"
_REBUILDS = "'aof doctor --fix' rebuilds it"
_STATUSES = f"use one of: {', '.join(STATUSES)}"
_RECORDS = f"SELECT {schema.name()}, record FROM tasks"


class DoctorFinding(msgspec.Struct, frozen=True):
    """A problem; what repairs it (at a moment), if anything does; and the tasks whose events that reads again.

    Lower stages are repaired first, for one thing put right may show another.
    """

    problem: Problem
    stage: int = 0
    heal: Callable[[int], object] | None = None
    tasks: tuple[str, ...] = ()


class Case:
    """A data directory as it was read: what the log says of every task, and what lies in the folders."""

    __slots__ = ("folded", "scan", "store")

    def __init__(self, store: FilesystemStore, folded: dict[str, Folded], found: Scan) -> None:
        self.store = store
        self.folded = folded
        self.scan = found


def check_files(case: Case) -> tuple[list[DoctorFinding], list[str]]:
    """All that is wrong with files and caches, and the tasks that wait with an edit."""
    found, edited = _task_files(case)
    found += [
        *_other_entries(case),
        *_odd_folders(case),
        *_unfit_documents(case),
        *_double_leases(case),
        *_run_files(case),
        *_handoff_files(case),
        *_manifest(case),
        *_index(case),
        *_counter(case),
    ]
    return found, edited


def _task_files(case: Case) -> tuple[list[DoctorFinding], list[str]]:
    found: list[DoctorFinding] = []
    edited: list[str] = []
    suspects = [task_id for task_id in sorted({*case.folded, *case.scan.places}) if not _as_expected(case, task_id)]
    for task_id in case.store.working_copy.preloaded(suspects):
        with case.store.unit(Scope(read=frozenset({task_id}))):
            examined = examine(case.store.paths, case.store.files, case.store.histories.of(task_id), task_id)
            finding = _task_file(case.store, task_id, examined)
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


def _task_file(store: FilesystemStore, task_id: str, examined: Examined) -> DoctorFinding | None:
    task = examined.folded.task
    folders = store.files.present(task_id)
    where = ", ".join(store.paths.relative(store.paths.task(folder, task_id)) for folder in folders)
    if task is None and any(version_of(store, task_id, folder) for folder in folders):
        fix = "'aof doctor --fix' puts it into the log as the file has it"
        problem = Problem("task_not_in_log", where, f"the log knows nothing of {task_id}", fix)
        return DoctorFinding(problem, 2, lambda now: restore_task(store, task_id, now), (task_id,))
    if examined.problem is not None:
        error = examined.problem
        problem = Problem(error.code, where, error.message, error.hint)
        heal = (lambda _now: store.working_copy.quarantine(task_id)) if task is not None else None
        return DoctorFinding(problem, 2, heal, (task_id,))
    if examined.edit is not None and task is not None and len(folders) > 1:
        what = f"{task_id} lies in several folders, and somebody has changed one of the files"
        fix = "'aof doctor --fix', or the next command on the task, merges them and keeps what cannot be merged"
        return DoctorFinding(Problem("task_in_two_folders", where, what, fix))
    if examined.edit is not None or examined.intact or task is None:
        return None
    if not folders:
        where = store.paths.relative(store.paths.task(folder_of(task), task_id))
        problem = Problem("task_file_missing", where, f"the file of {task_id} is missing", _ON_NEXT_COMMAND)
    elif len(folders) > 1:
        problem = Problem("task_in_two_folders", where, f"{task_id} lies in several folders", _ON_NEXT_COMMAND)
    else:
        problem = Problem("task_file_differs", where, f"the file is an older version of {task_id}", _ON_NEXT_COMMAND)
    return DoctorFinding(problem, 2, lambda _now: _redo(store, task_id), (task_id,))


def version_of(store: FilesystemStore, task_id: str, folder: str) -> Task | None:
    """The task in a file that we once wrote, whether or not the log knows it."""
    try:
        data = read(store.paths.task(folder, task_id))
        task = markdown.parse(data, archived=folder == "archive") if data is not None else None
        if task is not None and task.gated:
            workflow_of(task)
    except (OSError, AofError, msgspec.ValidationError):
        return None
    return task if task is not None and task.id == task_id and task.rev > 0 else None


def restore_task(store: FilesystemStore, task_id: str, now: int) -> None:
    """Put a task into the log as its file has it: the newest, where there are several."""
    with store.unit(Scope(write=frozenset({task_id}))) as unit:
        examined = examine(store.paths, store.files, store.histories.of(task_id), task_id)
        states = {folder: seen(store.paths.task(folder, task_id)) for folder in store.files.present(task_id)}
        known = examined.folded.task
        versions = [
            (task, folder)
            for folder in states
            if (task := version_of(store, task_id, folder)) is not None and (known is None or same_task(known, task))
        ]
        if not versions:
            return
        task, examined.at = max(versions, key=lambda version: version[0].rev)
        examined.layout, examined.problem = task.layout, None
        examined.beside = [(folder, True) for folder in states if folder != examined.at]
        examined.seen = {folder: state for folder, state in states.items() if isinstance(state, Seen)}
        unit.assume(task_id, Loaded(examined.folded.task, examined.at, states[examined.at], examined))
        fields = {name: value for name, value in msgspec.to_builtins(task).items() if name not in _NOT_RESTORED}
        draft = Draft(
            type="task.restored", task_id=task_id, payload={"task": fields, "reason": "restored from its file"}
        )
        unit.take_in(ImportEdit(actor=DOCTOR, task_id=task_id), (draft,), now)


def _redo(store: FilesystemStore, task_id: str) -> None:
    with store.unit(Scope(write=frozenset({task_id}))):
        examined = examine(store.paths, store.files, store.histories.of(task_id), task_id)
        if examined.edit is None and examined.problem is None:
            store.redo.task(examined.folded)


def _other_entries(case: Case) -> Iterator[DoctorFinding]:
    """Conflict copies, strangers, and tasks' own files without their task."""
    for path in case.scan.others:
        where, name = case.store.paths.relative(path), os.path.basename(path)
        is_folder = os.path.isdir(path)
        if not os.path.lexists(path):
            continue  # it has gone meanwhile
        if ".md.conflict" in name:
            what = "a person's version that could not be merged is kept here"
            yield DoctorFinding(
                Problem("conflict_copy", where, what, "take over what you need from it, then delete it")
            )
        elif is_task_id(name) and is_folder:
            finding = _own_files(case, path, name)
            if finding is not None:
                yield finding
        elif not name.startswith((".", "#")) and not name.endswith("~") and name.lower() != "readme.md":
            fix = "move it elsewhere; a task is a file that ends with .md"
            why = None if is_folder else unfit(path)
            what = "this is not a task's file" if why is None else f"this is not a task's file: {why}"
            yield DoctorFinding(Problem("unknown_file", where, what, fix))


def _own_files(case: Case, path: str, task_id: str) -> DoctorFinding | None:
    """The folder of a task's own files belongs beside the task."""
    one = case.folded.get(task_id)
    if one is None or one.task is None:
        return None
    store, folder = case.store, os.path.basename(os.path.dirname(path))
    if (path.startswith(f"{store.paths.root}/archive/") and one.task.archived) or folder == folder_of(one.task):
        return None
    with store.unit(Scope(read=frozenset({task_id}))):
        now = store.folded(task_id).task
        if now is None or now.rev != one.task.rev or not os.path.isdir(path):
            return None
    where, fix = store.paths.relative(path), "'aof doctor --fix' moves it there, unless there is one already"

    def move(_now: int) -> None:
        with store.unit(Scope(write=frozenset({task_id}))) as unit:
            task = unit.task(task_id)
            if task is not None and unit.edit(task_id) is None:
                store.files.gather(task_id, folder_of(task))

    problem = Problem("files_misplaced", where, f"{task_id} itself is in {folder_of(one.task)}/", fix)
    return DoctorFinding(problem, 3, move)


def _odd_folders(case: Case) -> Iterator[DoctorFinding]:
    """What lies in tasks/ but in no status."""
    tasks = f"{case.store.paths.root}/tasks"
    for entry in sorted(os.scandir(tasks), key=lambda entry: entry.name):
        if entry.name in STATUSES or entry.name.startswith("."):
            continue
        where = case.store.paths.relative(entry.path)
        if not entry.is_dir(follow_symlinks=False):
            if entry.name.lower() != "readme.md":
                yield DoctorFinding(
                    Problem("unknown_file", where, "tasks lie in the folder of their status", _STATUSES)
                )
        elif names := sorted(os.listdir(entry.path)):
            what = f"this is not a status, and it holds {', '.join(names[:5])}"
            fix = f"move its files; {_STATUSES}"
            yield DoctorFinding(Problem("unknown_folder", where, what, fix), 3, _clearing(case, entry.path, names))


def _clearing(case: Case, folder: str, names: list[str]) -> Callable[[int], None] | None:
    """Exact versions of ours in a folder that is not a status mean nothing: the log has them."""
    ours: list[str] = []
    for name in names:
        one = case.folded.get(name.removesuffix(".md"))
        path = f"{folder}/{name}"
        if one is not None and unfit(path) is None and digest(read(path) or b"") in one.digests:
            ours.append(path)
    if not ours:
        return None

    def remove(_now: int) -> None:
        for path in ours:
            case.store.disk.unlink(path)

    return remove


def _unfit_documents(case: Case) -> Iterator[DoctorFinding]:
    """Pipes, devices and huge files where documents belong; they are looked at from outside, and never opened."""
    root = case.store.paths.root
    for folder in ("org", "workflows"):
        if not os.path.isdir(f"{root}/{folder}"):
            continue
        for name in sorted(os.listdir(f"{root}/{folder}")):
            path = os.path.realpath(f"{root}/{folder}/{name}")  # a link to a document is fine
            if f"{folder}/{name}" == ORG_CHART:
                continue  # problems of the chart are reported elsewhere
            if not os.path.isdir(path) and (why := unfit(path)) is not None:
                yield DoctorFinding(
                    Problem("unreadable_file", f"{folder}/{name}", why, "remove it, or put a text file there")
                )


def _double_leases(case: Case) -> Iterator[DoctorFinding]:
    """Runs that began while the one before had not ended: two agents hold the task. A person has to stop one."""
    for task_id, one in case.folded.items():
        for runs in one.by_hop().values():
            if len(runs) == 1 or not runs[-2].status == runs[-1].status == "running":
                continue
            first, second = runs[-2:]
            what = (
                f"{first.agent_id} ({first.run_id}) and {second.agent_id} ({second.run_id}) were both given {task_id}, "
                "and neither has ended; the log's lease is the second one's"
            )
            fix = f"stop the run of {first.agent_id}, whose writes are refused, and keep what it has done with the task"
            yield DoctorFinding(Problem("two_leases", f"runs/{task_id}", what, fix), tasks=(task_id,))


def _odd_files(
    case: Case, odd: Callable[[FilesystemStore, Folded], Iterator[tuple[str, bool]]]
) -> Iterator[tuple[str, str, bool]]:
    """The tasks that have odd files, each with a path and whether something is there; looked for twice."""
    suspects = [task_id for task_id, one in case.folded.items() if any(True for _ in odd(case.store, one))]
    for task_id in case.store.working_copy.preloaded(suspects):
        with case.store.unit(Scope(read=frozenset({task_id}))):
            found = list(odd(case.store, case.store.folded(task_id)))
        for path, there in found:
            yield task_id, path, there


def _run_files(case: Case) -> Iterator[DoctorFinding]:
    store = case.store
    for task_id, path, there in _odd_files(case, _odd_runs):

        def restore(_now: int, task_id: str = task_id) -> None:
            with store.unit(Scope(write=frozenset({task_id}))) as unit:
                for odd, exists in _odd_runs(store, store.folded(task_id)):
                    if exists:
                        store.files.keep_beside(odd, f"{store.paths.torn}/{task_id}.{os.path.basename(odd)}")
                if unit.edit(task_id) is None:
                    store.redo.task(store.folded(task_id))

        what = "differs from what the log says" if there else "is missing"
        code = "run_file_differs" if there else "run_file_missing"
        problem = Problem(code, store.paths.relative(path), f"the file of a run of {task_id} {what}", _RESTORES)
        yield DoctorFinding(problem, 3, restore, (task_id,))


def _odd_runs(store: FilesystemStore, folded: Folded) -> Iterator[tuple[str, bool]]:
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


def _handoff_files(case: Case) -> Iterator[DoctorFinding]:
    store = case.store
    for task_id, path, there in _odd_files(case, _odd_handoffs):

        def restore(_now: int, task_id: str = task_id, path: str = path) -> None:
            with store.unit(Scope(write=frozenset({task_id}))) as unit:
                task = unit.task(task_id)
                if os.path.lexists(path):
                    store.files.keep_beside(path, f"{store.paths.torn}/{os.path.basename(path)}")
                if task is not None and unit.edit(task_id) is None:
                    store.handed.redo(store.folded(task_id), folder_of(task))

        what = "is not what the log says" if there else "is missing"
        detail = f"a file of a handoff of {task_id} {what}"
        problem = Problem("handoff_file", store.paths.relative(path), detail, _RESTORES)
        yield DoctorFinding(problem, 3, restore, (task_id,))


def _odd_handoffs(store: FilesystemStore, folded: Folded) -> Iterator[tuple[str, bool]]:
    """Each file that is not as the log says, and whether there is one."""
    if folded.task is None or not folded.handoffs:
        return
    for name, handoff in folded.handoffs.items():
        path = store.paths.handoff(name)
        found = _content(path)
        if found != handoff_bytes(handoff):
            yield path, found is not None
    if store.files.present(folded.task.id) != [folder_of(folded.task)]:
        return  # a person is moving it; its files are looked for afterwards
    for place in folded.attached:
        path = f"{store.paths.files(folder_of(folded.task), folded.task.id)}/{place}"
        if not os.path.lexists(path):
            yield path, False


def _content(path: str) -> bytes | None:
    """None where there is nothing; what is not a file differs from everything."""
    try:
        return read(path)
    except OSError:
        return b"" if os.path.lexists(path) else None


def _manifest(case: Case) -> Iterator[DoctorFinding]:
    store = case.store
    suspects = [task_id for task_id, one in case.folded.items() if not _is_head(store, one)]
    wrong: list[str] = []
    for task_id in store.working_copy.preloaded(suspects):
        with store.unit(Scope(read=frozenset({task_id}))):
            is_wrong = not _is_head(store, store.folded(task_id))
        if is_wrong:
            wrong.append(task_id)
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
    held = store.locks.take(index.INDEX_LOCK, exclusive=False)
    try:
        wrong = _wrong_rows(case)
    finally:
        store.locks.release((held,))
    wrong = {task_id for task_id in store.working_copy.preloaded(sorted(wrong)) if _is_unchanged(case, task_id)}
    if wrong:
        what = f"the index is wrong about {len(wrong)} tasks, such as {min(wrong)}"
        yield DoctorFinding(
            Problem("index_wrong", "index.sqlite", what, _REBUILDS), 4, lambda _now: store.index.rebuild()
        )


def _is_unchanged(case: Case, task_id: str) -> bool:
    """Whether the task has not changed since the log was read; else the index may well know more than that."""
    one = case.folded.get(task_id) or Folded()
    now = case.store.folded(task_id).task if is_task_id(task_id) else None
    return (now.rev if now else 0) == (one.task.rev if one.task else 0)


def _wrong_rows(case: Case) -> set[str]:
    path = case.store.paths.index
    if not os.path.isfile(path):
        return {"all of them"} if os.path.lexists(path) else set()
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            version, seq = database.execute("SELECT version, seq FROM meta").fetchone() or (0, 0)
            if version != schema.VERSION:
                return set()
            found = {task_id: schema.record(blob) for task_id, blob in database.execute(_RECORDS)}
            edges = {(task, blocker) for task, blocker in database.execute("SELECT task, blocker FROM edges")}
    except (sqlite3.DatabaseError, msgspec.DecodeError):
        return {"all of them"}
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
