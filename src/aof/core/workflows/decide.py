"""What commands mean for a gated task: one row each. A command without a row means what it means for every task.

Loaded only for tasks that name a workflow. Must not know any rule itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aof.core.records import Records, Verdict
from aof.core.tasks import commands as c
from aof.core.tasks.task import Task
from aof.core.workflows import claiming, holding, outcomes, steering, troubles

_DECIDERS: Final[dict[type[c.OnTask], Callable[[Records, Any, int], Verdict]]] = {
    c.Claim: claiming.claim,
    c.Beat: holding.beat,
    c.Report: holding.report,
    c.Release: holding.release,
    c.Complete: outcomes.complete,
    c.Approve: outcomes.approve,
    c.Reject: outcomes.reject,
    c.Fail: troubles.fail,
    c.Expire: troubles.expire,
    c.Unblock: steering.unblock,
    c.Resume: steering.resume,
    c.RetryTask: steering.retry,
    c.Promote: steering.promote,
    c.Update: steering.update,
    c.Edit: steering.edit,
}
_BEGINS: Final = (c.Claim, c.Complete)


def gated(records: Records, task: Task, command: c.OnTask, now: int) -> Verdict | None:
    """The verdict on a command about a task that names a workflow; None where nothing is special about it."""
    if not task.gated:
        idle = task.lease is None and task.status == "ready"
        starts = isinstance(command, _BEGINS) or (isinstance(command, c.Update) and command.status == "in-progress")
        return steering.not_attached(task) if idle and starts else None
    handler = _DECIDERS.get(type(command))
    return None if handler is None else handler(records, command, now)
