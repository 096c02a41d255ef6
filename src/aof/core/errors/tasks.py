"""Errors about tasks: their IDs, status, dependencies and files."""

from __future__ import annotations

from aof.core.errors.base import Conflict, Invalid, NotFound, Refused


class TaskNotFound(NotFound):
    """No task has that ID."""

    code = "task_not_found"


class NoSuchAttempt(NotFound):
    """The task has no run with that number."""

    code = "no_such_attempt"


class NothingReady(NotFound):
    """There is no task that this agent could claim now."""

    code = "nothing_ready"


class KeyConflict(Conflict):
    """The idempotency key belongs to a task with other content."""

    code = "key_conflict"


class RevisionConflict(Conflict):
    """The task has changed since the revision that the caller has seen."""

    code = "revision_conflict"


class IdTaken(Conflict):
    """A task has this ID already."""

    code = "id_taken"


class AnotherTask(Conflict):
    """The task's file is of a different task with the same ID; both are kept."""

    code = "another_task"


class NotReady(Refused):
    """The task cannot be run yet."""

    code = "not_ready"


class ChildrenOpen(Refused):
    """A parent is not complete while tasks below it are unfinished."""

    code = "children_open"


class NotReconciled(Refused):
    """Something that the task itself declares is still open."""

    code = "not_reconciled"


class InvalidTransition(Refused):
    """The status table has no such edge."""

    code = "invalid_transition"


class NotUndoable(Refused):
    """The change cannot be reversed by another one; the message says why."""

    code = "not_undoable"


class TaskRunning(Refused):
    """Somebody runs the task, and that must end first."""

    code = "task_running"


class CancelRequested(Refused):
    """The task, or one above it, is being cancelled."""

    code = "cancel_requested"


class DependencyCycle(Refused):
    """The edge would make a task wait for itself."""

    code = "dependency_cycle"


class ResourceBusy(Refused):
    """Another running task occupies the resource."""

    code = "resource_busy"


class AmbiguousId(Invalid):
    """A short ID stands for several tasks."""

    code = "ambiguous_id"


class EditWaits(Refused):
    """A maintainer has to confirm an edit by hand before it is imported; until then the log's version counts."""

    code = "edit_waits"


class NothingWaits(NotFound):
    """No edit by hand of the task waits for a maintainer."""

    code = "nothing_waits"


class UnreadableTask(Invalid):
    """The task's file cannot be understood; it was left as it is."""

    code = "unreadable_task"
