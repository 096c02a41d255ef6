"""Examines what a person or git did to a task's file.

It may be an edit, a move, an older version put back, a new file, or a merge that git could not settle.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import Any, cast

import msgspec

from aof.documents.hand_edits import Side, is_marked, whole_sides
from aof.errors import AnotherTask, AofError, LogDamaged, UnreadableTask
from aof.kernel import limits
from aof.kernel.commands import ImportEdit
from aof.kernel.events import SCHEMA_VERSION, Event
from aof.kernel.kinds import Status
from aof.kernel.model import millis
from aof.store.files import git_files, markdown
from aof.store.files.disk import Seen, digest, read, seen
from aof.store.files.paths import Paths, folder_of
from aof.store.files.task_files import TaskFiles
from aof.store.fold import Folded, fold
from aof.support.typed import prepare_type
from aof.tasks import body as task_body
from aof.tasks.manual_edits import THEIRS, merge_fields, merge_text
from aof.tasks.model import Retry, Task

PERSON = "hand"
_MARK = b"<<<<<<< "
_MERGING = "it holds the marks of a merge that nobody has settled"
_ONE_SIDE = "Keep one side, and take the marks away"
_BY_COMMAND = "it was moved to or from archive/ by hand; move it back and use 'aof archive ID' or 'aof unarchive ID'"


class _File:
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
    found: list[_File] = []
    try:
        places = [(folder, paths.task(folder, task_id)) for folder in files.present(task_id)]
        found = [one for folder, path in places if (one := _read(folder, path)) is not None]
        examined.seen = {one.folder: one.seen for one in found}
        theirs = [one for one in found if _is_elsewhere(examined, files, one)]
        examined.elsewhere = bool(theirs)
        live = [
            side
            for one in found
            if one not in theirs
            for side in _sides(examined, files, one, paths.task(one.folder, task_id))
        ]
        if examined.folded.task is not None:
            _compare(examined, events, examined.folded.task, live, found)
        elif live:
            _read_new(examined, task_id, live)
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


def _read(folder: str, path: str) -> _File | None:
    """None where the file has gone since it was listed. Its state is noted first, so that no later write is missed."""
    try:
        state = seen(path)
        data = read(path)
    except OSError as error:
        what = f"{error.strerror}: {'/'.join(path.split('/')[-2:])}"
        large = error.errno == errno.EFBIG
        hint = "keep large data in the task's own folder" if large else "put a regular file there"
        raise UnreadableTask(what, hint) from None
    return None if data is None or state is None else _File(folder, data, state)


def _is_elsewhere(examined: Examined, files: TaskFiles, one: _File) -> bool:
    """Whether the bytes are of this history in another clone: no path of ours has them, yet AOF wrote them."""
    return one.digest not in examined.folded.digests and files.lanes.wrote(one.digest)


def _sides(examined: Examined, files: TaskFiles, one: _File, path: str) -> list[_File]:
    """The file, or where git could not merge it, what a person has made of it on either side: perhaps nothing."""
    sides = whole_sides(one.data)
    if not sides and is_marked(one.data.decode("utf-8", "replace")):
        sides = _unmerged(path)
    if not sides:
        return [one]
    theirs = {side.digest: side for side in (_File(one.folder, side.data, one.seen, side.base) for side in sides)}
    ours = examined.folded.digests
    return [side for side in theirs.values() if side.digest not in ours and not files.lanes.wrote(side.digest)]


def _unmerged(path: str) -> tuple[Side, ...]:
    """Both sides of a file, as git has them; what one of them has from an earlier merge is in it whole."""
    found = git_files.unmerged_versions(path)
    if found is None:
        return ()
    base, *versions = found
    sides = [Side(version, base) for version in versions if version is not None]
    return tuple(each for side in sides for each in whole_sides(side.data) or (side,))


def _compare(examined: Examined, events: list[Event], task: Task, live: list[_File], found: list[_File]) -> None:
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
        _moved(examined, task, alone.folder, written)


def _moved(examined: Examined, task: Task, folder: str, written: str) -> None:
    """Our own bytes in another folder than we wrote them to are a person's move."""
    status, clash = _status_of_folder(task, folder, written)
    conflicts = ("status",) if clash else ()
    examined.edit = ImportEdit(actor=PERSON, task_id=task.id, status=_as_status(status), conflicts=conflicts)


def _as_status(folder: str | None) -> Status | None:
    """A folder as the status that it stands for; the rules refuse what is none."""
    return cast("Status | None", folder)


def _status_of_folder(task: Task, folder: str, written: str) -> tuple[str | None, bool]:
    """Where a person put the file, if anywhere; and whether the log has moved it elsewhere meanwhile."""
    expected = folder_of(task)
    if folder in (expected, written):
        return None, False
    if "archive" in (folder, written, expected):
        raise UnreadableTask(_BY_COMMAND)
    return (folder, False) if written == expected else (None, True)


def _status_in_file(task: Task, origin: Task, theirs: Task) -> tuple[str | None, bool]:
    """The status that a person wrote into the file where it lay; and whether the log has moved the task meanwhile."""
    if theirs.archived or theirs.status in (origin.status, task.status):
        return None, False
    return (theirs.status, False) if origin.status == task.status else (None, True)


def _edited(examined: Examined, events: list[Event], task: Task, changed: list[_File], alone: _File | None) -> None:
    """Merge each changed file: against the version that it was edited from."""
    merged = _MergedEdits(task)
    status: str | None = None
    conflicts: set[str] = set()
    kept = dict(examined.beside)
    for one in changed:
        theirs = _parse(one, task.id)
        if not same_task(task, theirs):
            raise _another(task, theirs, one.folder)
        origin = _origin(events, task, theirs, one.origin)
        clashes = merged.add(origin, theirs)
        if one is alone:
            status, clash = _status_of_folder(task, one.folder, folder_of(origin))
            if status is None and not clash:
                status, clash = _status_in_file(task, origin, theirs)
            clashes |= {"status"} if clash else set()
        conflicts |= clashes
        if clashes or one.folder in kept:
            kept[one.folder] = bool(clashes)
    layout = merged.new_layout()
    examined.layout = task.layout if layout is None else layout or None
    examined.beside = list(kept.items())
    examined.edit = ImportEdit(
        actor=PERSON,
        task_id=task.id,
        changes=merged.changes,
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


def _parse(one: _File, task_id: str) -> Task:
    theirs = markdown.parse(one.data, archived=one.folder == "archive")
    refuse_newer(theirs.schema_version)
    if theirs.id != task_id:
        raise UnreadableTask(f"its 'id' says {theirs.id[:80]!r}", "an ID never changes: put the line back")
    return theirs


def same_task(known: Task, theirs: Task) -> bool:
    """Whether two versions are of one task: it was created once, by one. Two histories may have given one ID twice."""
    if theirs.created_by != known.created_by:
        return False
    try:  # a person may have written the moment in another way
        return theirs.created_at == known.created_at or millis(theirs.created_at) == millis(known.created_at)
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


def _read_new(examined: Examined, task_id: str, found: list[_File]) -> None:
    if len(found) > 1:
        places = ", ".join(one.folder for one in found)
        raise UnreadableTask(f"it is new and lies in several folders: {places}", "keep one of them")
    (one,) = found
    created, layout = read_new_file(one.data, task_id)
    examined.at = one.folder
    examined.layout = layout
    examined.edit = ImportEdit(
        actor=PERSON, task_id=task_id, status=_as_status(one.folder), layout=layout, created=created
    )


def read_new_file(data: bytes, task_id: str) -> tuple[dict[str, Any], str | None]:
    """The fields that are a person's to give, their own keys and the body; and how they laid the frontmatter out."""
    if not data.strip():
        raise UnreadableTask("it is empty", "write something, or remove the file")
    fields, body, layout = markdown.parse_foreign(data)
    refuse_newer(fields.get("schemaVersion"))
    if fields.get("id") == task_id and isinstance(fields.get("rev"), int):
        raise UnreadableTask("the log knows nothing of it", "'aof doctor --fix' puts it into the log again")
    created: dict[str, Any] = {name: fields[name] for name in fields.keys() & markdown.KEYS & THEIRS}
    extra = {name: value for name, value in fields.items() if name not in markdown.KEYS}
    created.setdefault("title", _title(body) or task_id)
    if extra:
        created["extra"] = extra
    return created | {"body": body}, layout


def refuse_newer(version: object) -> None:
    """A file of a later format may mean what we do not know."""
    if isinstance(version, int) and version > SCHEMA_VERSION:
        what = f"it has schemaVersion {version}, and this AOF reads up to {SCHEMA_VERSION}"
        raise UnreadableTask(what, "use a newer AOF")


def _title(body: str) -> str:
    """The first line that says something."""
    for line in body.splitlines():
        if text := " ".join("".join(c if c.isprintable() else " " for c in line.lstrip("#")).split()):
            return text[: limits.TITLE]
    return ""


_NOT_COMPARED = ("body", "layout", "archived", "status", "id", "rev", "updatedAt", "lastTransitionAt")
_LINES = len(b"---\n")


class _MergedEdits:
    """The log's task, and what one edit after the other makes of it."""

    def __init__(self, task: Task) -> None:
        self._first = task
        self._task = task
        self._layout = task.layout
        self.changes: dict[str, Any] = {}  # all fields that are to change; None for one that was taken away

    def add(self, origin: Task, theirs: Task) -> set[str]:
        """Merge a version that was edited from `origin`; the names of what did not go in."""
        changes, conflicts = merge_fields(_fields(origin), _fields(self._task), _fields(theirs))
        clashes = {*conflicts, *(name for name in changes if name not in THEIRS)}
        taken = {name: value for name, value in changes.items() if name in THEIRS}
        body = merge_text(origin.body, self._task.body, theirs.body)
        if body is None:
            body = _around_the_log(origin.body, self._task.body, theirs.body)
        if body is None:
            clashes.add("body")
        elif body != self._task.body:
            taken["body"] = body
        self.changes |= taken
        self._task = _changed(self._task, taken)
        if theirs.layout != origin.layout and not self._lay_out(origin.layout, theirs.layout):
            clashes.add("layout")
        return clashes

    def new_layout(self) -> str | None:
        """The frontmatter as it is laid out now; empty when canonical, None when it is as before."""
        before, after = _front(self._task, self._first.layout), _front(self._task, self._layout)
        if before == after:
            return None
        return "" if markdown.decode_canonical(after[:-1].encode()) is not None else after

    def _lay_out(self, base: str | None, theirs: str | None) -> bool:
        """Merge the texts of the frontmatter, each with the same values in it; False when that cannot be done."""
        one, two, three = (_front(self._task, layout) for layout in (base, self._layout, theirs))
        merged = merge_text(one, two, three)
        if merged is None or not _means(merged, self._task):
            return False
        self._layout = merged
        return True


def _fields(task: Task) -> dict[str, Any]:
    """The frontmatter that can differ for a reason, with the person's own keys as one."""
    fields: dict[str, Any] = msgspec.to_builtins(task)
    for name in _NOT_COMPARED:
        fields.pop(name, None)
    if task.retry == Retry():  # what events have counted may be nothing yet, which a file does not say
        fields.pop("retry", None)
    return fields


def _changed(task: Task, changes: dict[str, Any]) -> Task:
    whole = msgspec.to_builtins(task) | changes
    kept = {name: value for name, value in whole.items() if value is not None}
    return msgspec.structs.replace(msgspec.convert(kept, prepare_type(Task)), layout=task.layout)


def _front(task: Task, layout: str | None) -> str:
    """The lines between the `---`, with the task's values in that layout."""
    return markdown.render(msgspec.structs.replace(task, layout=layout, body=""))[_LINES:-_LINES].decode()


def _means(text: str, task: Task) -> bool:
    try:
        found = markdown.parse(f"---\n{text}---\n".encode(), archived=task.archived)
    except AofError:
        return False
    return msgspec.structs.replace(found, layout=None) == msgspec.structs.replace(task, layout=None, body="")


def _around_the_log(base: str, ours: str, theirs: str) -> str | None:
    """Where only we wrote to the work log, what stands around it is merged by itself."""
    if task_body.with_description(theirs, "") != task_body.with_description(base, ""):
        return None
    merged = merge_text(*(task_body.description(body).rstrip("\r\n") for body in (base, ours, theirs)))
    return None if merged is None else task_body.with_description(ours, merged)
