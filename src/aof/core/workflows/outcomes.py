"""How a hop ends with an outcome: complete advances, needs_review sends back, blocked holds.

Must not know who may claim.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.runs import NotLeaseHolder, RunRequired, StaleLease
from aof.core.errors.tasks import NotReady
from aof.core.errors.workflows import OutcomeRequired
from aof.core.model import commands as c
from aof.core.model.ids import run_id, run_place, task_of_run
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.run import RunResult
from aof.core.model.task import Task
from aof.core.model.workflow import HopState, Workflow, workflow_of
from aof.core.runs import late_result
from aof.core.runs.completion import malformed_report, not_claimed, not_reconciled, question_open, report_of, withdrawn
from aof.core.tasks import declared, graph
from aof.core.tasks.authorship import authors, did, is_own
from aof.core.tasks.transitions import no_edge
from aof.core.workflows.claim import chosen, hop_named, start, wrong_role
from aof.core.workflows.hop_lease import held, stale
from aof.core.workflows.transaction import Walk, reset_by, state_of

OUTCOMES: Final = {"complete": "done", "needs_review": "needs_review", "blocked": "blocked"}
MEANINGS: Final = "complete (advance), needs_review (send back, with blockers), blocked (hold, with blockers)"


def complete(records: Records, command: c.Complete, now: int) -> Verdict:
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
    return _ends_a_hop(records, task, workflow, command, now)


def _ends_a_hop(records: Records, task: Task, workflow: Workflow, command: c.Complete, now: int) -> Verdict:
    walk = Walk(records, task, now, workflow)
    hop = _hop_of(walk, workflow, command)
    if isinstance(hop, AofError):
        refused = _explained(task, workflow, command) or hop
        late = isinstance(refused, StaleLease | NotLeaseHolder)
        return _late(records, task, command, refused) if late else refused
    problem = (
        _explained(task, workflow, command, hop)
        or malformed_report(command, task, OUTCOMES[str(command.outcome)])
        or wrong_role(records, task, hop, hop.agent or command.acting, command.caller_role)
        or _cannot_reject(task, workflow, hop, command)
        or question_open(
            task, command, OUTCOMES[str(command.outcome)], (hop.agent or command.acting, hop.run_id or ""), hop.id
        )
    )
    if problem is not None:
        return problem
    if workflow.template.by_id[hop.id].auto_advance and closes(walk, hop.id, OUTCOMES[str(command.outcome)]):
        problem = not_reconciled(records, task, command, OUTCOMES[str(command.outcome)])
        if problem is not None:
            return problem
    _end(walk, walk.workflow.hop(hop.id), command)
    return walk.finish(str(command.outcome), agent=hop.agent)


def _after_the_end(records: Records, task: Task, workflow: Workflow, command: c.Complete) -> Verdict:
    """A repeated report changes nothing; one that comes too late must not seem to have been heard."""
    if did(task, command.acting) or command.run is not None:
        refusal = _ended(task, command) if command.run is None else stale(task, command.run)
        return _again(records, task, workflow, command, refusal)
    if command.outcome in ("needs_review", "blocked"):
        target = "review" if command.outcome == "needs_review" else "blocked"
        return no_edge(task, target, *graph.way_on(task, command.acting))
    return Decision()


def _ended(task: Task, command: c.Complete) -> StaleLease:
    return StaleLease(
        f"{task.id} is {task.status}, and {command.acting} runs no hop of it",
        "stop this work",
        Call("workflow_show", {"name": task.id}),
        status=task.status,
    )


def _again(records: Records, task: Task, workflow: Workflow, command: c.Complete, refusal: AofError) -> Verdict:
    """A report of a hop that is over: what its last run says again changes nothing, any other comes too late."""
    mine = _last_by(workflow, command)
    if not did(task, command.acting) or (command.outcome == "complete" and mine):
        return Decision() if command.run is None or mine else refusal
    return _late(records, task, command, refusal)


def _late(records: Records, task: Task, command: c.Complete, refusal: AofError) -> Verdict:
    outcome = OUTCOMES.get(str(command.outcome), "done")
    report = report_of(records, task, command, outcome, (command.acting, command.run or ""))
    problem = malformed_report(command, task, outcome)
    return problem or late_result.kept(records.policy, task, command, command.acting, report.payload["result"], refusal)


def _last_by(workflow: Workflow, command: c.Complete) -> list[HopState]:
    """The hops whose last run was this one, or this agent's where no run is named."""
    return [
        hop
        for hop in workflow.hops
        if hop.run_id is not None
        and hop.lease is None
        and command.hop in (None, hop.id)
        and (hop.run_id == command.run if command.run is not None else hop.agent == command.acting)
    ]


def _repeats(records: Records, task: Task, workflow: Workflow, command: c.Complete) -> bool:
    """Whether the last run of a hop has said exactly this: then it stands, whatever could be done next."""
    if command.outcome not in OUTCOMES or (command.run is None and _holds(workflow, command.acting)):
        return False
    report = report_of(records, task, command, OUTCOMES[command.outcome], (command.acting, ""))
    wanted = late_result.said(report.payload["result"])
    for hop in _last_by(workflow, command):
        result = records.results.get(run_place(task.id, hop.id))
        known = isinstance(result, RunResult) and result.run_id == hop.run_id
        if isinstance(result, RunResult) and known and command.caller_role in (None, hop.role):
            return late_result.said(result) == wanted
    return False


def _holds(workflow: Workflow, agent: str) -> bool:
    return any(hop.lease is not None and hop.lease.agent == agent for hop in workflow.hops)


def _hop_of(walk: Walk, workflow: Workflow, command: c.Complete) -> HopState | AofError:
    """The hop that the outcome is about: the one that is held, else one that is claimed in the same commit."""
    task = walk.task
    if command.run is not None and task_of_run(command.run) == task.id:
        return held(task, workflow, command)
    if _holds(workflow, command.acting) or (command.hop is None and workflow.running()):
        return held(task, workflow, msgspec.structs.replace(command, run=None))
    refusal = graph.hop_readiness(walk.records, task, walk.now)
    hop = refusal or chosen(walk.records, task, command, walk.now)
    if isinstance(hop, AofError):
        return hop
    refusal = _perhaps_repeated(task, hop, command) or not_claimed(task, command)
    return refusal or start(walk, hop, command.acting) or walk.workflow.hop(hop.id)


def _perhaps_repeated(task: Task, hop: HopState, command: c.Complete) -> RunRequired | None:
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


def current(workflow: Workflow) -> str:
    """The hops that the work is at, as messages name them."""
    open_now = [hop.id for hop in workflow.hops if hop.status in ("running", "ready", "review", "blocked")]
    return ", ".join(open_now) or "none"


def outcome_required(task: Task, workflow: Workflow, hop: str | None, what: str) -> OutcomeRequired:
    """The teaching refusal for a gated task."""
    at = hop or current(workflow)
    return OutcomeRequired(
        f"{task.id} is in a DAG workflow ('{workflow.name}', current hop: '{at}'); {what}",
        f"the parameter 'outcome' says how a hop ends: {MEANINGS}; without it the hop is complete",
        Call("complete", {"task_id": task.id, "outcome": "complete", "summary": "…"}),
        hop=at,
        outcomes=list(OUTCOMES),
    )


def _explained(task: Task, workflow: Workflow, command: c.Complete, hop: HopState | None = None) -> AofError | None:
    """What is wrong with the call itself."""
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


def _cannot_reject(task: Task, workflow: Workflow, hop: HopState, command: c.Complete) -> AofError | None:
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


def _end(walk: Walk, hop: HopState, command: c.Complete) -> None:
    """The run's report, its end, and the hop's step."""
    agent, run = hop.agent or command.acting, hop.run_id or _next_run(walk)
    outcome = OUTCOMES[str(command.outcome)]
    reported = report_of(walk.records, walk.task, command, outcome, (agent, run))
    walk.add(reported.type, hop.id, run, **reported.payload)
    walk.add("task.attempt.completed", hop.id, run, agent=agent, outcome=outcome)
    follow(walk, hop.id, outcome, command.blockers, command.summary)


def _next_run(walk: Walk) -> str:
    return run_id(walk.task.id, walk.task.retry.attempts + 1, walk.records.run_tag)


def closes(walk: Walk, hop_id: str, outcome: str) -> bool:
    """Whether this outcome would finish the whole task; told only of tasks that declare what must be there then."""
    if outcome != "done" or not declared.declares(walk.task):
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
    said = "; ".join(blockers)
    walk.by = agent
    if outcome == "done":
        walk.drafts += withdrawn(walk.task, (agent, run or ""), hop_id)
    if outcome == "blocked":
        reason = said or "the run reported that it is blocked"
        walk.step(hop_id, "blocked", "blocked", run, agent=agent, blockers=list(blockers), reason=reason)
    elif outcome == "needs_review" and rule.can_reject and rule.depends_on:
        send_back(walk, hop_id, agent, blockers, summary)
    elif outcome == "done" and rule.auto_advance and not open_now:
        walk.step(hop_id, "completed", "done", run, agent=agent, outcome="complete")
    else:
        why = said or declared.listed(open_now) or "waits for an approval"
        walk.step(hop_id, "waiting_approval", "review", run, agent=agent, reason=why)


def send_back(walk: Walk, hop_id: str, agent: str, blockers: tuple[str, ...], summary: str | None) -> None:
    """Reject: the origin, or the hops directly before, begin again with all that comes after them."""
    hop, rule = walk.workflow.hop(hop_id), walk.workflow.template.by_id[hop_id]
    said = "; ".join(blockers)
    more: dict[str, Any] = {"blockers": list(blockers), "workLog": f"{agent} rejected at '{hop_id}': {said}"}
    count = hop.rejections + 1
    if count >= walk.workflow.template.rejection_limit:
        walk.step(
            hop_id, "failed", "failed", hop.run_id, agent=agent, rejections=count, reason=_often(count, said), **more
        )
        return
    back_to = rule.depends_on if rule.rejection_strategy == "predecessors" else walk.workflow.template.origins(hop_id)
    more |= {"backTo": list(back_to), "summary": summary, "rejections": count, "reason": said}
    walk.step(hop_id, "rejected", "rejected", hop.run_id, agent=agent, **more)
    for name in reset_by(walk.workflow, tuple(back_to)):
        if name == hop_id:
            continue
        again = walk.workflow.hop(name)
        if again.lease is not None:
            walk.end_run(again, status="cancelled", code="reset", message=f"'{hop_id}' rejected")
        if walk.workflow.hop(name).status != "waiting":
            walk.step(name, "reset", "waiting", reason=f"'{hop_id}' rejected: {said}")


def _often(count: int, said: str) -> str:
    return f"rejected {count} times, last: {said}"


def approve(records: Records, command: c.Approve, now: int) -> Verdict:
    """Accept a hop that waits for it."""
    task = records.task(command.task_id)
    if task.status == "done":
        return Decision()
    return _accepted(records, command, command.reason, now)


def _accepted(records: Records, command: c.Approve | c.Complete, text: str | None, now: int) -> Verdict:
    task, by = records.task(command.task_id), command.acting
    hop = _waiting(task, command.hop)
    if isinstance(hop, OutcomeRequired):
        return _ended_by_outcome(task, command, hop)
    if isinstance(hop, AofError):
        return hop
    walk = Walk(records, task, now)
    more: dict[str, Any] = {"workLog": f"{by}: {text}"} if text else {}
    if closes(walk, hop.id, "done"):
        open_now = declared.open_points(records, task, approved=True)
        if refusal := declared.not_reconciled(task, open_now):
            return refusal
        more |= declared.vouched(task)
    walk.step(hop.id, "approved", "done", hop.run_id, agent=by, reason=text, **more)
    return walk.finish("approved", agent=by)


def reject(records: Records, command: c.Reject, now: int) -> Verdict:
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
    by, said, count = command.acting, "; ".join(command.blockers), hop.rejections + 1
    more = {"blockers": list(command.blockers), "workLog": f"{by} rejected '{hop.id}': {said}"}
    if count >= walk.workflow.template.rejection_limit:
        walk.step(hop.id, "failed", "failed", agent=by, rejections=count, reason=_often(count, said), **more)
    else:
        walk.step(hop.id, "rejected", "rejected", agent=by, rejections=count, reason=said, **more)
        walk.step(hop.id, "opened", "ready", reason=said)
    return walk.finish(said, agent=by)


def _waiting(task: Task, wanted: str | None) -> HopState | AofError:
    workflow = workflow_of(task)
    named = hop_named(task, workflow, wanted) if wanted is not None else None
    if isinstance(named, AofError):
        return named
    waiting = [hop for hop in workflow.hops if hop.status == "review" and named in (None, hop)]
    held_up = graph.being_cancelled(task) or (None if task.status not in ("backlog", "blocked") else _on_hold(task))
    if held_up is not None:
        return held_up
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        names = ", ".join(hop.id for hop in waiting)
        return InvalidInput(
            f"several hops of {task.id} wait for an approval: {names}",
            "name one of them",
            Call("approve", {"task_id": task.id, "hop": waiting[0].id}),
        )
    at = wanted or current(workflow)
    return OutcomeRequired(
        f"no hop of {task.id} waits for an approval (workflow '{workflow.name}', current hop: '{at}'); "
        "its holder gives an outcome",
        "see where each hop stands",
        Call("workflow_show", {"name": task.id}),
        hop=at,
        outcomes=list(OUTCOMES),
    )


def _ended_by_outcome(task: Task, command: c.Approve | c.Complete | c.Reject, refusal: OutcomeRequired) -> AofError:
    """The refusal of a verdict on a hop that its holder ends: the call that says the same there, after a claim of it.

    A rejection is never answered with the call that accepts.
    """
    workflow, rejects = workflow_of(task), isinstance(command, c.Reject)
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
    said = {"outcome": "needs_review", "blockers": list(command.blockers)} if isinstance(command, c.Reject) else {}
    ends = Call("complete", {"task_id": task.id, **(said or {"outcome": "complete", "summary": "…"})})
    what = "send the work back as the holder of" if rejects else "accept the work as the holder of"
    if at.lease is not None:
        refusal.hint, refusal.call = f"{what} '{at.id}'", ends
        return refusal
    claim = Call("claim", {"task_id": task.id, "hop": at.id, "agent": command.acting})
    refusal.hint, refusal.call, refusal.otherwise = f"claim '{at.id}' first", claim, (f"then {what} '{at.id}'", ends)
    return refusal


def _on_hold(task: Task) -> NotReady:
    why = f": {task.blocked.reason}" if task.blocked else ""
    return NotReady(f"{task.id} is {task.status}{why}", "let it go on first", Call("unblock", {"task_id": task.id}))
