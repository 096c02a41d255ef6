"""Errors about protocol messages and the handoffs that they ask for."""

from __future__ import annotations

from aof.core.errors.base import Invalid, NotFound, Refused


class ParentNotFound(NotFound):
    """No task has the ID that a delegation names as its parent."""

    code = "parent_not_found"


class HandoffNotFound(NotFound):
    """No handoff has that ID."""

    code = "handoff_not_found"


class NestedDelegation(Refused):
    """A task that was delegated cannot be delegated on."""

    code = "nested_delegation"


class TooManyMessages(Invalid):
    """One call brings more messages than it may; those beyond the limit were not looked at."""

    code = "too_many_messages"


class InvalidJson(Invalid):
    """A message says that it is one of ours, and what follows is not JSON."""

    code = "invalid_json"


class InvalidEnvelope(Invalid):
    """A message does not have the form that its type asks for."""

    code = "invalid_envelope"


class TaskIdMismatch(Invalid):
    """A message names one task outside and another one inside."""

    code = "taskId_mismatch"
