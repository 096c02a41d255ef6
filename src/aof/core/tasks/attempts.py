"""How a run ends without a result: the events that close it, for a task's own run and for those of its hops.

Must not know why it was ended, nor what becomes of the task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from aof.core.model import workflow
from aof.core.model.events import Draft
from aof.core.model.task import Lease, Task
from aof.core.model.times import iso

HOST_DIED: Final = "host_died"


def close_run(
    task: Task, now: int, *, status: str, code: str, message: str = "", cause: str | None = None, counts: bool = False
) -> tuple[Draft, ...]:
    """Close the current run, if one is open, or those of all hops. Only what counts as a failure uses up an attempt."""
    if task.cancel is not None and task.cancel.stopped:
        return ()
    how: dict[str, Any] = {"status": status, "code": code, "message": message, "cause": cause, "counts": counts}
    if task.gated:
        return close_hops(workflow.workflow_of(task).running(), task, now, **how)
    return () if task.lease is None else (_closed(task, task.lease, now, **how),)


def close_hop(task: Task, run: str, now: int, *, status: str, code: str) -> tuple[Draft, ...] | None:
    """Close one run while other runs of the task have a host; None where it is the last one with a host."""
    running = workflow.workflow_of(task).running()
    hosted = {hop.lease.run_id for hop in running if hop.lease is not None and hop.lease.worker != "pull"}
    if not hosted - {run}:
        return None
    return close_hops((hop for hop in running if hop.run_id == run), task, now, status=status, code=code)


def close_hops(
    hops: Iterable[workflow.HopState],
    task: Task,
    now: int,
    *,
    status: str,
    code: str,
    message: str = "",
    cause: str | None = None,
    counts: bool = False,
) -> tuple[Draft, ...]:
    """The events that end the runs of these hops without a result."""
    how: dict[str, Any] = {"status": status, "code": code, "message": message, "cause": cause, "counts": counts}
    return tuple(_closed(task, hop.lease, now, hop=hop.id, **how) for hop in hops if hop.lease is not None)


def _closed(
    task: Task,
    lease: Lease,
    now: int,
    *,
    status: str,
    code: str,
    message: str,
    cause: str | None,
    counts: bool,
    hop: str | None = None,
) -> Draft:
    payload: dict[str, Any] = {} if hop is None else {"hop": hop}
    cause = cause or _ending(status, code)
    payload |= {
        "agent": lease.agent,
        "status": status,
        "error": failure(task, now, code, message, cause) | {"runId": lease.run_id},
        "counts": counts,
        "cause": next_cause(cause, code) if counts else code,
    }
    return Draft(type="task.attempt.failed", task_id=task.id, run_id=lease.run_id, payload=payload)


def _ending(status: str, code: str) -> str:
    """How a run ended whose end nobody reported: what was done to its task."""
    if status in ("cancelled", "released"):
        return code if code in ("paused", "blocked") else status
    return "failed"


def next_cause(cause: str, code: str) -> str:
    """Why the run after a failed one is a new one."""
    if code == HOST_DIED:
        return "crash_recovery"
    return "lost_worker" if cause == "lost" else "retry"


def failure(task: Task, now: int, code: str, message: str, cause: str) -> dict[str, str]:
    """What went wrong, in the form that records hold."""
    error = {"code": code, "message": message or code, "at": iso(now), "cause": cause}
    return error | {"runId": task.lease.run_id} if task.lease else error
