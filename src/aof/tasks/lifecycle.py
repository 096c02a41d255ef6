"""Holding, cancelling and looking after a task, and what it declares that must be there before it is done.

Must not know rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aof.errors import AofError, Call, InvalidTransition, NotReconciled
from aof.kernel.commands import (
    Alert,
    Block,
    CancelTask,
    DeadLetter,
    Decision,
    Pause,
    Promote,
    Records,
    Resume,
    Settle,
    Unblock,
    Verdict,
)
from aof.kernel.events import Draft
from aof.kernel.evolve import criteria_status, criterion_name
from aof.kernel.limits import REASON, choice, text
from aof.kernel.model import BLOCKED_KINDS, FINISHED, OURSELVES, WAITS_FOR_DEPENDENCIES, iso, status_allows
from aof.tasks import graph, rules
from aof.tasks.fields import output_demands
from aof.tasks.model import Cancel, Task
from aof.tasks.rules import close_hop, close_run, dead_lettered, failure, no_edge, to_blocked, transition


def block(records: Records, command: Block, now: int) -> Verdict:
    """Block the task; a run that this interrupts ends."""
    task = records.task(command.task_id)
    if problem := text("reason", command.reason, REASON, required=True) or choice("kind", command.kind, BLOCKED_KINDS):
        problem.call = Call("block", {"task_id": task.id, "reason": "waiting for credentials"})
        return problem
    if task.status == "blocked":
        return Decision()
    if not status_allows(task.status, "blocked"):
        return no_edge(task, "blocked")
    return _held(task, now, kind=command.kind, reason=command.reason, by=command.acting)


def pause(records: Records, command: Pause, now: int) -> Verdict:
    """Pause the task; pausing a paused task changes nothing."""
    task = records.task(command.task_id)
    if problem := text("reason", command.reason, REASON):
        return problem
    if task.blocked is not None and task.blocked.kind == "paused":
        return Decision()
    if not status_allows(task.status, "blocked"):
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
    return Decision(drafts=rules.back_to_waiting(records, task, target, now, reason=f"unblocked by {command.acting}"))


def resume(records: Records, command: Resume, now: int) -> Verdict:
    """Let a paused task go on where it was; any other task stays as it is."""
    task = records.task(command.task_id)
    if task.blocked is None or task.blocked.kind != "paused":
        return Decision()
    return Decision(drafts=rules.back_to_waiting(records, task, task.blocked.was, now, reason="resumed"))


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
    return (*asked, *drafts, *rules.cascade(records, tuple(died), "cancelled", now))


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
            child = records.find(child_id)
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


def promote(records: Records, command: Promote, _now: int) -> Verdict:
    """Move a task from the backlog to ready once it waits for nothing, if it was put there to wait or all may go."""
    task = records.task(command.task_id)
    if not (records.policy.scheduling.promote or task.metadata.get(WAITS_FOR_DEPENDENCIES)):
        return Decision()
    blockers = [records.find(edge) for edge in task.depends_on]
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


_SHOWN: Final = 5


def declares(task: Task) -> bool:
    """Whether there is anything to look at."""
    return bool(task.acceptance or (task.constraints and output_demands(task.constraints)))


def required_files(task: Task | None) -> frozenset[tuple[str, str]]:
    """The files that must be among the task's own."""
    paths = output_demands(task.constraints).get("artifacts", ()) if task is not None and task.constraints else ()
    return frozenset((task.id, path) for path in paths) if task is not None else frozenset()


def open_points(
    records: Records,
    task: Task,
    *,
    reports: Sequence[Any] = (),
    tests: dict[str, int] | None = None,
    approved: bool = False,
) -> tuple[str, ...]:
    """What is open, once these reports count too. Who approves vouches for the criteria that nobody reported on."""
    if not declares(task):
        return ()
    bad = ("unmet",) if approved else ("unmet", "unknown")
    words = zip(task.acceptance, criteria_status(task, reports), strict=True)
    found = [f"acceptance '{criterion_name(one)[:80]}' is {word}" for one, word in words if word in bad]
    needed = output_demands(task.constraints)
    found += [
        f"artifact {path} is missing" for path in needed.get("artifacts", ()) if (task.id, path) in records.missing
    ]
    found += [f"evidence '{name}' is missing" for name in needed.get("evidence", ()) if not _shown(task, name, tests)]
    if needed.get("delivery") and task.delivery.get("state") != "delivered":
        found.append(f"delivery is {task.delivery.get('state', 'pending')}")
    return tuple(found)


def _shown(task: Task, name: str, tests: dict[str, int] | None) -> bool:
    """Tests count once some passed and none failed; anything else is linked as evidence under its name."""
    if name == "tests":
        counts = tests or task.validation.get("tests") or {}
        return bool(counts.get("passed")) and not counts.get("failed")
    return any((link.kind, link.target_id) == ("evidence", name) for link in task.links)


def listed_points(points: Sequence[str]) -> str:
    """Open points as one line."""
    more = len(points) - _SHOWN
    return "; ".join(points[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def not_reconciled(task: Task, points: Sequence[str]) -> AofError | None:
    """The refusal while something is open."""
    if not points:
        return None
    names = [criterion_name(one) for one in task.acceptance]
    more: dict[str, Any] = {"acceptance": names[:_SHOWN]} if names else {}
    return NotReconciled(
        f"{task.id} is not complete: {listed_points(points)}",
        "finish what is open and report it, or hand it over with outcome 'needs_review'",
        Call("complete", {"task_id": task.id} | more),
        open=list(points),
    )


def vouched(task: Task) -> dict[str, Any]:
    """What an approval says of the criteria that nobody reported on; nothing where there are none."""
    words = zip(task.acceptance, criteria_status(task), strict=True)
    names = [criterion_name(one) for one, word in words if word == "unknown"]
    return {"acceptance": names} if names else {}
