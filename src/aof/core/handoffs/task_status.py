"""A task's status in the five words that handoffs use for it. Must not know handoffs."""

from __future__ import annotations

from aof.core.model.handoffs.context import TASK_STATUS
from aof.core.model.handoffs.context import TaskStatus as HandoffTaskStatus

__all__ = ["HandoffTaskStatus", "handoff_status"]


def handoff_status(status: str) -> HandoffTaskStatus:
    """The word for a status."""
    return TASK_STATUS[status]
