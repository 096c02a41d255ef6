"""Errors about the session charter and what it governs."""

from __future__ import annotations

from aof.core.errors.base import NotFound, Refused


class NoCharter(NotFound):
    """There is no session charter."""

    code = "no_charter"


class CharterExists(Refused):
    """The session has its charter already."""

    code = "charter_exists"


class ApprovalRequired(Refused):
    """A gate of the charter leaves this to a person."""

    code = "approval_required"
