"""Operations of those who do the work of a task, and of those who judge it. Must not know any surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

from aof.errors import (
    AgentInactive,
    AlreadyClaimed,
    AofError,
    AtCapacity,
    Call,
    InvalidInput,
    NothingReady,
    NotReady,
    Refused,
    Unauthenticated,
    UnreadableTask,
)
from aof.kernel import commands
from aof.kernel import dispatcher as kernel_dispatcher
from aof.kernel import limits as kernel_limits
from aof.kernel import results as kernel_results
from aof.kernel.dispatcher import require_task
from aof.kernel.model import is_task_id
from aof.queries import ready_queue
from aof.runs import claimed_run
from aof.runs.authentication import kept_for
from aof.runs.leases import WAITS
from aof.runs.model import PULL
from aof.store import port
from aof.workflows import hops
from aof.workflows.model import leases, workflow_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.kernel.context import Environment, Principal
    from aof.kernel.dispatcher import Dispatcher
    from aof.kernel.identity import Authentication
    from aof.kernel.kinds import Cause, Delivery, Outcome
    from aof.kernel.results import Beaten, Completed, Moved, NextHop, Released, Reported
    from aof.org.model import OrgChart
    from aof.runs.claimed_run import Grant
    from aof.tasks.model import Task

_FOREVER = 1e9  # seconds; the core has a stricter limit
_TO_TAKE = ("ready", "review")  # hops that somebody could go on with
# What agents call an outcome by mistake. Only the first word of each line is ever recorded.
_OUTCOMES = {
    "complete": ("approved", "approve", "done", "completed", "success", "ok"),
    "needs_review": ("rejected", "reject", "changes_requested"),
}
_LOOK_AGAIN = 1.0  # seconds: the wait of a retry ends without any event


class RunService:
    """Claims, signs of life, reports, ends of runs, and what a reviewer makes of them."""

    def __init__(
        self,
        environment: Environment,
        principal: Principal,
        authentication: Authentication,
        dispatcher: Dispatcher,
    ) -> None:
        self._environment = environment
        self._principal = principal
        self._authentication = authentication
        self._dispatcher = dispatcher

    @cached_property
    def _queue(self) -> ready_queue.ReadyQueue:
        return ready_queue.ReadyQueue(self._environment, self._principal)

    def claim(
        self,
        task_id: str | None = None,
        *,
        agent: str,
        ttl: float | None = None,
        wait: float = 0.0,
        key: str | None = None,
        worker: str = "pull",
        hop: str | None = None,
        keep: bool | None = None,
        steal: bool = False,
        actor: str | None = None,
    ) -> Grant:
        """Claim a task (of a gated one a hop), or the next one that this agent can take. Exactly one claimant wins.

        `wait` so many seconds for something to do, or for that task. With a `key`, the same call again answers with
        the same run for as long as that is held. With `keep`, the claim outlives the caller's session, and what the
        caller does with the task renews it; else the caller's connection decides. `steal` takes a task that is reserved
        for another agent, as far as the caller may assign it.
        """
        given: dict[str, Any] = {
            "actor": actor,
            "agent": agent,
            "ttl_ms": _ttl_ms(ttl),
            "worker": worker,
            "key": key,
            "keep": self._principal.keeps if keep is None else keep,
            "steal": steal,
        }
        if task_id is not None:
            hosted = worker != PULL and is_task_id(task_id)  # our own scheduler says which one it means
            full = task_id if hosted else self._environment.lookup.resolve(task_id)
            own = self._principal.run_of(full) if self._principal.run_of is not None else None
            one = given | {"task_id": full, "hop": hop, "run": own}
            return self._patiently(lambda: self._claimed(one) if hosted else self._claim_named(one), wait)
        if self._principal.expect_rev is not None:
            raise InvalidInput(
                "a revision is expected, but no task is named",
                "name the task",
                Call("claim", {"task_id": "…", "agent": agent, "expect_rev": self._principal.expect_rev}),
            )
        if problem := kernel_limits.name("agent", agent) or kernel_limits.line("key", key, kernel_limits.ITEM):
            raise problem
        self._authentication.refuse_claim_for(agent)
        if key is None:
            return self._patiently(lambda: self._claim_next(given), wait)
        with self._environment.store.unit(port.Scope(names=frozenset({f"claim:{key}"}))):
            held = self._queue.running_under(key)
            if held is not None:
                return self._claimed(given | {"task_id": held.id})
            return self._patiently(lambda: self._claim_next(given), wait)

    def _patiently(self, claim: Callable[[], Grant], wait: float) -> Grant:
        """Try again for so long, unless waiting could change nothing."""
        if not wait >= 0:
            raise InvalidInput(f"waiting for {wait} seconds is not possible", "give a number from 0 up, such as 60")
        store, clock = self._environment.store, self._environment.clock
        deadline = clock.monotonic() + wait
        while True:
            seen = store.head() if wait > 0 else 0
            try:
                return claim()
            except kernel_dispatcher.PASSING as refusal:
                left = deadline - clock.monotonic()
                if left <= 0 or not kernel_dispatcher.may_pass(refusal):
                    raise
                store.wait(seen, min(left, _LOOK_AGAIN))

    def _claim_named(self, given: dict[str, Any]) -> Grant:
        """Claim this task; where the lease of another agent on it has ended, that run is recovered first."""
        try:
            return self._claimed(given)
        except AlreadyClaimed as refusal:
            held = refusal.details
            if "ended_at" not in held or held["holder"] == given["agent"]:
                raise
            self._recover(given["task_id"])
        try:
            return self._claimed(given)
        except NotReady as waits:
            waits.message = f"{waits.message}; the lease of {held['holder']} ended at {held['ended_at']}"
            raise

    def _recover(self, only: str | None = None) -> None:
        """Recover runs whose lease has ended, as the scheduler does, so that nothing has to run in the background."""
        from aof.scheduler.tick import Tick

        Tick(self._environment, self._dispatcher).recovered(only)

    def _claim_next(self, given: dict[str, Any]) -> Grant:
        """The first offer that can be claimed; where there is none, what vanished workers hold is recovered first."""
        try:
            return self._claim_offer(given)
        except NothingReady:
            if next(ready_queue.unrecovered_leases(self._environment), None) is None:
                raise
            self._recover()
        return self._claim_offer(given)

    def _claim_offer(self, given: dict[str, Any]) -> Grant:
        for candidate in self._queue.offers(given["agent"]):
            try:
                return self._claimed(given | {"task_id": candidate})
            except (AtCapacity, AgentInactive, Unauthenticated):
                raise  # no other task would fare better
            except (AlreadyClaimed, Refused, UnreadableTask):
                continue
        raise NothingReady(
            f"there is nothing that {given['agent']} can claim now",
            "see what each task waits for",
            Call("ready", {"explain": True, "agent": given["agent"]}),
        )

    def _claimed(self, given: dict[str, Any]) -> Grant:
        done = self._dispatcher.dispatch(self._dispatcher.command(commands.Claim, given))
        run = next((event.run_id for event in done.events if event.type == "task.attempt.started"), None)
        again = done.decision.replayed is not None and given["key"] is None  # a key gives the same answer again
        return claimed_run.Grant(require_task(done), run or done.decision.run, done.secret, again)

    def own_run(self) -> Grant:
        """The run that this process was started for, as `$AOF_RUN_ID` says. Raises StaleLease when it is over."""
        return claimed_run.own(self._environment.lookup.get, self._principal.run)

    def heartbeat(
        self, task_id: str, *, run: str | None = None, agent: str | None = None, ttl: float | None = None
    ) -> Beaten:
        """Show that the run's worker lives."""
        done = self._dispatcher.on_task(commands.RecordHeartbeat, task_id, run=run, agent=agent, ttl_ms=_ttl_ms(ttl))
        beat = done.decision.heartbeat
        assert beat is not None
        return kernel_results.Beaten(task_id=beat.task_id, run_id=beat.run_id, expires_at=beat.expires_at)

    def renew_kept(self, task_id: str) -> None:
        """Renew what the caller keeps of a task over its sessions, because it has just looked at the task."""
        with suppress(AofError):  # it has ended meanwhile, or cannot be read: a look at it is none the worse
            task = self._environment.lookup.get(task_id)
            for lease in leases(task):
                if kept_for(lease, self._principal.actor):
                    self.heartbeat(task.id, run=lease.run_id)

    def release(
        self,
        task_id: str,
        reason: str | None = None,
        *,
        run: str | None = None,
        agent: str | None = None,
        wait_for_children: bool = False,
        key: str | None = None,
    ) -> Released:
        """Give the task back unfinished."""
        given = {"run": run, "agent": agent, "key": key, "reason": reason, "wait_for_children": wait_for_children}
        done = self._dispatcher.on_task(commands.Release, task_id, **given)
        task = require_task(done)
        told = next((event.payload[WAITS] for event in done.events if WAITS in event.payload), ())
        waits_for = tuple(told) if wait_for_children else None
        return kernel_results.Released(task_id=task.id, status=task.status, waits_for=waits_for)

    def progress(
        self,
        task_id: str,
        text: str | None = None,
        *,
        percent: float | None = None,
        phase: str | None = None,
        note: str | None = None,
        blockers: Sequence[str] = (),
        facts: dict[str, Any] | None = None,
        run: str | None = None,
        agent: str | None = None,
        key: str | None = None,
    ) -> Reported:
        """Report progress of the current run."""
        done = self._dispatcher.on_task(
            commands.ReportProgress,
            task_id,
            run=run,
            agent=agent,
            key=key,
            text=text,
            percent=percent,
            phase=phase,
            note=note,
            blockers=tuple(blockers),
            facts=facts or {},
        )
        task = require_task(done)
        return kernel_results.Reported(task_id=task.id, progress=task.progress)

    def complete(
        self,
        task_id: str,
        summary: str | None = None,
        *,
        outcome: Outcome | None = None,
        blockers: Sequence[str] = (),
        summary_ref: str | None = None,
        deliverables: Sequence[str] = (),
        tests: dict[str, int] | None = None,
        notes: str | None = None,
        acceptance: Sequence[Any] = (),
        caller_role: str | None = None,
        hop: str | None = None,
        allow_open_children: bool = False,
        withdraw_questions: bool = False,
        run: str | None = None,
        agent: str | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Completed:
        """End the run with its outcome; on a task in review this is the approval."""
        done = self._dispatcher.on_task(
            commands.Complete,
            task_id,
            run=run,
            agent=agent,
            actor=actor,
            key=key,
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
        following = _next_hops(task, self._environment.chart.readable())
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

    def deliver(
        self,
        task_id: str,
        *,
        state: Delivery = "delivered",
        target: str | None = None,
        reason: str | None = None,
        run: str | None = None,
        agent: str | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Moved:
        """Record whether the output has reached its receiver: the parent, a channel, a peer."""
        return self._dispatcher.move(
            commands.RecordDelivery,
            task_id,
            run=run,
            agent=agent,
            actor=actor,
            key=key,
            state=state,
            target=target,
            reason=reason,
        )

    def fail(
        self,
        task_id: str,
        message: str = "",
        *,
        code: str = "failed",
        cause: Cause = "failed",
        retryable: bool = True,
        run: str | None = None,
        agent: str | None = None,
        key: str | None = None,
    ) -> Moved:
        """End the run as failed; the retry policy decides what follows."""
        return self._dispatcher.move(
            commands.Fail,
            task_id,
            run=run,
            agent=agent,
            key=key,
            code=code,
            message=message,
            cause=cause,
            retryable=retryable,
        )

    def approve(
        self,
        task_id: str,
        reason: str | None = None,
        *,
        hop: str | None = None,
        allow_open_children: bool = False,
        key: str | None = None,
        actor: str | None = None,
    ) -> Moved:
        """Accept what is in review."""
        return self._dispatcher.move(
            commands.Approve,
            task_id,
            actor=actor,
            key=key,
            reason=reason,
            hop=hop,
            allow_open_children=allow_open_children,
        )

    def reject(
        self,
        task_id: str,
        blockers: Sequence[str],
        *,
        hop: str | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Moved:
        """Send what is in review back."""
        return self._dispatcher.move(commands.Reject, task_id, actor=actor, key=key, blockers=tuple(blockers), hop=hop)


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
