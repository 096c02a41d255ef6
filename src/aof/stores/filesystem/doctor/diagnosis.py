"""Doctor: compares log, files, runs, heads, index and counter with each other, and heals one from the other.

The log is read and verified once; only what looks wrong is looked at again, under its lock, so that work goes on
meanwhile. What is wrong with the log comes first: nothing else can be told before that is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from aof.core.errors.storage import LogDamaged, LogRewritten
from aof.ports.working_copy import Checkup, Problem
from aof.stores.filesystem.doctor import (
    access,
    caches,
    files,
    handoffs,
    histories,
    links,
    log,
    misplaced_files,
    rewritten_log,
    runs,
    unmerged,
)
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.io.locks import stripe
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.store import FilesystemStore
from aof.stores.filesystem.working_copy import git_files
from aof.stores.filesystem.working_copy.scan import scan

_ROUNDS = 6


def diagnose(store: FilesystemStore) -> Checkup:
    """Everything that is wrong, and the tasks with edits that the core has to judge."""
    findings, edited, shared = _findings(store)
    return Checkup(tuple(finding.problem for finding in findings), tuple(edited), _advice(store), shared)


def repair(store: FilesystemStore, now: int) -> None:
    """Heal stage by stage, looking again after each, for one thing put right may show another."""
    unmerged.refuse(store.paths.root)
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
    caches.sweep(store)
    with suppress(OSError):  # a link there is reported as such
        git_files.complete(store.paths.root, store.disk)
    access.tighten(store)


def _findings(store: FilesystemStore) -> tuple[list[DoctorFinding], list[str], dict[str, tuple[str, ...]]]:
    found, folded = log.check(store)
    root = store.paths.root
    found = [*(DoctorFinding(problem) for problem in (*unmerged.check(root), *links.check(root))), *found]
    if folded is None:
        return found, [], {}
    case = Case(store, folded, scan(store.paths, store.heads))
    if pending := histories.check(case):
        return [*found, *pending], [], {}
    try:
        rewritten_log.refuse(store)
    except LogRewritten as rewritten:
        return [*found, DoctorFinding(Problem(rewritten.code, "events/", rewritten.message, rewritten.hint))], [], {}
    lost = log.lacking(case)
    if lost is not None:
        return [*found, lost], [], {}
    left = frozenset(store.stripes.left())
    about_files, edited = files.check(case)
    found += [*about_files, *misplaced_files.check(case), *runs.check(case), *handoffs.check(case), *caches.check(case)]
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
    return (*_restarted(store), *left, *told, *_no_driver(store), *access.check(store))


def _no_driver(store: FilesystemStore) -> Iterator[Problem]:
    if store.files.lanes.several() and git_files.lacks_driver(store.paths.root):
        what = "several clones write tasks, and git merges their files line by line here"
        yield Problem("no_merge_driver", ".gitattributes", what, git_files.ADVICE)


def _restarted(store: FilesystemStore) -> Iterator[Problem]:
    if store.restarted:
        what = "the machine was restarted, and nobody has put right yet what a power cut may have undone"
        yield Problem("not_recovered", "locks/checkpoint", what, "the next command or 'aof doctor --fix' does it")
