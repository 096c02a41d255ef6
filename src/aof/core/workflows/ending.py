"""How the runs of all hops end at once, when something happens to the whole task. Must not know why."""

from __future__ import annotations

from typing import Any

from aof.core.events import Draft
from aof.core.tasks.task import Task
from aof.core.workflows.state import workflow_of
from aof.core.workflows.walk import closed


def close_hops(task: Task, now: int, **given: Any) -> tuple[Draft, ...]:
    """Close every run that is open, unless the workers were stopped already."""
    if task.cancel is not None and task.cancel.stopped:
        return ()
    return closed(workflow_of(task).running(), task, now, **given)
