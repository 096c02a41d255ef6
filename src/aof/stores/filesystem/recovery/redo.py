"""Redo: whatever the log knows and the files do not show yet is written again, as often as it takes.

Must not decide anything: the log is right, and the files follow from it. What a person did to a file in the meantime
is no leftover of ours: it stays where it is until a command imports it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from aof.core.errors.base import AofError
from aof.core.model.run import Run, attempt_folder
from aof.core.model.task import Task
from aof.stores.base.fold import Folded
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths, folder_of
from aof.stores.filesystem.io.read import digest, read
from aof.stores.filesystem.records.handoffs import HandoffRecords
from aof.stores.filesystem.recovery.quarantine import is_torn
from aof.stores.filesystem.working_copy import markdown
from aof.stores.filesystem.working_copy.files import TaskFiles, document
from aof.stores.filesystem.working_copy.manifest import Manifest

Versions = Callable[[], Iterable[bytes]]


class Redo:
    """Makes files as the log says they are."""

    def __init__(
        self, paths: Paths, files: TaskFiles, heads: Manifest, disk: Disk, handed: Callable[[], HandoffRecords]
    ) -> None:
        self._paths = paths
        self._files = files
        self._heads = heads
        self._disk = disk
        self._handed = handed

    def task(self, folded: Folded) -> None:
        """Bring a task's files to the version that the log ends with, whatever lies there; unknown bytes go aside."""
        known = folded.digests
        self._finish(folded, lambda _, data: data is not None and digest(data) in known)

    def merged(self, folded: Folded, *, ours: bool) -> None:
        """The same where a merge changed the task: any clone may have written its file, or else it is a person's."""
        self._finish(folded, lambda _, __: ours, aside=False)

    def left(self, folded: Folded) -> None:
        """The same after a writer died: only what it may have left is touched."""
        self._finish(folded, None)

    def left_torn(self, folded: Folded, versions: Versions) -> None:
        """The same after a power cut: files may also be torn, which the bytes of all versions show."""
        for folder in self._files.present(_task(folded).id):
            path = self._paths.task(folder, _task(folded).id)
            data = _look(path)
            if data is None or (digest(data) not in folded.digests and _unusable(data, versions)):
                self.set_aside(path, f"{_task(folded).id}.{folder}.md")
        self.left(folded)

    def unknown_runs(self, folded: Folded) -> None:
        """Put runs aside that the log knows nothing of, because nobody flushed it before the power went."""
        task_id, runs = _task(folded).id, folded.by_hop()
        for folder in (self._paths.run(task_id), self._paths.run(task_id, archived=True)):
            if not os.path.isdir(folder):
                continue
            hops = os.listdir(f"{folder}/hops") if os.path.isdir(f"{folder}/hops") else ()
            unknown = not folded.runs or self._unknown(folder, runs.get(None, []), len(folded.runs))
            if unknown or any(
                self._unknown(f"{folder}/hops/{hop}", runs.get(hop, []), len(folded.runs)) for hop in hops
            ):
                self.set_aside(folder, f"{task_id}.runs")

    def _unknown(self, folder: str, runs: list[Run], last: int) -> bool:
        """Whether a folder holds a run that is not among these, which are numbered up to the last one."""
        current = self._files.run_document(f"{folder}/run.json", Run)
        kept = os.listdir(f"{folder}/attempts") if os.path.isdir(f"{folder}/attempts") else ()
        more = current is not None and (current.attempt > last or not runs)
        ended = {attempt_folder(run) for run in runs[:-1]}
        own = {attempt_folder(runs[-1])} if runs else set()  # what a worker prints lies there while its run goes on
        moved = any(os.path.lexists(f"{folder}/attempts/{name}/run.json") for name in own)
        return more or moved or not (ended | own).issuperset(kept)

    def unknown_handoffs(self, last: int) -> None:
        """Put records aside that the log may know nothing of; its own versions are redone."""
        for path in self._handed().unproven(last):
            self.set_aside(path, os.path.basename(path))

    def _finish(self, folded: Folded, ours: Callable[[str, bytes | None], bool] | None, *, aside: bool = True) -> None:
        task = _task(folded)
        data, target = markdown.render(task), folder_of(task)
        kept, theirs = self._clear(folded, target, ours, aside=aside and ours is not None)
        path = self._paths.task(target, task.id)
        if (kept is not None or not theirs) and (kept != target or read(path) != data):
            self._files.place(task.id, data, kept, target)
        self._files.gather(task.id, target)
        if folded.handoffs:
            self._handed().redo(folded, target)
        self._runs(task, folded)
        self._heads.put(task.id, task.rev, target, digest(data))

    def _clear(
        self, folded: Folded, target: str, ours: Callable[[str, bytes | None], bool] | None, *, aside: bool
    ) -> tuple[str | None, bool]:
        """Leave at most one file of ours in the folders; tell where, and whether there is one of somebody else's."""
        task, kept, theirs = _task(folded), None, False
        for folder in sorted(self._files.present(task.id), key=lambda name: name != target):
            path = self._paths.task(folder, task.id)
            data = _look(path)
            if not (ours or _may_be_left(folded))(folder, data):
                theirs = not aside
                if aside:
                    self.set_aside(path, f"{task.id}.{folder}.md")
            elif kept is None:
                kept = folder
            else:
                self._disk.unlink(path)
        return kept, theirs

    def set_aside(self, path: str, name: str) -> None:
        """Keep bytes that nobody can explain."""
        self._files.keep_beside(path, f"{self._paths.torn}/{name}")

    def _runs(self, task: Task, folded: Folded) -> None:
        if not folded.runs:
            return
        self._files.move_runs(task.id, archived=task.archived)
        top = self._paths.run(task.id, archived=task.archived)
        self._make(top)
        for hop, runs in folded.by_hop().items():
            if hop is not None:
                self._make(f"{top}/hops")
                self._make(f"{top}/hops/{hop}")
            self._runs_in(top if hop is None else f"{top}/hops/{hop}", runs, task, folded)

    def _runs_in(self, folder: str, runs: list[Run], task: Task, folded: Folded) -> None:
        if len(runs) > 1:
            self._make(f"{folder}/attempts")
        for run in runs:
            current = run is runs[-1]
            place = folder if current else f"{folder}/attempts/{attempt_folder(run)}"
            if not current:
                self._make(place)
                self._adopt(folder, place, run.run_id)
            self._write(f"{place}/run.json", document(run), task.id)
            result = folded.results.get(run.run_id)
            if result is not None:
                self._write(f"{place}/run_result.json", document(result), task.id)
            elif current:
                with suppress(FileNotFoundError):
                    self._disk.unlink(f"{place}/run_result.json")

    def _adopt(self, folder: str, place: str, run_id: str) -> None:
        """A heartbeat is in no event: one that still lies with the current run moves to the attempt it belongs to."""
        data = read(f"{folder}/run_heartbeat.json")
        if data is not None and f'"{run_id}"'.encode() in data and not os.path.lexists(f"{place}/run_heartbeat.json"):
            self._disk.rename(f"{folder}/run_heartbeat.json", f"{place}/run_heartbeat.json")

    def _write(self, path: str, data: bytes, task_id: str) -> None:
        if read(path) == data:
            return
        temporary = self._paths.temporary_file(f"{task_id}.redo")
        self._disk.write_new(temporary, data)
        self._disk.replace(temporary, path)

    def _make(self, folder: str) -> None:
        with suppress(FileExistsError):
            self._disk.make_dir(folder)


def _may_be_left(folded: Folded) -> Callable[[str, bytes | None], bool]:
    """Whether a writer that died could have left bytes in a folder: where its version belongs, or the one before.

    The latter is what an earlier AOF may have left, which wrote a version over the one before and then moved it.
    """

    def ours(folder: str, data: bytes | None) -> bool:
        version = folded.digests.get(digest(data)) if data is not None else None
        if version is None:
            return False
        numbers = sorted(folded.folders)
        before = numbers[max(numbers.index(version) - 1, 0)]
        return folder in (folded.folders[version], folded.folders[before])

    return ours


def _task(folded: Folded) -> Task:
    assert folded.task is not None
    return folded.task


def _look(path: str) -> bytes | None:
    """None for what is not a file that can be read."""
    try:
        return read(path) or b""
    except OSError:
        return None


def _unusable(data: bytes, versions: Versions) -> bool:
    try:
        markdown.parse(data)
    except AofError:
        return True
    return any(is_torn(data, whole) for whole in versions())
