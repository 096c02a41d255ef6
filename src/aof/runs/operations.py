"""Operations of those who do the work of a task, and of those who judge it. Must not know any surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from aof.errors import (
    AgentInactive,
    AlreadyClaimed,
    AofError,
    AtCapacity,
    Call,
    Conflict,
    Invalid,
    InvalidInput,
    NoQuestion,
    NotFound,
    NothingReady,
    NotReady,
    Refused,
    Unauthenticated,
    UnreadableTask,
)
from aof.kernel import commands, unit_of_work
from aof.kernel import dispatcher as kernel_dispatcher
from aof.kernel import limits as kernel_limits
from aof.kernel import results as kernel_results
from aof.kernel.dispatcher import require_task
from aof.kernel.model import is_task_id
from aof.kernel.operation import Spelling, StandIn, method, operation
from aof.queries import ready_queue
from aof.runs import claimed_run
from aof.runs.authentication import kept_for
from aof.runs.leases import BEATS_PER_LEASE, WAITS
from aof.runs.model import PULL
from aof.store import port
from aof.workflows import hops
from aof.workflows.model import leases, workflow_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, get_args

    from aof.api.fabric import Fabric
    from aof.kernel.context import CallContext, Environment
    from aof.kernel.declarations import (
        BY_KEY,
        FILLED,
        IN_PYTHON,
        ActingAgent,
        Blockers,
        ExpectedRev,
        Hop,
        IdempotencyKey,
        LeaseTime,
        NeededBlockers,
        Object,
        OpenChildren,
        Reason,
        Run,
        TaskId,
        one_of,
        param,
    )
    from aof.kernel.kinds import Cause, Delivery, Outcome
    from aof.kernel.results import (
        Answered,
        AskedQuestion,
        Beaten,
        Completed,
        Failed,
        Moved,
        NextHop,
        Released,
        Reported,
    )
    from aof.org.model import OrgChart
    from aof.runs.claimed_run import ClaimedRun, Grant
    from aof.tasks.model import Question, Task

_FOREVER = 1e9  # seconds; the core has a stricter limit
_TO_TAKE = ("ready", "review")  # hops that somebody could go on with
# What agents call an outcome by mistake. Only the first word of each line is ever recorded.
_OUTCOMES = {
    "complete": ("approved", "approve", "done", "completed", "success", "ok"),
    "needs_review": ("rejected", "reject", "changes_requested"),
}
_CLAIM_AGAIN = 1.0  # seconds: the wait of a retry ends without any event
_LOOK_AGAIN = 30.0  # seconds: the longest that a wait for an answer goes without a sign of life
_LEFT = "the run has ended; the answer makes the task ready again, and a new claim goes on with it"


@operation(
    effect="write",
    tool="aof_task_claim",
    section="work",
    order=10,
    summary="take a task: one winner, under a lease",
    aliases=("start", "take"),
    example="aof claim --agent swe-backend",
    tier="core",
    acts="agent",
    tool_shows=("task_id", "wait", "hop", "keep", "steal", "agent", "actor"),
    tool_example=(("task_id", "001"),),
    python_only=("worker",),
    wire_types={"return": "aof.kernel.results.Claimed"},
)
def claim(
    fabric: Fabric,
    task_id: Annotated[str, param("task (default: the next)", Spelling(place="ID"))] | None = None,
    *,
    agent: Annotated[str, param("who takes it (default: you)")] | None = None,
    ttl: LeaseTime | None = None,
    wait: Annotated[float, param("seconds to wait for work", Spelling(metavar="S", seconds=True), ge=0, le=60)] = 0.0,
    key: IdempotencyKey | None = None,
    worker: str = "pull",
    hop: Hop | None = None,
    keep: Annotated[bool, param("hold it beyond this session; your calls renew it")] | None = None,
    steal: Annotated[bool, param("assign a reserved task to you first")] = False,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> ClaimedRun:
    """Take a task: one winner, under a lease that this session renews.

    Of a gated task a hop is taken; without a task, the next one that this agent can take. `wait` so many seconds for
    something to do, or for that task. With a `key`, the same call again answers with the same run for as long as that
    is held. With `keep`, the claim outlives the caller's session, and what the caller does with the task renews it;
    else the caller's connection decides. `steal` takes a task that is reserved for another agent, as far as the caller
    may assign it.
    """
    context = fabric.services
    if agent is None:
        agent = actor or context.principal.actor
    given: dict[str, Any] = {
        "actor": actor,
        "agent": agent,
        "ttl_ms": _ttl_ms(ttl),
        "worker": worker,
        "key": key,
        "keep": context.principal.keeps if keep is None else keep,
        "steal": steal,
        "expect_rev": expect_rev,
    }
    if task_id is not None:
        hosted = worker != PULL and is_task_id(task_id)  # our own scheduler says which one it means
        full = task_id if hosted else context.environment.lookup.resolve(task_id)
        own = context.principal.run_of(full) if context.principal.run_of is not None else None
        one = given | {"task_id": full, "hop": hop, "run": own}
        grant = _patiently(context, wait, lambda: _claimed(context, one) if hosted else _claim_named(context, one))
        return claimed_run.ClaimedRun.of(fabric, grant)
    if expect_rev is not None:
        raise InvalidInput(
            "a revision is expected, but no task is named",
            "name the task",
            Call("claim", {"task_id": "…", "agent": agent, "expect_rev": expect_rev}),
        )
    if problem := kernel_limits.name("agent", agent) or kernel_limits.line("key", key, kernel_limits.ITEM):
        raise problem
    context.authentication.refuse_claim_for(agent)
    if key is None:
        return claimed_run.ClaimedRun.of(fabric, _patiently(context, wait, lambda: _claim_next(context, given)))
    with context.environment.store.unit(port.Scope(names=frozenset({f"claim:{key}"}))):
        held = ready_queue.ReadyQueue(context.environment, context.principal).running_under(key)
        if held is not None:
            grant = _claimed(context, given | {"task_id": held.id})
        else:
            grant = _patiently(context, wait, lambda: _claim_next(context, given))
    return claimed_run.ClaimedRun.of(fabric, grant)


def _patiently(context: CallContext, wait: float, claim: Callable[[], Grant]) -> Grant:
    """Try again for so long, unless waiting could change nothing."""
    if not wait >= 0:
        raise InvalidInput(f"waiting for {wait} seconds is not possible", "give a number from 0 up, such as 60")
    store, clock = context.environment.store, context.environment.clock
    deadline = clock.monotonic() + wait
    while True:
        seen = store.head() if wait > 0 else 0
        try:
            return claim()
        except kernel_dispatcher.PASSING as refusal:
            left = deadline - clock.monotonic()
            if left <= 0 or not kernel_dispatcher.may_pass(refusal):
                raise
            store.wait(seen, min(left, _CLAIM_AGAIN))


def _claim_named(context: CallContext, given: dict[str, Any]) -> Grant:
    """Claim this task; where the lease of another agent on it has ended, that run is recovered first."""
    try:
        return _claimed(context, given)
    except AlreadyClaimed as refusal:
        held = refusal.details
        if "ended_at" not in held or held["holder"] == given["agent"]:
            raise
        _recover(context, given["task_id"])
    try:
        return _claimed(context, given)
    except NotReady as waits:
        waits.message = f"{waits.message}; the lease of {held['holder']} ended at {held['ended_at']}"
        raise


def _recover(context: CallContext, only: str | None = None) -> None:
    """Recover runs whose lease has ended, as the scheduler does, so that nothing has to run in the background."""
    from aof.scheduler.tick import Tick

    Tick(context.environment, context.dispatcher).recovered(only)


def _claim_next(context: CallContext, given: dict[str, Any]) -> Grant:
    """The first offer that can be claimed.

    Where there is none, what people moved to `ready/` is imported and what vanished workers hold is recovered first.
    """
    try:
        return _claim_offer(context, given)
    except NothingReady:
        moved = _import_moves(context.environment)
        if next(ready_queue.unrecovered_leases(context.environment), None) is not None:
            _recover(context)
        elif not moved:
            raise
    return _claim_offer(context, given)


def _import_moves(environment: Environment) -> bool:
    """Import what people moved to `ready/`, as far as it can be; whether there was anything."""
    files = environment.store.working_copy
    moved = files.moved_into("ready") if files is not None else ()
    for task_id in moved:
        with suppress(Refused, Invalid, Conflict, NotFound):  # it stays as it is, and `sync` tells
            unit_of_work.settle(environment.store, environment.clock, environment.policy_for_edits, task_id, odd=True)
    return bool(moved)


def _claim_offer(context: CallContext, given: dict[str, Any]) -> Grant:
    for candidate in ready_queue.ReadyQueue(context.environment, context.principal).offers(given["agent"]):
        try:
            return _claimed(context, given | {"task_id": candidate})
        except (AtCapacity, AgentInactive, Unauthenticated):
            raise  # no other task would fare better
        except (AlreadyClaimed, Refused, UnreadableTask):
            continue
    raise NothingReady(
        f"there is nothing that {given['agent']} can claim now",
        "see what each task waits for",
        Call("ready", {"explain": True, "agent": given["agent"]}),
    )


def _claimed(context: CallContext, given: dict[str, Any]) -> Grant:
    done = context.dispatcher.dispatch(context.dispatcher.command(commands.Claim, given))
    run = next((event.run_id for event in done.events if event.type == "task.attempt.started"), None)
    again = done.decision.replayed is not None and given["key"] is None  # a key gives the same answer again
    return claimed_run.Grant(require_task(done), run or done.decision.run, done.secret, again)


@method
def own_run(fabric: Fabric) -> ClaimedRun:
    """The run that this process was started for, as `$AOF_RUN_ID` says. Raises StaleLease when it is over."""
    context = fabric.services
    return claimed_run.ClaimedRun.of(fabric, claimed_run.own(context.environment.lookup.get, context.principal.run))


@operation(
    effect="write",
    tool="aof_task_heartbeat",
    stand_in=StandIn(operation="update", keeps=("task_id", "run")),
    section="work",
    order=20,
    aliases=("beat",),
    example="aof heartbeat 001 --run RUN-2026-02-21-001-1-5f0c93ab",
    acts="agent",
)
def heartbeat(
    context: CallContext,
    task_id: TaskId,
    *,
    run: Run | None = None,
    agent: ActingAgent | None = None,
    ttl: LeaseTime | None = None,
) -> Beaten:
    """Show that a run is alive."""
    done = context.dispatcher.on_task(commands.RecordHeartbeat, task_id, run=run, agent=agent, ttl_ms=_ttl_ms(ttl))
    beat = done.decision.heartbeat
    assert beat is not None
    return kernel_results.Beaten(task_id=beat.task_id, run_id=beat.run_id, expires_at=beat.expires_at)


@method
def renew_kept(context: CallContext, task_id: str) -> None:
    """Renew what the caller keeps of a task over its sessions, because it has just looked at the task."""
    with suppress(AofError):  # it has ended meanwhile, or cannot be read: a look at it is none the worse
        task = context.environment.lookup.get(task_id)
        for lease in leases(task):
            if kept_for(lease, context.principal.actor):
                heartbeat(context, task.id, run=lease.run_id)


@operation(
    effect="write",
    tool="aof_task_release",
    section="work",
    order=60,
    aliases=("unclaim",),
    example="aof release 001 --agent swe-backend",
    tier="worker",
    acts="agent",
    stand_in=StandIn(
        operation="update", keeps=("task_id", "run", "reason", "wait_for_children"), adds=(("status", "ready"),)
    ),
)
def release(
    context: CallContext,
    task_id: TaskId,
    reason: Reason | None = None,
    *,
    wait_for_children: Annotated[bool, param("let nobody claim it before the tasks below it end")] = False,
    run: Run | None = None,
    agent: ActingAgent | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
) -> Released:
    """Give a claimed task back unfinished; after delegating, until its children have ended."""
    given: dict[str, Any] = {
        "run": run,
        "agent": agent,
        "key": key,
        "expect_rev": expect_rev,
        "reason": reason,
        "wait_for_children": wait_for_children,
    }
    done = context.dispatcher.on_task(commands.Release, task_id, **given)
    task = require_task(done)
    told = next((event.payload[WAITS] for event in done.events if WAITS in event.payload), ())
    waits_for = tuple(told) if wait_for_children else None
    return kernel_results.Released(task_id=task.id, status=task.status, waits_for=waits_for)


@operation(
    effect="append",
    tool="aof_task_progress",
    section="work",
    order=30,
    summary="report how far a run is",
    example='aof progress 001 "core logic done" --percent 60 --agent swe-backend',
    tier="worker",
    acts="agent",
    tool_shows=("task_id", "text", "percent", "note", "run", "actor"),
    tool_example=(("text", "core logic done"), ("percent", 60)),
)
def progress(
    context: CallContext,
    task_id: TaskId,
    text: Annotated[str, param("what was achieved", Spelling(place="[TEXT]", also=("--text",)))] | None = None,
    *,
    percent: Annotated[float, param("from 0 to 100", ge=0, le=100)] | None = None,
    phase: Annotated[str, param("such as planning, working, verifying")] | None = None,
    note: Annotated[str, param("more detail", Spelling(metavar="T"))] | None = None,
    blockers: Blockers = (),
    facts: Annotated[Object, param("fact to record", Spelling(option="--fact", metavar=BY_KEY))] | None = None,
    run: Run | None = None,
    agent: ActingAgent | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
) -> Reported:
    """Report how far your run is; also a sign of life."""
    done = context.dispatcher.on_task(
        commands.ReportProgress,
        task_id,
        run=run,
        agent=agent,
        key=key,
        expect_rev=expect_rev,
        text=text,
        percent=percent,
        phase=phase,
        note=note,
        blockers=tuple(blockers),
        facts=facts or {},
    )
    task = require_task(done)
    return kernel_results.Reported(task_id=task.id, progress=task.progress)


@operation(
    effect="write",
    tool="aof_task_complete",
    section="work",
    order=40,
    summary="end a run with its outcome; in review: approve",
    aliases=("done", "close", "finish"),
    example='aof complete 001 "12 tests passing" --agent swe-backend',
    tier="core",
    acts="agent",
    tool_shows=(
        *("task_id", "summary", "outcome", "blockers", "caller_role"),
        *("allow_open_children", "withdraw_questions", "run", "actor"),
    ),
    tool_example=(("summary", "12 tests passing"),),
)
def complete(
    context: CallContext,
    task_id: TaskId,
    summary: Annotated[
        str, param("what was done, for the work log", Spelling(place="[TEXT]", also=("--text", "--summary")))
    ]
    | None = None,
    *,
    outcome: Annotated[Outcome, IN_PYTHON]
    | Annotated[
        str,
        param("default: complete", Spelling(note="(else needs_review or blocked)"), says=one_of(get_args(Outcome))),
    ]
    | None = None,
    blockers: Annotated[
        Sequence[str],
        param("what is in the way, with needs_review or blocked", Spelling(option="--blocker", metavar="T")),
    ] = (),
    caller_role: Annotated[str, param("your role in the workflow", Spelling(option="--role"))] | None = None,
    summary_ref: Annotated[str, param("file that holds the summary", Spelling(metavar="PATH"))] | None = None,
    deliverables: Annotated[
        Sequence[str], param("file that was produced", Spelling(option="--deliverable", metavar="PATH"))
    ] = (),
    allow_open_children: OpenChildren = False,
    withdraw_questions: Annotated[bool, param("though your question is open")] = False,
    tests: Annotated[
        dict[str, int],
        param("number of tests: total, passed or failed", Spelling(option="--test", metavar="K=N")),
    ]
    | None = None,
    notes: Annotated[str, param("notes for the next worker", Spelling(metavar="T", stdin=True))] | None = None,
    acceptance: Annotated[
        Sequence[str | Object],
        param("acceptance criterion that was met", Spelling(metavar="A", note="(text or a JSON object)")),
    ] = (),
    hop: Hop | None = None,
    run: Run | None = None,
    agent: ActingAgent | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Completed:
    """Finish a task or workflow hop. In review: approve.

    `outcome` may be said in other words, such as `done` or `rejected`.
    """
    done = context.dispatcher.on_task(
        commands.Complete,
        task_id,
        run=run,
        agent=agent,
        actor=actor,
        key=key,
        expect_rev=expect_rev,
        summary=summary,
        outcome=_meant(outcome),
        blockers=tuple(blockers),
        summary_ref=summary_ref,
        deliverables=tuple(deliverables),
        tests=tests,
        notes=notes,
        acceptance=tuple(acceptance),
        caller_role=caller_role,
        hop=hop,
        allow_open_children=allow_open_children,
        withdraw_questions=withdraw_questions,
    )
    task = require_task(done)
    reasons = (
        event.payload.get("reason") if event.type == "task.transitioned" else event.type for event in done.events
    )
    approved = not {"approved", "task.hop.approved"}.isdisjoint(reasons)
    if not task.gated:
        return kernel_results.Completed(task_id=task.id, status=task.status, approved=approved)
    following = _next_hops(task, context.environment.chart.readable())
    rejections = (event.payload for event in done.events if event.type == "task.hop.rejected")
    back = [name for payload in rejections for name in payload.get("backTo", ())]
    return kernel_results.Completed(
        task_id=task.id,
        status=task.status,
        next=following,
        approved=approved,
        sent_back=tuple(back) or None,
        note=None if back else _what_follows(task, following),
    )


@operation(
    effect="write",
    tool="aof_task_deliver",
    section="work",
    order=45,
    example="aof deliver 001 --to channel:releases",
    acts="agent",
)
def deliver(
    context: CallContext,
    task_id: TaskId,
    *,
    state: Annotated[Delivery, param("how far it is (default: delivered)")] = "delivered",
    target: Annotated[str, param("who receives it: a task, a channel, a peer", Spelling(option="--to"))] | None = None,
    reason: Reason | None = None,
    run: Run | None = None,
    agent: ActingAgent | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Record whether a task's output has reached its receiver."""
    return context.dispatcher.move(
        commands.RecordDelivery,
        task_id,
        run=run,
        agent=agent,
        actor=actor,
        key=key,
        expect_rev=expect_rev,
        state=state,
        target=target,
        reason=reason,
    )


@operation(
    effect="write",
    tool="aof_task_fail",
    section="work",
    order=50,
    summary="end a run as failed; it is retried while attempts are left",
    example='aof fail 001 "3 of 20 failed" --code tests_failed --agent swe-qa',
    acts="agent",
    tool_example=(("code", "tests_failed"), ("message", "3 of 20 failed")),
)
def fail(
    context: CallContext,
    task_id: TaskId,
    message: Annotated[
        str,
        param("what went wrong", Spelling(place="[TEXT]", also=("--reason", "--text", "--message", "--error"))),
    ] = "",
    *,
    code: Annotated[str, param("short name of what went wrong")] = "failed",
    cause: Annotated[Cause, param("how the run ended")] = "failed",
    retryable: Annotated[
        bool, param("whether to try again", Spelling(option="--no-retry", help="do not try again"))
    ] = True,
    run: Run | None = None,
    agent: ActingAgent | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
) -> Failed:
    """End your run as failed; it is retried while attempts are left."""
    done = context.dispatcher.on_task(
        commands.Fail,
        task_id,
        run=run,
        agent=agent,
        key=key,
        expect_rev=expect_rev,
        code=code,
        message=message,
        cause=cause,
        retryable=retryable,
    )
    task = require_task(done)
    not_before = task.retry.not_before if task.status == "ready" else None
    return kernel_results.Failed(task_id=task.id, status=task.status, not_before=not_before)


@operation(
    effect="write",
    tool="aof_task_approve",
    stand_in=StandIn(operation="complete", keeps=("task_id",)),
    section="review",
    order=10,
    example="aof approve 001",
    needs="lead",
)
def approve(
    context: CallContext,
    task_id: TaskId,
    reason: Reason | None = None,
    *,
    hop: Hop | None = None,
    allow_open_children: OpenChildren = False,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Accept what is in review."""
    return context.dispatcher.move(
        commands.Approve,
        task_id,
        actor=actor,
        key=key,
        expect_rev=expect_rev,
        reason=reason,
        hop=hop,
        allow_open_children=allow_open_children,
    )


@operation(
    effect="write",
    tool="aof_task_reject",
    stand_in=StandIn(operation="update", keeps=("task_id",), adds=(("status", "ready"), ("reason", "…"))),
    section="review",
    order=20,
    example='aof reject 001 --reason "no tests"',
    needs="lead",
)
def reject(
    context: CallContext,
    task_id: TaskId,
    blockers: NeededBlockers,
    *,
    hop: Hop | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Send what is in review back."""
    return context.dispatcher.move(
        commands.Reject, task_id, actor=actor, key=key, expect_rev=expect_rev, blockers=tuple(blockers), hop=hop
    )


def _meant(outcome: str | None) -> str | None:
    """The outcome that a caller means, in the one word that is recorded; any other word is left for the rules."""
    said = None if outcome is None else outcome.strip().lower().replace("-", "_").replace(" ", "_")
    return next((word for word, others in _OUTCOMES.items() if said in (word, *others)), outcome)


def _ttl_ms(ttl: float | None) -> int | None:
    if ttl is None:
        return None
    if not 0 < ttl < _FOREVER:
        raise InvalidInput(f"a lease of {ttl} seconds is not possible", "use between 0.001 seconds and 7 days")
    return int(ttl * 1000)


def _next_hops(task: Task, chart: OrgChart | None) -> tuple[NextHop, ...]:
    """The hops that can be taken now, or that wait for approval, each with the agents that may do it.

    Without a chart nobody is named: whoever says to have the role may.
    """
    workflow = workflow_of(task)
    return tuple(
        kernel_results.NextHop(
            hop=hop.id,
            status=hop.status,
            role=hop.role,
            agents=tuple(
                name
                for name in (chart.holders.get(hop.role, ()) if chart is not None else ())
                if chart is not None and chart.by_id[name].active and not hops.judges_own(workflow, hop.id, name)
            ),
        )
        for hop in workflow.hops
        if hop.status in _TO_TAKE
    )


def _what_follows(task: Task, following: Sequence[NextHop]) -> str | None:
    """What somebody who has done their part should know: who is next, and that the work may come back."""
    if not following:
        return None
    rules = workflow_of(task).template.by_id
    said = [
        f"{one.hop} waits for an approval" if one.status == "review" else f"{one.hop} is next, for the role {one.role}"
        for one in following
    ]
    judged = any(rules[one.hop].can_reject or one.status == "review" for one in following)
    return "; ".join([*said, "if the work is sent back, claim the task again"] if judged else said)


@operation(
    effect="append",
    section="work",
    order=35,
    summary="ask a person about the task that you run",
    example='aof ask 001 "Which region?" --choice eu --choice us --wait 10m',
    tier="worker",
    acts="agent",
    tool_shows=("task_id", "text", "choices", "question", "wait", "leave", "run", "actor"),
    tool_example=(("text", "Which region?"), ("choices", ("eu", "us"))),
    stand_in=StandIn(operation="update", keeps=("task_id", "run"), adds=(("status", "blocked"), ("reason", "…"))),
)
def ask(
    context: CallContext,
    task_id: TaskId,
    text: Annotated[str, param("what to ask", Spelling(place="[TEXT]", stdin=True, also=("--text",)), says=FILLED)]
    | None = None,
    *,
    choices: Annotated[Sequence[str], param("suggested answer", Spelling(option="--choice", metavar="T"))] = (),
    question: Annotated[
        str,
        param("instead of a text: question that was asked before, to wait for its answer", Spelling(metavar="Q")),
    ]
    | None = None,
    wait: Annotated[
        float, param("seconds to wait for the answer", Spelling(metavar="S", seconds=True), ge=0, le=86_400)
    ] = 0.0,
    leave: Annotated[bool, param("end the run; the answer makes the task ready again")] = False,
    run: Run | None = None,
    agent: ActingAgent | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
) -> AskedQuestion:
    """Ask a person about the task that you run, and wait for the answer.

    The lease is renewed meanwhile. With `question` instead of a text, ask after the answer to an earlier question.
    With `leave` the run ends; the answer makes the task ready, and the next run is told.
    """
    if (text is None) == (question is None):
        raise InvalidInput(
            "give either a text to ask, or the question whose answer you wait for",
            "ask something",
            Call("ask", {"task_id": task_id, "text": "…"}),
        )
    if not wait >= 0 or (wait and leave):
        raise InvalidInput(
            "'leave' ends the run, so it cannot wait" if leave else f"waiting for {wait} seconds is not possible",
            "give a number of seconds from 0 up, without 'leave'",
            Call("ask", {"task_id": task_id, "text": "…", "wait": 60}),
        )
    who = {"run": run, "agent": agent}
    if text is None:
        asked = _renewed(context, task_id, str(question), who)
    else:
        done = context.dispatcher.on_task(
            commands.Ask, task_id, **who, key=key, expect_rev=expect_rev, text=text, choices=tuple(choices), leave=leave
        )
        task = require_task(done)
        asked = _asked(task, _by_text(task, text))
    return _answered_in_time(context, asked, who, wait) if wait else asked


def _answered_in_time(
    context: CallContext, asked: AskedQuestion, who: dict[str, str | None], wait: float
) -> AskedQuestion:
    """Wait for the answer; each poll is a heartbeat, and raises an error once the run has ended."""
    store, clock = context.environment.store, context.environment.clock
    deadline = clock.monotonic() + wait
    beat = clock.monotonic() + beat_interval(context.environment.lookup.get(asked.task_id))
    while not asked.answered:
        seen = store.head()
        left = min(deadline, beat) - clock.monotonic()
        if left > 0 and store.wait(seen, left):
            task = context.environment.lookup.get(asked.task_id)
            asked = _asked(task, _by_id(task, asked.question))
            continue
        if clock.monotonic() >= deadline:
            break
        asked = _renewed(context, asked.task_id, asked.question, who)
        beat = clock.monotonic() + beat_interval(context.environment.lookup.get(asked.task_id))
    return asked


def _renewed(context: CallContext, task_id: str, question: str, who: dict[str, str | None]) -> AskedQuestion:
    """The question as it is now; polling is a heartbeat of the run that waits."""
    done = context.dispatcher.on_task(commands.RecordHeartbeat, task_id, **who)
    task = require_task(done)
    return _asked(task, _by_id(task, question))


@operation(effect="write", section="review", order=5, example='aof answer 001 "eu" --question Q1')
def answer(
    context: CallContext,
    task_id: TaskId,
    text: Annotated[str, param("answer", Spelling(place="TEXT", stdin=True, also=("--text",)))],
    *,
    question: Annotated[
        str, param("question to answer, such as Q1; needed where several are open", Spelling(metavar="Q"))
    ]
    | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Answered:
    """Answer an agent's question.

    Once; a task that it blocked is ready again.
    """
    done = context.dispatcher.on_task(
        commands.AnswerQuestion, task_id, actor=actor, key=key, expect_rev=expect_rev, text=text, question=question
    )
    task = require_task(done)
    named = next((event.payload for event in done.events if event.type == "task.question.answered"), None)
    known = _by_id(task, named["question"]) if named is not None else _last_answered(task, question)
    suggested = {one.strip().casefold() for one in known.choices}
    return kernel_results.Answered(
        task_id=task.id,
        status=task.status,
        question=known.id,
        asked_by=known.by,
        none_of=known.choices if suggested and text.strip().casefold() not in suggested else None,
    )


def beat_interval(task: Task) -> float:
    """Seconds between two signs of life."""
    shortest = min((lease.ttl_ms for lease in leases(task)), default=0) / 1000 / BEATS_PER_LEASE
    return min(shortest or _LOOK_AGAIN, _LOOK_AGAIN)


def _by_id(task: Task, question: str) -> Question:
    found = next((one for one in task.questions if one.id == question), None)
    if found is None:
        raise _unknown(task, question)
    return found


def _by_text(task: Task, text: str) -> Question:
    """The question that was just asked: the last one with the same text."""
    said = text.strip()
    found = next((one for one in reversed(task.questions) if one.text == said), None)
    if found is None:  # a request with a key that was made long ago
        raise _unknown(task, said)
    return found


def _last_answered(task: Task, question: str | None) -> Question:
    """The question of a request that is repeated."""
    if question is not None:
        return _by_id(task, question)
    found = next((one for one in reversed(task.questions) if one.answer is not None), None)
    if found is None:
        raise _unknown(task, "")
    return found


def _unknown(task: Task, question: str) -> AofError:
    return NoQuestion(
        f"{task.id} has no question {question[:40]!r}", "see what was asked", Call("show", {"task_id": task.id})
    )


def _asked(task: Task, question: Question) -> AskedQuestion:
    given = question.answer
    left = all(lease.run_id != question.run_id for lease in leases(task))
    open_now = (
        _LEFT if left else f"not answered yet: call again with question {question.id} and wait, or go on meanwhile"
    )
    return kernel_results.AskedQuestion(
        task_id=task.id,
        status=task.status,
        question=question.id,
        answered=given is not None,
        answer=kernel_results.GivenAnswer(text=given.text, by=given.by, at=given.at) if given is not None else None,
        note=open_now if given is None else None,
    )
