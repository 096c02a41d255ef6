"""Merges what people wrote into a task with what the log has: fields, body and layout, three-way.

Must not know files or folders, nor whether a change is allowed; what a person may never change is a clash.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof._support.typed import prepare_type
from aof.core.errors.base import AofError
from aof.core.evolve import work_log
from aof.core.model.task import Retry, Task
from aof.core.tasks.manual_edit import THEIRS
from aof.core.tasks.merge import merge_fields, merge_text
from aof.stores.filesystem.working_copy import markdown

_NOT_COMPARED = ("body", "layout", "archived", "status", "id", "rev", "updatedAt", "lastTransitionAt")
_LINES = len(b"---\n")


class Merge:
    """The log's task, and what one edit after the other makes of it."""

    def __init__(self, task: Task) -> None:
        self._first = task
        self._task = task
        self._layout = task.layout
        self._changes: dict[str, Any] = {}

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
        self._changes |= taken
        self._task = _changed(self._task, taken)
        if theirs.layout != origin.layout and not self._lay_out(origin.layout, theirs.layout):
            clashes.add("layout")
        return clashes

    def changes(self) -> dict[str, Any]:
        """All fields that are to change; None for one that was taken away."""
        return self._changes

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
    if work_log.with_description(theirs, "") != work_log.with_description(base, ""):
        return None
    merged = merge_text(*(work_log.description(body).rstrip("\r\n") for body in (base, ours, theirs)))
    return None if merged is None else work_log.with_description(ours, merged)
