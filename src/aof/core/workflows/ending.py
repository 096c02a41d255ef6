"""How the runs of hops end when something happens to the whole task. Must not know why."""

from __future__ import annotations

from typing import Any

from aof.core.model.events import Draft
from aof.core.model.task import Task
from aof.core.model.workflow_state import workflow_of
from aof.core.workflows.transaction import closed


def close_hops(task: Task, now: int, **given: Any) -> tuple[Draft, ...]:
    """Close every run that is open, unless the workers were stopped already."""
    if task.cancel is not None and task.cancel.stopped:
        return ()
    return closed(workflow_of(task).running(), task, now, **given)


def close_hop(task: Task, run: str, now: int, **given: Any) -> tuple[Draft, ...] | None:
    """Close one run while somebody hosts others of the task; None where it is the last that anybody hosts."""
    running = workflow_of(task).running()
    hosted = {hop.lease.run_id for hop in running if hop.lease is not None and hop.lease.worker != "pull"}
    if not hosted - {run}:
        return None
    return closed(tuple(hop for hop in running if hop.run_id == run), task, now, **given)
