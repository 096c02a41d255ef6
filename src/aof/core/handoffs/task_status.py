"""A task's status in the five words that handoffs use for it. Must not know handoffs."""

from __future__ import annotations

from typing import Final, Literal

HandoffTaskStatus = Literal["pending", "in_progress", "blocked", "complete", "failed"]

_WORDS: Final[dict[str, HandoffTaskStatus]] = {
    "backlog": "pending",
    "ready": "pending",
    "in-progress": "in_progress",
    "review": "in_progress",
    "blocked": "blocked",
    "done": "complete",
    "cancelled": "failed",
    "deadletter": "failed",
}


def handoff_status(status: str) -> HandoffTaskStatus:
    """The word for a status."""
    return _WORDS[status]
