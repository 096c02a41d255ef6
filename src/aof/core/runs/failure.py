"""How a run ends without a result. Must not know why it was ended, nor what becomes of the task."""

from __future__ import annotations

from aof.core.model.events import Draft
from aof.core.model.task import Task
from aof.core.model.times import iso


def close_run(
    task: Task, now: int, *, status: str, code: str, message: str = "", cause: str = "failed", counts: bool = False
) -> tuple[Draft, ...]:
    """Close the current run, if one is open, or those of all hops. Only what counts as a failure uses up an attempt."""
    if task.gated:
        from aof.core.workflows.ending import close_hops  # noqa: PLC0415 - few tasks have a workflow

        return close_hops(task, now, status=status, code=code, message=message, cause=cause, counts=counts)
    lease = task.lease
    if lease is None or (task.cancel is not None and task.cancel.stopped):
        return ()
    payload = {
        "agent": lease.agent,
        "status": status,
        "error": failure(task, now, code, message, cause),
        "counts": counts,
        "cause": next_cause(cause) if counts else code,
    }
    return (Draft(type="task.attempt.failed", task_id=task.id, run_id=lease.run_id, payload=payload),)


def next_cause(cause: str) -> str:
    """Why the run after a failed one is a new one."""
    return "lost_worker" if cause == "lost" else "retry"


def failure(task: Task, now: int, code: str, message: str, cause: str) -> dict[str, str]:
    """What went wrong, in the form that records hold."""
    error = {"code": code, "message": message or code, "at": iso(now), "cause": cause}
    return error | {"runId": task.lease.run_id} if task.lease else error
