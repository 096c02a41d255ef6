"""What should be done with the hops of a gated task: each has its own run, and several run in parallel.

A hop is given to the least busy agent that has its role and that a service starts. Must not know how an action is
carried out. Loaded only where a task has a workflow.
"""

from __future__ import annotations

from typing import Final

from aof.core.model.ids import run_place
from aof.core.model.run import lease_end
from aof.core.model.task import Lease, Task
from aof.core.model.times import millis
from aof.core.model.workflow import HopState, Workflow, workflow_of
from aof.core.runs.lease_clock import running_for
from aof.core.scheduling.crew import Nobody
from aof.core.scheduling.view import Action, View
from aof.core.workflows.timers import deadlines

_OPEN: Final = ("ready", "running", "review")


def opens(task: Task) -> bool:
    """Whether hops of a running task wait for somebody."""
    return task.cancel is None and any(hop.get("status") == "ready" for hop in task.workflow["hops"])


def due(view: View, task: Task) -> tuple[Action, ...] | str | None:
    """What has to end: the runs of vanished workers and hosts, what takes too long, what is cancelled."""
    workflow = workflow_of(task)
    if task.cancel is not None:
        return _cancelled(view, task, workflow)
    waits = (task.status == "ready" or task.waits_for_children) and task.id not in view.snapshot.free
    limits = {} if waits else deadlines(task)
    found = (_ending(view, task, hop, limits.get(hop.id)) for hop in workflow.hops)
    return tuple(action for action in found if action is not None) or None


def _ending(view: View, task: Task, hop: HopState, limit: int | None) -> Action | None:
    """Why a hop, or its run, is to end now; the first reason counts."""
    lease = hop.lease
    if lease is not None and lease.run_id in view.snapshot.orphaned:
        return _about(task, hop, "requeue", "the host of its run has died")
    if lease is not None and _over(view, task, hop, lease):
        return _about(task, hop, "stale_heartbeat", f"no sign of life from {lease.agent} since its lease ended")
    if limit is not None and limit <= view.now:
        return _about(task, hop, "hop_timeout", "it is not done in time")
    if limit is not None:
        view.again(limit)
    return _too_long(view, task, hop, lease) if lease is not None else None


def _over(view: View, task: Task, hop: HopState, lease: Lease) -> bool:
    end = lease_end(lease, view.beat_of(run_place(task.id, hop.id)))
    view.again(end)
    return end <= view.now


def _too_long(view: View, task: Task, hop: HopState, lease: Lease) -> Action | None:
    most = view.crew.limit_of(lease.agent)
    if most is None:
        return None
    beat = view.snapshot.heartbeats.get(run_place(task.id, hop.id))
    left = most - running_for(lease, beat, view.now, view.snapshot.boot)
    view.again(view.now + left)
    return _about(task, hop, "timeout", f"{lease.agent} may run {most / 1000:g} s at most") if left <= 0 else None


def _cancelled(view: View, task: Task, workflow: Workflow) -> tuple[Action, ...] | str | None:
    """The host of a run stops its worker; where every worker has vanished, the cancellation is complete."""
    assert task.cancel is not None
    why = f"cancelled by {task.cancel.by}"
    ours = view.snapshot.hosted | view.snapshot.orphaned
    running = [(hop, hop.lease) for hop in workflow.running() if hop.lease is not None]
    stopped = [hop for hop, lease in running if lease.run_id in ours]
    if stopped:
        return tuple(_about(task, hop, "cascade", f"{why}: its worker has to stop") for hop in stopped)
    late = [_over(view, task, hop, lease) for hop, lease in running]
    if running and all(late):
        hop, lease = running[0]
        return (_about(task, hop, "stale_heartbeat", f"{why}, and {lease.agent} gives no sign of life"),)
    hosted = [lease.run_id for _, lease in running if lease.worker != "pull"]
    return f"{why}; the host of {', '.join(hosted)} stops it" if hosted else None


def assigned(view: View, task: Task) -> tuple[Action, ...] | str:
    """Give each hop that waits to an agent of its role, while there is room; why not, where nothing is given out."""
    actions: list[Action] = []
    left: list[str] = []
    for hop in workflow_of(task).hops:
        if hop.status != "ready":
            left += [_said(hop, f"is {hop.status}")] if hop.status in _OPEN else []
            continue
        agent, reason = _taker(view, task, hop)
        if agent is None:
            left.append(_said(hop, reason))
            continue
        view.capacity.take(task, agent, beside=task.status == "in-progress" or bool(actions))
        actions.append(_about(task, hop, "assign", f"{agent} has the role {hop.role} and can take it", agent))
    if not actions:
        return "; ".join(left) or "waits for its hops"
    view.leave(task, left)
    return tuple(actions)


def _taker(view: View, task: Task, hop: HopState) -> tuple[str | None, str]:
    """The agent that takes the hop now; else why none does."""
    if hop.not_before is not None and (at := millis(hop.not_before)) > view.now:
        view.again(at)
        return None, f"is retried at {hop.not_before}, after failure {hop.failures}"
    named = view.crew.route_hop(task, hop.id, view.capacity.agents)
    if isinstance(named, Nobody):
        return None, f"is ready: {named.reason}"
    agent, why_not = view.first_fit(named)
    return agent, f"is ready: {why_not}"


def _said(hop: HopState, what: str) -> str:
    return f"hop {hop.id} ({hop.role}) {what}"


def _about(task: Task, hop: HopState, action: str, reason: str, agent: str | None = None) -> Action:
    run = hop.lease.run_id if hop.lease is not None else None
    said = f"hop {hop.id}: {reason}"
    return Action(action=action, task_id=task.id, reason=said, agent=agent, run_id=run, hop=hop.id)
