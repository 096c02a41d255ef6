"""After a power cut: the first opener under a new boot makes the files follow the log again.

Everything since the checkpoint is redone from the log; what was never completely written goes to `events/torn/`.
Must not decide anything about tasks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial

from aof.core.errors.storage import LogDamaged
from aof.core.model.ids import is_task_id
from aof.stores.base.fold import Folded, fold
from aof.stores.filesystem.integrity.waited import Waited
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.lane_names import lane_of
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.log.reader import Reader, broken
from aof.stores.filesystem.log.writer import Log
from aof.stores.filesystem.recovery import lost_log
from aof.stores.filesystem.recovery.quarantine import torn_name
from aof.stores.filesystem.recovery.redo import Redo
from aof.stores.filesystem.working_copy import markdown
from aof.stores.filesystem.working_copy.manifest import Manifest

_REV = re.compile(rb"^rev: ([0-9]{1,11})$", re.MULTILINE)  # a longer one is a person's joke, and no head could hold it


class Recovery:
    """Brings a data directory back to what the log says."""

    def __init__(
        self, paths: Paths, disk: Disk, log: Log, reader: Reader, *, heads: Manifest, redo: Redo, waited: Waited
    ) -> None:
        self._paths = paths
        self._disk = disk
        self._log = log
        self._reader = reader
        self._heads = heads
        self._redo = redo
        self._waited = waited

    def after_power_cut(self, since: Position) -> None:
        """The caller holds every lock. Redoes all tasks that were touched since the position."""
        self._cut_tail(since)
        self._forget_index()
        if not self._log.durable:  # files may be ahead of the log, so all of them are looked at
            since = Position()
        touched = {event.task_id for _, lines in self._reader.commits(since) for _, event in lines if event.task_id}
        floor = self.highest_rev()
        if not self._log.durable and (any(self._heads.ids()) or any(lost_log.remains(self._paths))):
            floor = max(floor, 1)  # every event may be lost, and the log begins again all the same
        self._log.restate(floor=floor)
        self._log.flush_all()
        ahead = {task_id for task_id, rev in self.revs() if rev > self._log.seq}
        if not self._log.durable:
            self._redo.unknown_handoffs(self._log.seq)
        for task_id, folded in self._folded(touched):
            self._waited.add(folded.task.ends if folded.task is not None else ())
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
        self._waited.rebuild(edge for one in known.values() if one.task is not None for edge in one.task.ends)
        for task_id in [task_id for task_id in self._heads.ids() if task_id not in known]:
            self._heads.forget(task_id)
        for task_id, folded in known.items():
            for path, digest in folded.last_files.items():
                folder = "archive" if path.startswith("archive/") else path.split("/")[1]
                assert folded.task is not None
                self._heads.put(task_id, folded.task.rev, folder, digest)

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
            event = chain.decode(line)
        except LogDamaged:
            break
        if event.seq <= seq or not (is_task_id(event.task_id) or not event.task_id):
            break
        digest, seq, offset = event.hash, event.seq, end + 1
        if event.commit[0] == event.commit[1]:
            good, proven = offset, Position(day, offset, seq, digest)
    return good, proven
