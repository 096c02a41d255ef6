"""How a hop ends: it completes, sends work back, or is held; it fails, loses its worker, or runs out of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, InvalidInput, NotLeaseHolder, NotReady, OutcomeRequired, RunRequired, StaleLease
from aof.kernel import commands
from aof.kernel.commands import Decision, Records, Verdict
from aof.kernel.model import iso, millis, run_id, run_place, task_of_run
from aof.runs import results as runs_results
from aof.runs.authentication import authors, is_own, ran_work
from aof.runs.model import RunResult, lease_end
from aof.runs.results import (
    backoff_ms,
    malformed_failure,
    malformed_report,
    missing_files,
    not_claimed,
    not_reconciled,
    question_open,
    report_of,
    tries_again,
    withdrawn,
)
from aof.tasks import graph, lifecycle
from aof.tasks.lifecycle import open_points
from aof.tasks.model import Task
from aof.tasks.rules import next_cause, no_edge
from aof.workflows.hops import Walk, chosen, held_hop, hop_named, reset_by, stale_hop, start_hop, state_of, wrong_role
from aof.workflows.model import HopState, Workflow, workflow_of

OUTCOMES: Final = {"complete": "done", "needs_review": "needs_review", "blocked": "blocked"}
MEANINGS: Final = "complete (advance), needs_review (send back, with blockers), blocked (hold, with blockers)"
ACTIVE: Final = ("ready", "in-progress", "review")


def complete(records: Records, command: commands.Complete, now: int) -> Verdict:
    """Close the hop's run with its outcome, and let the workflow go on; without one the hop is complete."""
    if command.outcome is None:
        command = msgspec.structs.replace(command, outcome="complete")
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    if _repeats(records, task, workflow, command):
        return Decision()
    if task.status == "done":
        return _after_the_end(records, task, workflow, command)
    if command.run is None and task.status == "review" and command.outcome == "complete":
        own = is_own(records.policy, task, command, authors(task, command.hop))
        again = _again(records, task, workflow, command, _ended(task, command)) if own else None
        return again or _accepted(records, command, command.summary, now)
    walk = Walk(records, task, now, workflow)
    hop = _hop_of(walk, workflow, command)
    if isinstance(hop, AofError):
        refused = _bad_outcome(task, workflow, command) or hop
        late = isinstance(refused, StaleLease | NotLeaseHolder)
        return _late(records, task, command, refused) if late else refused
    return _completed(walk, hop, command)


def _completed(walk: Walk, hop: HopState, command: commands.Complete) -> Verdict:
    """The run's report, its end, and the hop's step; or what is wrong with the report."""
    records, task, workflow = walk.records, walk.task, walk.workflow
    agent, outcome = hop.agent or command.acting, OUTCOMES.get(str(command.outcome), "")
    problem = (
        _bad_outcome(task, workflow, command, hop)
        or malformed_report(command, task, outcome)
        or wrong_role(records, task, hop, agent, command.caller_role)
        or _cannot_reject(task, workflow, hop, command)
        or question_open(task, command, outcome, (agent, hop.run_id or ""), hop.id)
    )
    if problem is None and workflow.template.by_id[hop.id].auto_advance and closes(walk, hop.id, outcome):
        problem = not_reconciled(records, task, command, outcome)
    if problem is not None:
        return problem
    run = hop.run_id or run_id(task.id, task.retry.attempts + 1, records.run_tag)
    report = report_of(records, task, command, outcome, (agent, run))
    walk.add(report.type, hop.id, run, **report.payload)
    walk.add("task.attempt.completed", hop.id, run, agent=agent, outcome=outcome)
    follow(walk, hop.id, outcome, command.blockers, command.summary)
    return walk.finish(str(command.outcome), agent=hop.agent)


def _after_the_end(records: Records, task: Task, workflow: Workflow, command: commands.Complete) -> Verdict:
    """The task is done: a repeated report changes nothing, and one that comes too late is refused."""
    if ran_work(task, command.acting) or command.run is not None:
        refusal = _ended(task, command) if command.run is None else stale_hop(task, command.run)
        return _again(records, task, workflow, command, refusal)
    if command.outcome in ("needs_review", "blocked"):
        target = "review" if command.outcome == "needs_review" else "blocked"
        return no_edge(task, target, *graph.way_on(task, command.acting))
    return Decision()


def _ended(task: Task, command: commands.Complete) -> StaleLease:
    return StaleLease(
        f"{task.id} is {task.status}, and {command.acting} runs no hop of it",
        "stop this work",
        Call("workflow_show", {"name": task.id}),
        status=task.status,
    )


def _again(records: Records, task: Task, workflow: Workflow, command: commands.Complete, refusal: AofError) -> Verdict:
    """A report of a hop that is over: what its last run says again changes nothing, any other comes too late."""
    mine = _last_by(workflow, command)
    if not ran_work(task, command.acting) or (command.outcome == "complete" and mine):
        return Decision() if command.run is None or mine else refusal
    return _late(records, task, command, refusal)


def _late(records: Records, task: Task, command: commands.Complete, refusal: AofError) -> Verdict:
    outcome = OUTCOMES.get(str(command.outcome), "done")
    report = report_of(records, task, command, outcome, (command.acting, command.run or ""))
    problem = malformed_report(command, task, outcome)
    return problem or runs_results.kept_refusal(
        records.policy, task, command, command.acting, report.payload["result"], refusal
    )


def _last_by(workflow: Workflow, command: commands.Complete) -> list[HopState]:
    """The hops whose last run was this one, or this agent's where no run is named."""
    return [
        hop
        for hop in workflow.hops
        if hop.run_id is not None
        and hop.lease is None
        and command.hop in (None, hop.id)
        and (hop.run_id == command.run if command.run is not None else hop.agent == command.acting)
    ]


def _repeats(records: Records, task: Task, workflow: Workflow, command: commands.Complete) -> bool:
    """Whether the last run of a hop has reported exactly this: then it stands, whatever could be done next."""
    if command.outcome not in OUTCOMES or (command.run is None and _holds(workflow, command.acting)):
        return False
    report = report_of(records, task, command, OUTCOMES[command.outcome], (command.acting, ""))
    wanted = runs_results.report_content(report.payload["result"])
    for hop in _last_by(workflow, command):
        result = records.results.get(run_place(task.id, hop.id))
        known = isinstance(result, RunResult) and result.run_id == hop.run_id
        if isinstance(result, RunResult) and known and command.caller_role in (None, hop.role):
            return runs_results.report_content(result) == wanted
    return False


def _holds(workflow: Workflow, agent: str) -> bool:
    return any(hop.lease is not None and hop.lease.agent == agent for hop in workflow.hops)


def _hop_of(walk: Walk, workflow: Workflow, command: commands.Complete) -> HopState | AofError:
    """The hop that the outcome is about: the one that is held, else one that is claimed in the same commit."""
    task = walk.task
    if command.run is not None and task_of_run(command.run) == task.id:
        return held_hop(task, workflow, command)
    if _holds(workflow, command.acting) or (command.hop is None and workflow.running()):
        return held_hop(task, workflow, msgspec.structs.replace(command, run=None))
    refusal = graph.hop_readiness(walk.records, task, walk.now)
    hop = refusal or chosen(walk.records, task, command, walk.now)
    if isinstance(hop, AofError):
        return hop
    refusal = _perhaps_repeated(task, hop, command) or not_claimed(task, command)
    return refusal or start_hop(walk, hop, command.acting) or walk.workflow.hop(hop.id)


def _perhaps_repeated(task: Task, hop: HopState, command: commands.Complete) -> RunRequired | None:
    """The refusal of an outcome that may be sent twice: it must not end the next hop, which nobody has claimed."""
    workflow = workflow_of(task)
    before = (workflow.hop(name) for name in workflow.template.by_id[hop.id].depends_on)
    done = next((one for one in before if one.agent == command.acting), None)
    if command.hop is not None or done is None:
        return None
    return RunRequired(
        f"{command.acting} has completed hop '{done.id}' of {task.id} and has not claimed the next one, '{hop.id}'",
        f"the report of '{done.id}' is recorded; claim '{hop.id}' before you report on it",
        Call("claim", {"task_id": task.id, "hop": hop.id, "agent": command.acting}),
    )


def _open_hops(workflow: Workflow) -> str:
    """The hops that the work is at, as messages name them."""
    open_now = [hop.id for hop in workflow.hops if hop.status in ("running", "ready", "review", "blocked")]
    return ", ".join(open_now) or "none"


def outcome_required(task: Task, workflow: Workflow, hop: str | None, what: str) -> OutcomeRequired:
    """The refusal that says which outcomes a hop can end with."""
    at = hop or _open_hops(workflow)
    return OutcomeRequired(
        f"{task.id} is in a DAG workflow ('{workflow.name}', current hop: '{at}'); {what}",
        f"the parameter 'outcome' says how a hop ends: {MEANINGS}; without it the hop is complete",
        Call("complete", {"task_id": task.id, "outcome": "complete", "summary": "…"}),
        hop=at,
        outcomes=list(OUTCOMES),
    )


def _bad_outcome(
    task: Task, workflow: Workflow, command: commands.Complete, hop: HopState | None = None
) -> AofError | None:
    """What is wrong with the outcome and its blockers."""
    name = hop.id if hop is not None else command.hop
    if command.outcome not in OUTCOMES:
        return outcome_required(task, workflow, name, f"there is no outcome '{str(command.outcome)[:80]}'")
    if command.outcome != "complete" and not any(text.strip() for text in command.blockers):
        return InvalidInput(
            f"outcome '{command.outcome}' needs 'blockers': say what has to change or is in the way",
            "give at least one blocker",
            Call("complete", {"task_id": task.id, "outcome": command.outcome, "blockers": ["no test for expiry"]}),
        )
    return None


def _cannot_reject(task: Task, workflow: Workflow, hop: HopState, command: commands.Complete) -> AofError | None:
    rule = workflow.template.by_id[hop.id]
    if command.outcome != "needs_review" or (rule.can_reject and rule.depends_on):
        return None
    why = "is the first: nothing comes before it" if not rule.depends_on else "has no 'canReject: true'"
    return OutcomeRequired(
        f"hop '{hop.id}' of {task.id} cannot reject: it {why}; use outcome 'complete' or 'blocked'",
        "complete it, or hold it with blockers",
        Call("complete", {"task_id": task.id, "outcome": "blocked", "blockers": ["…"]}),
        hop=hop.id,
    )


def closes(walk: Walk, hop_id: str, outcome: str) -> bool:
    """Whether this outcome would finish the whole task; False for tasks that declare nothing to check then."""
    if outcome != "done" or not lifecycle.declares(walk.task):
        return False
    trial = Walk(walk.records, walk.task, walk.now, walk.workflow)
    trial.step(hop_id, "completed", "done")
    trial.settle()
    return state_of(trial.workflow) == "done"


def follow(
    walk: Walk,
    hop_id: str,
    outcome: str,
    blockers: tuple[str, ...],
    summary: str | None = None,
    *,
    open_now: tuple[str, ...] = (),
) -> None:
    """The hop's own step after its run reported an outcome; what is `open` at the task's end waits for an approval."""
    rule, hop = walk.workflow.template.by_id[hop_id], walk.workflow.hop(hop_id)
    run, agent = hop.run_id, str(hop.agent)
    text = "; ".join(blockers)
    walk.by = agent
    if outcome == "done":
        walk.drafts += withdrawn(walk.task, (agent, run or ""), hop_id)
    if outcome == "blocked":
        reason = text or "the run reported that it is blocked"
        walk.step(hop_id, "blocked", "blocked", run, agent=agent, blockers=list(blockers), reason=reason)
    elif outcome == "needs_review" and rule.can_reject and rule.depends_on:
        send_back(walk, hop_id, agent, blockers, summary)
    elif outcome == "done" and rule.auto_advance and not open_now:
        walk.step(hop_id, "completed", "done", run, agent=agent, outcome="complete")
    else:
        why = text or lifecycle.listed_points(open_now) or "waits for an approval"
        walk.step(hop_id, "waiting_approval", "review", run, agent=agent, reason=why)


def send_back(walk: Walk, hop_id: str, agent: str, blockers: tuple[str, ...], summary: str | None) -> None:
    """Reject: the origin, or the hops directly before, begin again with all that comes after them."""
    hop, rule = walk.workflow.hop(hop_id), walk.workflow.template.by_id[hop_id]
    text = "; ".join(blockers)
    more: dict[str, Any] = {"blockers": list(blockers), "workLog": f"{agent} rejected at '{hop_id}': {text}"}
    count = hop.rejections + 1
    if count >= walk.workflow.template.rejection_limit:
        walk.step(
            hop_id, "failed", "failed", hop.run_id, agent=agent, rejections=count, reason=_often(count, text), **more
        )
        return
    back_to = rule.depends_on if rule.rejection_strategy == "predecessors" else walk.workflow.template.origins(hop_id)
    more |= {"backTo": list(back_to), "summary": summary, "rejections": count, "reason": text}
    walk.step(hop_id, "rejected", "rejected", hop.run_id, agent=agent, **more)
    for name in reset_by(walk.workflow, tuple(back_to)):
        if name == hop_id:
            continue
        again = walk.workflow.hop(name)
        if again.lease is not None:
            walk.end_run(again, status="cancelled", code="reset", message=f"'{hop_id}' rejected")
        if walk.workflow.hop(name).status != "waiting":
            walk.step(name, "reset", "waiting", reason=f"'{hop_id}' rejected: {text}")


def _often(count: int, text: str) -> str:
    return f"rejected {count} times, last: {text}"


def approve(records: Records, command: commands.Approve, now: int) -> Verdict:
    """Accept a hop that waits for an approval."""
    task = records.task(command.task_id)
    if task.status == "done":
        return Decision()
    return _accepted(records, command, command.reason, now)


def _accepted(records: Records, command: commands.Approve | commands.Complete, text: str | None, now: int) -> Verdict:
    task, by = records.task(command.task_id), command.acting
    hop = _waiting(task, command.hop)
    if isinstance(hop, OutcomeRequired):
        return _ended_by_outcome(task, command, hop)
    if isinstance(hop, AofError):
        return hop
    walk = Walk(records, task, now)
    more: dict[str, Any] = {"workLog": f"{by}: {text}"} if text else {}
    if closes(walk, hop.id, "done"):
        open_now = lifecycle.open_points(records, task, approved=True)
        if refusal := lifecycle.not_reconciled(task, open_now):
            return refusal
        more |= lifecycle.vouched(task)
    walk.step(hop.id, "approved", "done", hop.run_id, agent=by, reason=text, **more)
    return walk.finish("approved", agent=by)


def reject(records: Records, command: commands.Reject, now: int) -> Verdict:
    """Send a hop that waits for approval back to be done again; this counts as a rejection of it."""
    task = records.task(command.task_id)
    if not any(text.strip() for text in command.blockers):
        call = Call("reject", {"task_id": task.id, "blockers": ["…"]})
        return InvalidInput("a rejection needs a reason", "say what has to change", call)
    hop = _waiting(task, command.hop)
    if isinstance(hop, OutcomeRequired):
        return _ended_by_outcome(task, command, hop)
    if isinstance(hop, AofError):
        return hop
    walk = Walk(records, task, now)
    by, text, count = command.acting, "; ".join(command.blockers), hop.rejections + 1
    more = {"blockers": list(command.blockers), "workLog": f"{by} rejected '{hop.id}': {text}"}
    if count >= walk.workflow.template.rejection_limit:
        walk.step(hop.id, "failed", "failed", agent=by, rejections=count, reason=_often(count, text), **more)
    else:
        walk.step(hop.id, "rejected", "rejected", agent=by, rejections=count, reason=text, **more)
        walk.step(hop.id, "opened", "ready", reason=text)
    return walk.finish(text, agent=by)


def _waiting(task: Task, wanted: str | None) -> HopState | AofError:
    workflow = workflow_of(task)
    named = hop_named(task, workflow, wanted) if wanted is not None else None
    if isinstance(named, AofError):
        return named
    waiting = [hop for hop in workflow.hops if hop.status == "review" and named in (None, hop)]
    if refusal := graph.being_cancelled(task):
        return refusal
    if task.status in ("backlog", "blocked"):
        why = f": {task.blocked.reason}" if task.blocked else ""
        call = Call("unblock", {"task_id": task.id})
        return NotReady(f"{task.id} is {task.status}{why}", "let it go on first", call)
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        names = ", ".join(hop.id for hop in waiting)
        return InvalidInput(
            f"several hops of {task.id} wait for an approval: {names}",
            "name one of them",
            Call("approve", {"task_id": task.id, "hop": waiting[0].id}),
        )
    at = wanted or _open_hops(workflow)
    return OutcomeRequired(
        f"no hop of {task.id} waits for an approval (workflow '{workflow.name}', current hop: '{at}'); "
        "its holder gives an outcome",
        "see where each hop stands",
        Call("workflow_show", {"name": task.id}),
        hop=at,
        outcomes=list(OUTCOMES),
    )


def _ended_by_outcome(
    task: Task, command: commands.Approve | commands.Complete | commands.Reject, refusal: OutcomeRequired
) -> AofError:
    """The refusal of a verdict on a hop that its holder ends: the call that says the same there, after a claim of it.

    A rejection is never answered with the call that accepts.
    """
    workflow, rejects = workflow_of(task), isinstance(command, commands.Reject)
    rules = workflow.template.by_id
    at = next(
        (
            hop
            for hop in workflow.hops
            if hop.status in ("running", "ready")
            and command.hop in (None, hop.id)
            and (not rejects or (rules[hop.id].can_reject and rules[hop.id].depends_on))
        ),
        None,
    )
    if at is None:
        return refusal
    said = (
        {"outcome": "needs_review", "blockers": list(command.blockers)} if isinstance(command, commands.Reject) else {}
    )
    ends = Call("complete", {"task_id": task.id, **(said or {"outcome": "complete", "summary": "…"})})
    what = "send the work back as the holder of" if rejects else "accept the work as the holder of"
    if at.lease is not None:
        refusal.hint, refusal.call = f"{what} '{at.id}'", ends
        return refusal
    claim = Call("claim", {"task_id": task.id, "hop": at.id, "agent": command.acting})
    refusal.hint, refusal.call, refusal.otherwise = f"claim '{at.id}' first", claim, (f"then {what} '{at.id}'", ends)
    return refusal


def fail(records: Records, command: commands.Fail, now: int) -> Verdict:
    """End a hop's run as failed; it is tried again while attempts are left."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    hop = held_hop(task, workflow, command)
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


def expire(records: Records, command: commands.Expire, now: int) -> Verdict:
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
    walk.drafts += missing_files(walk.records, walk.task, result)
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
    """A cancellation is settled once all workers of the task have vanished."""
    task, records, now = walk.task, walk.records, walk.now
    running = walk.workflow.running()
    if not running or not all(_over(records, task, hop, now) for hop in running):
        return Decision()
    for hop in running:
        walk.add("task.lost", hop.id, hop.run_id, agent=hop.agent)
        walk.end_run(hop, status="expired", code="stale_heartbeat", cause="lost")
    return Decision(drafts=(*walk.drafts, *lifecycle.settled(records, task, now)))


def time_out(records: Records, command: commands.TimeOut, now: int) -> Verdict:
    """End a hop whose time is over: by what its run has reported, else it is escalated, once, and then given up."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    hop = hop_named(task, workflow, command.hop)
    if isinstance(hop, InvalidInput):
        return hop
    blockers = [records.find(edge) for edge in task.depends_on] if task.status != "in-progress" else []
    if hop.id not in due_hops(task, now, blockers):
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


def deadlines(task: Task, dependencies: Iterable[Task | None] = ()) -> dict[str, int]:
    """When the time of each open hop is over: counted from its opening, and not before its task could run."""
    if not task.gated or task.status not in ACTIVE or task.cancel is not None or task.archived:
        return {}
    workflow = workflow_of(task)
    since = 0
    for blocker in dependencies:
        if blocker is None or blocker.status != "done":
            return {}
        since = max(since, millis(blocker.ended_at or blocker.updated_at))
    found: dict[str, int] = {}
    for hop in workflow.hops:
        limit = workflow.template.by_id[hop.id].timeout_ms
        if limit is not None and hop.opened_at is not None and hop.status in ("ready", "running", "review"):
            found[hop.id] = max(millis(hop.opened_at), since) + limit
    return found


def due_hops(task: Task, now: int, dependencies: Iterable[Task | None] = ()) -> tuple[str, ...]:
    """The hops whose time is over: each wants a `TimeOut` command."""
    return tuple(hop for hop, end in deadlines(task, dependencies).items() if end <= now)
