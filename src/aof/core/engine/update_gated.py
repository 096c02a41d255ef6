"""`update` of a gated task: which rule carries out each status change. What only outcomes decide is refused.

Must not know who may do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.engine import update as updating
from aof.core.errors.base import AofError
from aof.core.model import commands as c
from aof.core.model.lifecycle import allows
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.workflow import workflow_of
from aof.core.tasks.attempts import close_run, failure
from aof.core.tasks.dependencies import dead_lettered
from aof.core.tasks.transitions import no_edge
from aof.core.workflows import claim, control, hop_lease, outcomes
from aof.core.workflows.transaction import Walk


def update(records: Records, command: c.Update, now: int) -> Verdict:
    """A new body and a new status; what only outcomes decide is refused with the call that would do it."""
    task = records.task(command.task_id)
    if problem := updating.malformed_update(command):
        return problem
    target = command.status if command.status != task.status else None
    decision: Verdict = Decision()
    if target is not None:
        decision = _move(records, task, command, now)
    elif updating.writes_body(command) or command.run is not None:
        decision = _touch(records, task, command, now)
    if isinstance(decision, AofError):
        return decision
    return updating.explained(task, command, decision)


def _touch(records: Records, task: Task, command: c.Update, now: int) -> Verdict:
    """An update by the holder of a hop renews its lease; nobody else writes to a running task."""
    workflow = workflow_of(task)
    if not workflow.running() and command.run is None:
        return Decision()
    hop = hop_lease.held(task, workflow, command)
    if isinstance(hop, AofError):
        return hop
    return Decision(heartbeat=hop_lease.next_beat(records, task, hop, now), agent=hop.agent)


def _move(records: Records, task: Task, command: c.Update, now: int) -> Verdict:
    target = str(command.status)
    if target in ("done", "review") or (task.status == "review" and target in ("ready", "in-progress")):
        what = f"an update cannot move it to {target}, only the outcome of a hop"
        return outcomes.outcome_required(task, workflow_of(task), None, what)
    if not allows(task.status, target):
        return no_edge(task, target)
    handler = _MOVES.get((task.status, target))
    return handler(records, task, command, now) if handler else updating.move(records, task, command, now)


def _claim(records: Records, _task: Task, command: c.Update, now: int) -> Verdict:
    return claim.claim(records, updating.claiming(command), now)


def _release(records: Records, _task: Task, command: c.Update, now: int) -> Verdict:
    return hop_lease.release(records, updating.releasing(command), now)


def _unblock(records: Records, _task: Task, command: c.Update, now: int) -> Verdict:
    return control.unblock(records, msgspec.convert(updating.same(command), prepare_type(c.Unblock)), now)


def _retry(records: Records, _task: Task, command: c.Update, now: int) -> Verdict:
    return control.retry(
        records,
        msgspec.convert(updating.same(command) | {"reason": command.reason or "retried"}, prepare_type(c.RetryTask)),
        now,
    )


def _give_up(records: Records, task: Task, command: c.Update, now: int) -> Verdict:
    message = command.reason or f"given up by {command.acting}"
    closed = close_run(task, now, status="cancelled", code="given_up", message=message)
    error = failure(task, now, "given_up", message, "failed")
    return Decision(drafts=(*closed, *dead_lettered(records, task, now, reason=message, error=error)))


def _queue(records: Records, task: Task, command: c.Update, now: int) -> Verdict:
    if task.metadata.get("draft"):
        return updating.move(records, task, command, now)
    walk = Walk(records, task, now)
    return walk.finish(command.reason or "queued")


_MOVES: Final[dict[tuple[str, str], Callable[[Records, Task, c.Update, int], Verdict]]] = {
    ("ready", "in-progress"): _claim,
    ("in-progress", "ready"): _release,
    ("in-progress", "deadletter"): _give_up,
    ("blocked", "ready"): _unblock,
    ("deadletter", "ready"): _retry,
    ("backlog", "ready"): _queue,
}
