"""The Resume Protocol: a run whose lease has ended is recovered by what it reported, never by guessing."""

from __future__ import annotations

from aof.core.errors.base import AofError
from aof.core.model.commands import Expire
from aof.core.model.events import Draft
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.run import RunResult, lease_end
from aof.core.runs.reported_result import apply_reported
from aof.core.runs.retry import requeue_or_dead_letter
from aof.core.tasks import cancellation
from aof.core.tasks.attempts import close_run


def expire(records: Records, command: Expire, now: int) -> Verdict:
    """Recover one task; one that has moved on, whose lease was renewed or whose run has ended is left alone."""
    task = records.task(command.task_id)
    lease = task.lease
    if lease is None or (task.cancel is not None and task.cancel.stopped):
        return Decision()
    if lease_end(lease, records.heartbeats[task.id]) > now:
        return Decision()
    result = records.results[task.id]
    if isinstance(result, AofError) and task.cancel is None:
        return result  # what was reported cannot be told, so nothing is guessed
    if isinstance(result, RunResult) and result.run_id == lease.run_id and task.cancel is None:
        reason = f"stale_heartbeat_{result.outcome}"
        return Decision(drafts=apply_reported(records, task, result, now, reason), agent=lease.agent)
    lost = Draft(type="task.lost", task_id=task.id, run_id=lease.run_id, payload={"agent": lease.agent})
    code, message = "stale_heartbeat", f"{lease.agent} gave no sign of life and reported no result"
    closed = close_run(
        task, now, status="expired", code=code, message=message, cause="lost", counts=task.cancel is None
    )
    if task.cancel is not None:
        return Decision(drafts=(lost, *closed, *cancellation.settled(records, task, now)))
    followed = requeue_or_dead_letter(
        records,
        task,
        now,
        code=code,
        message=message,
        cause="lost",
        retryable=True,
        reason="stale_heartbeat_reclaim",
    )
    return Decision(drafts=(lost, *closed, *followed))
