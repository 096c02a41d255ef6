"""Cancelling: the intent is recorded first, spreads to everything unfinished below, and settles from the leaves up.

A run that somebody hosts (a process, a peer) is stopped by its host, which then settles it; a pulling agent has no
host, so its run ends at once and its later writes are refused. A task is cancelled once all below it is.
Must not know how a worker is stopped.
"""

from __future__ import annotations

from aof.core.errors.base import Call
from aof.core.errors.tasks import InvalidTransition
from aof.core.model.commands import CancelTask, Settle
from aof.core.model.events import Draft
from aof.core.model.ids import OURSELVES
from aof.core.model.lifecycle import FINISHED
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Cancel, Task
from aof.core.model.times import iso
from aof.core.tasks import dependencies, graph
from aof.core.tasks.attempts import close_hop, close_run
from aof.core.tasks.transitions import transition
from aof.core.validation.limits import REASON, text


def cancel(records: Records, command: CancelTask, now: int) -> Verdict:
    """Cancel a task and all its unfinished descendants."""
    task = records.task(command.task_id)
    if problem := text("reason", command.reason, REASON):
        return problem
    if task.status == "cancelled":
        return Decision()
    if task.status in FINISHED:
        return InvalidTransition(
            f"{task.id} is {task.status} already and cannot be cancelled",
            "nothing needs to be done",
            Call("show", {"task_id": task.id}),
            status=task.status,
            allowed=[],
        )
    why = command.reason or f"cancelled by {command.acting}"
    return Decision(drafts=_carried_out(records, task, Cancel(by=command.acting, at=iso(now), reason=why), now))


def settle(records: Records, command: Settle, now: int) -> Verdict:
    """The host has stopped the worker of a task that is being cancelled; with a `run`, the worker of one hop."""
    task = records.task(command.task_id)
    if task.cancel is None or task.status in FINISHED:
        return Decision()
    if task.gated and command.run is not None:
        only = close_hop(task, command.run, now, status="cancelled", code="cancelled")
        if only is not None:
            return Decision(drafts=only)
    closed = close_run(task, now, status="cancelled", code="cancelled")
    return Decision(drafts=(*closed, *settled(records, task, now)))


def settled(records: Records, task: Task, now: int) -> tuple[Draft, ...]:
    """The task's own run has ended: go on with the whole cancellation that it belongs to."""
    top = topmost(records, task)
    return _carried_out(records, top, top.cancel or Cancel(by=OURSELVES, at=iso(now)), now, stopped=task.id)


def topmost(records: Records, task: Task) -> Task:
    """The highest task whose cancellation this one's end may complete."""
    top = task
    for above in graph.ancestors(records, task.parent_id):
        if above.cancel is not None and above.status not in FINISHED:
            top = above
    return top


def _carried_out(records: Records, top: Task, wish: Cancel, now: int, stopped: str | None = None) -> tuple[Draft, ...]:
    """Spread the intent, end what has no host, and cancel, children first, all that waits for nothing any more."""
    why = wish.reason or "cancelled"
    asked: list[Draft] = []
    drafts: list[Draft] = []
    died: list[str] = []
    waiting: set[str | None] = set()
    for member in _children_first(records, top):
        hosted = member.id != stopped and _hosted(member)
        if hosted or member.id in waiting:
            waiting.add(member.parent_id)
        if member.status in FINISHED:
            continue
        if member.cancel is None:
            asked.append(_asked(member, top, wish.by, why))
        if not hosted and member.id != stopped:
            drafts += close_run(member, now, status="cancelled", code="cancelled")
        if not hosted and member.id not in waiting:
            drafts.append(transition(member, "cancelled", reason=why))
            died.append(member.id)
    return (*asked, *drafts, *dependencies.cascade(records, tuple(died), "cancelled", now))


def _asked(member: Task, top: Task, by: str, why: str) -> Draft:
    run = member.lease.run_id if member.lease else None
    payload = {"by": by, "reason": why} | ({} if member.id == top.id else {"spreadFrom": top.id})
    return Draft(type="task.cancel_requested", task_id=member.id, run_id=run, payload=payload)


def _children_first(records: Records, top: Task) -> list[Task]:
    """The task and all its descendants, finished ones too, each after everything below it."""
    found = {top.id: top}
    queue = [top]
    for member in queue:
        for child_id in records.children[member.id]:
            child = records.look(child_id)
            if child is not None and child_id not in found:
                found[child_id] = child
                queue.append(child)
    queue.reverse()
    return queue


def _hop_workers(task: Task) -> tuple[str, ...]:
    """What executes the runs of a gated task's hops."""
    return tuple(hop["lease"]["worker"] for hop in task.workflow["hops"] if "lease" in hop)


def _hosted(task: Task) -> bool:
    workers = (task.lease.worker,) if task.lease is not None else _hop_workers(task) if task.gated else ()
    return any(worker != "pull" for worker in workers) and not (task.cancel is not None and task.cancel.stopped)
