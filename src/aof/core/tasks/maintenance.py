"""What the scheduler does to tasks that are not running. Each is checked again here; what has changed is left alone.

Must not know the plan.
"""

from __future__ import annotations

from aof.core.errors.base import AofError
from aof.core.model.commands import Alert, DeadLetter, Promote
from aof.core.model.events import Draft
from aof.core.model.lifecycle import FINISHED, WAITS_FOR_DEPENDENCIES
from aof.core.model.records import Decision, Records, Verdict
from aof.core.tasks.attempts import failure
from aof.core.tasks.dependencies import dead_lettered
from aof.core.tasks.transitions import transition
from aof.core.validation.limits import REASON, text


def promote(records: Records, command: Promote, _now: int) -> Verdict:
    """From backlog to ready, once nothing is waited for, if it was put there only to wait or all are promoted."""
    task = records.task(command.task_id)
    if not (records.policy.scheduling.promote or task.metadata.get(WAITS_FOR_DEPENDENCIES)):
        return Decision()
    blockers = [records.look(edge) for edge in task.depends_on]
    waits = any(blocker is None or blocker.status != "done" for blocker in blockers)
    if task.status != "backlog" or task.archived or task.cancel is not None or task.metadata.get("draft") or waits:
        return Decision()
    return _unsaid(command.reason) or Decision(drafts=(transition(task, "ready", reason=command.reason),))


def dead_letter(records: Records, command: DeadLetter, now: int) -> Verdict:
    """Give up a task that has used up its attempts."""
    task = records.task(command.task_id)
    spent = task.retry.failures >= task.retry.max_attempts
    if task.status != "ready" or task.cancel is not None or not spent:
        return Decision()
    last = task.last_error
    code, message = (last.code, last.message) if last is not None else ("attempts_used_up", command.reason)
    error = failure(task, now, code, message, last.cause if last is not None else "failed")
    drafts = dead_lettered(records, task, now, reason=command.reason, error=error)
    return _unsaid(command.reason) or Decision(drafts=drafts)


def alert(records: Records, command: Alert, _now: int) -> Verdict:
    """Record that a task has been in its status for too long, or is overdue; once for each time or due date."""
    task = records.task(command.task_id)
    if command.due is not None:
        told = task.metadata.get("overdueAlert") == command.due
        if task.due != command.due or task.status in FINISHED or told:
            return Decision()
        late = Draft(type="task.overdue", task_id=task.id, payload={"due": command.due, "reason": command.reason})
        return _unsaid(command.reason) or Decision(drafts=(late,))
    said = {"status": task.status, "since": task.last_transition_at}
    if task.status != command.status or task.metadata.get("slaAlert") == said:
        return Decision()
    draft = Draft(type="task.sla_alert", task_id=task.id, payload=said | {"reason": command.reason})
    return _unsaid(command.reason) or Decision(drafts=(draft,))


def _unsaid(reason: str) -> AofError | None:
    return text("reason", reason, REASON, required=True)
