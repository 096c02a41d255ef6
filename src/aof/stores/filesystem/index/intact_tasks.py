"""Every task whose file is exactly what the log wrote, read in batches: what a new index is filled from.

The heads say where each file lies and how its digest begins, so no folder is listed, and what was checked that way may
be decoded the short way. Must not know what the tasks are read for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from aof._support.hashing import hexdigest
from aof.core.errors.base import AofError
from aof.core.model.task import Task
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.working_copy import markdown

_AT_ONCE = 200  # files: one kind of work for many of them keeps the processor's caches warm
Recorded = tuple[Task, bytes | None]  # a task without its body, and its record as JSON where that is at hand
Noted = dict[str, list[tuple[str, str]]]  # by folder, the tasks and how the digests of their files begin


def intact(paths: Paths, noted: Noted) -> Iterator[Sequence[Recorded]]:
    """The tasks, folder by folder in the order of their IDs."""
    for folder, path in paths.folders:
        tasks = noted[folder]
        if not tasks:
            continue
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for start in range(0, len(tasks), _AT_ONCE):
                files = list(_unchanged(directory, tasks[start : start + _AT_ONCE]))
                yield _parsed(files, archived=folder == "archive")
        finally:
            os.close(directory)


def _unchanged(directory: int, tasks: list[tuple[str, str]]) -> Iterator[bytes]:
    """The files that are as the log wrote them."""
    for task_id, digest in tasks:
        try:
            data = read(f"{task_id}.md", directory)
        except OSError:
            continue
        if data is not None and hexdigest(data).startswith(digest):
            yield data


def _parsed(files: Sequence[bytes], *, archived: bool) -> Sequence[Recorded]:
    """What the files hold: of many at once if they are all canonical, or of one after the other."""
    if not archived and (together := markdown.parse_heads(files)) is not None:
        return together
    found: list[Recorded] = []
    for data in files:
        with suppress(AofError):
            own = None if archived else markdown.parse_own(data)
            found.append(own or (markdown.parse(data, archived=archived), None))
    return found
