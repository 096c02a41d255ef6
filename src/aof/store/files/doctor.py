"""Doctor: compares log, files, runs, manifest, index and counter with each other, and heals one from the other.

The log is read and verified once; only what looks wrong is looked at again, under its lock, so that work goes on
meanwhile. What is wrong with the log comes first: nothing else can be told before that is right.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from aof.errors import LogDamaged, LogRewritten, Unmerged
from aof.kernel.model import STATUSES, is_task_id, split_task_id
from aof.store.directory import Checkup, Problem
from aof.store.files import disk, doctor_log, git_files
from aof.store.files.definitions import ORG_CHART
from aof.store.files.disk import digest, read, unfit
from aof.store.files.doctor_log import Case, DoctorFinding
from aof.store.files.index import index, schema
from aof.store.files.integrity import scan
from aof.store.files.locks import stripe
from aof.store.files.paths import DIRECTORIES, Position, folder_of
from aof.store.files.store import FilesystemStore
from aof.store.fold import Folded
from aof.store.port import Scope
from aof.support.confined_folder import is_link

_ROUNDS = 6


def diagnose(store: FilesystemStore) -> Checkup:
    """Everything that is wrong, and the tasks with edits that the core has to judge."""
    findings, edited, shared = _findings(store)
    return Checkup(tuple(finding.problem for finding in findings), tuple(edited), _advice(store), shared)


def repair(store: FilesystemStore, now: int) -> None:
    """Heal stage by stage, looking again after each, for one thing put right may show another."""
    refuse_unmerged(store.paths.root)
    tampered = any(finding.problem.code == "log_rewritten" for finding in _findings(store)[0])
    store.repairs = True
    if store.restarted and store.damage is None and not tampered:
        with suppress(LogDamaged):  # which is reported as such
            store.recover()
    store.stripes.finish_left()
    for _ in range(_ROUNDS):
        healable = [finding for finding in _findings(store)[0] if finding.heal is not None]
        stage = min((finding.stage for finding in healable), default=None)
        if stage is None:
            break
        at_once = [finding for finding in healable if finding.stage == stage]
        tasks = {task_id for one in at_once for task_id in one.tasks}
        if tasks:
            store.log.refresh()
            store.histories.announce(tasks, store.log.position)
        try:
            for finding in at_once:
                if finding.heal is not None:
                    finding.heal(now)
        finally:
            store.histories.announce((), Position())
    sweep_caches(store)
    with suppress(OSError):  # a link there is reported as such
        git_files.complete(store.paths.root, store.disk)
    tighten_access(store)


def _findings(store: FilesystemStore) -> tuple[list[DoctorFinding], list[str], dict[str, tuple[str, ...]]]:
    found, folded = doctor_log.check_log(store)
    root = store.paths.root
    found = [*(DoctorFinding(problem) for problem in (*check_unmerged(root), *check_links(root))), *found]
    if folded is None:
        return found, [], {}
    case = Case(store, folded, scan(store.paths, store.heads))
    if pending := doctor_log.check_histories(case):
        return [*found, *pending], [], {}
    try:
        doctor_log.refuse_rewritten_log(store)
    except LogRewritten as rewritten:
        return [*found, DoctorFinding(Problem(rewritten.code, "events/", rewritten.message, rewritten.hint))], [], {}
    lost = doctor_log.lacking_events(case)
    if lost is not None:
        return [*found, lost], [], {}
    left = frozenset(store.stripes.left())
    about_files, edited = doctor_log.check_task_files(case)
    found += [
        *about_files,
        *check_misplaced_files(case),
        *doctor_log.check_runs(case),
        *doctor_log.check_handoffs(case),
        *check_caches(case),
    ]
    found = [finding for finding in found if not finding.tasks or not left.issuperset(finding.tasks)]
    return found, [task_id for task_id in edited if task_id not in left], _shared(case)


def _shared(case: Case) -> dict[str, tuple[str, ...]]:
    """The running tasks of each resource that several of them occupy."""
    found: dict[str, tuple[str, ...]] = {}
    for task_id, one in case.folded.items():
        if one.task is not None and one.task.resource is not None and one.task.status == "in-progress":
            found[one.task.resource] = (*found.get(one.task.resource, ()), task_id)
    return {resource: holders for resource, holders in found.items() if len(holders) > 1}


def _unfinished(task_id: str) -> Problem:
    what = f"a command on {task_id} was killed after its change was in the log and before all files were written"
    fix = "the next command, 'aof sync' or 'aof doctor --fix' writes them"
    return Problem("unfinished_write", f"locks/{stripe(task_id)}", what, fix)


def _advice(store: FilesystemStore) -> tuple[Problem, ...]:
    """What is not damage: what the next command finishes, who may read what, and what git has not been told."""
    try:
        missing = git_files.lacking(store.paths.root)
    except OSError:
        missing = {}
    fix = "'aof doctor --fix', or the next change of a task, adds the lines"
    told = (
        Problem("git_lines_missing", name, f"git is not told what to leave alone: {', '.join(lines)}", fix)
        for name, lines in missing.items()
    )
    left = map(_unfinished, sorted(store.stripes.left()))
    return (*_restarted(store), *left, *told, *_no_driver(store), *check_access(store))


def _no_driver(store: FilesystemStore) -> Iterator[Problem]:
    if store.files.lanes.several() and git_files.lacks_driver(store.paths.root):
        what = "several clones write tasks, and git merges their files line by line here"
        yield Problem("no_merge_driver", ".gitattributes", what, git_files.ADVICE)


def _restarted(store: FilesystemStore) -> Iterator[Problem]:
    if store.restarted:
        what = "the machine was restarted, and nobody has put right yet what a power cut may have undone"
        yield Problem("not_recovered", "locks/checkpoint", what, "the next command or 'aof doctor --fix' does it")


_SHOWN = 20
_SETTLE = (
    "run 'aof merge', then 'git add -A .aof': it brings both histories together and writes the files of tasks anew; "
    "settings such as aof.toml are settled as any other file; or give the merge up with 'git merge --abort'"
)


def check_unmerged(root: str) -> list[Problem]:
    """One problem for each path, up to a few."""
    return [
        Problem("unmerged_paths", path, "git has not merged this path yet", _SETTLE)
        for path in git_files.unmerged(root)[:_SHOWN]
    ]


def refuse_unmerged(root: str) -> None:
    """Raise where a merge is unsettled."""
    paths = git_files.unmerged(root)
    if paths:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""  # noqa: PLR2004 - enough to recognise the merge
        raise Unmerged(
            f"git has not merged {', '.join(paths[:3])}{more}; nothing was changed", _SETTLE, paths=paths[:_SHOWN]
        )


_REBUILDS = "'aof doctor --fix' rebuilds it"
_RECORDS = f"SELECT {schema.name()}, record FROM tasks"


def check_caches(case: Case) -> list[DoctorFinding]:
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
    held = store.locks.take(index.INDEX_LOCK, exclusive=False)
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


def sweep_caches(store: FilesystemStore) -> None:
    """Remove temporary files that dead writers left; they harm nobody."""
    held = store.stripes.take_all()
    try:
        held += store.locks.acquire_all([(index.INDEX_LOCK, True)])
        for entry in os.scandir(store.paths.temporary):
            if entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    store.disk.unlink(entry.path)
    finally:
        store.locks.release(held)


_STATUSES = f"use one of: {', '.join(STATUSES)}"


def check_misplaced_files(case: Case) -> list[DoctorFinding]:
    """Conflict copies, strangers, folders that are not status, and tasks' own files without their task."""
    return [*_others(case), *_folders(case), *_unreadable(case)]


def _others(case: Case) -> Iterator[DoctorFinding]:
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


def _unreadable(case: Case) -> Iterator[DoctorFinding]:
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


def _folders(case: Case) -> Iterator[DoctorFinding]:
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


_TOP = ("org", "workflows", "templates", "events", "logs", "handoffs", "locks", "tmp", "runs", "archive", "push")
_SINGLE = ("tokens.json", "org", "workflows", "templates", ".gitattributes", "handoffs", "logs", "push")
_MOST = 1_000
_WHAT = "a symbolic link lies where AOF reads or writes, and links are not followed"
_FIX = "put what it leads to in its place, or remove the link; AOF goes through none"


def links_in_the_way(root: str) -> list[Problem]:
    """Links among what every command opens: nothing else can be told before they are gone."""
    return [_problem(name) for name in _standing_names(root)]


def check_links(root: str) -> list[Problem]:
    """All links in the way, up to a thousand."""
    found = dict.fromkeys((*_standing_names(root), *_single(root)))
    for top in _TOP:
        if top not in found:
            for path in _below(f"{root}/{top}"):
                found[os.path.relpath(path, root)] = None
                if len(found) >= _MOST:
                    break
    for path in _own_folders(root):
        found[os.path.relpath(path, root)] = None
    return [_problem(name) for name in list(found)[:_MOST]]


def _standing_names(root: str) -> Iterator[str]:
    return (name for name in (*DIRECTORIES, "index.sqlite") if is_link(f"{root}/{name}"))


def _single(root: str) -> Iterator[str]:
    return (name for name in _SINGLE if is_link(f"{root}/{name}"))


def _below(folder: str) -> Iterator[str]:
    """The links at any depth; what a link leads to is not looked at."""
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        if not entry.path.endswith(
                            ".jsonl"
                        ):  # one in the place of a log is reported as damage of the log
                            yield entry.path
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue


def _own_folders(root: str) -> Iterator[str]:
    """A task's own folder; what a person links inside of it is that person's."""
    for name in DIRECTORIES:
        if name.startswith("tasks/") and not is_link(f"{root}/{name}"):
            try:
                with os.scandir(f"{root}/{name}") as entries:
                    yield from (entry.path for entry in entries if is_task_id(entry.name) and entry.is_symlink())
            except OSError:
                continue


def _problem(name: str) -> Problem:
    return Problem("link_in_the_way", name, _WHAT, _FIX)


_GROUP_AND_OTHERS = 0o077
_PRIVATE = ("tokens.json",)


def check_access(store: FilesystemStore) -> tuple[Problem, ...]:
    """One piece of advice for everything that is open to more, or to fewer, than it should be."""
    odd = [path for path, _ in _odd(store)]
    if not odd:
        return ()
    where = os.path.relpath(odd[0], store.paths.root)
    whom = "cannot be used by the whole group, or by others too" if store.shared else "can be reached by other users"
    what = f"{len(odd):,} files and folders {whom}, such as {where}"
    fix = "'aof doctor --fix' sets the modes; 'shared' in aof.toml says for whom: \"owner\" or \"group\""
    return (Problem("open_to_others", where, what, fix),)


def tighten_access(store: FilesystemStore) -> None:
    """Set the modes; what belongs to somebody else stays as it is."""
    for path, mode in list(_odd(store)):
        if path.endswith(_PRIVATE):
            continue  # closing it would make tokens valid that a clone may have brought
        with suppress(OSError):
            store.disk.set_mode(path, mode)
    store.disk.bind(store.paths.root, disk.shared_with(group=store.shared))


def _odd(store: FilesystemStore) -> Iterator[tuple[str, int]]:
    """What has another mode than it should, of those that this user may change; each with the right one.

    What lies in a folder that is closed is closed, whatever its own mode says.
    """
    own, waiting = os.geteuid(), [store.paths.root]
    while waiting:
        path = waiting.pop()
        try:
            found = os.stat(path, follow_symlinks=path == store.paths.root)
            folder = stat.S_ISDIR(found.st_mode)
            if not (folder or stat.S_ISREG(found.st_mode)):
                continue
            mode = disk.permission_bits(found.st_mode)
            if folder and (store.shared or mode & _GROUP_AND_OTHERS):
                waiting += sorted((f"{path}/{name}" for name in os.listdir(path)), reverse=True)
        except OSError:
            continue
        wanted = _wanted(mode, folder=folder, shared=store.shared and not path.endswith(_PRIVATE))
        if mode != wanted and own in (0, found.st_uid):
            yield path, wanted


def _wanted(mode: int, *, folder: bool, shared: bool) -> int:
    if not shared:
        return mode & ~_GROUP_AND_OTHERS & 0o777
    if folder:
        return disk.GROUP_FOLDER
    executable = 0o110 if mode & 0o100 else 0
    return 0o660 | executable
