"""What is odd about a task's file, for lists: nothing, a person's edit, or that nobody can read it. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from aof.core.errors import tasks as task_errors
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.working_copy import markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.task import Task


def file_status(path: str, ours: Callable[[bytes], bool]) -> str | None:
    """None where the file is as we wrote it; `stale` where somebody changed it, `unknown` where it makes no sense."""
    try:
        data = read(path)
        if data is not None and ours(data):
            return None
        if data is not None:
            markdown.parse(data)
    except (OSError, task_errors.UnreadableTask):
        return "unknown"
    return "stale"


class Fingerprints:
    """Recognises files that nobody has touched since they were read and found to be what the log wrote.

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
        folders = _Folders()
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


class _Folders(dict[str, int]):
    """Folders that are open for a while, so that the way to each file in them is short."""

    def __missing__(self, path: str) -> int:
        fd = self[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return fd

    def close(self) -> None:
        for fd in self.values():
            os.close(fd)


def _fingerprint(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_ctime_ns, found.st_ino, found.st_size


def changed_at(path: str) -> int:
    """When the system last noted a change of the file, in nanoseconds; 0 where there is none."""
    found = _fingerprint(path)
    return found[0] if found is not None else 0
