"""How a run ends without success, and whether its task is tried again. Must not know the clock.

A run whose lease has ended is recovered by what it reported, never by guessing: the Resume Protocol. Failure codes only
say whether another run makes sense; any other code is the caller's own word. When a worker has ended, its host records
only that.
"""

from __future__ import annotations

from typing import Any, Final

from aof.core.errors.base import AofError, Call, InvalidInput, NotFound
from aof.core.errors.tasks import InvalidTransition
from aof.core.model.commands import Exited, Expire, Fail, RetryTask
from aof.core.model.events import Draft
from aof.core.model.ids import task_of_run
from aof.core.model.lifecycle import CAUSES, FINISHED
from aof.core.model.policy import Policy
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.run import RunResult, lease_end
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.runs import late_result
from aof.core.runs.lease import authorize
from aof.core.runs.reported_result import apply_reported
from aof.core.tasks import cancellation, dependencies, graph
from aof.core.tasks.attempts import close_run, failure, next_cause
from aof.core.tasks.dependencies import by_hand, dead_lettered, revived
from aof.core.validation import limits
from aof.core.validation.limits import ITEM, NOTES, REASON, choice, line, text

AGAIN: Final = ("F-DEP", "F-ENV", "F-EXE", "F-TMO", "F-RES")
FINAL: Final = ("F-INP", "F-SEC", "F-VAL", "F-REV", "F-UNK")


def unknown_code(code: str) -> InvalidInput | None:
    """Refuse what has the form of such a code and is none."""
    if not code.upper().startswith("F-") or code in (*AGAIN, *FINAL):
        return None
    return InvalidInput(
        f"'code' cannot be {code[:80]!r}",
        f"use one of {', '.join(AGAIN)} (tried again) or {', '.join(FINAL)} (not), or a word of your own",
    )


def backoff_ms(policy: Policy, failures: int) -> int:
    """How long to wait after the nth failure in a row."""
    exponent = min(max(failures - 1, 0), 40)
    return int(min(policy.retry_base_ms * policy.retry_factor**exponent, policy.retry_cap_ms))


def requeue_or_dead_letter(
    records: Records, task: Task, now: int, *, code: str, message: str, cause: str, retryable: bool, reason: str
) -> tuple[Draft, ...]:
    """After a counted failure: `ready` with a wait while attempts are left, else `deadletter`, its dependents told."""
    failures = task.retry.failures + 1
    if not retryable or failures >= task.retry.max_attempts:
        return dead_lettered(records, task, now, reason=reason, error=failure(task, now, code, message, cause))
    payload: dict[str, Any] = {
        "reason": reason,
        "attempt": task.retry.attempts + 1,
        "notBefore": iso(now + backoff_ms(records.policy, failures)),
        "cause": next_cause(cause, code),
    }
    waiting = Draft(type="task.retrying", task_id=task.id, payload=payload)
    return (waiting, *dependencies.back(records, task, "ready", now, reason=reason))


def malformed_failure(command: Fail) -> AofError | None:
    """What is wrong with what is said about a failure, whatever failed."""
    return (
        text("message", command.message, NOTES)
        or line("code", command.code, ITEM, required=True)
        or unknown_code(command.code)
        or choice("cause", command.cause, CAUSES)
    )


def tries_again(command: Fail) -> bool:
    """Whether another run makes sense, by what is said of the failure."""
    return command.retryable and command.code not in FINAL


def fail(records: Records, command: Fail, now: int) -> Verdict:
    """End the run as failed."""
    task = records.task(command.task_id)
    holder = authorize(task, command)
    if isinstance(holder, AofError):
        return holder
    if problem := malformed_failure(command):
        return problem
    what: dict[str, Any] = {"code": command.code, "message": command.message, "cause": command.cause}
    ended = close_run(task, now, status="failed", counts=True, **what)
    followed = requeue_or_dead_letter(records, task, now, retryable=tries_again(command), reason=command.code, **what)
    limit = Draft(type="task.timed_out", task_id=task.id, run_id=ended[0].run_id, payload={"limit": command.code})
    first = (limit,) if command.cause == "timed_out" else ()
    return Decision(drafts=(*first, *ended, *followed), agent=holder)


def retry(records: Records, command: RetryTask, now: int) -> Verdict:
    """Make a finished task ready again, or end the wait before the next try."""
    task = records.task(command.task_id)
    problem = text("reason", command.reason, REASON, required=True) or _not_again(records, task)
    if problem:
        return problem
    if task.status == "ready":
        at = graph.retry_at(task)
        waits = task.retry.waits_for_children or (at is not None and at > now)
        return Decision(drafts=(by_hand(task, command.reason),) if waits else ())
    return Decision(drafts=revived(records, task, now, command.reason))


def _not_again(records: Records, task: Task) -> AofError | None:
    if task.archived:
        return NotFound(f"{task.id} is archived; archived tasks are not retried", *graph.way_on(task))
    if task.status not in FINISHED and task.status != "ready":
        return InvalidTransition(
            f"{task.id} is {task.status}; only a done, cancelled or dead task is retried",
            "see who works on it" if task.status == "in-progress" else "see where it is",
            Call("show", {"task_id": task.id}),
        )
    if task.parent_id is None or records.look(task.parent_id) is None:
        return None
    return graph.closed_to_children(records, task.parent_id)


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
    late = late_result.left_behind(task, result)
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
    return Decision(drafts=(lost, *closed, *followed, *late))


def exited(records: Records, command: Exited, _now: int) -> Verdict:
    """How the worker ended, and where its output lies; also for a run that has ended already."""
    task = records.task(command.task_id)
    if command.run is None or task_of_run(command.run) != task.id:
        return InvalidInput(f"a worker's end needs the run of {task.id} that it was", "give the run")
    if problem := limits.line("stopped", command.stopped, limits.ITEM) or limits.data("output", command.output):
        return problem
    payload: dict[str, Any] = {"exitCode": command.exit_code, "signal": command.signal, "stopped": command.stopped}
    payload = {name: value for name, value in payload.items() if value is not None} | {"output": command.output}
    return Decision(drafts=(Draft(type="run.exited", task_id=task.id, run_id=command.run, payload=payload),))
