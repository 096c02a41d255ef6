"""Reports that come too late: of a run that was replaced or has ended, or of work that has been judged since.

Such a report changes no status. It is kept with its task, for the reviewer and for the next worker: once, however often
it is sent, and only so many. Only who has run the task can be late. Must not know how a report arrives.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support.hashing import hexdigest
from aof.core.errors.base import AofError, Call
from aof.core.errors.runs import StaleLease
from aof.core.model.commands import OnTask
from aof.core.model.events import Draft
from aof.core.model.ids import attempt_of, task_of_run
from aof.core.model.policy import Policy
from aof.core.model.records import Decision, Verdict
from aof.core.model.run import RunResult
from aof.core.model.task import Task
from aof.core.model.workflow import leases
from aof.core.tasks.authorship import did

KIND: Final = "task.late_result"
MOST: Final = 8  # of one task: none is replaced, so that nobody pushes another's out
_WHOSE: Final = ("agentId", "taskId", "runId", "completedAt", "hop", "handoffRef")


def said(report: RunResult | dict[str, Any]) -> dict[str, Any]:
    """What a report says, without whose it is: by this two reports are compared."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(report))
    return {name: value for name, value in whole.items() if value and name not in _WHOSE}


def draft_of(task: Task, agent: str, run: str | None, report: RunResult | dict[str, Any]) -> Draft | None:
    """The event that keeps the report; None where it is kept already, there is no more room, or it is not theirs."""
    result = said(report)
    digest = hexdigest(msgspec.json.encode([agent, run, result], order="deterministic"))[:16]
    kept = {one.digest for one in task.late_results}
    if digest in kept or len(kept) >= MOST:
        return None
    payload = {"agent": agent, "digest": digest, "result": result}
    return Draft(type=KIND, task_id=task.id, run_id=run, payload=payload)


def left_behind(task: Task, found: RunResult | AofError | None) -> tuple[Draft, ...]:
    """What keeps a result file that an earlier run has written after its end; it is applied to no other run."""
    current = task.lease.run_id if task.lease is not None else task.last_run
    if not isinstance(found, RunResult) or found.run_id in ("", current) or not did(task, found.agent_id):
        return ()
    draft = draft_of(task, found.agent_id, found.run_id, found) if _is_run(task, found.run_id) else None
    return () if draft is None else (draft,)


def _is_run(task: Task, run: str) -> bool:
    """Whether the task may have had a run of this ID; the random part of earlier ones is not on its record."""
    return task_of_run(run) == task.id and 1 <= attempt_of(run) <= task.retry.attempts


def _entitled(policy: Policy, task: Task, command: OnTask, agent: str) -> bool:
    """Whether the report is one by who ran the task; where names prove nothing, a run's ID will do.

    Whoever was asked for a secret and sent none has shown no part in the task.
    """
    if command.run is not None and not _is_run(task, command.run):
        return False
    shown = command.proof != "" or command.vouched == "token"
    ended = command.run is not None and all(lease.run_id != command.run for lease in leases(task))
    return shown and (did(task, agent) or (ended and not policy.binds))


def kept(  # noqa: PLR0917 - whose report it is, what it says, and why it is refused
    policy: Policy, task: Task, command: OnTask, agent: str, report: dict[str, Any], verdict: Verdict
) -> Verdict:
    """The refusal of a report that comes too late, which says that the report was kept; any other verdict as it is."""
    refusal = verdict if isinstance(verdict, AofError) else verdict.refusal
    if refusal is None or not _entitled(policy, task, command, agent):
        return verdict
    draft = draft_of(task, agent, command.run, report)
    full = draft is None and len(task.late_results) >= MOST
    where = f"not kept: {task.id} has {MOST} late results already" if full else f"kept with {task.id} as a late result"
    late = StaleLease(
        f"{refusal.message}; the report came too late and is {where}",
        "stop this work: the reviewer and the next worker see what was reported",
        Call("show", {"task_id": task.id}),
        **(refusal.details | {"late": not full}),
    )
    drafts = (draft,) if draft is not None else ()
    if isinstance(verdict, Decision):
        return msgspec.structs.replace(verdict, drafts=verdict.drafts + drafts, refusal=late)
    return Decision(drafts=drafts, refusal=late)
