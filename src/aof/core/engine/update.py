"""`update`: a new body, a new status, or only a renewed lease, in one commit.

A dispatch table as `decide` is: every status change goes to the rule of the command that it really is, so that no way
around the rules exists. Must not know who may do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from aof._support.typed import prepare_type
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.tasks import NotReady
from aof.core.model.commands import (
    Approve,
    Block,
    CancelTask,
    Claim,
    Complete,
    Fail,
    Release,
    RetryTask,
    Unblock,
    Update,
)
from aof.core.model.ids import task_of_run
from aof.core.model.lifecycle import STATUSES, allows
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.runs import completion, lease, retry, review
from aof.core.tasks import cancellation, dependencies, graph, hold
from aof.core.tasks.attempts import failure
from aof.core.tasks.dependencies import dead_lettered
from aof.core.tasks.edit import write_body
from aof.core.tasks.transitions import no_edge, transition
from aof.core.validation import limits


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
        decision = Decision(heartbeat=lease.next_beat(records, task, now), agent=writer)
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
        holder = lease.authorize(task, command)
        return holder if isinstance(holder, str) or writes or command.run is not None else None
    if writes and command.run is not None and task_of_run(command.run) == task.id:
        return lease.stale(task, command.run)
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
    if not allows(task.status, target):
        return no_edge(task, target)
    refusal = graph.being_cancelled(task) if target != "cancelled" else None
    handler = _MOVES.get((task.status, target)) or _MOVES[("*", target)]
    return refusal or handler(records, command, now)


def same(command: Update) -> dict[str, Any]:
    """The fields that every command on a task shares: who acts, on which task, and the proof."""
    names = ("actor", "agent", "run", "task_id", "proven", "proof")
    return {name: getattr(command, name) for name in names}


def claiming(command: Update) -> Claim:
    """The claim that an update to in-progress stands for."""
    given = same(command) | {"secret_digest": command.secret_digest, "keep": command.keep}
    return msgspec.convert(given, prepare_type(Claim))


def releasing(command: Update) -> Release:
    """The release that an update of a running task to ready stands for."""
    given = same(command) | {"reason": command.reason, "wait_for_children": command.wait_for_children}
    return msgspec.convert(given, prepare_type(Release))


def _claim(records: Records, command: Update, now: int) -> Verdict:
    return lease.claim(records, claiming(command), now)


def _rework(records: Records, command: Update, now: int) -> Verdict:
    task = records.task(command.task_id)
    digest, kept_by = command.secret_digest, command.actor if command.keep else None
    return graph.occupied(records, task) or lease.start(
        records, task, command.acting, now, secret_digest=digest, kept_by=kept_by
    )


def _release(records: Records, command: Update, now: int) -> Verdict:
    return lease.release(records, releasing(command), now)


def _submit(records: Records, command: Update, now: int) -> Verdict:
    given = {"outcome": "needs_review", "summary": command.reason}
    return completion.complete(records, msgspec.convert(same(command) | given, prepare_type(Complete)), now)


def _approve(records: Records, command: Update, now: int) -> Verdict:
    return review.approve(
        records, msgspec.convert(same(command) | {"reason": command.reason}, prepare_type(Approve)), now
    )


def _give_up(records: Records, command: Update, now: int) -> Verdict:
    task = records.task(command.task_id)
    message = command.reason or f"given up by {command.acting}"
    if task.status == "in-progress":
        given = {"code": "given_up", "message": message, "retryable": False}
        return retry.fail(records, msgspec.convert(same(command) | given, prepare_type(Fail)), now)
    error = failure(task, now, "given_up", message, "failed")
    return Decision(drafts=dead_lettered(records, task, now, reason=message, error=error))


def _block(records: Records, command: Update, now: int) -> Verdict:
    reason = command.reason or f"blocked by {command.acting}"
    return hold.block(records, msgspec.convert(same(command) | {"reason": reason}, prepare_type(Block)), now)


def _unblock(records: Records, command: Update, now: int) -> Verdict:
    return hold.unblock(records, msgspec.convert(same(command), prepare_type(Unblock)), now)


def _shelve(records: Records, command: Update, _now: int) -> Verdict:
    task = records.task(command.task_id)
    return Decision(drafts=(transition(task, "backlog", reason=command.reason),))


def _queue(records: Records, command: Update, now: int) -> Verdict:
    """From backlog: promoted. From review: to be done again."""
    task = records.task(command.task_id)
    if graph.is_draft(task):
        return NotReady(f"{task.id} is a draft", *graph.way_on(task), status=task.status)
    return Decision(drafts=dependencies.back(records, task, "ready", now, reason=command.reason or "queued"))


def _cancel(records: Records, command: Update, now: int) -> Verdict:
    return cancellation.cancel(
        records, msgspec.convert(same(command) | {"reason": command.reason}, prepare_type(CancelTask)), now
    )


def _retry(records: Records, command: Update, now: int) -> Verdict:
    given = {"reason": command.reason or "retried"}
    return retry.retry(records, msgspec.convert(same(command) | given, prepare_type(RetryTask)), now)


_MOVES: dict[tuple[str, str], Callable[[Records, Update, int], Verdict]] = {
    ("*", "backlog"): _shelve,
    ("review", "in-progress"): _rework,
    ("*", "in-progress"): _claim,
    ("in-progress", "ready"): _release,
    ("blocked", "ready"): _unblock,
    ("deadletter", "ready"): _retry,
    ("*", "ready"): _queue,
    ("*", "review"): _submit,
    ("*", "done"): _approve,
    ("*", "deadletter"): _give_up,
    ("*", "blocked"): _block,
    ("*", "cancelled"): _cancel,
}
