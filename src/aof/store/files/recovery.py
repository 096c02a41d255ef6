"""After a crash or a power cut.

What the log knows and the files do not show is written again, as often as it takes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from aof.errors import AofError, LogDamaged
from aof.kernel.model import is_task_id
from aof.runs.model import Run, attempt_folder
from aof.store.files import creation, markdown
from aof.store.files.disk import Disk, digest, read
from aof.store.files.handoffs import HandoffRecords
from aof.store.files.log import chain
from aof.store.files.log.reader import Reader, broken
from aof.store.files.log.segment import is_torn, torn_name
from aof.store.files.log.writer import Log
from aof.store.files.manifest import BlockerTable, Manifest
from aof.store.files.paths import Paths, Position, folder_of, lane_of
from aof.store.files.task_files import TaskFiles, document
from aof.store.fold import Folded, fold
from aof.tasks.model import Task

_REV = re.compile(rb"^rev: ([0-9]{1,11})$", re.MULTILINE)  # a longer one is a person's joke, and no head could hold it


class Recovery:
    """Brings a data directory back to what the log says."""

    def __init__(
        self, paths: Paths, disk: Disk, log: Log, reader: Reader, *, heads: Manifest, redo: Redo, blockers: BlockerTable
    ) -> None:
        self._paths = paths
        self._disk = disk
        self._log = log
        self._reader = reader
        self._heads = heads
        self._redo = redo
        self._blockers = blockers

    def after_power_cut(self, since: Position) -> None:
        """The caller holds every lock. Redoes all tasks that were touched since the position."""
        self._cut_tail(since)
        self._forget_index()
        if not self._log.durable:  # files may be ahead of the log, so all of them are looked at
            since = Position()
        touched = {event.task_id for _, lines in self._reader.commits(since) for _, event in lines if event.task_id}
        floor = self.highest_rev()
        if not self._log.durable and (any(self._heads.ids()) or any(creation.remains_of_log(self._paths))):
            floor = max(floor, 1)  # every event may be lost, and the log begins again all the same
        self._log.restate(floor=floor)
        self._log.flush_all()
        ahead = {task_id for task_id, rev in self.revs() if rev > self._log.seq}
        if not self._log.durable:
            self._redo.unknown_handoffs(self._log.seq)
        for task_id, folded in self._folded(touched):
            self._blockers.add(folded.task.ends if folded.task is not None else ())
            if not self._log.durable:
                self._redo.unknown_runs(folded)
            if not self._log.durable and task_id in ahead:
                self._redo.task(folded)
            else:
                self._redo.left_torn(folded, partial(self._versions, task_id))

    def redo_tasks(self, task_ids: Iterable[str]) -> None:
        """Finish what a dead writer left of these tasks' files."""
        for _, folded in self._folded(task_ids):
            self._redo.left(folded)

    def _folded(self, task_ids: Iterable[str]) -> Iterable[tuple[str, Folded]]:
        wanted = frozenset(task_ids)
        return fold(self._reader.of_tasks(wanted)).items() if wanted else ()

    def _versions(self, task_id: str) -> Iterator[bytes]:
        """The bytes of every version that a task's file ever had."""
        folded = Folded()
        for event in self._reader.of_tasks((task_id,)):
            folded.add(event)
            if event.files and folded.task is not None:
                yield markdown.render(folded.task)

    def new_here(self) -> None:
        """A directory whose log is new to us (cloned, copied, another branch): what `locks/` holds is rebuilt.

        Files are not touched.
        """
        self._forget_index()
        self._log.restate(floor=self.highest_rev())
        known = fold(event for _, lines in self._reader.proven(Position()) for _, event in lines)
        self._blockers.rebuild(edge for one in known.values() if one.task is not None for edge in one.task.ends)
        for task_id in [task_id for task_id in self._heads.ids() if task_id not in known]:
            self._heads.forget(task_id)
        for task_id, folded in known.items():
            for path, written in folded.last_files.items():
                folder = "archive" if path.startswith("archive/") else path.split("/")[1]
                assert folded.task is not None
                self._heads.put(task_id, folded.task.rev, folder, written)

    def highest_rev(self) -> int:
        """The highest `rev` in any task's file: no later event may have a number that a file has already."""
        return max((rev for _, rev in self.revs()), default=0)

    def revs(self) -> Iterator[tuple[str, int]]:
        """The `rev` in each task's file, whatever else it says."""
        for _, folder in self._paths.folders:
            for entry in os.scandir(folder):
                if entry.name.endswith(".md") and entry.is_file(follow_symlinks=False):
                    with suppress(OSError):
                        found = _REV.search((read(entry.path) or b"")[:65_536])
                        if found:
                            yield entry.name[:-3], int(found[1])

    def _forget_index(self) -> None:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                self._disk.unlink(self._paths.index + suffix)

    def _cut_tail(self, since: Position) -> None:
        """Walk the chain from the checkpoint on; from the first bad line on nothing was flushed, so it is cut."""
        if not self._reader.holds(since):
            raise LogDamaged(
                f"the log lacks event {since.seq}, which was durable",
                "copy events/ aside, then restore it from a backup; nothing was changed",
            )
        here = since
        sections = tuple(self._reader.sections(since))
        for at, (section, start) in enumerate(sections):
            data = (read(self._paths.log(section.name), limit=None) or b"")[: section.end]
            good, here = _good_until(data, start, here, section.name)
            if good == len(data):
                continue
            self._refuse_if_flushed(here.seq)
            later = [one for one, _ in sections[at + 1 :]]
            if section.end is not None or any(lane_of(one.name) for one in later):
                raise broken(section.name)  # what a lane builds on was flushed before it began
            self._set_aside(section.name, data, good)
            for one in later:
                self._set_aside(one.name, read(self._paths.log(one.name), limit=None) or b"", 0)
            return

    def _refuse_if_flushed(self, seq: int) -> None:
        """A file is written after its event was flushed, so one that is ahead of the log shows real damage."""
        if not self._log.durable:
            return
        highest = self.highest_rev()
        if highest > seq:
            raise LogDamaged(
                f"the log is broken after event {seq}, but event {highest} was durable",
                "copy events/ aside, then restore it from a backup or version control; nothing was changed",
                seq=seq,
            )

    def _set_aside(self, day: str, data: bytes, offset: int) -> None:
        if offset < len(data):
            self._disk.write_durable(torn_name(self._paths, day, offset, data[offset:]), data[offset:])
        fd = self._disk.create(self._paths.log(day))
        try:
            self._disk.truncate(fd, offset)
            self._disk.flush(fd)
        finally:
            os.close(fd)


def _good_until(data: bytes, start: int, here: Position, day: str) -> tuple[int, Position]:
    """How far the chain holds, in whole commits."""
    offset = start
    good, proven = start, here
    digest, seq = here.digest, here.seq
    while (end := data.find(b"\n", offset)) >= 0:
        line = data[offset : end + 1]
        if not chain.proves(line, digest):
            break
        try:
            event = chain.decode_event(line)
        except LogDamaged:
            break
        if event.seq <= seq or not (is_task_id(event.task_id) or not event.task_id):
            break
        digest, seq, offset = event.hash, event.seq, end + 1
        if event.commit[0] == event.commit[1]:
            good, proven = offset, Position(day, offset, seq, digest)
    return good, proven


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
        """Redo a task that a merge changed: any clone may have written its file; other bytes are a person's."""
        self._finish(folded, lambda _, __: ours, aside=False)

    def left(self, folded: Folded) -> None:
        """Redo a task after its writer died: only what that may have left is touched."""
        self._finish(folded, None)

    def left_torn(self, folded: Folded, versions: Versions) -> None:
        """Redo a task after a power cut: files may be torn as well, which the bytes of all versions show."""
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
