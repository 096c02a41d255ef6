"""Finds files that do not belong where they are. Most of them are a person's, and are reported rather than touched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from aof.core.model.ids import is_task_id
from aof.core.model.lifecycle import STATUSES
from aof.ports.store import Scope
from aof.ports.working_copy import Problem
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.io.paths import folder_of
from aof.stores.filesystem.io.read import digest, read, unfit
from aof.stores.filesystem.records.places import ORG_CHART

_STATUSES = f"use one of: {', '.join(STATUSES)}"


def check(case: Case) -> list[DoctorFinding]:
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
