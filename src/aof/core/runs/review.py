"""What review makes of a reported result: approval, or a rejection with reasons. Must not know who may judge."""

from __future__ import annotations

from typing import Any

from aof.core.errors.base import Call, InvalidInput
from aof.core.model.commands import Approve, Reject
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.tasks import declared, dependencies, graph
from aof.core.tasks.transitions import no_edge, transition
from aof.core.validation import limits


def approve(records: Records, command: Approve, _now: int) -> Verdict:
    """Accept what is in review."""
    task = records.task(command.task_id)
    if task.status == "done":
        return Decision()
    if task.status != "review":
        way_on = _before_approval(task, command.acting)
        return no_edge(task, "done", *way_on, only="only a task in review can be approved")
    return limits.text("reason", command.reason, limits.REASON) or accept(records, task, command.acting, command.reason)


def _before_approval(task: Task, acting: str) -> tuple[str, Call]:
    """What has to come first; only the holder of a run is advised to complete it."""
    if task.status == "ready" and not graph.is_draft(task):
        return "complete it first", Call("complete", {"task_id": task.id, "summary": "…"})
    if task.lease is None:
        return graph.way_on(task, acting)
    if task.lease.agent != acting:
        return f"{task.lease.agent} has to complete it first", Call("show", {"task_id": task.id})
    return "complete it first", Call("complete", {"task_id": task.id, "summary": "…", "run": task.lease.run_id})


def accept(records: Records, task: Task, by: str, text: str | None) -> Verdict:
    """The approval itself, unless the task is being cancelled or something that it declares is open.

    Whoever approves vouches for the criteria that nobody reported on.
    """
    open_now = declared.open_points(records, task, approved=True)
    if refusal := graph.being_cancelled(task) or declared.not_reconciled(task, open_now):
        return refusal
    more = declared.vouched(task) | ({"workLog": f"{by}: {text}"} if text else {})
    return Decision(drafts=(transition(task, "done", reason="approved", by=by, **more),))


def reject(records: Records, command: Reject, now: int) -> Verdict:
    """Send what is in review back to `ready`, with the reasons in the work log."""
    task = records.task(command.task_id)
    return limits.items("blockers", command.blockers, limits.BLOCKERS) or send_back(
        records, task, command.acting, command.blockers, now
    )


def send_back(records: Records, task: Task, by: str, blockers: tuple[str, ...], now: int) -> Verdict:
    """The rejection itself: it says what has to change."""
    if not blockers:
        return InvalidInput(
            "a rejection needs a reason",
            "say what has to change",
            Call("reject", {"task_id": task.id, "blockers": ["…"]}),
        )
    if task.status != "review":
        return no_edge(task, "ready", "see how it stands", only="only a task in review can be rejected")
    said = "; ".join(blockers)
    more: dict[str, Any] = {"blockers": list(blockers), "workLog": f"{by} rejected: {said}"}
    return graph.being_cancelled(task) or Decision(
        drafts=dependencies.back(records, task, "ready", now, reason=said, **more)
    )
