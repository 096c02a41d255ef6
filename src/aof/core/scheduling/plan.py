"""`plan(snapshot, crew, policy, now)`: what should be done now, and why; the same input always gives the same plan.

One row a rule, by the status that it looks at; the first row that wants something decides for that task. A row that
waits for a moment says so, and the plan tells when to look again. Must not know how an action is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aof.core.model.ids import split_task_id
from aof.core.model.lifecycle import WAITS_FOR_DEPENDENCIES, priority_rank
from aof.core.model.policy import Policy
from aof.core.model.run import lease_end
from aof.core.model.task import Task
from aof.core.model.times import end_of, iso, millis
from aof.core.org import session_gates
from aof.core.runs.lease_clock import running_for
from aof.core.scheduling import ack_timeout, handoff_timers, hops, triggers
from aof.core.scheduling.crew import Crew, Nobody
from aof.core.scheduling.view import Action, Plan, Snapshot, View
from aof.core.tasks.graph import retry_at

_MINUTE = 60_000
_SHOWN = 5  # dependencies or files that a reason names
Verdict = Action | tuple[Action, ...] | str | None  # actions, the reason for none, or nothing to say
Rule = Callable[[View, Task], Verdict]


def plan(snapshot: Snapshot, crew: Crew, policy: Policy, now: int) -> Plan:
    """All that should be done at this moment; recoveries first, then what waits, the most urgent first."""
    view = View(snapshot, crew, policy, now)
    opened = _judge(view, snapshot.running, RUNNING)
    _judge(view, snapshot.backlog, BACKLOG)
    _judge(view, snapshot.blocked, BLOCKED)
    _judge(view, snapshot.review, REVIEW)
    _judge(view, (*snapshot.ready, *opened), READY)
    view.actions += _late_answers(view)
    for task in (*snapshot.running, *snapshot.ready):
        view.actions += triggers.completions(view, task)
    if snapshot.handed:
        view.actions += handoff_timers.planned(view)
    view.actions += _health_checks(view)
    view.actions += _retention(view)
    _judge(view, snapshot.finished, FINISHED)
    return Plan(actions=tuple(view.actions), left=tuple(view.left), next_at=view.next_at)


def _judge(view: View, tasks: Iterable[Task], rules: Iterable[Rule]) -> list[Task]:
    """Ask the rules about each task, the most urgent first; answers those of which hops wait for somebody."""
    opened: list[Task] = []
    for task in sorted(tasks, key=_schedule):
        verdict = _judged(view, task, rules)
        if isinstance(verdict, str) and rules is RUNNING and task.gated and hops.opens(task):
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
        seat = view.crew.seats.get(handoff.to_agent)
        due = ack_timeout.answer_due(handoff, seat, view.policy.scheduling.handoff_ms)
        if due <= view.now:
            late.append(ack_timeout.unanswered(handoff, due))
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


def _hops(view: View, task: Task) -> Verdict:
    """What is due in the workflow of a gated task."""
    if not task.gated:
        return None
    return hops.due(view, task)


def _assign_hops(view: View, task: Task) -> Verdict:
    begins = task.status == "ready"
    reason = _waiting(view, task) if begins or task.waits_for_children else None
    reason = reason or (view.capacity.busy_resource(task) if begins else None)
    return reason or hops.assigned(view, task)


def _hop_waits(task: Task) -> Verdict:
    """Where each hop is that somebody works on or has to look at."""
    if not task.gated:
        return None
    open_hops = [hop for hop in task.workflow["hops"] if hop.get("status") in ("ready", "running", "review")]
    return "; ".join(f"hop {hop['id']} ({hop['role']}) is {hop['status']}" for hop in open_hops) or "waits for its hops"


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
    return None if _over(view, task) else f"{why}; the host of {lease.run_id} stops it"


def _orphaned(view: View, task: Task) -> Verdict:
    lease = task.lease
    if lease is None or lease.run_id not in view.snapshot.orphaned:
        return None
    return Action(action="requeue", task_id=task.id, reason="the host of its run has died", run_id=lease.run_id)


def _over(view: View, task: Task) -> bool:
    lease = task.lease
    return lease is not None and lease_end(lease, view.heartbeat(task)) <= view.now


def _stale(view: View, task: Task) -> Verdict:
    """The lease has ended without a sign of life."""
    lease = task.lease
    if lease is None:
        return None if task.gated else "nobody holds it: it was begun by hand"
    heartbeat = view.heartbeat(task)
    end = lease_end(lease, heartbeat)
    if end <= view.now:
        own = heartbeat is not None and heartbeat.run_id == lease.run_id
        since = heartbeat.last_heartbeat if heartbeat is not None and own else lease.acquired_at
        reason = f"no sign of life from {lease.agent} since {since}"
        return Action(action="stale_heartbeat", task_id=task.id, reason=reason, run_id=lease.run_id)
    view.again(end)
    return None


def _too_long(view: View, task: Task) -> Verdict:
    """The run has taken longer than its agent may."""
    lease = task.lease
    limit = view.crew.limit_of(lease.agent) if lease is not None else None
    if lease is None or limit is None:
        return None
    left = limit - running_for(lease, view.snapshot.heartbeats.get(task.id), view.now, view.snapshot.boot)
    if left > 0:
        view.again(view.now + left)
        return None
    reason = f"{lease.agent} may run {_seconds(limit)} at most"
    return Action(action="timeout", task_id=task.id, reason=reason, agent=lease.agent, run_id=lease.run_id)


def _at_work(view: View, task: Task) -> Verdict:
    lease = task.lease
    if lease is None:
        return _hop_waits(task)
    return f"{lease.agent} works on it, until {iso(lease_end(lease, view.heartbeat(task)))} without a sign of life"


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
    wait = session_gates.waits_until(view.policy, task) if view.policy.gates else None
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
        return _assign_hops(view, task)
    if (reason := _waiting(view, task) or _too_early(view, task) or view.capacity.busy_resource(task)) is not None:
        return reason
    named = view.crew.route(task, view.capacity.agents)
    if isinstance(named, Nobody):
        return named.reason
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


RUNNING: tuple[Rule, ...] = (
    _hops,
    _cancelling,
    _orphaned,
    _stale,
    triggers.out_of_time,
    triggers.capability_mismatch,
    _too_long,
    _overdue,
    _patience,
    _at_work,
)
BACKLOG: tuple[Rule, ...] = (_promote, _overdue, _patience)
READY: tuple[Rule, ...] = (_hops, _spent, _assign, _overdue, _patience)
BLOCKED: tuple[Rule, ...] = (_overdue, _patience, _held)
FINISHED: tuple[Rule, ...] = (_old,)
REVIEW: tuple[Rule, ...] = (_hops, _gate, _overdue, _patience, _reviewed)
