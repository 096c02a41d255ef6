"""What commands mean for a gated task: one row each. A command without a row means what it means for every task.

Loaded only for tasks that name a workflow. Must not know any rule itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aof.core.engine import update_gated
from aof.core.model import commands as c
from aof.core.model.records import Records, Verdict
from aof.core.model.task import Task
from aof.core.workflows import claim, control, failures, hop_lease, outcomes

_DECIDERS: Final[dict[type[c.OnTask], Callable[[Records, Any, int], Verdict]]] = {
    c.Claim: claim.claim,
    c.RecordHeartbeat: hop_lease.heartbeat,
    c.ReportProgress: hop_lease.report,
    c.Release: hop_lease.release,
    c.Complete: outcomes.complete,
    c.Approve: outcomes.approve,
    c.Reject: outcomes.reject,
    c.Fail: failures.fail,
    c.Expire: failures.expire,
    c.Unblock: control.unblock,
    c.Resume: control.resume,
    c.RetryTask: control.retry,
    c.Promote: control.promote,
    c.Update: update_gated.update,
    c.Edit: control.edit,
}
_BEGINS: Final = (c.Claim, c.Complete)


def gated(records: Records, task: Task, command: c.OnTask, now: int) -> Verdict | None:
    """The verdict on a command about a task that names a workflow; None where nothing is special about it."""
    if not task.gated:
        idle = task.lease is None and task.status == "ready"
        starts = isinstance(command, _BEGINS) or (isinstance(command, c.Update) and command.status == "in-progress")
        return control.not_attached(task) if idle and starts else None
    handler = _DECIDERS.get(type(command))
    return None if handler is None else handler(records, command, now)
