"""How a hop ends without an outcome: its run failed, its worker vanished, its time is over.

Must not know how they are noticed.
"""

from __future__ import annotations

from typing import Any

from aof.core.errors.base import AofError, InvalidInput
from aof.core.model import commands as c
from aof.core.model.ids import run_place
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.run import RunResult, lease_end
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.model.workflow import HopState, workflow_of
from aof.core.runs.reported_result import lacking
from aof.core.runs.retry import backoff_ms, malformed_failure, tries_again
from aof.core.tasks import cancellation
from aof.core.tasks.attempts import next_cause
from aof.core.tasks.declared import open_points
from aof.core.workflows.claim import hop_named
from aof.core.workflows.hop_lease import held
from aof.core.workflows.outcomes import closes, follow
from aof.core.workflows.timers import due
from aof.core.workflows.transaction import Walk


def fail(records: Records, command: c.Fail, now: int) -> Verdict:
    """End a hop's run as failed; it is tried again while attempts are left."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    hop = held(task, workflow, command)
    if isinstance(hop, AofError):
        return hop
    if problem := malformed_failure(command):
        return problem
    walk = Walk(records, task, now, workflow)
    if command.cause == "timed_out":
        walk.add("task.timed_out", hop.id, hop.run_id, limit=command.code)
    _failed(walk, hop, command.code, command.message, cause=command.cause, retryable=tries_again(command))
    return walk.finish(command.code, agent=hop.agent)


def _failed(
    walk: Walk,
    hop: HopState,
    code: str,
    message: str,
    *,
    cause: str = "failed",
    status: str = "failed",
    retryable: bool = True,
) -> None:
    """After a counted failure the hop waits and is tried again, or is given up."""
    run = hop.run_id
    walk.end_run(hop, status=status, code=code, message=message, cause=cause, counts=True)
    failures = walk.workflow.hop(hop.id).failures
    if retryable and failures < walk.task.retry.max_attempts:
        wait = backoff_ms(walk.records.policy, failures)
        next_run = walk.task.retry.attempts + 1
        more: dict[str, Any] = {"reason": code, "attempt": next_run, "cause": next_cause(cause, code)}
        walk.add("task.retrying", hop.id, notBefore=iso(walk.now + wait), **more)
        return
    ended = "timed_out" if cause == "timed_out" else "failed"
    walk.step(hop.id, ended, ended, run, agent=hop.agent, reason=f"{code}: {message}" if message else code)


def expire(records: Records, command: c.Expire, now: int) -> Verdict:
    """Recover the hops whose lease has ended, or that of one run: by its reported result, else by trying it again."""
    task = records.task(command.task_id)
    walk = Walk(records, task, now)
    if task.cancel is not None:
        return _settled(walk)
    running = (hop for hop in walk.workflow.running() if command.run in (None, hop.run_id))
    late = [hop for hop in running if _over(records, task, hop, now)]
    for hop in late:
        result = records.results[run_place(task.id, hop.id)]
        if isinstance(result, AofError):
            return result  # what was reported cannot be told, so nothing is guessed
    for hop in late:
        now_open = walk.workflow.hop(hop.id)  # another one's rejection may have ended it
        if now_open.lease is not None:
            _recovered(walk, now_open)
    return walk.finish("stale_heartbeat_reclaim") if walk.drafts else Decision()


def _over(records: Records, task: Task, hop: HopState, now: int) -> bool:
    return hop.lease is not None and lease_end(hop.lease, records.heartbeats[run_place(task.id, hop.id)]) <= now


def _reported(walk: Walk, hop: HopState, result: RunResult) -> None:
    agent = str(hop.agent)
    walk.drafts += lacking(walk.records, walk.task, result)
    walk.add("task.attempt.completed", hop.id, hop.run_id, agent=agent, outcome=result.outcome)
    last = closes(walk, hop.id, result.outcome)
    open_now = open_points(walk.records, walk.task) if last else ()
    follow(walk, hop.id, result.outcome, tuple(result.blockers or ()), result.notes, open_now=open_now)


def _recovered(walk: Walk, hop: HopState) -> None:
    result = walk.records.results[run_place(walk.task.id, hop.id)]
    run, agent = hop.run_id, str(hop.agent)
    if isinstance(result, RunResult) and result.run_id == run:
        _reported(walk, hop, result)
        return
    walk.add("task.lost", hop.id, run, agent=agent)
    message = f"{agent} gave no sign of life and reported no result"
    _failed(walk, hop, "stale_heartbeat", message, cause="lost", status="expired")


def end_session(records: Records, task: Task, agent: str, run: str | None, now: int) -> Verdict:
    """What an agent's run of a hop has reported is carried out; one that has ended without a report has failed."""
    walk = Walk(records, task, now)
    for hop in walk.workflow.running():
        if hop.agent != agent or run not in (None, hop.run_id) or walk.workflow.hop(hop.id).lease is None:
            continue
        result = records.results[run_place(task.id, hop.id)]
        if isinstance(result, AofError):
            return result
        if isinstance(result, RunResult) and result.run_id == hop.run_id:
            _reported(walk, hop, result)
        elif run is not None:
            message = f"the session of {agent} ended without a completion report"
            _failed(walk, hop, "no_completion_report", message)
    return walk.finish("session_end", agent=agent) if walk.drafts else Decision()


def _settled(walk: Walk) -> Verdict:
    """The workers of a task that is being cancelled have vanished: that settles it."""
    task, records, now = walk.task, walk.records, walk.now
    running = walk.workflow.running()
    if not running or not all(_over(records, task, hop, now) for hop in running):
        return Decision()
    for hop in running:
        walk.add("task.lost", hop.id, hop.run_id, agent=hop.agent)
        walk.end_run(hop, status="expired", code="stale_heartbeat", cause="lost")
    return Decision(drafts=(*walk.drafts, *cancellation.settled(records, task, now)))


def time_out(records: Records, command: c.TimeOut, now: int) -> Verdict:
    """End a hop whose time is over: by what its run has reported, else it is escalated, once, and then given up."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    hop = hop_named(task, workflow, command.hop)
    if isinstance(hop, InvalidInput):
        return hop
    blockers = [records.look(edge) for edge in task.depends_on] if task.status != "in-progress" else []
    if hop.id not in due(task, now, blockers):
        return Decision()
    walk = Walk(records, task, now)
    result = records.results.get(run_place(task.id, hop.id)) if hop.lease is not None else None
    if isinstance(result, AofError):
        return result
    if result is not None and result.run_id == hop.run_id:
        _reported(walk, hop, result)
        return walk.finish("hop_timeout", agent=hop.agent)
    rule = workflow.template.by_id[hop.id]
    run, why = hop.run_id, f"not done within {rule.timeout}"
    walk.add("task.timed_out", hop.id, run, limit=f"hop {hop.id}: {rule.timeout}")
    if hop.lease is not None:
        walk.end_run(hop, status="failed", code="hop_timeout", message=why, cause="timed_out")
    if rule.escalate_to is not None and not hop.escalated:
        status = "review" if hop.status == "review" else "ready"
        walk.step(hop.id, "escalated", status, role=rule.escalate_to, escalated=True, reason=why)
    else:
        walk.step(hop.id, "timed_out", "timed_out", run, agent=hop.agent, reason=why)
    return walk.finish("hop_timeout")
