"""Errors about what guards shared work: context, file locks and autonomy budgets."""

from __future__ import annotations

from aof.core.errors.base import Conflict, Refused


class OutOfScope(Refused):
    """The variable is in a scope that the agent may not write."""

    code = "out_of_scope"


class ContextConflict(Conflict):
    """The variable was written by another agent since the caller has read it."""

    code = "context_conflict"


class FileLocked(Conflict):
    """Another run holds a lock on the file, or on a folder above or a file below it."""

    code = "file_locked"


class LockRequired(Refused):
    """A file may be written only under a lock, and the run holds none on it."""

    code = "lock_required"


class BudgetExceeded(Refused):
    """The run has used, or would use, more than the agent's autonomy allows."""

    code = "budget_exceeded"


class BudgetTooSmall(Refused):
    """The agent's autonomy does not suffice for the work."""

    code = "budget_too_small"
