"""What is odd about a task's file, for lists: nothing, a person's edit, or that nobody can read it. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from aof.core.model.errors import UnreadableTask
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.working_copy import markdown


def file_status(path: str, ours: Callable[[bytes], bool]) -> str | None:
    """None where the file is as we wrote it; `stale` where somebody changed it, `unknown` where it makes no sense."""
    try:
        data = read(path)
        if data is not None and ours(data):
            return None
        if data is not None:
            markdown.parse(data)
    except (OSError, UnreadableTask):
        return "unknown"
    return "stale"
