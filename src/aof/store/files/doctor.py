"""Doctor: compares log, files, runs, manifest, index and counter with each other, and heals one from the other.

The log is read and verified once; only what looks wrong is looked at again, under its lock, so that work goes on
meanwhile. What is wrong with the log comes first (`doctor_log`): nothing else can be told before that is right. Then
come the files and caches that follow from it (`doctor_files`); links, modes and git are looked at here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from aof.errors import LogDamaged, LogRewritten, Unmerged
from aof.kernel.model import is_task_id
from aof.store.directory import Checkup, Problem
from aof.store.files import disk, doctor_files, doctor_log, git_files
from aof.store.files.doctor_log import Case, DoctorFinding
from aof.store.files.index import index
from aof.store.files.integrity import scan
from aof.store.files.locks import stripe
from aof.store.files.paths import DIRECTORIES, Position
from aof.store.files.store import FilesystemStore
from aof.support.confined_folder import is_link

_ROUNDS = 6
_UNMERGED_SHOWN, _UNMERGED_NAMED = 20, 3
_SETTLE = (
    "run 'aof merge', then 'git add -A .aof': it brings both histories together and writes the files of tasks anew; "
    "settings such as aof.toml are settled as any other file; or give the merge up with 'git merge --abort'"
)
_LINKS_MOST = 1_000
# What may hold links at any depth, and what is a link in itself.
_TOP = ("org", "workflows", "templates", "events", "logs", "handoffs", "locks", "tmp", "runs", "archive", "push")
_SINGLE = ("tokens.json", "org", "workflows", "templates", ".gitattributes", "handoffs", "logs", "push")
_GROUP_AND_OTHERS = 0o077
_PRIVATE = ("tokens.json",)


def diagnose(store: FilesystemStore) -> Checkup:
    """Everything that is wrong, and the tasks with edits that the core has to judge."""
    findings, edited, shared = _findings(store)
    return Checkup(tuple(finding.problem for finding in findings), tuple(edited), tuple(_advice(store)), shared)


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
    _remove_temporary_files(store)
    with suppress(OSError):  # a link there is reported as such
        git_files.complete(store.paths.root, store.disk)
    _tighten_access(store)


def _findings(store: FilesystemStore) -> tuple[list[DoctorFinding], list[str], dict[str, tuple[str, ...]]]:
    """What is wrong, the tasks that wait with an edit, and the tasks of each resource that several occupy."""
    found, folded = doctor_log.check_log(store)
    root = store.paths.root
    unmerged = [
        Problem("unmerged_paths", path, "git has not merged this path yet", _SETTLE)
        for path in git_files.unmerged(root)[:_UNMERGED_SHOWN]
    ]
    found = [*(DoctorFinding(problem) for problem in (*unmerged, *check_links(root))), *found]
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
    about_files, edited = doctor_files.check_files(case)
    found += [finding for finding in about_files if not finding.tasks or not left.issuperset(finding.tasks)]
    occupied: dict[str, tuple[str, ...]] = {}
    for task_id, one in folded.items():
        if one.task is not None and one.task.resource is not None and one.task.status == "in-progress":
            occupied[one.task.resource] = (*occupied.get(one.task.resource, ()), task_id)
    shared = {resource: holders for resource, holders in occupied.items() if len(holders) > 1}
    return found, [task_id for task_id in edited if task_id not in left], shared


def _advice(store: FilesystemStore) -> Iterator[Problem]:
    """What is not damage: what the next command finishes, who may read what, and what git has not been told."""
    if store.restarted:
        what = "the machine was restarted, and nobody has put right yet what a power cut may have undone"
        yield Problem("not_recovered", "locks/checkpoint", what, "the next command or 'aof doctor --fix' does it")
    for task_id in sorted(store.stripes.left()):
        what = f"a command on {task_id} was killed after its change was in the log and before all files were written"
        fix = "the next command, 'aof sync' or 'aof doctor --fix' writes them"
        yield Problem("unfinished_write", f"locks/{stripe(task_id)}", what, fix)
    with suppress(OSError):
        for name, lines in git_files.lacking(store.paths.root).items():
            what = f"git is not told what to leave alone: {', '.join(lines)}"
            fix = "'aof doctor --fix', or the next change of a task, adds the lines"
            yield Problem("git_lines_missing", name, what, fix)
    if store.files.lanes.several() and git_files.lacks_driver(store.paths.root):
        what = "several clones write tasks, and git merges their files line by line here"
        yield Problem("no_merge_driver", ".gitattributes", what, git_files.ADVICE)
    odd = [path for path, _ in _odd_modes(store)]
    if odd:
        where = os.path.relpath(odd[0], store.paths.root)
        whom = (
            "cannot be used by the whole group, or by others too" if store.shared else "can be reached by other users"
        )
        what = f"{len(odd):,} files and folders {whom}, such as {where}"
        fix = "'aof doctor --fix' sets the modes; 'shared' in aof.toml says for whom: \"owner\" or \"group\""
        yield Problem("open_to_others", where, what, fix)


def refuse_unmerged(root: str) -> None:
    """Raise where a merge is unsettled."""
    paths = git_files.unmerged(root)
    if paths:
        more = f" and {len(paths) - _UNMERGED_NAMED} more" if len(paths) > _UNMERGED_NAMED else ""
        named = ", ".join(paths[:_UNMERGED_NAMED])
        raise Unmerged(f"git has not merged {named}{more}; nothing was changed", _SETTLE, paths=paths[:_UNMERGED_SHOWN])


def links_in_the_way(root: str) -> list[Problem]:
    """Links among what every command opens: nothing else can be told before they are gone."""
    return [_link(name) for name in (*DIRECTORIES, "index.sqlite") if is_link(f"{root}/{name}")]


def check_links(root: str) -> list[Problem]:
    """All links in the way, up to a thousand."""
    found = dict.fromkeys(name for name in (*DIRECTORIES, "index.sqlite", *_SINGLE) if is_link(f"{root}/{name}"))
    for top in _TOP:
        if top not in found:
            for path in _links_below(f"{root}/{top}"):
                found[os.path.relpath(path, root)] = None
                if len(found) >= _LINKS_MOST:
                    break
    for name in DIRECTORIES:  # a task's own folder; what a person links inside of it is that person's
        if name.startswith("tasks/") and not is_link(f"{root}/{name}"):
            with suppress(OSError), os.scandir(f"{root}/{name}") as entries:
                for entry in entries:
                    if is_task_id(entry.name) and entry.is_symlink():
                        found[f"{name}/{entry.name}"] = None
    return [_link(name) for name in list(found)[:_LINKS_MOST]]


def _link(name: str) -> Problem:
    what = "a symbolic link lies where AOF reads or writes, and links are not followed"
    fix = "put what it leads to in its place, or remove the link; AOF goes through none"
    return Problem("link_in_the_way", name, what, fix)


def _links_below(folder: str) -> Iterator[str]:
    """The links at any depth; what a link leads to is not looked at."""
    waiting = [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_symlink() and not entry.path.endswith(".jsonl"):  # else it is damage of the log
                    yield entry.path


def _remove_temporary_files(store: FilesystemStore) -> None:
    """Remove what dead writers left; it harms nobody."""
    held = store.stripes.take_all()
    try:
        held += store.locks.acquire_all([(index.INDEX_LOCK, True)])
        for entry in os.scandir(store.paths.temporary):
            if entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    store.disk.unlink(entry.path)
    finally:
        store.locks.release(held)


def _tighten_access(store: FilesystemStore) -> None:
    """Set the modes; what belongs to somebody else stays as it is."""
    for path, mode in list(_odd_modes(store)):
        if path.endswith(_PRIVATE):
            continue  # closing it would make tokens valid that a clone may have brought
        with suppress(OSError):
            store.disk.set_mode(path, mode)
    store.disk.bind(store.paths.root, disk.shared_with(group=store.shared))


def _odd_modes(store: FilesystemStore) -> Iterator[tuple[str, int]]:
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
