"""The working copy of a data directory.

Finds what people did to the files of all tasks, and looks after them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from aof import errors
from aof.errors import InvalidInput
from aof.kernel.model import is_task_id
from aof.store import port
from aof.store.files import changes, definitions, git_files, integrity, markdown
from aof.store.files.disk import clearly, digest, read, seen
from aof.store.files.paths import Position, folder_of
from aof.tasks import manual_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.merge.model import Report as MergeReport
    from aof.store.directory import Checkup
    from aof.store.files.store import FilesystemStore
    from aof.tasks.model import Task


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
    def _verification(self) -> integrity.ChainVerification:
        return integrity.ChainVerification(self._store.reader)

    def file_status(self, task: Task) -> str | None:
        """Whether somebody changed the task's file and nobody has imported that yet, or it cannot be read."""
        return self._store.file_status(task.id, folder_of(task))

    def odd_files(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Those whose files differ from what the log wrote; a file that nobody has touched since is not read again."""
        day, _ = self._store.reader.end()
        log = _fingerprint(self._store.paths.log(day)) if day else None
        latest = log[0] if log is not None else 0
        return self._fingerprints.differing(tasks, self._store.paths.place_of, self.file_status, latest)

    def changes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """New files without an ID as name, relative to the data directory, and the tasks whose files are changed."""
        self._store.refuse_unsound()
        self._store.stripes.finish_left()
        found = integrity.scan(self._store.paths, self._store.heads)
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

    def moved_into(self, status: str) -> tuple[str, ...]:
        """Tasks whose files lie in the folder of this status, while the manifest has them elsewhere. Reads no file."""
        heads = self._store.heads
        try:
            names = sorted(os.listdir(self._store.paths.folder(status)))
        except FileNotFoundError:
            return ()
        found = (name[:-3] for name in names if name.endswith(".md") and is_task_id(name[:-3]))
        return tuple(one for one in found if (head := heads.get(one)) is None or head.folder != status)

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
        if folder not in manual_edits.BIRTHPLACES:
            raise InvalidInput(f"a new task cannot begin in {folder}/", "put the file into backlog/ or ready/")
        try:
            data = read(whole) or b""
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}", "put a regular file there") from None
        changes.read_new_file(data, "")
        task_id = store.reserve_id(now)
        while store.files.present(task_id):
            task_id = store.reserve_id(now)
        store.disk.rename(whole, store.paths.task(folder, task_id))
        return task_id

    def quarantine(self, task_id: str) -> tuple[str, ...]:
        """Keep a file that cannot be imported under another name, and restore the log's version in its place."""
        store = self._store
        kept: list[str] = []
        with store.unit(port.Scope(write=frozenset({task_id}))):
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
        from aof.store.files import doctor

        with clearly("compare everything"):
            return doctor.diagnose(self._store)

    def repair(self) -> None:
        """Repair what a diagnosis finds, as far as that needs no person."""
        from aof.store.files import doctor

        with clearly("repair everything"):
            doctor.repair(self._store, self._now())

    def tips(self) -> int:
        """How many histories there are that nobody has brought together."""
        with clearly("read the log"):
            return self._store.reader.tips()

    def merge(self, *, dry_run: bool) -> MergeReport | None:
        """Bring all histories together."""
        with clearly("merge histories"):
            report = self._store.merger.merge(dry_run=dry_run)
        root = self._store.paths.root
        if report is None or not git_files.unmerged(root) or not git_files.lacks_driver(root):
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
        return definitions.template_names(self._store.paths.root)

    def template(self, name: str) -> tuple[dict[str, Any], str] | None:
        """The keys and the text of a template."""
        return definitions.load_template(self._store.paths.root, name)

    def watched(self) -> tuple[str, tuple[str, ...]]:
        """The folder in which the log grows, and those in which people edit tasks."""
        folders = (folder for _, folder in self._store.paths.folders if "/archive" not in folder)
        return self._store.paths.events, tuple(folders)

    def verified(self, most: int | None = None) -> int:
        """How far the log's chain of hashes holds, if they are those that were appended.

        Without a bound, every lane beside the path is proven too. Raises LogDamaged.
        """
        from aof.store.files import doctor

        layout = self._store.reader.layout() if most is None else None
        if layout is not None:
            from aof.store.files.merge import prove_lanes  # only where several clones have written

            prove_lanes(self._store.paths, layout)
        self._store.refuse_unsound()
        until = self._verification.go_on(most)
        doctor.refuse_rewritten_log(self._store)
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


def file_status(path: str, ours: Callable[[bytes], bool]) -> str | None:
    """None where the file is as we wrote it; `stale` where somebody changed it, `unknown` where it makes no sense."""
    try:
        data = read(path)
        if data is not None and ours(data):
            return None
        if data is not None:
            markdown.parse(data)
    except (OSError, errors.UnreadableTask):
        return "unknown"
    return "stale"


class Fingerprints:
    """Recognises files that have not changed since they were found to be what the log wrote.

    A file is known by its inode, its size and the moment of its last change, which the system keeps (`ctime`): unlike
    the time of its last writing, nobody can set that back. A file that changed in the same moment as it was read could
    change once more without a trace, so one is remembered only if something else has surely changed later: the log.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str, str, int, int, int]] = {}

    def differing(
        self, tasks: Iterable[Task], path_of: Callable[[Task], str], odd: Callable[[Task], object], latest: int
    ) -> Iterator[Task]:
        """The tasks whose files are `odd` by a look at their bytes; `latest` is when the log was last changed."""
        known, stat = self._known, os.stat
        folders = _OpenFolders()
        try:
            for task in tasks:
                kept = known.get(task.id)
                if kept is not None and kept[0] == task.rev:
                    try:
                        now = stat(kept[2], dir_fd=folders[kept[1]], follow_symlinks=False)
                    except OSError:
                        pass
                    else:
                        if kept[3] == now.st_ctime_ns and kept[4] == now.st_ino and kept[5] == now.st_size:
                            continue
                path = path_of(task)
                before = _fingerprint(path)  # what changes while it is read has another one afterwards
                if odd(task) is not None:
                    known.pop(task.id, None)
                    yield task
                elif before is not None and before[0] < latest:
                    known[task.id] = (task.rev, *os.path.split(path), *before)
        finally:
            folders.close()


class _OpenFolders(dict[str, int]):
    """Folders that are open for a while, so that the way to each file in them is short."""

    def __missing__(self, path: str) -> int:
        fd = self[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return fd

    def close(self) -> None:
        for fd in self.values():
            os.close(fd)


def _fingerprint(path: str) -> tuple[int, int, int] | None:
    """When the system last noted a change of the file, in nanoseconds; its inode and its size."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_ctime_ns, found.st_ino, found.st_size
