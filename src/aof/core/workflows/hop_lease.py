"""Holding a hop: who may write to it, how it shows life and progress, and how it is given back.

Must not know how a hop is taken, nor what follows from it.
"""

from __future__ import annotations

from aof.core.errors.base import AofError, Call
from aof.core.errors.runs import NotLeaseHolder, RunRequired, StaleLease
from aof.core.model import commands as c
from aof.core.model.ids import run_place
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.run import Heartbeat
from aof.core.model.task import Task
from aof.core.model.workflow import HopState, Workflow, workflow_of
from aof.core.runs import progress
from aof.core.runs.authentication import kept_for, same_call, unproven
from aof.core.runs.lease import WAITS, bad_beat, beat_after, by_another, how_released
from aof.core.tasks import graph
from aof.core.validation import limits
from aof.core.workflows.transaction import Walk


def held(task: Task, workflow: Workflow, command: c.OnTask) -> HopState | AofError:
    """The hop that a worker's write counts for, or why the caller may not write."""
    running = workflow.running()
    if command.run is not None:
        own = [hop for hop in running if hop.lease is not None and hop.lease.run_id == command.run]
        return _shown(task, own[0], command) if own and task.cancel is None else stale(task, command.run)
    mine = [hop for hop in running if hop.lease is not None and hop.lease.agent == command.acting]
    kept = [hop for hop in running if hop.lease is not None and kept_for(hop.lease, command.actor)]
    if len(kept) == 1 and command.agent in (None, kept[0].agent):
        return _shown(task, kept[0], command) if task.cancel is None else stale(task, str(kept[0].run_id))
    if not running:
        return StaleLease(
            f"{task.id} is {graph.stands(task)}: nobody is running it", *graph.way_on(task, command.acting)
        )
    if not mine:
        holders = ", ".join(f"{hop.agent} ({hop.id})" for hop in running)
        return NotLeaseHolder(
            f"{task.id} is held by {holders}, not by {command.acting}",
            "only the holder of a hop may write to it",
            Call("workflow_show", {"name": task.id}),
            holder=running[0].agent,
        )
    if len(mine) > 1 or command.acting in task.retry.agents:
        why = "holds several hops" if len(mine) > 1 else "has had an earlier run"
        return RunRequired(
            f"{command.acting} {why} of {task.id} and must name the run it acts for",
            "name the run that the claim returned",
            same_call(command, str(mine[0].run_id)),
        )
    return _shown(task, mine[0], command) if task.cancel is None else stale(task, str(mine[0].run_id))


def _shown(task: Task, hop: HopState, command: c.OnTask) -> HopState | AofError:
    """The hop, where the caller has shown what it was asked to show."""
    assert hop.lease is not None
    return unproven(task, hop.lease, command) or hop


def stale(task: Task, run: str) -> StaleLease:
    """The refusal for a run that holds no hop any more."""
    why = "it is being cancelled" if task.cancel is not None else "its hop has ended or was taken again"
    return StaleLease(
        f"run {run[:80]} no longer holds a hop of {task.id}: {why}",
        "stop this work; what it did later is not recorded",
        Call("workflow_show", {"name": task.id}),
        run_id=run[:80],
    )


def heartbeat(records: Records, command: c.RecordHeartbeat, now: int) -> Verdict:
    """A sign of life of one hop's run."""
    task = records.task(command.task_id)
    hop = held(task, workflow_of(task), command)
    if isinstance(hop, AofError):
        return hop
    if problem := bad_beat(records, command, hop.agent or ""):
        return problem
    return Decision(heartbeat=next_beat(records, task, hop, now, command.ttl_ms), agent=hop.agent)


def next_beat(records: Records, task: Task, hop: HopState, now: int, ttl_ms: int | None = None) -> Heartbeat:
    """The heartbeat that follows the hop's last one."""
    lease = hop.lease
    assert lease is not None
    return beat_after(records.heartbeats[run_place(task.id, hop.id)], lease, task.id, now, ttl_ms=ttl_ms, hop=hop.id)


def report(records: Records, command: c.ReportProgress, now: int) -> Verdict:
    """Progress of one hop's run; it is a sign of life too."""
    task = records.task(command.task_id)
    hop = held(task, workflow_of(task), command)
    if isinstance(hop, AofError):
        return hop
    draft = progress.progress_of(task, command, hop.agent or command.acting, hop.run_id)
    if isinstance(draft, AofError):
        return draft
    draft.payload["hop"] = hop.id
    return Decision(drafts=(draft,), heartbeat=next_beat(records, task, hop, now), agent=hop.agent)


def release(records: Records, command: c.Release, now: int) -> Verdict:
    """Give a hop back; its run ends without a result, and that is not a failure."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    hop = held(task, workflow, command)
    if isinstance(hop, AofError):
        return hop
    if problem := limits.text("reason", command.reason, limits.REASON):
        return problem
    walk = Walk(records, task, now, workflow)
    children = graph.awaited_children(records, command)
    walk.end_run(hop, status="released", **how_released(children))
    ended = walk.drafts[-1].payload
    ended.update(by_another(command, str(hop.agent)))
    if children:
        ended[WAITS] = children
    return walk.finish(command.reason or ended["cause"], agent=hop.agent)
