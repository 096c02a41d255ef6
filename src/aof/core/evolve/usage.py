"""What a run has used, as its task keeps it: counted from what it was let do. Must not judge."""

from __future__ import annotations

from typing import Any, Final

from aof.core.model.events import Event
from aof.core.model.task import Task

_CALLS: Final = frozenset({"read", "write", "command", "network"})


def checked(task: Task, event: Event) -> dict[str, Any]:
    """One more tool call of a run, where it may do what it asked for."""
    payload = event.payload
    if event.run_id is None or payload["outcome"] == "blocked" or payload["point"] not in _CALLS:
        return {}
    used = task.usage.get("toolCalls", 0) if task.usage.get("runId") == event.run_id else 0
    return {"usage": {"runId": event.run_id, "toolCalls": used + 1}}
