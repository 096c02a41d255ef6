"""What people do with a gated task as a whole: begin it, let it go on, run it again, change or move it.

Must not know who may do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof._support.typed import ready
from aof.core.evolve.task import evolve_draft
from aof.core.model import commands as c
from aof.core.model.errors import AofError, Call, InvalidInput, InvalidWorkflow, NotAttached
from aof.core.model.events import Draft
from aof.core.model.lifecycle import FINISHED, allows
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.model.workflow_state import ENDED, LOST, begun, builtins, workflow_of
from aof.core.model.workflow_template import Template
from aof.core.runs import retry as retrying
from aof.core.runs.failure import close_run, failure
from aof.core.tasks import creation, hold, maintenance
from aof.core.tasks import edit as editing
from aof.core.tasks import update as updating
from aof.core.tasks.transitions import no_edge
from aof.core.workflows import claim, hop_lease, outcomes
from aof.core.workflows.flow import reset_by, state_of
from aof.core.workflows.template_validation import check
from aof.core.workflows.transaction import Walk


def create(records: Records, command: c.CreateGated, now: int) -> Verdict:
    """Create a task with a snapshot of its workflow, and open the first hops."""
    template = usable(command.template, command.workflow)
    if isinstance(template, AofError):
        return template
    workflow = begun(template)
    verdict = creation.create(records, command, now, {"workflow": builtins(workflow)})
    if isinstance(verdict, AofError) or verdict.replayed is not None:
        return verdict
    task = evolve_draft(verdict.drafts[0], iso(now))
    walk = Walk(records, task, now, workflow)
    walk.settle()
    first, *others = verdict.drafts
    opened = (first, *walk.drafts, *others)
    if others and others[-1].type == "task.transitioned":  # a dependency is dead: it is held from the start
        return Decision(drafts=opened)
    return Decision(drafts=(*opened, *_over_at_once(walk)))


def _over_at_once(walk: Walk) -> tuple[Draft, ...]:
    """Where no hop's condition holds there is nothing to do, and the task is done."""
    if walk.task.status != "ready" or state_of(walk.workflow) == "ready":
        return ()
    walk.drafts = []
    return walk.finish("every hop was skipped").drafts


def usable(document: dict[str, Any], name: str | None) -> Template | InvalidWorkflow:
    """The template that a document is, or what is first wrong with it."""
    checked = check(document, name)
    if checked.template is not None:
        return checked.template
    first = next(finding for finding in checked.findings if finding.severity == "error")
    more = f" (and {len(checked.findings) - 1} more)" if len(checked.findings) > 1 else ""
    shown = str(name)[:80]
    return InvalidWorkflow(
        f"the workflow '{shown}' cannot be used: {first.where}: {first.detail}{more}",
        f"{first.fix}; see all of it",
        Call("workflow_check", {"name": shown}),
        workflow=shown,
    )


def attach(records: Records, command: c.Attach, now: int) -> Verdict:
    """Begin the workflow that the task names; one that it has begun goes on as it is."""
    task = records.task(command.task_id)
    if task.gated:
        return Decision()
    template = usable(command.template, task.routing.workflow)
    if isinstance(template, AofError):
        return template
    workflow = begun(template)
    if task.lease is not None or task.routing.workflow != workflow.name:
        return InvalidInput(
            f"{task.id} cannot begin the workflow '{workflow.name}' now",
            "name the workflow in its routing while nobody runs it",
            Call("show", {"task_id": task.id}),
        )
    walk = Walk(records, task, now, workflow)
    walk.settle()
    begins = Draft(type="task.workflow.attached", task_id=task.id, payload={"workflow": builtins(workflow)})
    opened = (begins, *walk.drafts)
    return Decision(drafts=(*opened, *_over_at_once(walk)))


def not_attached(task: Task) -> NotAttached:
    """The refusal for a task that names a workflow and has not begun it."""
    return NotAttached(
        f"{task.id} names the workflow '{task.routing.workflow}' and has not begun it",
        "begin it first",
        Call("workflow_attach", {"task_id": task.id}),
        task_id=task.id,
        workflow=task.routing.workflow,
    )


def unblock(records: Records, command: c.Unblock, now: int) -> Verdict:
    """Let the task and every hop that is held go on."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    held = [hop for hop in workflow.hops if hop.status == "blocked"]
    if task.status != "blocked" and (not held or task.status in (*FINISHED, "backlog")):
        return hold.unblock(records, command, now)
    if task.metadata.get("draft"):
        return hold.unblock(records, command, now)
    walk = Walk(records, task, now)
    for hop in held:
        walk.step(hop.id, "unblocked", "ready", agent=command.acting)
    return walk.finish(f"unblocked by {command.acting}")


def resume(records: Records, command: c.Resume, now: int) -> Verdict:
    """Let a paused task go on where it was."""
    task = records.task(command.task_id)
    if task.blocked is None or task.blocked.kind != "paused" or task.blocked.was == "backlog":
        return hold.resume(records, command, now)
    return Walk(records, task, now).finish("resumed")


def promote(records: Records, command: c.Promote, now: int) -> Verdict:
    """From backlog to where its hops are, once nothing is waited for."""
    verdict = maintenance.promote(records, command, now)
    if isinstance(verdict, AofError) or not verdict.drafts:
        return verdict
    return Walk(records, records.task(command.task_id), now).finish(command.reason)


def retry(records: Records, command: c.RetryTask, now: int) -> Verdict:
    """Run a finished task again: what was not done, or all of it where everything was; or end the waits of hops."""
    task = records.task(command.task_id)
    verdict = retrying.retry(records, command, now)
    if isinstance(verdict, AofError):
        return verdict
    walk = Walk(records, task, now)
    if task.status == "ready":
        waiting = [hop for hop in walk.workflow.hops if hop.not_before is not None and hop.status == "ready"]
        for hop in waiting:
            walk.add("task.retrying", hop.id, reason=command.reason, cause="retry", byHand=True)
        return Decision(drafts=tuple(walk.drafts))
    statuses = walk.workflow.statuses()
    lost = tuple(name for name, status in statuses.items() if status in LOST or status not in ENDED)
    again = lost if task.status != "done" and lost else tuple(statuses)
    for name in reset_by(walk.workflow, again):
        walk.step(
            name, "reset", "waiting", reason=command.reason, rejections=0, role=_own_role(walk, name), escalated=False
        )
    revived = [draft for draft in verdict.drafts if draft.type != "task.transitioned" or draft.task_id != task.id]
    decision = walk.finish(command.reason)
    return msgspec.structs.replace(decision, drafts=(*revived, *decision.drafts))


def _own_role(walk: Walk, hop: str) -> str:
    return walk.workflow.template.by_id[hop].role


def edit(records: Records, command: c.Edit, now: int) -> Verdict:
    """A workflow that was begun is not exchanged for another one."""
    task = records.task(command.task_id)
    routing = command.changes.get("routing", {})
    named = routing.get("workflow", task.routing.workflow) if isinstance(routing, dict) else None
    if "routing" in command.changes and named != task.routing.workflow:
        return InvalidInput(
            f"{task.id} has begun the workflow '{task.routing.workflow}' and keeps it",
            "create another task for another workflow",
            Call("create", {"title": task.title, "brief": "…", "workflow": "…"}),
        )
    return editing.edit(records, command, now)


def update(records: Records, command: c.Update, now: int) -> Verdict:
    """A new body and a new status; what only outcomes decide is refused with the call that would do it."""
    task = records.task(command.task_id)
    if problem := updating.malformed_update(command):
        return problem
    target = command.status if command.status != task.status else None
    decision: Verdict = Decision()
    if target is not None:
        decision = _move(records, task, command, now)
    elif command.body is not None or command.run is not None:
        decision = _touch(records, task, command, now)
    if isinstance(decision, AofError):
        return decision
    body = editing.replace_body(task, command.body) if command.body is not None else None
    return decision if body is None else msgspec.structs.replace(decision, drafts=(body, *decision.drafts))


def _touch(records: Records, task: Task, command: c.Update, now: int) -> Verdict:
    """Who holds a hop shows life by it; nobody else writes to a running task."""
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
    given = updating.same(command) | {"secret_digest": command.secret_digest}
    return claim.claim(records, msgspec.convert(given, ready(c.Claim)), now)


def _release(records: Records, _task: Task, command: c.Update, now: int) -> Verdict:
    return hop_lease.release(
        records, msgspec.convert(updating.same(command) | {"reason": command.reason}, ready(c.Release)), now
    )


def _unblock(records: Records, _task: Task, command: c.Update, now: int) -> Verdict:
    return unblock(records, msgspec.convert(updating.same(command), ready(c.Unblock)), now)


def _retry(records: Records, _task: Task, command: c.Update, now: int) -> Verdict:
    return retry(
        records,
        msgspec.convert(updating.same(command) | {"reason": command.reason or "retried"}, ready(c.RetryTask)),
        now,
    )


def _bury(records: Records, task: Task, command: c.Update, now: int) -> Verdict:
    message = command.reason or f"given up by {command.acting}"
    closed = close_run(task, now, status="cancelled", code="given_up", message=message)
    error = failure(task, now, "given_up", message, "failed")
    return Decision(drafts=(*closed, *retrying.buried(records, task, now, reason=message, error=error)))


def _queue(records: Records, task: Task, command: c.Update, now: int) -> Verdict:
    if task.metadata.get("draft"):
        return updating.move(records, task, command, now)
    walk = Walk(records, task, now)
    return walk.finish(command.reason or "queued")


_MOVES: Final[dict[tuple[str, str], Callable[[Records, Task, c.Update, int], Verdict]]] = {
    ("ready", "in-progress"): _claim,
    ("in-progress", "ready"): _release,
    ("in-progress", "deadletter"): _bury,
    ("blocked", "ready"): _unblock,
    ("deadletter", "ready"): _retry,
    ("backlog", "ready"): _queue,
}
