"""Hops: the steps that follow from their state, which hop an agent may take, how its run begins, and who holds it."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof.errors import (
    AlreadyClaimed,
    AofError,
    Call,
    HopRoleMismatch,
    InvalidInput,
    NotLeaseHolder,
    NotReady,
    OwnWork,
    RunRequired,
    StaleLease,
)
from aof.kernel import commands, limits
from aof.kernel.commands import Decision, Records, Verdict
from aof.kernel.events import DELEGATED, Draft
from aof.kernel.findings import suggestion
from aof.kernel.model import OURSELVES, TRANSITIONS, iso, millis, run_id, run_place
from aof.org import rights
from aof.runs import leases
from aof.runs.authentication import folded_names, is_own, kept_for, of_hops, part_in, same_call, unprovable, unproven
from aof.runs.leases import (
    WAITS,
    already_claimed,
    assigned,
    bad_beat,
    beat_after,
    by_another,
    claims_again,
    how_released,
    task_ttl,
    too_long,
)
from aof.runs.model import PULL, Heartbeat
from aof.tasks import graph
from aof.tasks import rules as tasks_rules
from aof.tasks.fields import bad_ttl
from aof.tasks.model import Task
from aof.tasks.rules import close_hops, failure, to_blocked, transition
from aof.workflows.evolve import STEPS, apply_event
from aof.workflows.model import ENDED, LOST, UNOPENED, Hop, HopState, Workflow, workflow_of
from aof.workflows.templates import condition_holds

State = Literal["running", "ready", "review", "blocked", "done", "failed"]
# The first of them that a hop is in counts.
_FIRST: Final[tuple[State, ...]] = ("running", "ready", "review", "blocked")
_STATUS_OF: Final = {
    "running": "in-progress",
    "ready": "ready",
    "review": "review",
    "blocked": "blocked",
    "done": "done",
    "failed": "deadletter",
}
_LAST: Final = ("blocked", "backlog", "done", "cancelled", "deadletter")
# Where an agent can take no hop, it gets the refusal with the least weight.
_WEIGHTS: Final[dict[type[AofError], int]] = {HopRoleMismatch: 0, OwnWork: 0, AlreadyClaimed: 1}


class HopStep(msgspec.Struct, frozen=True):
    """One hop takes one step, and why."""

    hop: str
    kind: Literal["opened", "skipped", "failed"]
    reason: str
    superseded: bool = False


def next_step(workflow: Workflow, task: Task) -> HopStep | None:
    """What follows from the state of the hops; None when nothing does."""
    for hop in workflow.template.hops:
        state = workflow.hop(hop.id)
        if state.status in UNOPENED and (step := _joined(workflow, task, hop)):
            return step
    return next((step for state in workflow.hops if (step := _superseded(workflow, state))), None)


def _joined(workflow: Workflow, task: Task, hop: Hop) -> HopStep | None:
    """Whether the hops before this one let it open. A skipped hop holds up no other."""
    before = [workflow.hop(name) for name in hop.depends_on]
    lost = [state for state in before if state.status in LOST]
    over = all(state.status in ENDED for state in before)
    if hop.join_type == "any":
        opens = not before or any(state.status == "done" for state in before) or (over and len(lost) < len(before))
        fails = bool(before) and over and not opens
    else:
        opens = all(state.status in ("done", "skipped") for state in before)
        fails = bool(lost)
    if fails:
        return HopStep(hop.id, "failed", f"{lost[0].id} {lost[0].status.replace('_', ' ')}")
    if not opens:
        return None
    if hop.condition is not None and not condition_holds(hop.condition, condition_facts(workflow, task)):
        return HopStep(hop.id, "skipped", "its condition does not hold")
    return HopStep(hop.id, "opened", "what it waits for is over" if before else "it is the first")


def _superseded(workflow: Workflow, state: HopState) -> HopStep | None:
    """An idle hop is not needed once everything after it has gone on without it."""
    after = workflow.template.dependents[state.id]
    if state.status in ENDED or state.lease is not None or not after:
        return None
    if any(workflow.hop(name).status in UNOPENED for name in after):
        return None
    return HopStep(state.id, "skipped", "nothing waits for it any more", superseded=True)


def state_of(workflow: Workflow) -> State:
    """The state of the whole workflow, by its hops."""
    statuses = set(workflow.statuses().values())
    for state in _FIRST:
        if state in statuses:
            return state
    ends = (workflow.hop(hop.id) for hop in workflow.template.hops if not workflow.template.dependents[hop.id])
    return "failed" if any(end.status in LOST for end in ends) else "done"


def status_of(state: State) -> str:
    """The task status that belongs to the state of its hops."""
    return _STATUS_OF[state]


def condition_facts(workflow: Workflow, task: Task) -> dict[str, Any]:
    """The facts that conditions of a workflow are compared with."""
    fields: dict[str, Any] = msgspec.to_builtins(task)
    return fields | {"hops": {hop.id: msgspec.to_builtins(hop) for hop in workflow.hops}}


def reset_by(workflow: Workflow, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The hops that begin again with the targets: all that come after, and what was skipped for their sake."""
    again = set(targets) | workflow.template.after(targets)
    while True:
        idle = {
            hop.id
            for hop in workflow.hops
            if hop.superseded and hop.id not in again and again & set(workflow.template.dependents[hop.id])
        }
        if not idle:
            return tuple(hop.id for hop in workflow.hops if hop.id in again)
        again |= idle | workflow.template.after(idle)


class Walk:
    """Builds one commit on a workflow: the workflow after the steps so far, and the events of these steps."""

    def __init__(self, records: Records, task: Task, now: int, workflow: Workflow | None = None) -> None:
        self.records = records
        self.task = task
        self.now = now
        self._at = iso(now)
        self.workflow = workflow or workflow_of(task)
        self.drafts: list[Draft] = []
        self.status: str = task.status
        self.by = OURSELVES

    def add(self, kind: str, hop: str, run: str | None = None, /, **payload: Any) -> None:
        """Add an event about a hop."""
        whole = {"hop": hop} | {name: value for name, value in payload.items() if value is not None}
        self.drafts.append(Draft(type=kind, task_id=self.task.id, run_id=run, payload=whole))
        self.workflow = apply_event(self.workflow, kind, whole, run, self._at)

    def step(self, hop: str, what: str, status: str, run: str | None = None, /, **payload: Any) -> None:
        """Bring a hop to a status."""
        self.add(f"{STEPS}{what}", hop, run, status=status, **payload)

    def end_run(self, hop: HopState, *, status: str, code: str, **more: Any) -> None:
        """Close a hop's run without a result."""
        for draft in close_hops((hop,), self.task, self.now, status=status, code=code, **more):
            payload = {name: value for name, value in draft.payload.items() if name != "hop"}
            self.add(draft.type, hop.id, draft.run_id, **payload)

    def settle(self) -> None:
        """Take all steps that follow by themselves."""
        while (step := next_step(self.workflow, self.task)) is not None:
            status = "ready" if step.kind == "opened" else step.kind
            self.step(step.hop, step.kind, status, reason=step.reason, superseded=step.superseded or None)

    def finish(self, reason: str, *, agent: str | None = None, heartbeat: Heartbeat | None = None) -> Decision:
        """Take all steps that follow by themselves, and bring the task to the status that its hops come to."""
        self.settle()
        state = state_of(self.workflow)
        if state in ("done", "failed"):
            closed = Draft(type="task.workflow.closed", task_id=self.task.id, payload={"state": state})
            self.drafts.append(closed)
        target = status_of(state)
        if target != self.status:
            for following in status_path(self.status, target):  # over legal edges only; each is an event
                self._move(following, reason, last=following == target)
        return Decision(drafts=tuple(self.drafts), agent=agent, heartbeat=heartbeat)

    def _move(self, target: str, reason: str, *, last: bool) -> None:
        task, now, origin = self.task, self.now, self.status
        self.status = target
        if target == "blocked":
            held = [hop for hop in self.workflow.hops if hop.status == "blocked"]
            why = "; ".join(f"{hop.id}: {hop.reason}" for hop in held)
            by = held[0].agent or self.by
            self.drafts.append(to_blocked(task, now, kind="blocked", reason=why, by=by, origin=origin))
        elif target == "deadletter":
            error = self._error()
            self.drafts.append(transition(task, target, origin=origin, reason=error["code"], error=error))
            self.drafts += tasks_rules.cascade(self.records, (task.id,), target, now)
        elif target == "ready" and last:
            self.drafts.append(transition(task, target, origin=origin, reason=reason))
            if (dead := tasks_rules.dead_dependency(self.records, task.depends_on)) is not None:
                self.status = "blocked"
                self.drafts.append(tasks_rules.held_by(task, dead, now, origin=target))
        else:
            self.drafts.append(transition(task, target, origin=origin, reason=reason))

    def _error(self) -> dict[str, str]:
        """The first hop that failed by itself is the cause of all the others."""
        lost = sorted((hop for hop in self.workflow.hops if hop.status in LOST), key=lambda hop: hop.ended_at or "")
        edges = self.workflow.template.by_id
        failed = {hop.id for hop in lost}
        own = [hop for hop in lost if failed.isdisjoint(edges[hop.id].depends_on)]
        first = (own or lost)[0]
        cause = "timed_out" if first.status == "timed_out" else "lost" if first.outcome == "lost" else "failed"
        error = failure(self.task, self.now, "hop_failed", f"hop '{first.id}': {first.reason}", cause)
        return error | ({"runId": first.run_id} if first.run_id else {})


def status_path(origin: str, target: str) -> tuple[str, ...]:
    """The shortest way over edges of the status table; none leads out of what is done or cancelled but a retry's."""
    trails: list[tuple[str, ...]] = [(origin,)]
    for trail in trails:
        edges: tuple[str, ...] = TRANSITIONS[trail[-1]] or ("ready",)
        for following in sorted(edges, key=_LAST.__contains__):
            if following == target:
                return (*trail[1:], target)
            if following not in trail and following not in _LAST:
                trails.append((*trail, following))
    raise ValueError(f"no way leads from {origin} to {target}")  # the table has one for every pair that hops ask for


def claim_hop(records: Records, command: commands.Claim, now: int) -> Verdict:
    """Take one hop: the one that is named, else the first that this agent can take."""
    task = records.task(command.task_id)
    named = limits.line("key", command.key, limits.ITEM) or limits.names(worker=command.worker)
    if problem := named or unprovable(command):
        return problem
    held = [hop for hop in workflow_of(task).hops if hop.lease is not None and claims_again(hop.lease, command)]
    keyed = [hop for hop in held if command.key is not None and hop.lease is not None and hop.lease.key == command.key]
    again = next((hop for hop in held if hop.id == command.hop or hop in keyed), None)
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
    own = records.policy.self_review and own_work(records, task, hop, command) is not None
    more: dict[str, str | bool | None] = {"key": command.key, "secretDigest": command.secret_digest}
    more |= {"keptBy": command.actor if command.keep else None, "selfReview": own or None}
    refusal = start_hop(walk, hop, command.acting, ttl_ms=command.ttl_ms, worker=command.worker, **more)
    if refusal is not None:
        return refusal
    lease = walk.workflow.hop(hop.id).lease
    assert lease is not None
    beat = Heartbeat(
        task_id=task.id,
        agent_id=lease.agent,
        run_id=lease.run_id,
        last_heartbeat=lease.acquired_at,
        beat_count=0,
        expires_at=lease.expires_at,
        hop=hop.id,
    )
    return walk.finish("claimed", agent=command.acting, heartbeat=beat)


def chosen(records: Records, task: Task, command: commands.Claim | commands.Complete, now: int) -> HopState | AofError:
    """The hop that the agent takes, or why there is none."""
    workflow, wanted = workflow_of(task), command.hop
    if wanted is not None:
        named = hop_named(task, workflow, wanted)
        return named if isinstance(named, AofError) else _take_refusal(records, task, named, command, now) or named
    refusals: list[AofError] = []
    for hop in workflow.hops:
        refusal = _take_refusal(records, task, hop, command, now)
        if refusal is None:
            return hop
        refusals.append(refusal)
    return min(refusals, key=lambda refusal: _WEIGHTS.get(type(refusal), 2))


def hop_named(task: Task, workflow: Workflow, wanted: str) -> HopState | InvalidInput:
    """The hop of that name; else the refusal that names those that there are."""
    known = {hop.id: hop for hop in workflow.hops}
    if wanted in known:
        return known[wanted]
    return InvalidInput(
        f"the workflow '{workflow.name}' of {task.id} has no hop '{wanted[:80]}'",
        suggestion(wanted[:80], known, f"use one of: {', '.join(known)}"),
        Call("workflow_show", {"name": task.id}),
    )


def _take_refusal(
    records: Records, task: Task, hop: HopState, command: commands.Claim | commands.Complete, now: int
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
    records: Records, task: Task, hop: HopState, agent: str, given: str | None = None
) -> HopRoleMismatch | None:
    """The refusal of an agent without the hop's role in the org chart; maintainers outside the chart need none."""
    chart = records.policy.org
    if chart is None or rights.is_person(chart, agent, records.policy.maintainers):
        return None
    has = rights.roles_of(chart, agent)
    if given is not None and given != hop.role:
        why = f"the role given is '{given[:80]}'"
    elif hop.role not in has:
        why = f"{agent} has {', '.join(sorted(has)) or 'no role'}"
    else:
        return None
    who = ", ".join(chart.holders.get(hop.role, ())[:10]) or "nobody in the org chart"
    return HopRoleMismatch(
        f"hop '{hop.id}' of {task.id} needs the role '{hop.role}', and {why}",
        f"leave it to {who}",
        Call("workflow_show", {"name": task.id}),
        hop=hop.id,
        role=hop.role,
    )


def own_work(records: Records, task: Task, hop: HopState, command: commands.OnTask) -> OwnWork | None:
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
    return not folded_names((agent,)).isdisjoint(of_hops(_judged(workflow, hop)))


def _judged(workflow: Workflow, hop: str) -> list[HopState]:
    """The hops whose work a review hop judges: all before it."""
    before = workflow.template.before(hop) if workflow.template.by_id[hop].can_reject else ()
    return [other for other in workflow.hops if other.id in before]


def start_hop(
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


def held_hop(task: Task, workflow: Workflow, command: commands.OnTask) -> HopState | AofError:
    """The hop that a worker's write counts for, or why the caller may not write."""
    running = workflow.running()
    if command.run is not None:
        own = [hop for hop in running if hop.lease is not None and hop.lease.run_id == command.run]
        return _if_proven(task, own[0], command) if own and task.cancel is None else stale_hop(task, command.run)
    mine = [hop for hop in running if hop.lease is not None and hop.lease.agent == command.acting]
    kept = [hop for hop in running if hop.lease is not None and kept_for(hop.lease, command.actor)]
    if len(kept) == 1 and command.agent in (None, kept[0].agent):
        return _if_proven(task, kept[0], command) if task.cancel is None else stale_hop(task, str(kept[0].run_id))
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
    return _if_proven(task, mine[0], command) if task.cancel is None else stale_hop(task, str(mine[0].run_id))


def _if_proven(task: Task, hop: HopState, command: commands.OnTask) -> HopState | AofError:
    """The hop, where the caller has proven what its lease asks for."""
    assert hop.lease is not None
    return unproven(task, hop.lease, command) or hop


def stale_hop(task: Task, run: str) -> StaleLease:
    """The refusal for a run that holds no hop any more."""
    why = "it is being cancelled" if task.cancel is not None else "its hop has ended or was taken again"
    return StaleLease(
        f"run {run[:80]} no longer holds a hop of {task.id}: {why}",
        "stop this work; what it did later is not recorded",
        Call("workflow_show", {"name": task.id}),
        run_id=run[:80],
    )


def heartbeat(records: Records, command: commands.RecordHeartbeat, now: int) -> Verdict:
    """A sign of life of one hop's run."""
    task = records.task(command.task_id)
    hop = held_hop(task, workflow_of(task), command)
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


def report_progress(records: Records, command: commands.ReportProgress, now: int) -> Verdict:
    """Progress of one hop's run; it is a sign of life too."""
    task = records.task(command.task_id)
    hop = held_hop(task, workflow_of(task), command)
    if isinstance(hop, AofError):
        return hop
    draft = leases.progress_of(task, command, hop.agent or command.acting, hop.run_id)
    if isinstance(draft, AofError):
        return draft
    draft.payload["hop"] = hop.id
    return Decision(drafts=(draft,), heartbeat=next_beat(records, task, hop, now), agent=hop.agent)


def release(records: Records, command: commands.Release, now: int) -> Verdict:
    """Give a hop back; its run ends without a result, and that is not a failure."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    hop = held_hop(task, workflow, command)
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
