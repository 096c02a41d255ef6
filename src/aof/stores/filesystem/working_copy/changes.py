"""What a person did to a task's file: an edit, a move, an older version put back, a new file.

Compares the files with what the log wrote and words the difference as an `ImportEdit` command, which the core judges.
Bytes that any clone's AOF wrote are never an edit; of a file that git could not merge, git's versions of both sides are
looked at. Reads only. What cannot be understood stays untouched and is a `problem`, which is the answer to a command on
the task.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import cast

import msgspec

from aof.core.errors.base import AofError
from aof.core.errors.storage import LogDamaged
from aof.core.errors.tasks import AnotherTask, UnreadableTask
from aof.core.model import times
from aof.core.model.commands import ImportEdit
from aof.core.model.events import Event
from aof.core.model.kinds import Status
from aof.core.model.task import Task
from aof.documents.rebuilding.marks import Side, is_marked, whole_sides
from aof.stores.base.fold import Folded, fold
from aof.stores.filesystem.io.paths import Paths, folder_of
from aof.stores.filesystem.io.read import Seen, digest, read, seen
from aof.stores.filesystem.working_copy import markdown, new_file
from aof.stores.filesystem.working_copy.files import TaskFiles
from aof.stores.filesystem.working_copy.merge import Merge
from aof.stores.filesystem.working_copy.new_file import refuse_newer
from aof.stores.filesystem.working_copy.stages import versions

PERSON = "hand"
_MARK = b"<<<<<<< "
_MERGING = "it holds the marks of a merge that nobody has settled"
_ONE_SIDE = "Keep one side, and take the marks away"
_BY_COMMAND = "it was moved to or from archive/ by hand; move it back and use 'aof archive ID' or 'aof unarchive ID'"


class Found:
    """One file of the task: its folder, and what it was when it was read.

    `origin` is the version that it was changed from, where git says which one that is.
    """

    __slots__ = ("data", "digest", "folder", "origin", "seen")

    def __init__(self, folder: str, data: bytes, state: Seen, origin: bytes | None = None) -> None:
        self.folder = folder
        self.data = data
        self.digest = digest(data)
        self.seen = state
        self.origin = origin


class Examined:
    """A task as the log knows it, and what lies in its place.

    `at` is the folder of the file that stands for the task; `beside` are the files that have to go, with whether a
    copy is kept; `edit` is what a person did; `problem` is why that cannot be told. `elsewhere` says that some file is
    of another path of the log, as after `git pull`.
    """

    __slots__ = ("at", "beside", "edit", "elsewhere", "folded", "intact", "layout", "problem", "seen")

    def __init__(self, folded: Folded) -> None:
        self.folded = folded
        self.at: str | None = None
        self.beside: list[tuple[str, bool]] = []
        self.edit: ImportEdit | None = None
        self.layout: str | None = folded.task.layout if folded.task else None
        self.intact = False
        self.elsewhere = False
        self.problem: AofError | None = None
        self.seen: dict[str, Seen] = {}

    @property
    def task(self) -> Task | None:
        """The log's task, laid out as the person now has it."""
        task = self.folded.task
        return None if task is None else msgspec.structs.replace(task, layout=self.layout)


def examine(paths: Paths, files: TaskFiles, events: list[Event], task_id: str) -> Examined:
    """Look at everything that the log (all of the task's events) and the folders have of one task."""
    examined = Examined(_folded(events, task_id))
    found: list[Found] = []
    try:
        places = [(folder, paths.task(folder, task_id)) for folder in files.present(task_id)]
        found = [one for folder, path in places if (one := _read(folder, path)) is not None]
        examined.seen = {one.folder: one.seen for one in found}
        theirs = [one for one in found if _is_elsewhere(examined, files, one)]
        examined.elsewhere = bool(theirs)
        parted = [
            each
            for one in found
            if one not in theirs
            for each in _parted(examined, files, one, paths.task(one.folder, task_id))
        ]
        if examined.folded.task is not None:
            _compare(examined, events, examined.folded.task, parted, found)
        elif parted:
            _new(examined, task_id, parted)
    except AnotherTask as problem:
        examined.problem, examined.edit = problem, None
    except AofError as problem:
        merging = any(b"\n" + _MARK in b"\n" + one.data for one in found)
        what, hint = (_MERGING, _ONE_SIDE) if merging else (problem.message, problem.hint or "correct the file")
        examined.problem = UnreadableTask(
            f"the file of {task_id} cannot be imported: {what}",
            f"{hint.removesuffix('.')}; or let 'aof doctor --fix' restore the log's version",
            task_id=task_id,
        )
        examined.edit = None
    return examined


def _folded(events: list[Event], task_id: str) -> Folded:
    try:
        return fold(events).get(task_id) or Folded()
    except (ValueError, KeyError, TypeError) as error:
        raise LogDamaged(f"what the log has of {task_id} cannot be applied: {error}", "run 'aof doctor'") from error


def _read(folder: str, path: str) -> Found | None:
    """None where the file has gone since it was listed. Its state is noted first, so that no later write is missed."""
    try:
        state = seen(path)
        data = read(path)
    except OSError as error:
        what = f"{error.strerror}: {'/'.join(path.split('/')[-2:])}"
        large = error.errno == errno.EFBIG
        hint = "keep large data in the task's own folder" if large else "put a regular file there"
        raise UnreadableTask(what, hint) from None
    return None if data is None or state is None else Found(folder, data, state)


def _is_elsewhere(examined: Examined, files: TaskFiles, one: Found) -> bool:
    """Whether the bytes are of this history in another clone: no path of ours has them, yet AOF wrote them."""
    return one.digest not in examined.folded.digests and files.lanes.wrote(one.digest)


def _parted(examined: Examined, files: TaskFiles, one: Found, path: str) -> list[Found]:
    """The file, or where git could not merge it, what a person has made of it on either side: perhaps nothing."""
    sides = whole_sides(one.data)
    if not sides and is_marked(one.data.decode("utf-8", "replace")):
        sides = _unmerged(path)
    if not sides:
        return [one]
    theirs = {side.digest: side for side in (Found(one.folder, side.data, one.seen, side.base) for side in sides)}
    ours = examined.folded.digests
    return [side for side in theirs.values() if side.digest not in ours and not files.lanes.wrote(side.digest)]


def _unmerged(path: str) -> tuple[Side, ...]:
    """Both sides of a file, as git has them; what one of them has from an earlier merge is in it whole."""
    both = versions(path)
    if both is None:
        return ()
    found = [Side(side, both.base) for side in (both.ours, both.theirs) if side is not None]
    return tuple(each for side in found for each in whole_sides(side.data) or (side,))


def _compare(examined: Examined, events: list[Event], task: Task, live: list[Found], found: list[Found]) -> None:
    """Sort the files: exact older versions where they once lay mean nothing; of the others, one at most is a move.

    `found` are all files that lie there, `live` those of which something may follow.
    """
    known, folders = examined.folded.digests, examined.folded.folders
    expected = folder_of(task)
    current = next(iter(examined.folded.last_files.values()), "")
    live = [one for one in live if one.digest == current or folders.get(known.get(one.digest, 0)) != one.folder]
    changed = sorted((one for one in live if one.digest not in known), key=lambda one: one.folder != expected)
    examined.intact = [(one.folder, one.digest) for one in found] == [(expected, current)]
    examined.at = next((one.folder for one in [*live, *found] if one.folder == expected), None)
    if examined.at is None:
        examined.at = next((one.folder for one in [*changed, *live, *found]), None)
    examined.beside = [(one.folder, False) for one in found if one.folder != examined.at]
    alone = live[0] if len(live) == 1 else None
    if changed:
        _edited(examined, events, task, changed, alone)
    elif alone is not None and alone.folder != expected:
        written = folders[known[alone.digest]]
        _placed(examined, task, alone.folder, written)


def _placed(examined: Examined, task: Task, folder: str, written: str) -> None:
    """Our own bytes in another folder than we wrote them to are a person's move."""
    status, clash = _move(task, folder, written)
    conflicts = ("status",) if clash else ()
    examined.edit = ImportEdit(actor=PERSON, task_id=task.id, status=_as_status(status), conflicts=conflicts)


def _as_status(folder: str | None) -> Status | None:
    """A folder as the status that it stands for; what is none, the core refuses."""
    return cast("Status | None", folder)


def _move(task: Task, folder: str, written: str) -> tuple[str | None, bool]:
    """Where a person put the file, if anywhere; and whether the log has moved it elsewhere meanwhile."""
    expected = folder_of(task)
    if folder in (expected, written):
        return None, False
    if "archive" in (folder, written, expected):
        raise UnreadableTask(_BY_COMMAND)
    return (folder, False) if written == expected else (None, True)


def _said(task: Task, origin: Task, theirs: Task) -> tuple[str | None, bool]:
    """The status that a person wrote into the file where it lay; and whether the log has moved the task meanwhile."""
    if theirs.archived or theirs.status in (origin.status, task.status):
        return None, False
    return (theirs.status, False) if origin.status == task.status else (None, True)


def _edited(examined: Examined, events: list[Event], task: Task, changed: list[Found], alone: Found | None) -> None:
    """Merge each changed file: against the version that it was edited from."""
    merge = Merge(task)
    status: str | None = None
    conflicts: set[str] = set()
    kept = dict(examined.beside)
    for one in changed:
        theirs = _parsed(one, task.id)
        if not same_task(task, theirs):
            raise _another(task, theirs, one.folder)
        origin = _origin(events, task, theirs, one.origin)
        clashes = merge.add(origin, theirs)
        if one is alone:
            status, clash = _move(task, one.folder, folder_of(origin))
            if status is None and not clash:
                status, clash = _said(task, origin, theirs)
            clashes |= {"status"} if clash else set()
        conflicts |= clashes
        if clashes or one.folder in kept:
            kept[one.folder] = bool(clashes)
    layout = merge.new_layout()
    examined.layout = task.layout if layout is None else layout or None
    examined.beside = list(kept.items())
    examined.edit = ImportEdit(
        actor=PERSON,
        task_id=task.id,
        changes=merge.changes(),
        status=_as_status(status),
        layout=layout,
        conflicts=tuple(sorted(conflicts)),
    )


def _origin(events: list[Event], task: Task, theirs: Task, base: bytes | None) -> Task:
    """The version that a person's copy was changed from: what git says, else what its number says."""
    if base is not None:
        with suppress(AofError):
            return markdown.parse(base, archived=theirs.archived)
    folded = fold(events, until=theirs.rev).get(task.id)
    return folded.task if folded is not None and folded.task is not None else task


def _parsed(one: Found, task_id: str) -> Task:
    theirs = markdown.parse(one.data, archived=one.folder == "archive")
    refuse_newer(theirs.schema_version)
    if theirs.id != task_id:
        raise UnreadableTask(f"its 'id' says {theirs.id[:80]!r}", "an ID never changes: put the line back")
    return theirs


def same_task(known: Task, theirs: Task) -> bool:
    """Whether two versions are of one task: it was created once, by one. Two histories may have given one ID twice."""
    same_time = theirs.created_at == known.created_at or _same_moment(theirs.created_at, known.created_at)
    return same_time and theirs.created_by == known.created_by


def _same_moment(one: str, other: str) -> bool:
    """Whether two texts name one moment; a person may have written it in another way."""
    try:
        return times.millis(one) == times.millis(other)
    except ValueError:
        return False


def _another(known: Task, theirs: Task, folder: str) -> AnotherTask:
    name = theirs.id
    where = f"{'archive/tasks' if folder == 'archive' else f'tasks/{folder}'}/{name}.md"
    return AnotherTask(
        f"{where} is not the {name} of the log but another task: created {theirs.created_at} by "
        f"{theirs.created_by[:80]}, not {known.created_at} by {known.created_by[:80]}; both are kept",
        f"'aof doctor --fix' keeps the file as {name}.md.conflict and restores the log's task; to have the other one "
        "too, copy it to tasks/backlog/NAME.md without its id and rev lines, and run 'aof sync'",
        task_id=name,
        path=where,
    )


def _new(examined: Examined, task_id: str, found: list[Found]) -> None:
    if len(found) > 1:
        places = ", ".join(one.folder for one in found)
        raise UnreadableTask(f"it is new and lies in several folders: {places}", "keep one of them")
    (one,) = found
    created, layout = new_file.read(one.data, task_id)
    examined.at = one.folder
    examined.layout = layout
    examined.edit = ImportEdit(
        actor=PERSON, task_id=task_id, status=_as_status(one.folder), layout=layout, created=created
    )
