"""The check that an agent asks for before it begins a task, or before one step of its run."""

from __future__ import annotations

from typing import Final

from aof.errors import AofError, Call, InvalidInput
from aof.handoffs.file_locks import lock_missing
from aof.handoffs.participants import holding, subject_task
from aof.kernel import limits
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, OwnRule, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.limits import normalised
from aof.kernel.model import millis
from aof.org import routing
from aof.org.budgets import (
    ACCESSES,
    POINTS,
    AskedAction,
    Outcome,
    Ruling,
    entry,
    iterations,
    ruling,
    ruling_payload,
)
from aof.org.model import Risk
from aof.org.routing import RISKS, too_little, work_of
from aof.runs.model import ARTIFACT_PATHS
from aof.tasks.model import Lease, Task

_START: Final = "start"
_MINUTE: Final = 60_000
_MOST: Final = 2**53


class Preflight(OwnRule, frozen=True, kw_only=True):
    """Ask whether the acting agent may begin the task, or whether its run may go on at one enforcement point."""

    point: str | None = None
    subject: str | None = None
    amount: int | None = None
    risk: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task: the answer is recorded on it."""
        return Needs(write=frozenset({self.task_id}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """The ruling, as an event: also one that blocks is an answer."""
        task = subject_task(records, self)
        if isinstance(task, AofError):
            return task
        if problem := self._malformed(task):
            return problem
        risk: Risk | None = next((known for known in RISKS if known == self.risk), None)
        if self.point is None:
            asked = AskedAction(point="iterations")
            return _answer(task, self.acting, None, asked, _before_work(records, task, self.acting, risk))
        lease = holding(task, self)
        if isinstance(lease, AofError):
            return lease
        agent = entry(records, lease.agent)
        asked = AskedAction(point=self.point, subject=self.subject, amount=self._amount(task, lease, now))  # type: ignore[arg-type] # judged above
        why = too_little(agent, level=None, risk=risk)
        if why is not None:
            reason = f"{agent.id}: {why}; escalate it"
            ruled = Ruling(outcome="blocked", point=self.point, stage="limits", reason=reason)
        else:
            used = task.usage.get("toolCalls", 0) if task.usage.get("runId") == lease.run_id else 0
            ruled = ruling(agent, asked, tool_calls=int(used), unlocked=self._lacks_lock(task, lease))
        return _answer(task, lease.agent, lease.run_id, asked, ruled)

    def _malformed(self, task: Task) -> AofError | None:
        if self.point is not None and (problem := limits.choice("point", self.point, POINTS)):
            return problem
        if self.risk is not None and (problem := limits.choice("risk", self.risk, RISKS)):
            return problem
        if self.amount is not None and not 0 <= self.amount <= _MOST:
            return InvalidInput("'amount' must be a whole number from 0 up", "say how much will have been used in all")
        if self.point in ACCESSES and self.subject is None:
            return InvalidInput(
                f"'{self.point}' needs a subject: a path, a command or a host",
                "say what it is about",
                Call("preflight", {"task_id": task.id, "point": self.point, "subject": "src/api.py"}),
            )
        return limits.text("subject", self.subject, limits.NOTES)

    def _amount(self, task: Task, lease: Lease, now: int) -> int | None:
        """What the caller says, or what AOF knows if that is more."""
        if self.point == "iterations":
            known = iterations(task)
        elif self.point == "duration":
            known = -(-(now - millis(lease.acquired_at)) // _MINUTE)
        else:
            return self.amount
        return max(known, self.amount or 0)

    def _lacks_lock(self, task: Task, lease: Lease) -> str | None:
        """Why the run may not write the path now; what lies in the task's own folder needs no lock."""
        if self.point != "write" or self.subject is None or self.subject.startswith(tuple(ARTIFACT_PATHS.values())):
            return None
        path = normalised("subject", self.subject)
        refusal = None if isinstance(path, AofError) else lock_missing(task, lease.run_id, path)
        return refusal.message if refusal is not None else None


def _before_work(records: Records, task: Task, name: str, risk: Risk | None) -> Ruling:
    """Whether the agent may take the task: what a claim would refuse, and what it should know beforehand."""
    chart, agent = records.policy.org, entry(records, name)
    work = work_of(task.routing, task.profile)
    why = routing.routing_refusal(chart, work, name) if chart is not None and name in chart.by_id else None
    why = why or too_little(agent, level=work.level, risk=risk or work.risk)
    if not agent.active:
        why = "it is not active"
    if why is not None:
        return Ruling(outcome="blocked", point=_START, stage="limits", reason=f"{name} may not take {task.id}: {why}")
    ruled = ruling(agent, AskedAction(point="iterations", amount=iterations(task) + 1))
    if ruled.outcome == "blocked":
        return Ruling(outcome="blocked", point=_START, stage=ruled.stage, reason=ruled.reason)
    warnings = list(ruled.warnings)
    if task.retry.failures and task.retry.failures + 1 >= task.retry.max_attempts:
        warnings.append(f"it is the last attempt: {task.retry.failures} have failed")
    if task.status != "ready":
        warnings.append(f"{task.id} is {task.status} now")
    outcome: Outcome = "proceed_with_warnings" if warnings else "proceed"
    return Ruling(outcome=outcome, point=_START, stage=ruled.stage, reason=ruled.reason, warnings=tuple(warnings))


def _answer(task: Task, agent: str, run: str | None, asked: AskedAction, ruled: Ruling) -> Decision:
    payload = ruling_payload(ruled, agent, asked)
    return Decision(drafts=(Draft(type="autonomy.checked", task_id=task.id, run_id=run, payload=payload),), agent=agent)
