"""The retry policy: how a run fails, and whether the task is tried again. Must not know the clock."""

from __future__ import annotations

from typing import Any

from aof.core.errors.base import AofError, Call, NotFound
from aof.core.errors.tasks import InvalidTransition
from aof.core.model.commands import Fail, RetryTask
from aof.core.model.events import Draft
from aof.core.model.lifecycle import CAUSES, FINISHED
from aof.core.model.policy import Policy
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.runs import failure_codes
from aof.core.runs.lease import authorize
from aof.core.tasks import dependencies, graph
from aof.core.tasks.attempts import close_run, failure, next_cause
from aof.core.tasks.dependencies import by_hand, dead_lettered, revived
from aof.core.validation.limits import ITEM, NOTES, REASON, choice, line, text


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
        or failure_codes.unknown_code(command.code)
        or choice("cause", command.cause, CAUSES)
    )


def tries_again(command: Fail) -> bool:
    """Whether another run makes sense, by what is said of the failure."""
    return command.retryable and command.code not in failure_codes.FINAL


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
        return Decision(drafts=(by_hand(task, command.reason),) if at is not None and at > now else ())
    return Decision(drafts=revived(records, task, now, command.reason))


def _not_again(records: Records, task: Task) -> AofError | None:
    if task.archived:
        return NotFound(f"{task.id} is archived; archived tasks are not retried", *graph.way_on(task))
    if task.status not in FINISHED and task.status != "ready":
        return InvalidTransition(
            f"{task.id} is {task.status}; only a done, cancelled or dead task is retried",
            "see what it waits for",
            Call("show", {"task_id": task.id}),
        )
    if task.parent_id is None or records.look(task.parent_id) is None:
        return None
    return graph.closed_to_children(records, task.parent_id)
