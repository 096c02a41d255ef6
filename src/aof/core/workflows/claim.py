"""Taking a hop: which one an agent may have, and how its run begins.

Each hop has its own lease, so that hops really run in parallel. Must not know what becomes of the run.
"""

from __future__ import annotations

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.org import OwnWork
from aof.core.errors.runs import AlreadyClaimed
from aof.core.errors.tasks import NotReady
from aof.core.errors.workflows import HopRoleMismatch
from aof.core.model import commands as c
from aof.core.model.events import DELEGATED
from aof.core.model.ids import run_id, run_place
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.run import PULL, Heartbeat
from aof.core.model.task import Task
from aof.core.model.times import iso, millis
from aof.core.model.workflow import HopState, Workflow, workflow_of
from aof.core.org import rights
from aof.core.runs.authentication import unprovable
from aof.core.runs.lease import already_claimed, assigned, claims_again, task_ttl, too_long
from aof.core.tasks import graph
from aof.core.tasks.authorship import folded, is_own, of_hops, part_in
from aof.core.validation import limits
from aof.core.validation.findings import suggestion
from aof.core.validation.task_fields import bad_ttl
from aof.core.workflows.transaction import Walk


def claim(records: Records, command: c.Claim, now: int) -> Verdict:
    """Take one hop: the one that is named, else the first that this agent can take."""
    task = records.task(command.task_id)
    named = limits.line("key", command.key, limits.ITEM) or limits.names(worker=command.worker)
    if problem := named or unprovable(command):
        return problem
    held = [hop for hop in workflow_of(task).hops if hop.lease is not None and claims_again(hop.lease, command)]
    again = next((hop for hop in held if hop.id == command.hop or _has_key(hop, command)), None)
    if again is not None:
        return Decision(replayed=task.id, agent=command.acting, run=again.run_id)
    refusal = graph.hop_readiness(records, task, now)
    if refusal is not None:
        return refusal
    hop = chosen(records, task, command, now)
    if isinstance(hop, AofError):
        mine = held[0].run_id if held and command.hop is None else None
        return Decision(replayed=task.id, agent=command.acting, run=mine) if mine else hop
    walk = Walk(records, task, now)
    kept_by = command.actor if command.keep else None
    own = records.policy.self_review and own_work(records, task, hop, command) is not None
    more = {"key": command.key, "secretDigest": command.secret_digest, "keptBy": kept_by, "selfReview": own or None}
    refusal = start(walk, hop, command.acting, ttl_ms=command.ttl_ms, worker=command.worker, **more)
    if refusal is not None:
        return refusal
    run = run_id(task.id, task.retry.attempts + 1, records.run_tag)
    return walk.finish("claimed", agent=command.acting, heartbeat=_first_beat(walk, hop.id, run))


def _has_key(hop: HopState, command: c.Claim) -> bool:
    return command.key is not None and hop.lease is not None and hop.lease.key == command.key


def chosen(records: Records, task: Task, command: c.Claim | c.Complete, now: int) -> HopState | AofError:
    """The hop that the agent takes, or why there is none."""
    workflow, wanted = workflow_of(task), command.hop
    if wanted is not None:
        named = hop_named(task, workflow, wanted)
        return named if isinstance(named, AofError) else _not_to_take(records, task, named, command, now) or named
    refusals: list[AofError] = []
    for hop in workflow.hops:
        refusal = _not_to_take(records, task, hop, command, now)
        if refusal is None:
            return hop
        refusals.append(refusal)
    by_weight = sorted(refusals, key=lambda refusal: _WEIGHTS.get(type(refusal), 2))
    return by_weight[0]


_WEIGHTS: dict[type[AofError], int] = {HopRoleMismatch: 0, OwnWork: 0, AlreadyClaimed: 1}


def hop_named(task: Task, workflow: Workflow, wanted: str) -> HopState | InvalidInput:
    """The hop of that name."""
    known = {hop.id: hop for hop in workflow.hops}
    if wanted in known:
        return known[wanted]
    return InvalidInput(
        f"the workflow '{workflow.name}' of {task.id} has no hop '{wanted[:80]}'",
        suggestion(wanted[:80], known, f"use one of: {', '.join(known)}"),
        Call("workflow_show", {"name": task.id}),
    )


def _not_to_take(
    records: Records, task: Task, hop: HopState, command: c.Claim | c.Complete, now: int
) -> AofError | None:
    agent = command.acting
    if hop.lease is not None:
        what, place = f"hop '{hop.id}' of {task.id}", run_place(task.id, hop.id)
        return already_claimed(records, command, what, place, hop.lease, now)
    if hop.status != "ready":
        call = Call("approve", {"task_id": task.id, "hop": hop.id}) if hop.status == "review" else None
        call = Call("unblock", {"task_id": task.id}) if hop.status == "blocked" else call
        return NotReady(
            f"hop '{hop.id}' of {task.id} is {hop.status}{f': {hop.reason}' if hop.reason else ''}",
            "see where each hop stands" if call is None else "let it go on first",
            call or Call("workflow_show", {"name": task.id}),
            status=hop.status,
            hop=hop.id,
        )
    if refusal := wrong_role(records, task, hop, agent):
        return refusal
    if not records.policy.self_review and (own := own_work(records, task, hop, command)):
        return own
    if hop.not_before is not None and millis(hop.not_before) > now:
        return NotReady(
            f"hop '{hop.id}' of {task.id} is retried at {hop.not_before}, after failure {hop.failures}",
            "wait until then, or end the wait",
            Call("retry", {"task_id": task.id, "reason": "…"}),
            not_before=hop.not_before,
        )
    return None


def wrong_role(
    records: Records, task: Task, hop: HopState, agent: str, said: str | None = None
) -> HopRoleMismatch | None:
    """The refusal of an agent without the hop's role in the org chart; maintainers outside the chart need none."""
    chart = records.policy.org
    if chart is None or rights.is_person(chart, agent, records.policy.maintainers):
        return None
    has = rights.roles_of(chart, agent)
    if said is not None and said != hop.role:
        given = f"the role given is '{said[:80]}'"
    elif hop.role not in has:
        given = f"{agent} has {', '.join(sorted(has)) or 'no role'}"
    else:
        return None
    who = ", ".join(chart.holders.get(hop.role, ())[:10]) or "nobody in the org chart"
    return HopRoleMismatch(
        f"hop '{hop.id}' of {task.id} needs the role '{hop.role}', and {given}",
        f"leave it to {who}",
        Call("workflow_show", {"name": task.id}),
        hop=hop.id,
        role=hop.role,
    )


def own_work(records: Records, task: Task, hop: HopState, command: c.OnTask) -> OwnWork | None:
    """The refusal of a caller that would judge its own work of an earlier hop."""
    agent = command.acting
    judged = _judged(workflow_of(task), hop.id)
    if not is_own(records.policy, task, command, of_hops(judged)):
        return None
    done = next(one for one in judged if is_own(records.policy, task, command, of_hops((one,))))
    part, way_out = part_in(task, command, of_hops((done,)), f"hop '{done.id}' of {task.id}")
    return OwnWork(
        f"{part} and cannot judge it in hop '{hop.id}'",
        f"somebody else takes it: another agent, or a maintainer under a name that has not worked on it{way_out}; "
        "see what you can take",
        Call("ready", {"agent": agent}),
        agent=agent,
        hop=hop.id,
    )


def authors_of(workflow: Workflow, hop: str) -> tuple[str, ...]:
    """Whose work the hop judges, as far as somebody has done it."""
    return tuple(dict.fromkeys(other.agent for other in _judged(workflow, hop) if other.agent is not None))


def judges_own(workflow: Workflow, hop: str, agent: str) -> bool:
    """Whether the agent would judge its own work of an earlier hop by taking this one."""
    return not folded((agent,)).isdisjoint(of_hops(_judged(workflow, hop)))


def _judged(workflow: Workflow, hop: str) -> list[HopState]:
    """The hops whose work a review hop judges: all before it."""
    before = workflow.template.before(hop) if workflow.template.by_id[hop].can_reject else ()
    return [other for other in workflow.hops if other.id in before]


def start(
    walk: Walk,
    hop: HopState,
    agent: str,
    *,
    ttl_ms: int | None = None,
    worker: str = PULL,
    **more: str | bool | None,
) -> AofError | None:
    """A new run of the hop under a new lease; `more` is what else its event says, such as its key."""
    task = walk.task
    kept = more.get("keptBy") is not None
    ttl = task_ttl(walk.records, task, agent, kept=kept) if ttl_ms is None else ttl_ms
    named = limits.names(agent=agent, worker=worker)
    if problem := named or bad_ttl("ttl_ms", ttl) or too_long(walk.records, agent, ttl):
        return problem
    attempt = task.retry.attempts + 1
    run = run_id(task.id, attempt, walk.records.run_tag)
    if worker != PULL:
        walk.add(DELEGATED, hop.id, run, **assigned(agent, worker))
    walk.add(
        "task.attempt.started",
        hop.id,
        run,
        agent=agent,
        attempt=attempt,
        epoch=hop.epoch + 1,
        expiresAt=iso(walk.now + ttl),
        ttlMs=ttl,
        worker=worker,
        cause=task.retry.cause or ("first" if hop.epoch == 0 else "retry"),
        **more,
    )
    return None


def _first_beat(walk: Walk, hop: str, run: str) -> Heartbeat:
    lease = walk.workflow.hop(hop).lease
    assert lease is not None
    return Heartbeat(
        task_id=walk.task.id,
        agent_id=lease.agent,
        run_id=run,
        last_heartbeat=lease.acquired_at,
        beat_count=0,
        expires_at=lease.expires_at,
        hop=hop,
    )
