"""The status table: which statuses there are and where each may go. A new status is one row here.

Must not know who may move a task.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aof.core.model.kinds import Status

TRANSITIONS: Final[dict[str, tuple[Status, ...]]] = {
    "backlog": ("ready", "blocked", "cancelled"),
    "ready": ("in-progress", "backlog", "blocked", "deadletter", "cancelled"),
    "in-progress": ("review", "ready", "blocked", "deadletter", "cancelled"),
    "review": ("done", "in-progress", "ready", "blocked", "cancelled"),
    "blocked": ("ready", "backlog", "deadletter", "cancelled"),
    "done": (),
    "cancelled": (),
    "deadletter": ("ready",),
}
STATUSES: Final[tuple[str, ...]] = tuple(TRANSITIONS)
PRIORITIES: Final[tuple[str, ...]] = ("critical", "high", "normal", "low")
BLOCKED_KINDS: Final[tuple[str, ...]] = ("blocked", "waiting_input", "waiting_permission", "waiting_resource", "paused")
VISIBILITIES: Final[tuple[str, ...]] = ("foreground", "background", "internal", "hidden")
CAUSES: Final[tuple[str, ...]] = ("failed", "timed_out", "lost")
FINISHED: Final = frozenset({"done", "cancelled", "deadletter"})
WAITS_FOR_DEPENDENCIES: Final = "waitForDependencies"  # in the metadata of a task put into the backlog only to wait
FAILED: Final = frozenset({"cancelled", "deadletter"})


def allows(current: str, target: str) -> bool:
    """Whether the table has the edge; staying where one is counts as no edge."""
    return target in TRANSITIONS[current]


def priority_rank(priority: str) -> int:
    """0 for the most urgent: the first part of the scheduling order."""
    return PRIORITIES.index(priority)
