"""What a claim has granted: the task, the run that holds it, and its secret. Must not know any surface."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aof.core.errors.base import Call, InvalidInput
from aof.core.errors.runs import StaleLease
from aof.core.model import workflow_state
from aof.core.model.ids import task_of_run
from aof.core.model.task import Lease, Task


class Grant(NamedTuple):
    """A task in the hands of a run; the secret is returned once, to the claimant.

    `again` says that the claimant held it already.
    """

    task: Task
    run: str | None = None
    secret: str | None = None
    again: bool = False

    @property
    def holding(self) -> tuple[Lease | None, str | None]:
        """The lease, and the hop that it holds where the task is gated."""
        return holding(self.task, self.run)


def own(get: Callable[[str], Task], run_id: str | None) -> Grant:
    """The run that somebody else claimed for this process."""
    task_id = task_of_run(run_id or "")
    if run_id is None or task_id is None:
        raise InvalidInput(
            "this process was not started for a run", "claim a task instead", Call("claim", {"agent": "…"})
        )
    task = get(task_id)
    lease, _ = holding(task, run_id)
    if lease is None or lease.run_id != run_id:
        raise StaleLease(
            f"run {run_id} no longer holds {task_id}", "stop this work", Call("show", {"task_id": task_id})
        )
    return Grant(task, run_id)


def holding(task: Task, run: str | None) -> tuple[Lease | None, str | None]:
    """The lease of a run, and the hop that it holds where the task is gated."""
    if not task.gated:
        return task.lease, None
    held = (
        (hop.lease, hop.id)
        for hop in workflow_state.workflow_of(task).hops
        if hop.lease is not None and hop.run_id == run
    )
    return next(held, (None, None))
