"""The `update` command: a new body, a new status, or only a renewed lease, in one commit.

Decides every command on a gated task as well, where a workflow makes a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, InvalidInput, NotReady
from aof.kernel import commands, limits
from aof.kernel.commands import (
    Approve,
    Block,
    CancelTask,
    Claim,
    Complete,
    Decision,
    Fail,
    Records,
    Release,
    RetryTask,
    Unblock,
    Update,
    Verdict,
)
from aof.kernel.model import STATUSES, status_allows, task_of_run
from aof.runs import leases
from aof.runs import results as runs_results
from aof.support.typed import prepare_type
from aof.tasks import graph, lifecycle
from aof.tasks import rules as tasks_rules
from aof.tasks.model import Task
from aof.tasks.rules import close_run, dead_lettered, failure, no_edge, transition, write_body
from aof.workflows import control, hops, outcomes
from aof.workflows.hops import Walk
from aof.workflows.model import workflow_of


def update(records: Records, command: Update, now: int) -> Verdict:
    """Apply body and status together or not at all."""
    task = records.task(command.task_id)
    moving = command.status is not None and command.status != task.status
    writer = _writer(task, command, writes=moving or writes_body(command))
    if refusal := malformed_update(command) or (writer if isinstance(writer, AofError) else None):
        return refusal
    if moving:
        decision = move(records, task, command, now)
        if isinstance(decision, AofError):
            return decision
    elif isinstance(writer, str):
        decision = Decision(heartbeat=leases.next_beat(records, task, now), agent=writer)
    else:
        decision = Decision()
    return explained(task, command, decision)


def explained(task: Task, command: Update, decision: Decision) -> Decision:
    """The decision with the new body; the caller's reason stands in the event of each of the two."""
    body = write_body(task, command, decision.agent or command.acting)
    moved = next((one for one in decision.drafts if one.type == "task.transitioned" and one.task_id == task.id), None)
    for draft in (body, moved):
        if draft is not None and command.reason:
            draft.payload["reason"] = command.reason
    return decision if body is None else msgspec.structs.replace(decision, drafts=(body, *decision.drafts))


def _writer(task: Task, command: Update, *, writes: bool) -> str | AofError | None:
    """The holder that this update counts for; None where the task is not running, or the update changes nothing."""
    if task.lease is not None:
        holder = leases.authorize(task, command)
        return holder if isinstance(holder, str) or writes or command.run is not None else None
    if writes and command.run is not None and task_of_run(command.run) == task.id:
        return leases.stale_lease(task, command.run)
    return None


def writes_body(command: Update) -> bool:
    """Whether the update is about the task's text."""
    return command.body is not None or command.note is not None


def malformed_update(command: Update) -> AofError | None:
    """What is wrong with the call itself."""
    return (
        limits.text("reason", command.reason, limits.REASON)
        or limits.text("body", command.body, limits.BODY)
        or limits.text("note", command.note, limits.NOTES, required=command.note is not None)
        or (limits.choice("status", command.status, STATUSES) if command.status is not None else None)
        or (_only_when_released(command) if command.wait_for_children and command.status != "ready" else None)
    )


def _only_when_released(command: Update) -> InvalidInput:
    return InvalidInput(
        "'wait_for_children' goes with the status ready",
        "give the task back with it",
        Call("release", {"task_id": command.task_id, "wait_for_children": True}),
    )


def move(records: Records, task: Task, command: Update, now: int) -> Verdict:
    """The operation behind a status change."""
    target = str(command.status)
    if not status_allows(task.status, target):
        return no_edge(task, target)
    refusal = graph.being_cancelled(task) if target != "cancelled" else None
    handler = _UPDATE_MOVES.get((task.status, target)) or _UPDATE_MOVES[("*", target)]
    return refusal or handler(records, command, now)


def shared_fields(command: Update) -> dict[str, Any]:
    """The fields that every command on a task shares: who acts, on which task, and the proof."""
    names = ("actor", "agent", "run", "task_id", "proven", "proof")
    return {name: getattr(command, name) for name in names}


def claim_of(command: Update) -> Claim:
    """The claim that an update to in-progress stands for."""
    given = shared_fields(command) | {"secret_digest": command.secret_digest, "keep": command.keep}
    return msgspec.convert(given, prepare_type(Claim))


def releasing(command: Update) -> Release:
    """The release that an update of a running task to ready stands for."""
    given = shared_fields(command) | {"reason": command.reason, "wait_for_children": command.wait_for_children}
    return msgspec.convert(given, prepare_type(Release))


def _update_claim(records: Records, command: Update, now: int) -> Verdict:
    return leases.claim(records, claim_of(command), now)


def _rework(records: Records, command: Update, now: int) -> Verdict:
    task = records.task(command.task_id)
    digest, kept_by = command.secret_digest, command.actor if command.keep else None
    return graph.occupied(records, task) or leases.start(
        records, task, command.acting, now, secret_digest=digest, kept_by=kept_by
    )


def _update_release(records: Records, command: Update, now: int) -> Verdict:
    return leases.release(records, releasing(command), now)


def _submit(records: Records, command: Update, now: int) -> Verdict:
    given = {"outcome": "needs_review", "summary": command.reason}
    return runs_results.complete(records, msgspec.convert(shared_fields(command) | given, prepare_type(Complete)), now)


def _approve(records: Records, command: Update, now: int) -> Verdict:
    return runs_results.approve(
        records, msgspec.convert(shared_fields(command) | {"reason": command.reason}, prepare_type(Approve)), now
    )


def _update_give_up(records: Records, command: Update, now: int) -> Verdict:
    task = records.task(command.task_id)
    message = command.reason or f"given up by {command.acting}"
    if task.status == "in-progress":
        given = {"code": "given_up", "message": message, "retryable": False}
        return runs_results.fail(records, msgspec.convert(shared_fields(command) | given, prepare_type(Fail)), now)
    error = failure(task, now, "given_up", message, "failed")
    return Decision(drafts=dead_lettered(records, task, now, reason=message, error=error))


def _block(records: Records, command: Update, now: int) -> Verdict:
    reason = command.reason or f"blocked by {command.acting}"
    return lifecycle.block(
        records, msgspec.convert(shared_fields(command) | {"reason": reason}, prepare_type(Block)), now
    )


def _update_unblock(records: Records, command: Update, now: int) -> Verdict:
    return lifecycle.unblock(records, msgspec.convert(shared_fields(command), prepare_type(Unblock)), now)


def _shelve(records: Records, command: Update, _now: int) -> Verdict:
    task = records.task(command.task_id)
    return Decision(drafts=(transition(task, "backlog", reason=command.reason),))


def _update_queue(records: Records, command: Update, now: int) -> Verdict:
    """A task in the backlog is promoted, one in review goes back to be done again."""
    task = records.task(command.task_id)
    if graph.is_draft(task):
        return NotReady(f"{task.id} is a draft", *graph.way_on(task), status=task.status)
    return Decision(drafts=tasks_rules.back_to_waiting(records, task, "ready", now, reason=command.reason or "queued"))


def _cancel(records: Records, command: Update, now: int) -> Verdict:
    return lifecycle.cancel(
        records, msgspec.convert(shared_fields(command) | {"reason": command.reason}, prepare_type(CancelTask)), now
    )


def _update_retry(records: Records, command: Update, now: int) -> Verdict:
    given = {"reason": command.reason or "retried"}
    return runs_results.retry(records, msgspec.convert(shared_fields(command) | given, prepare_type(RetryTask)), now)


_UPDATE_MOVES: dict[tuple[str, str], Callable[[Records, Update, int], Verdict]] = {
    ("*", "backlog"): _shelve,
    ("review", "in-progress"): _rework,
    ("*", "in-progress"): _update_claim,
    ("in-progress", "ready"): _update_release,
    ("blocked", "ready"): _update_unblock,
    ("deadletter", "ready"): _update_retry,
    ("*", "ready"): _update_queue,
    ("*", "review"): _submit,
    ("*", "done"): _approve,
    ("*", "deadletter"): _update_give_up,
    ("*", "blocked"): _block,
    ("*", "cancelled"): _cancel,
}


def update_gated(records: Records, command: commands.Update, now: int) -> Verdict:
    """A new body and a new status; what only outcomes decide is refused with the call that would do it."""
    task = records.task(command.task_id)
    if problem := malformed_update(command):
        return problem
    target = command.status if command.status != task.status else None
    decision: Verdict = Decision()
    if target is not None:
        decision = _move(records, task, command, now)
    elif writes_body(command) or command.run is not None:
        decision = _touch(records, task, command, now)
    if isinstance(decision, AofError):
        return decision
    return explained(task, command, decision)


def _touch(records: Records, task: Task, command: commands.Update, now: int) -> Verdict:
    """An update by the holder of a hop renews its lease; nobody else writes to a running task."""
    workflow = workflow_of(task)
    if not workflow.running() and command.run is None:
        return Decision()
    hop = hops.held_hop(task, workflow, command)
    if isinstance(hop, AofError):
        return hop
    return Decision(heartbeat=hops.next_beat(records, task, hop, now), agent=hop.agent)


def _move(records: Records, task: Task, command: commands.Update, now: int) -> Verdict:
    target = str(command.status)
    if target in ("done", "review") or (task.status == "review" and target in ("ready", "in-progress")):
        what = f"an update cannot move it to {target}, only the outcome of a hop"
        return outcomes.outcome_required(task, workflow_of(task), None, what)
    if not status_allows(task.status, target):
        return no_edge(task, target)
    handler = _UPDATE_GATED_MOVES.get((task.status, target))
    return handler(records, task, command, now) if handler else move(records, task, command, now)


def _update_gated_claim(records: Records, _task: Task, command: commands.Update, now: int) -> Verdict:
    return hops.claim_hop(records, claim_of(command), now)


def _update_gated_release(records: Records, _task: Task, command: commands.Update, now: int) -> Verdict:
    return hops.release(records, releasing(command), now)


def _update_gated_unblock(records: Records, _task: Task, command: commands.Update, now: int) -> Verdict:
    return control.unblock(records, msgspec.convert(shared_fields(command), prepare_type(commands.Unblock)), now)


def _update_gated_retry(records: Records, _task: Task, command: commands.Update, now: int) -> Verdict:
    return control.retry(
        records,
        msgspec.convert(
            shared_fields(command) | {"reason": command.reason or "retried"}, prepare_type(commands.RetryTask)
        ),
        now,
    )


def _update_gated_give_up(records: Records, task: Task, command: commands.Update, now: int) -> Verdict:
    message = command.reason or f"given up by {command.acting}"
    closed = close_run(task, now, status="cancelled", code="given_up", message=message)
    error = failure(task, now, "given_up", message, "failed")
    return Decision(drafts=(*closed, *dead_lettered(records, task, now, reason=message, error=error)))


def _update_gated_queue(records: Records, task: Task, command: commands.Update, now: int) -> Verdict:
    if task.metadata.get("draft"):
        return move(records, task, command, now)
    walk = Walk(records, task, now)
    return walk.finish(command.reason or "queued")


_UPDATE_GATED_MOVES: Final[dict[tuple[str, str], Callable[[Records, Task, commands.Update, int], Verdict]]] = {
    ("ready", "in-progress"): _update_gated_claim,
    ("in-progress", "ready"): _update_gated_release,
    ("in-progress", "deadletter"): _update_gated_give_up,
    ("blocked", "ready"): _update_gated_unblock,
    ("deadletter", "ready"): _update_gated_retry,
    ("backlog", "ready"): _update_gated_queue,
}


_DECIDERS: Final[dict[type[commands.OnTask], Callable[[Records, Any, int], Verdict]]] = {
    commands.Claim: hops.claim_hop,
    commands.RecordHeartbeat: hops.heartbeat,
    commands.ReportProgress: hops.report_progress,
    commands.Release: hops.release,
    commands.Complete: outcomes.complete,
    commands.Approve: outcomes.approve,
    commands.Reject: outcomes.reject,
    commands.Fail: outcomes.fail,
    commands.Expire: outcomes.expire,
    commands.Unblock: control.unblock,
    commands.Resume: control.resume,
    commands.RetryTask: control.retry,
    commands.Promote: control.promote,
    commands.Update: update_gated,
    commands.Edit: control.edit,
}
_BEGINS: Final = (commands.Claim, commands.Complete)


def decide_gated(records: Records, task: Task, command: commands.OnTask, now: int) -> Verdict | None:
    """The verdict on a command about a task that names a workflow; None where nothing is special about it."""
    if not task.gated:
        idle = task.lease is None and task.status == "ready"
        starts = isinstance(command, _BEGINS) or (
            isinstance(command, commands.Update) and command.status == "in-progress"
        )
        return control.not_attached(task) if idle and starts else None
    handler = _DECIDERS.get(type(command))
    return None if handler is None else handler(records, command, now)
