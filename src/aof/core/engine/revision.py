"""Revisions: a command is refused when its task has changed since the caller looked.

An undo names what it reverses, and a part of a bulk change where that began. Must not know what a command does.
"""

from __future__ import annotations

from aof.core.errors.base import AofError, Call
from aof.core.errors.tasks import RevisionConflict
from aof.core.model.commands import OnTask
from aof.core.model.records import Verdict
from aof.core.model.task import Task


def outdated(task: Task | None, command: OnTask) -> RevisionConflict | None:
    """The refusal of a command whose caller has seen another revision of the task."""
    if command.expect_rev is None or task is None or task.rev == command.expect_rev:
        return None
    return RevisionConflict(
        f"{task.id} is at revision {task.rev}, not {command.expect_rev}",
        "look at it again and decide anew",
        Call("show", {"task_id": task.id}),
        task_id=task.id,
        expected_rev=command.expect_rev,
        current_rev=task.rev,
    )


def marked(verdict: Verdict, command: OnTask) -> Verdict:
    """The decision with what it reverses, or belongs to, on record."""
    marks = {name: mark for name, mark in (("undoes", command.undoes), ("bulk", command.bulk)) if mark is not None}
    if not marks or isinstance(verdict, AofError):
        return verdict
    return verdict.annotated(command.task_id, marks) or verdict
