"""How long the files with audit records keep a record. The log keeps all of them for ever.

Must not know files, nor what time it is.
"""

from __future__ import annotations

from typing import Final

import msgspec

from aof.core.handoffs.audit import AuditRecord
from aof.core.model.lifecycle import FINISHED
from aof.core.model.task import Task
from aof.core.model.times import millis

_DAY: Final = 86_400_000
CLOSED_MS: Final = 30 * _DAY
COMPLETED_MS: Final = 90 * _DAY
ESCALATED_MS: Final = 180 * _DAY
SHORTEST_MS: Final = min(CLOSED_MS, COMPLETED_MS, ESCALATED_MS)


class Closure(msgspec.Struct, frozen=True):
    """When a task was closed, and whether its work was completed."""

    at: int
    completed: bool


def closure_of(task: Task) -> Closure | None:
    """The task's closure; None while it is open."""
    if task.status not in FINISHED:
        return None
    return Closure(millis(task.last_transition_at), task.status == "done")


def kept_until(record: AuditRecord, closure: Closure | None) -> int | None:
    """The moment until which a record is kept at least; None while its task is open.

    What belongs to several classes is kept for the longest of their times.
    """
    if closure is None:
        return None
    escalated = record.event_type == "escalated" or record.handoff_type == "escalation"
    length = COMPLETED_MS if closure.completed else CLOSED_MS
    return max(closure.at, millis(record.timestamp)) + (max(length, ESCALATED_MS) if escalated else length)
