"""Errors about handoffs: who may answer one, when, and what it needs."""

from __future__ import annotations

from aof.core.errors.base import Conflict, Refused


class NotAddressee(Refused):
    """The caller is not the agent that the handoff is addressed to, nor its sender where that is asked for."""

    code = "not_addressee"


class HandoffClosed(Conflict):
    """The handoff has its final answer already."""

    code = "handoff_closed"


class HandoffOpen(Conflict):
    """The same is under way already."""

    code = "handoff_open"


class AlreadyReturned(Conflict):
    """The result of the handoff is there already."""

    code = "already_returned"


class StaleHandoff(Conflict):
    """The handoff went on without the caller: its result came too late. It was recorded and not applied."""

    code = "stale_handoff"


class NotAccepted(Refused):
    """The handoff has not been accepted."""

    code = "handoff_not_accepted"


class NoReturnExpected(Refused):
    """Nobody waits for a result of this handoff."""

    code = "no_return_expected"


class SegmentOpen(Refused):
    """The sender's own part of the task is not complete."""

    code = "segment_open"


class EscalationDepth(Refused):
    """The matter has been escalated as far as it goes: a person has it."""

    code = "escalation_depth"


class CapabilityMismatch(Refused):
    """The target has none of the required capabilities."""

    code = "capability_mismatch"


class HandedOver(Refused):
    """The task was handed to another agent, or its receiver has not accepted it yet."""

    code = "handed_over"
