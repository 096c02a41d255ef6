"""The conditions under which the fabric itself hands work over: what a plan can see of a task and who runs it.

Each condition begins one handoff: what was begun for the same reason is not begun again. A decision that is too risky
and an agent's own request begin theirs where they are made. Must not know how a handoff is begun.
"""

from __future__ import annotations

from aof.core.model.handoffs.record import Trigger
from aof.core.model.org_chart import HUMAN
from aof.core.model.task import Task
from aof.core.model.times import millis
from aof.core.model.workflow import HopState, Workflow, workflow_of
from aof.core.runs.lease_clock import running_for
from aof.core.scheduling.crew import Nobody
from aof.core.scheduling.view import Action, View


def capability_mismatch(view: View, task: Task) -> Action | None:
    """The task needs what its agent cannot do: on to one that can, else up the chain."""
    lease = task.lease
    missing = view.crew.lacking(task, lease.agent) if lease is not None else ()
    if lease is None or not missing:
        return None
    able = [agent for agent in view.crew.able(task) if agent != lease.agent]
    reason = f"{lease.agent} lacks {', '.join(missing)} (run {lease.run_id})"
    return _begun(view, task, "capability_mismatch", lease.agent, able[0] if able else "", reason, lease.run_id)


def out_of_time(view: View, task: Task) -> Action | None:
    """The task's deadline or its agent's time has passed: to the orchestrator of its team, else up the chain."""
    lease = task.lease
    if lease is None:
        return None
    orchestrator = view.crew.orchestrators.get(lease.agent)
    deadline = deadline_of(task)
    if deadline is not None and deadline <= view.now:
        reason = f"the deadline {task.constraints['deadline']} of {task.id} has passed"
        action = _begun(view, task, "timeout", lease.agent, orchestrator or HUMAN, reason, lease.run_id)
        if action is not None:
            return action
    elif deadline is not None:
        view.again(deadline)
    limit = view.crew.limit_of(lease.agent)
    if orchestrator is None or limit is None:
        return None
    if running_for(lease, view.snapshot.heartbeats.get(task.id), view.now, view.snapshot.boot) < limit:
        return None  # the rule for runs that take too long says when to look again
    reason = f"{lease.agent} may run {limit / 1000:g} s at most (run {lease.run_id})"
    return _begun(view, task, "timeout", lease.agent, orchestrator, reason, lease.run_id)


def completions(view: View, task: Task) -> list[Action]:
    """Each hop that has opened because an agent completed the one before goes to the next agent."""
    if not task.gated or task.cancel is not None:
        return []
    workflow = workflow_of(task)
    found = (_completion(view, task, workflow, hop) for hop in workflow.hops if hop.status == "ready")
    return [action for action in found if action is not None]


def _completion(view: View, task: Task, workflow: Workflow, hop: HopState) -> Action | None:
    names = next(one.depends_on for one in workflow.template.hops if one.id == hop.id)
    before = [one for name in names if (one := workflow.hop(name)).status == "done" and one.agent is not None]
    if not before or hop.lease is not None or hop.failures:
        return None
    sender = max(before, key=lambda one: one.ended_at or "").agent
    named = view.crew.route_hop(task, hop.id, view.capacity.agents)
    if isinstance(named, Nobody) or sender is None or named[0] == sender:
        return None
    reason = f"hop {hop.id} opened at {hop.opened_at}"
    return _begun(view, task, "task_completion", sender, named[0], reason, None, hop.id)


def deadline_of(task: Task) -> int | None:
    """The moment by which the task should be done; None where its constraints name none."""
    text = task.constraints.get("deadline")
    try:
        return millis(text) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


def _begun(  # noqa: PLR0917 - who, whereto and why
    view: View,
    task: Task,
    trigger: Trigger,
    sender: str,
    target: str,
    reason: str,
    run_id: str | None,
    hop: str | None = None,
) -> Action | None:
    if (task.id, trigger, reason) in view.snapshot.triggered:
        return None
    return Action(
        action="handoff_begin",
        task_id=task.id,
        reason=reason,
        agent=sender,
        run_id=run_id,
        hop=hop,
        trigger=trigger,
        to_agent=target,
    )
