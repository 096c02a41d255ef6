"""The working copy of a data directory: finds what people did to the files of all tasks, and looks after them.

Keeps the contract of `ports.working_copy.WorkingCopy`. Must not judge an edit; that is the core's part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from aof.core.errors.base import InvalidInput
from aof.core.tasks import manual_edit
from aof.ports import store as ports
from aof.stores.filesystem.io.paths import folder_of
from aof.stores.filesystem.io.read import digest, read, seen
from aof.stores.filesystem.io.system import clearly
from aof.stores.filesystem.log import verification
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.records import task_templates
from aof.stores.filesystem.working_copy import changes, git_files, git_index, new_file, scan
from aof.stores.filesystem.working_copy.status import Fingerprints, changed_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.core.engine.merge.model import Report as MergeReport
    from aof.core.model.task import Task
    from aof.ports.working_copy import Checkup
    from aof.stores.filesystem.store import FilesystemStore

_AT_ONCE = 2_000


class FileWorkingCopy:
    """The tasks' files of one store."""

    def __init__(self, store: FilesystemStore, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now
        self.missed: list[str] = []  # tasks whose file was missing when a command restored it
        self.root = store.paths.root

    @cached_property
    def _fingerprints(self) -> Fingerprints:
        return Fingerprints()

    @cached_property
    def _verification(self) -> verification.ChainVerification:
        return verification.ChainVerification(self._store.reader)

    def file_status(self, task: Task) -> str | None:
        """Whether somebody changed the task's file and nobody has imported that yet, or it cannot be read."""
        return self._store.file_status(task.id, folder_of(task))

    def odd_files(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Those whose files differ from what the log wrote; a file that nobody has touched since is not read again."""
        day, _ = self._store.reader.end()
        latest = changed_at(self._store.paths.log(day)) if day else 0
        return self._fingerprints.differing(tasks, self._path_of, self.file_status, latest)

    def _path_of(self, task: Task) -> str:
        return self._store.paths.place_of(task)

    def changes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """New files without an ID as name, relative to the data directory, and the tasks whose files are changed."""
        self._store.refuse_unsound()
        self._store.stripes.finish_left()
        found = scan.scan(self._store.paths, self._store.heads)
        return tuple(map(self._store.paths.relative, found.nameless)), tuple(found.changed)

    def is_modified(self, task_id: str) -> bool:
        """Whether the file is not exactly what the manifest says, or lies elsewhere, too."""
        head = self._store.heads.get(task_id)
        if head is None or self._store.files.elsewhere(task_id, head.folder):
            return True
        try:
            data = read(self._store.paths.task(head.folder, task_id))
        except OSError:
            return True
        return data is None or not head.matches(data)

    def places(self, task_id: str) -> tuple[str, ...]:
        """Where files of the task lie."""
        paths = self._store.paths
        return tuple(paths.relative(paths.task(folder, task_id)) for folder in self._store.files.present(task_id))

    def restored(self) -> tuple[str, ...]:
        """Tasks whose file had been deleted and was written again from the log, once each."""
        found = tuple(dict.fromkeys(self.missed))
        self.missed.clear()
        return found

    def preloaded(self, task_ids: Sequence[str]) -> Iterator[str]:
        """These tasks, one by one; their events are read beforehand, for many at once."""
        store = self._store
        try:
            for start in range(0, len(task_ids), _AT_ONCE):
                some = task_ids[start : start + _AT_ONCE]
                if store.repairs:  # which may cut a dead writer's tail
                    store.log.refresh()
                store.histories.announce(some, store.log.position)
                yield from some
        finally:
            store.histories.announce((), Position())

    def adopt(self, path: str, now: int) -> str:
        """Give a new file an ID; what could not become a task keeps its name."""
        store = self._store
        whole = f"{store.paths.root}/{path}"
        folder = os.path.basename(os.path.dirname(whole))
        if folder not in manual_edit.BIRTHPLACES:
            raise InvalidInput(f"a new task cannot begin in {folder}/", "put the file into backlog/ or ready/")
        try:
            data = read(whole) or b""
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}", "put a regular file there") from None
        new_file.read(data, "")
        task_id = store.reserve_id(now)
        while store.files.present(task_id):
            task_id = store.reserve_id(now)
        store.disk.rename(whole, store.paths.task(folder, task_id))
        return task_id

    def quarantine(self, task_id: str) -> tuple[str, ...]:
        """Keep a file that cannot be imported under another name, and restore the log's version in its place."""
        store = self._store
        kept: list[str] = []
        with store.unit(ports.Scope(write=frozenset({task_id}))):
            examined = changes.examine(store.paths, store.files, store.histories.of(task_id), task_id)
            if examined.folded.task is None or (examined.problem is None and examined.edit is None):
                return ()
            for folder in store.files.present(task_id):
                path = store.paths.task(folder, task_id)
                if _is_ours(path, examined.folded.digests):
                    continue
                if (state := examined.seen.get(folder)) is not None and state != seen(path):
                    raise InvalidInput(f"{store.paths.relative(path)} is being written", "run the command again")
                copy = store.files.free_name(f"{path}.conflict")
                store.disk.rename(path, copy)
                kept.append(store.paths.relative(copy))
            store.redo.task(examined.folded)
        return tuple(kept)

    def diagnose(self) -> Checkup:
        """Compare log, files, runs, heads, index and counter with each other."""
        from aof.stores.filesystem.doctor import diagnosis

        with clearly("compare everything"):
            return diagnosis.diagnose(self._store)

    def repair(self) -> None:
        """Put right what a diagnosis finds, as far as that needs no person."""
        from aof.stores.filesystem.doctor import diagnosis

        with clearly("repair everything"):
            diagnosis.repair(self._store, self._now())

    def tips(self) -> int:
        """How many histories there are that nobody has brought together."""
        with clearly("read the log"):
            return self._store.reader.tips()

    def merge(self, *, dry_run: bool) -> MergeReport | None:
        """Bring all histories together."""
        with clearly("merge histories"):
            report = self._store.merger.merge(dry_run=dry_run)
        root = self._store.paths.root
        if report is None or not git_index.unmerged(root) or not git_files.lacks_driver(root):
            return report
        return msgspec.structs.replace(report, notes=(*report.notes, git_files.ADVICE))

    def rebuild_index(self) -> None:
        """Discard the index and rebuild it."""
        self._store.index.rebuild()

    def checkpoint(self) -> None:
        """Sync everything, so that a power cut costs less afterwards."""
        self._store.checkpoint()

    def templates(self) -> tuple[str, ...]:
        """The names of the templates for new tasks."""
        return task_templates.names(self._store.paths.root)

    def template(self, name: str) -> tuple[dict[str, Any], str] | None:
        """The keys and the text of a template."""
        return task_templates.load(self._store.paths.root, name)

    def watched(self) -> tuple[str, tuple[str, ...]]:
        """The folder in which the log grows, and those in which people edit tasks."""
        folders = (folder for _, folder in self._store.paths.folders if "/archive" not in folder)
        return self._store.paths.events, tuple(folders)

    def verified(self, most: int | None = None) -> int:
        """How far the log's chain of hashes holds, if they are those that were appended.

        Without a bound, every lane beside the path is proven too. Raises LogDamaged.
        """
        from aof.stores.filesystem.doctor import rewritten_log

        layout = self._store.reader.layout() if most is None else None
        if layout is not None:
            from aof.stores.filesystem.merge.proof import prove_lanes  # only where several clones have written

            prove_lanes(self._store.paths, layout)
        self._store.refuse_unsound()
        until = self._verification.go_on(most)
        rewritten_log.refuse(self._store)
        return until

    def log_end(self) -> object:
        """The end of the log's last file."""
        return self._store.reader.end()


def _is_ours(path: str, digests: dict[str, int]) -> bool:
    try:
        data = read(path)
    except OSError:
        return False
    return data is not None and digest(data) in digests
