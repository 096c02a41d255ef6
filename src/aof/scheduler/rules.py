"""`plan(snapshot, workforce, policy, now)`.

What should be done now, and why; the same input always gives the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from aof.handoffs.model import Handoff, Trigger
from aof.kernel.model import (
    FINISHED,
    WAITS_FOR_DEPENDENCIES,
    Policy,
    duration_ms,
    end_of,
    iso,
    millis,
    priority_rank,
    run_place,
    split_task_id,
)
from aof.org import authorization
from aof.org.model import HUMAN
from aof.runs.model import lease_end, running_for
from aof.scheduler.model import STARTED, Action, Plan, SchedulableAgent, Snapshot, View, Workforce
from aof.tasks.graph import retry_at
from aof.tasks.model import Lease, Task
from aof.workflows.model import HopState, Workflow, workflow_of
from aof.workflows.outcomes import deadlines


def capability_mismatch(view: View, task: Task) -> Action | None:
    """The task needs what its agent cannot do: on to one that can, else up the chain."""
    lease = task.lease
    missing = view.workforce.lacking(task, lease.agent) if lease is not None else ()
    if lease is None or not missing:
        return None
    able = [agent for agent in view.workforce.able(task) if agent != lease.agent]
    reason = f"{lease.agent} lacks {', '.join(missing)} (run {lease.run_id})"
    return _begun(view, task, "capability_mismatch", lease.agent, able[0] if able else "", reason, lease.run_id)


def out_of_time(view: View, task: Task) -> Action | None:
    """The task's deadline or its agent's time has passed: to the orchestrator of its team, else up the chain."""
    lease = task.lease
    if lease is None:
        return None
    orchestrator = view.workforce.orchestrator_of(lease.agent)
    deadline = deadline_of(task)
    if deadline is not None and deadline <= view.now:
        reason = f"the deadline {task.constraints['deadline']} of {task.id} has passed"
        action = _begun(view, task, "timeout", lease.agent, orchestrator or HUMAN, reason, lease.run_id)
        if action is not None:
            return action
    elif deadline is not None:
        view.again(deadline)
    limit = view.workforce.limit_of(lease.agent)
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
    named = view.workforce.route_hop(task, hop.id, view.capacity.agents)
    if isinstance(named, str) or sender is None or named[0] == sender:
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


_MINUTE = 60_000
_SHOWN = 5  # dependencies or files that a reason names
_OPEN: Final = ("ready", "running", "review")  # of hops
Verdict = Action | tuple[Action, ...] | str | None  # actions, the reason for none, or nothing to say
Rule = Callable[[View, Task], Verdict]


def plan(snapshot: Snapshot, workforce: Workforce, policy: Policy, now: int) -> Plan:
    """All that should be done at this moment; recoveries first, then what waits, the most urgent first."""
    view = View(snapshot, workforce, policy, now)
    opened = _judge(view, snapshot.running, RUNNING_RULES)
    _judge(view, snapshot.backlog, BACKLOG_RULES)
    _judge(view, snapshot.blocked, BLOCKED_RULES)
    _judge(view, snapshot.review, REVIEW_RULES)
    _judge(view, (*snapshot.ready, *opened), READY_RULES)
    view.actions += _late_answers(view)
    for task in (*snapshot.running, *snapshot.ready):
        view.actions += completions(view, task)
    if snapshot.handed:
        view.actions += planned(view)
    view.actions += _health_checks(view)
    view.actions += _retention(view)
    _judge(view, snapshot.finished, FINISHED_RULES)
    return Plan(actions=tuple(view.actions), left=tuple(view.left), next_at=view.next_at)


def _judge(view: View, tasks: Iterable[Task], rules: Iterable[Rule]) -> list[Task]:
    """Ask the rules about each task, the most urgent first; answers those of which hops wait for somebody."""
    opened: list[Task] = []
    for task in sorted(tasks, key=_schedule):
        verdict = _judged(view, task, rules)
        if isinstance(verdict, str) and rules is RUNNING_RULES and task.gated and opens_hops(task):
            opened.append(task)
        elif isinstance(verdict, str):
            view.leave(task, (verdict,))
        else:
            view.actions += verdict
    return opened


def _late_answers(view: View) -> list[Action]:
    """The handoffs that should have been answered by now; beside what is done with their tasks."""
    if not view.snapshot.handoffs:
        return []

    late: list[Action] = []
    for handoff in view.snapshot.handoffs:
        entry = view.workforce.agents.get(handoff.to_agent)
        due = answer_due(handoff, entry, view.policy.scheduling.handoff_ms)
        if due <= view.now:
            reason = f"{handoff.to_agent} has not answered {handoff.id} by {iso(due)}"
            late.append(
                Action(
                    action="handoff_unanswered",
                    task_id=handoff.task_id,
                    reason=reason,
                    agent=handoff.to_agent,
                    handoff_id=handoff.id,
                )
            )
        else:
            view.again(due)
    return late


def _health_checks(view: View) -> list[Action]:
    """The agents under watch whose last check was a minute ago."""
    found: list[Action] = []
    for agent, watch in sorted(view.snapshot.watches.items()):
        if watch.due_at <= view.now:
            reason = f"{agent} is checked every minute; {watch.failures} checks in a row have failed"
            found.append(Action(action="health_check", task_id="", reason=reason, agent=agent))
        else:
            view.again(watch.due_at)
    return found


def _retention(view: View) -> list[Action]:
    """The files that hold records past their retention."""
    if view.snapshot.overdue_at is not None:
        view.again(view.snapshot.overdue_at)
    if not view.snapshot.overdue:
        return []
    told = [f"{one.records} in {one.path}" for one in view.snapshot.overdue[:_SHOWN]]
    more = len(view.snapshot.overdue) - len(told)
    reason = f"audit records are past their retention: {', '.join(told)}{f' and {more} more files' if more else ''}"
    return [Action(action="retention", task_id="", reason=reason)]


def _schedule(task: Task) -> tuple[int, str, tuple[str, int]]:
    return priority_rank(task.priority), task.created_at, split_task_id(task.id)


def _judged(view: View, task: Task, rules: Iterable[Rule]) -> tuple[Action, ...] | str:
    """The actions of the first rule that wants something; else the first reason."""
    reason = ""
    for rule in rules:
        verdict = rule(view, task)
        if isinstance(verdict, Action):
            return (verdict,)
        if isinstance(verdict, tuple):
            return verdict
        reason = reason or verdict or ""
    return reason


def _cancelling(view: View, task: Task) -> Verdict:
    """The host of a run carries its cancellation on; without a host, any scheduler does."""
    lease = task.lease
    if task.cancel is None:
        return None
    why = f"cancelled by {task.cancel.by}"
    hosted = lease is not None and not task.cancel.stopped and lease.worker != "pull"
    if lease is None or not hosted:
        return "waits until everything below it is cancelled"
    if lease.run_id in view.snapshot.hosted or lease.run_id in view.snapshot.orphaned:
        return Action(action="cascade", task_id=task.id, reason=f"{why}: its worker has to stop", run_id=lease.run_id)
    over = lease_end(lease, view.beat_of(task.id)) <= view.now
    return None if over else f"{why}; the host of {lease.run_id} stops it"


def _orphaned(view: View, task: Task) -> Verdict:
    lease = task.lease
    if lease is None or lease.run_id not in view.snapshot.orphaned:
        return None
    return Action(action="requeue", task_id=task.id, reason="the host of its run has died", run_id=lease.run_id)


def _stale(view: View, task: Task) -> Verdict:
    """The lease has ended without a sign of life."""
    lease = task.lease
    if lease is None:
        return None if task.gated else "nobody holds it: it was begun by hand"
    heartbeat = view.beat_of(task.id)
    end = lease_end(lease, heartbeat)
    if end <= view.now:
        own = heartbeat is not None and heartbeat.run_id == lease.run_id
        since = heartbeat.last_heartbeat if heartbeat is not None and own else lease.acquired_at
        reason = f"no sign of life from {lease.agent} since {since}"
        return Action(action="stale_heartbeat", task_id=task.id, reason=reason, run_id=lease.run_id)
    view.again(end)
    return None


def _plan_too_long(view: View, task: Task) -> Verdict:
    """The run has taken longer than its agent may."""
    lease = task.lease
    limit = view.workforce.limit_of(lease.agent) if lease is not None else None
    if lease is None or limit is None:
        return None
    left = limit - running_for(lease, view.snapshot.heartbeats.get(task.id), view.now, view.snapshot.boot)
    if left > 0:
        view.again(view.now + left)
        return None
    reason = f"{lease.agent} may run {_seconds(limit)} at most"
    return Action(action="timeout", task_id=task.id, reason=reason, agent=lease.agent, run_id=lease.run_id)


def _at_work(view: View, task: Task) -> Verdict:
    """Who works on it; of a gated task where each hop is that somebody works on or has to look at."""
    lease = task.lease
    if task.gated and lease is None:
        open_hops = [_said(hop, f"is {hop.status}") for hop in workflow_of(task).hops if hop.status in _OPEN]
        return "; ".join(open_hops) or "waits for its hops"
    if lease is None:
        return None
    return f"{lease.agent} works on it, until {iso(lease_end(lease, view.beat_of(task.id)))} without a sign of life"


def _patience(view: View, task: Task) -> Verdict:
    """It has been where it is for longer than anybody wanted; this is said once."""
    allowed = view.policy.scheduling.patience_ms.get(task.status)
    if allowed is None:
        return None
    due = millis(task.last_transition_at) + allowed
    if due > view.now:
        view.again(due)
        return None
    if task.metadata.get("slaAlert") == {"status": task.status, "since": task.last_transition_at}:
        return None
    reason = f"{task.status} since {task.last_transition_at}, more than {_seconds(allowed)}"
    return Action(action="sla_alert", task_id=task.id, reason=reason)


def _overdue(view: View, task: Task) -> Verdict:
    """It should have been done by now; this is said once for each due date."""
    if task.due is None or task.metadata.get("overdueAlert") == task.due:
        return None
    end = millis(end_of(task.due))
    if end >= view.now:
        view.again(end + 1)
        return None
    return Action(action="overdue_alert", task_id=task.id, reason=f"it was due {task.due}")


def _gate(view: View, task: Task) -> Verdict:
    """Work that was told to people and that nobody objected to counts as accepted after the delay of its gate."""
    wait = authorization.waits_until(view.policy, task) if view.policy.gates else None
    if wait is None:
        return None
    due = millis(task.last_transition_at) + wait
    if due > view.now:
        view.again(due)
        return f"the charter's gate Notify + Delay lets it wait until {iso(due)}"
    return Action(action="gate_elapsed", task_id=task.id, reason="nobody objected within the delay of the charter")


def _old(view: View, task: Task) -> Verdict:
    """It ended so long ago that it need not stand among the others any longer."""
    due = archive_at(task, view.policy.scheduling.archive_ms)
    if due is None:
        return None
    if due > view.now:
        view.again(due)
        return f"is archived at {iso(due)}"
    return Action(action="archive", task_id=task.id, reason=f"{task.status} since {_end(task)}")


def archive_at(task: Task, archive_ms: int | None) -> int | None:
    """The full minute from which a finished task may be archived: those of one minute are archived together."""
    return None if archive_ms is None else -(-(millis(_end(task)) + archive_ms) // _MINUTE) * _MINUTE


def _end(task: Task) -> str:
    return task.ended_at or task.last_transition_at


def _withheld(task: Task) -> str | None:
    """What keeps a task from being begun, whatever becomes of others."""
    if task.cancel is not None:
        return f"cancelled by {task.cancel.by}; something below it has not settled yet"
    return "it is a draft" if task.metadata.get("draft") else None


def _waiting(view: View, task: Task) -> str | None:
    """What keeps a task in backlog or ready, whichever agent would do it."""
    if (reason := _withheld(task)) is not None:
        return reason
    if task.id in view.snapshot.free:
        return None
    if task.retry.waits_for_children or not task.depends_on:
        return "waits for its children"
    return f"waits for {', '.join(task.depends_on[:_SHOWN])}" + (" …" if len(task.depends_on) > _SHOWN else "")


def _promote(view: View, task: Task) -> Verdict:
    stays = not view.policy.scheduling.promote and not task.metadata.get(WAITS_FOR_DEPENDENCIES)
    if stays and _withheld(task) is None:
        return "it stays in the backlog until somebody makes it ready"
    if (reason := _waiting(view, task)) is not None:
        return reason
    reason = "its dependencies are done" if task.depends_on else "it waits for nothing"
    return Action(action="promote", task_id=task.id, reason=reason)


def _spent(_view: View, task: Task) -> Verdict:
    """It has used up its attempts, because the limit was lowered."""
    if task.retry.failures < task.retry.max_attempts or task.cancel is not None:
        return None
    reason = f"failed {task.retry.failures} times, {task.retry.max_attempts} are allowed"
    return Action(action="deadletter", task_id=task.id, reason=reason)


def _assign(view: View, task: Task) -> Verdict:
    """Give a task that waits for nothing to the first agent that is right for it and has room."""
    if task.gated:
        return assign_hops(view, task)
    if (reason := _waiting(view, task) or _too_early(view, task) or view.capacity.busy_resource(task)) is not None:
        return reason
    named = view.workforce.route(task, view.capacity.agents)
    if isinstance(named, str):
        return named
    agent, why_not = view.first_fit(named)
    if agent is None:
        return why_not
    view.capacity.take(task, agent)
    return Action(action="assign", task_id=task.id, reason=f"{agent} can take it", agent=agent)


def _too_early(view: View, task: Task) -> str | None:
    at = retry_at(task)
    if at is None or at <= view.now:
        return None
    view.again(at)
    return f"is retried at {task.retry.not_before}, after failure {task.retry.failures}"


def _held(_view: View, task: Task) -> Verdict:
    return task.blocked.reason if task.blocked is not None else "blocked"


def _reviewed(_view: View, _task: Task) -> Verdict:
    return "waits for approval"


def _seconds(millis: int) -> str:
    return f"{millis / 1000:g} s"


def opens_hops(task: Task) -> bool:
    """Whether hops of a running task wait for somebody."""
    return task.cancel is None and any(hop.get("status") == "ready" for hop in task.workflow["hops"])


def due_hops(view: View, task: Task) -> tuple[Action, ...] | str | None:
    """What has to end in a gated task: runs of vanished workers and hosts, what takes too long, what is cancelled."""
    if not task.gated:
        return None
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
    if lease is not None and _hops_over(view, task, hop, lease):
        return _about(task, hop, "stale_heartbeat", f"no sign of life from {lease.agent} since its lease ended")
    if limit is not None and limit <= view.now:
        return _about(task, hop, "hop_timeout", "it is not done in time")
    if limit is not None:
        view.again(limit)
    return _hops_too_long(view, task, hop, lease) if lease is not None else None


def _hops_over(view: View, task: Task, hop: HopState, lease: Lease) -> bool:
    end = lease_end(lease, view.beat_of(run_place(task.id, hop.id)))
    view.again(end)
    return end <= view.now


def _hops_too_long(view: View, task: Task, hop: HopState, lease: Lease) -> Action | None:
    most = view.workforce.limit_of(lease.agent)
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
    late = [_hops_over(view, task, hop, lease) for hop, lease in running]
    if running and all(late):
        hop, lease = running[0]
        return (_about(task, hop, "stale_heartbeat", f"{why}, and {lease.agent} gives no sign of life"),)
    hosted = [lease.run_id for _, lease in running if lease.worker != "pull"]
    return f"{why}; the host of {', '.join(hosted)} stops it" if hosted else None


def assign_hops(view: View, task: Task) -> tuple[Action, ...] | str:
    """Give each hop that waits to an agent of its role, while there is room; why not, where nothing is given out."""
    begins = task.status == "ready"
    reason = _waiting(view, task) if begins or task.waits_for_children else None
    if reason := reason or (view.capacity.busy_resource(task) if begins else None):
        return reason
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
    named = view.workforce.route_hop(task, hop.id, view.capacity.agents)
    if isinstance(named, str):
        return None, f"is ready: {named}"
    agent, why_not = view.first_fit(named)
    return agent, f"is ready: {why_not}"


def _said(hop: HopState, what: str) -> str:
    return f"hop {hop.id} ({hop.role}) {what}"


def _about(task: Task, hop: HopState, action: str, reason: str, agent: str | None = None) -> Action:
    run = hop.lease.run_id if hop.lease is not None else None
    said = f"hop {hop.id}: {reason}"
    return Action(action=action, task_id=task.id, reason=said, agent=agent, run_id=run, hop=hop.id)


RUNNING_RULES: tuple[Rule, ...] = (
    due_hops,
    _cancelling,
    _orphaned,
    _stale,
    out_of_time,
    capability_mismatch,
    _plan_too_long,
    _overdue,
    _patience,
    _at_work,
)
BACKLOG_RULES: tuple[Rule, ...] = (_promote, _overdue, _patience)
READY_RULES: tuple[Rule, ...] = (due_hops, _spent, _assign, _overdue, _patience)
BLOCKED_RULES: tuple[Rule, ...] = (_overdue, _patience, _held)
FINISHED_RULES: tuple[Rule, ...] = (_old,)
REVIEW_RULES: tuple[Rule, ...] = (due_hops, _gate, _overdue, _patience, _reviewed)


BACKOFF_MS: Final = 2_000
RUNS_IT: Final = frozenset({"sequential", "delegation"})  # the receiver runs the task itself
TO_ANSWER: Final = "started to answer"  # the reason of an acceptance that AOF gives for such an agent
_ENDINGS: Final = {"done": "handoff_return", "deadletter": "handoff_return"}


class Timer(msgspec.Struct, frozen=True):
    """What is to be done with a handoff, from when on, and why."""

    at: int
    action: str
    reason: str


def planned(view: View) -> list[Action]:
    """What is due of all open handoffs; of the others, what they wait for."""
    found: list[Action] = []
    for task, handoff in view.snapshot.handed:
        timer = _settled(view, task, handoff) or _timer(view, task, handoff)
        if isinstance(timer, str):
            view.leave(task, (timer,))
        elif timer.at > view.now:
            view.again(timer.at)
        else:
            found.append(
                Action(
                    action=timer.action,
                    task_id=task.id,
                    reason=timer.reason,
                    agent=handoff.to_agent,
                    handoff_id=handoff.id,
                )
            )
    return found


def _settled(view: View, task: Task, handoff: Handoff) -> Timer | None:
    """A task that is over ends its handoffs: what was done under one is its return, all else is withdrawn."""
    if handoff.outlives(task.status):
        return None
    works = handoff.state == "accepted" and handoff.type == "delegation"
    action = _ENDINGS.get(task.status, "handoff_withdraw") if works else "handoff_withdraw"
    return Timer(view.now, action, f"{task.id} is {task.status}")


def _timer(view: View, task: Task, handoff: Handoff) -> Timer | str:
    entry = view.workforce.agents.get(handoff.to_agent)
    if handoff.state == "requested" and task.gated and handoff.trigger == "task_completion":
        return _hop(view, task, handoff)
    if handoff.state == "requested":
        return _requested(view, task, handoff, entry)
    rule = {"queued": _queued, "deferred": _deferred}.get(handoff.state, _accepted)
    return rule(view, handoff, entry)


def _queued(view: View, handoff: Handoff, entry: SchedulableAgent | None) -> Timer | str:
    busy = view.capacity.full_for(entry) if entry is not None else None
    if busy is not None:
        return f"handoff {handoff.id} is queued: {busy}"
    return Timer(view.now, "handoff_deliver", f"{handoff.to_agent} has room for {handoff.id}")


def _requested(view: View, task: Task, handoff: Handoff, entry: SchedulableAgent | None) -> Timer | str:
    """Starting a worker is its acknowledgement; without that, its time runs."""
    length = _ack_ms(entry)
    if length is None:
        return f"handoff {handoff.id} waits for {handoff.to_agent} to answer"
    due = _since(handoff) + length
    if due > view.now and _can_start(view, task, handoff):
        view.again(due)
        return Timer(view.now, "handoff_accept", f"{handoff.to_agent} can be started for {handoff.id}")
    return Timer(due, "handoff_timeout", f"{handoff.to_agent} has not acknowledged {handoff.id} by {iso(due)}")


def _hop(view: View, task: Task, handoff: Handoff) -> Timer | str:
    """Whoever takes the hop takes the handoff: the receiver by accepting it, and from any other it is withdrawn."""
    name = handoff.reason.split()[1]
    hop: dict[str, Any] = next((one for one in task.workflow["hops"] if one["id"] == name), {})
    if hop.get("status") == "ready" and handoff.reason.endswith(str(hop.get("openedAt"))):
        return f"handoff {handoff.id} waits for {handoff.to_agent} to take hop {name}"
    taken = hop.get("agent")
    if taken == handoff.to_agent:
        return Timer(view.now, "handoff_accept", f"{taken} has taken hop {name}")
    return Timer(view.now, "handoff_withdraw", f"{taken or 'nobody'} has taken hop {name}")


def _can_start(view: View, task: Task, handoff: Handoff) -> bool:
    """Whether the receiver would be started to run the task: not beside a sender that keeps running it."""
    beside = handoff.type == "delegation" and (task.lease is not None or task.gated)
    return view.snapshot.hosting and not beside and view.unfit(handoff.to_agent) is None


def _deferred(view: View, handoff: Handoff, entry: SchedulableAgent | None) -> Timer | str:
    """An agent that has put its answer off and that nobody can wait for gets the default time."""
    if _ack_ms(entry) is None:
        return f"handoff {handoff.id} waits for {handoff.to_agent}, who has put it off"
    answer = handoff.acceptance
    assert answer is not None
    due = millis(answer.estimated_completion or answer.acknowledged_at) + view.policy.scheduling.handoff_ms
    return Timer(due, "handoff_timeout", f"{handoff.to_agent} has put {handoff.id} off until {iso(due)}")


def _accepted(view: View, handoff: Handoff, entry: SchedulableAgent | None) -> Timer | str:
    if handoff.to_agent == HUMAN:
        return f"handoff {handoff.id} waits for a person"
    window = duration_ms(handoff.return_protocol.timeout)
    if window is None and (entry is None or entry.kind not in STARTED):
        return f"handoff {handoff.id} waits for the return from {handoff.to_agent}"
    due = _return_due(handoff, window or view.policy.scheduling.handoff_ms)
    asked = _asked(view, handoff)
    if asked is not None and (asked.action == "handoff_return" or view.now < due):
        view.again(due)
        return asked
    late = f"{handoff.to_agent} has not returned {handoff.id} by {iso(due)}"
    reminds = handoff.reminded_at is None and not handoff.resends
    return Timer(due, "handoff_remind" if reminds else "handoff_timeout", late)


def _asked(view: View, handoff: Handoff) -> Timer | None:
    """Of an agent that is started to answer: its answer is a task, and the end of that is the return."""
    if handoff.acceptance is None or handoff.acceptance.reason != TO_ANSWER:
        return None
    answer = view.snapshot.answers.get(handoff.id)
    if answer is None:
        return Timer(view.now, "handoff_ask", f"{handoff.to_agent} is asked about {handoff.task_id}")
    if answer.status not in FINISHED:
        return None
    return Timer(view.now, "handoff_return", f"{answer.id} is {answer.status}")


def _return_due(handoff: Handoff, window: int) -> int:
    """The end of the window, then a step of the backoff after the reminder, then a longer one after each resend."""
    if handoff.resends:
        assert handoff.resent_at is not None
        return millis(handoff.resent_at) + (BACKOFF_MS << handoff.resends)
    if handoff.reminded_at is not None:
        return millis(handoff.reminded_at) + BACKOFF_MS
    return millis(handoff.answered_at or handoff.timestamp) + window


def _since(handoff: Handoff) -> int:
    """When the receiver was last told of it."""
    return millis(handoff.resent_at or handoff.timestamp)


def _ack_ms(entry: SchedulableAgent | None) -> int | None:
    """How long the agent has to acknowledge; None where nobody can expect it soon."""
    if entry is None or entry.ack_ms is not None:
        return entry.ack_ms if entry is not None else None
    return ACKNOWLEDGED_MS if entry.kind in STARTED else None


ACKNOWLEDGED_MS: Final = 30_000  # by an agent that AOF itself starts


def answer_due(handoff: Handoff, entry: SchedulableAgent | None, default_ms: int) -> int:
    """When an answer is due: soon for agents that AOF starts, else at the due date, else after the default timeout."""
    begun = millis(handoff.created_at)
    if entry is not None and entry.ack_ms is not None:
        return begun + entry.ack_ms
    if entry is not None and entry.kind in STARTED:
        return begun + ACKNOWLEDGED_MS
    due_by = handoff.context.constraints.deadline
    return millis(due_by) if due_by is not None else begun + default_ms
