"""Blocking and pausing a task, and letting it go on: block, unblock, pause, resume. Must not know rights."""

from __future__ import annotations

from aof.core.errors.base import Call
from aof.core.model.commands import Block, Pause, Resume, Unblock
from aof.core.model.lifecycle import BLOCKED_KINDS, allows
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.tasks import dependencies
from aof.core.tasks.attempts import close_run
from aof.core.tasks.transitions import no_edge, to_blocked
from aof.core.validation.limits import REASON, choice, text


def block(records: Records, command: Block, now: int) -> Verdict:
    """Block the task; a run that this interrupts ends."""
    task = records.task(command.task_id)
    if problem := text("reason", command.reason, REASON, required=True) or choice("kind", command.kind, BLOCKED_KINDS):
        problem.call = Call("block", {"task_id": task.id, "reason": "waiting for credentials"})
        return problem
    if task.status == "blocked":
        return Decision()
    if not allows(task.status, "blocked"):
        return no_edge(task, "blocked")
    return _held(task, now, kind=command.kind, reason=command.reason, by=command.acting)


def pause(records: Records, command: Pause, now: int) -> Verdict:
    """Pause the task; pausing a paused task changes nothing."""
    task = records.task(command.task_id)
    if problem := text("reason", command.reason, REASON):
        return problem
    if task.blocked is not None and task.blocked.kind == "paused":
        return Decision()
    if not allows(task.status, "blocked"):
        return no_edge(task, "blocked")
    reason = command.reason or f"paused by {command.acting}"
    return _held(task, now, kind="paused", reason=reason, by=command.acting)


def _held(task: Task, now: int, *, kind: str, reason: str, by: str) -> Decision:
    code = "paused" if kind == "paused" else "blocked"
    closed = close_run(task, now, status="cancelled", code=code, message=reason)
    return Decision(drafts=(*closed, to_blocked(task, now, kind=kind, reason=reason, by=by)))


def unblock(records: Records, command: Unblock, now: int) -> Verdict:
    """Make a blocked task ready, a draft a draft again; a ready one stays as it is.

    One whose dependency was cancelled or died is blocked again at once, with that reason.
    """
    task = records.task(command.task_id)
    if task.status == "ready":
        return Decision()
    if task.status != "blocked":
        return no_edge(task, "ready", "see how it stands", only="only a blocked task can be unblocked")
    target = "backlog" if task.metadata.get("draft") else "ready"
    return Decision(drafts=dependencies.back(records, task, target, now, reason=f"unblocked by {command.acting}"))


def resume(records: Records, command: Resume, now: int) -> Verdict:
    """Let a paused task go on where it was; any other task stays as it is."""
    task = records.task(command.task_id)
    if task.blocked is None or task.blocked.kind != "paused":
        return Decision()
    return Decision(drafts=dependencies.back(records, task, task.blocked.was, now, reason="resumed"))
