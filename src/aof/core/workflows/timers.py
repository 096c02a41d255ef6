"""When the time of a hop is over. Must not know what follows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aof.core.model.task import Task
from aof.core.model.times import millis
from aof.core.model.workflow import workflow_of

ACTIVE: Final = ("ready", "in-progress", "review")


def deadlines(task: Task, dependencies: Iterable[Task | None] = ()) -> dict[str, int]:
    """When the time of each open hop is over: counted from its opening, and not before its task could run."""
    if not task.gated or task.status not in ACTIVE or task.cancel is not None or task.archived:
        return {}
    workflow = workflow_of(task)
    since = 0
    for blocker in dependencies:
        if blocker is None or blocker.status != "done":
            return {}
        since = max(since, millis(blocker.ended_at or blocker.updated_at))
    found: dict[str, int] = {}
    for hop in workflow.hops:
        limit = workflow.template.by_id[hop.id].timeout_ms
        if limit is not None and hop.opened_at is not None and hop.status in ("ready", "running", "review"):
            found[hop.id] = max(millis(hop.opened_at), since) + limit
    return found


def due(task: Task, now: int, dependencies: Iterable[Task | None] = ()) -> tuple[str, ...]:
    """The hops whose time is over: each wants a `TimeOut` command."""
    return tuple(hop for hop, end in deadlines(task, dependencies).items() if end <= now)
