"""What people do with a gated task: create it, begin its workflow, let it go on, run it again, edit it."""

from __future__ import annotations

import msgspec

from aof.errors import AofError, Call, InvalidInput, NotAttached
from aof.kernel import commands
from aof.kernel.commands import Decision, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.evolve import evolve_draft
from aof.kernel.model import FINISHED, iso
from aof.runs import results as runs_results
from aof.tasks import lifecycle
from aof.tasks import rules as tasks_rules
from aof.tasks.model import Task
from aof.workflows.hops import Walk, reset_by, state_of
from aof.workflows.model import ENDED, LOST, begun, builtins, workflow_of
from aof.workflows.templates import usable


def create(records: Records, command: commands.CreateGated, now: int) -> Verdict:
    """Create a task with a snapshot of its workflow, and open the first hops."""
    template = usable(command.template, command.workflow)
    if isinstance(template, AofError):
        return template
    workflow = begun(template)
    verdict = tasks_rules.create(records, command, now, {"workflow": builtins(workflow)})
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


def attach(records: Records, command: commands.Attach, now: int) -> Verdict:
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


def unblock(records: Records, command: commands.Unblock, now: int) -> Verdict:
    """Let the task and every hop that is held go on."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    held = [hop for hop in workflow.hops if hop.status == "blocked"]
    if task.status != "blocked" and (not held or task.status in (*FINISHED, "backlog")):
        return lifecycle.unblock(records, command, now)
    if task.metadata.get("draft"):
        return lifecycle.unblock(records, command, now)
    walk = Walk(records, task, now, workflow)
    for hop in held:
        walk.step(hop.id, "unblocked", "ready", agent=command.acting)
    return walk.finish(f"unblocked by {command.acting}")


def resume(records: Records, command: commands.Resume, now: int) -> Verdict:
    """Let a paused task go on where it was."""
    task = records.task(command.task_id)
    if task.blocked is None or task.blocked.kind != "paused" or task.blocked.was == "backlog":
        return lifecycle.resume(records, command, now)
    return Walk(records, task, now).finish("resumed")


def promote(records: Records, command: commands.Promote, now: int) -> Verdict:
    """Move the task from backlog to where its hops are, once it waits for nothing."""
    verdict = lifecycle.promote(records, command, now)
    if isinstance(verdict, AofError) or not verdict.drafts:
        return verdict
    return Walk(records, records.task(command.task_id), now).finish(command.reason)


def retry(records: Records, command: commands.RetryTask, now: int) -> Verdict:
    """Run a finished task again: what was not done, or all of it where everything was; or end the waits of hops."""
    task = records.task(command.task_id)
    verdict = runs_results.retry(records, command, now)
    if isinstance(verdict, AofError):
        return verdict
    walk = Walk(records, task, now)
    if task.status == "ready":
        waiting = [hop for hop in walk.workflow.hops if hop.not_before is not None and hop.status == "ready"]
        for hop in waiting:
            walk.add("task.retrying", hop.id, reason=command.reason, cause="rerun", byHand=True)
        whole = verdict.drafts if task.retry.waits_for_children else ()
        return Decision(drafts=(*whole, *walk.drafts))
    statuses = {hop.id: hop.status for hop in walk.workflow.hops}
    lost = tuple(name for name, status in statuses.items() if status in LOST or status not in ENDED)
    again = lost if task.status != "done" and lost else tuple(statuses)
    for name in reset_by(walk.workflow, again):
        role = walk.workflow.template.by_id[name].role
        walk.step(name, "reset", "waiting", reason=command.reason, rejections=0, role=role, escalated=False)
    revived = [draft for draft in verdict.drafts if draft.type != "task.transitioned" or draft.task_id != task.id]
    decision = walk.finish(command.reason)
    return msgspec.structs.replace(decision, drafts=(*revived, *decision.drafts))


def edit(records: Records, command: commands.Edit, now: int) -> Verdict:
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
    return tasks_rules.edit(records, command, now)
