"""One question before work begins and before each step of it: may this agent do this? The answer is recorded.

Without a point it is about the work as a whole, before a claim. With one, the caller asks for its own run. AOF itself
asks where it can see; a process that does not ask is not stopped. Must not know how the answer is shown.
"""

from __future__ import annotations

from typing import Any, Final

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.handoffs.author import heard, holding
from aof.core.handoffs.file_locks import may_write, required
from aof.core.model.commands import Decide, NeedsOf, OwnRule
from aof.core.model.events import Draft
from aof.core.model.org_chart import Agent, Risk
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.run import ARTIFACT_PATHS
from aof.core.model.task import Lease, Task
from aof.core.model.times import millis
from aof.core.org import routing
from aof.core.org.autonomy import RISKS, too_little
from aof.core.org.budgets.enforcement import POINTS, AskedAction, Outcome, Ruling, entry, iterations, ruling, told
from aof.core.org.budgets.permissions import ACCESSES
from aof.core.org.routing import work_of
from aof.core.validation import limits
from aof.core.validation.project_paths import normalised

_START: Final = "start"
_MINUTE: Final = 60_000
_MOST: Final = 2**53


class Preflight(OwnRule, frozen=True, kw_only=True):
    """Ask whether the acting agent may begin the task, or whether its run may go on at one enforcement point."""

    point: str | None = None
    subject: str | None = None
    amount: int | None = None
    risk: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task: the answer is recorded on it."""
        return Needs(write=frozenset({self.task_id}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The ruling, as an event: also one that blocks is an answer."""
        task = heard(records, self)
        if isinstance(task, AofError):
            return task
        if problem := self._malformed(task):
            return problem
        if self.point is None:
            return self._before_work(records, task)
        lease = holding(task, self)
        if isinstance(lease, AofError):
            return lease
        agent = entry(records, lease.agent)
        action = AskedAction(point=self.point, subject=self.subject, amount=self._amount(task, lease, now))  # type: ignore[arg-type] # judged above
        risky = self._too_risky(agent)
        ruled = risky or ruling(agent, action, tool_calls=tool_calls(task, lease), unlocked=self._unlocked(task, lease))
        return _answer(task, lease.agent, told(ruled, lease.agent, action), lease.run_id)

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
        known = {
            "iterations": iterations(task),
            "duration": -(-(now - millis(lease.acquired_at)) // _MINUTE),
        }.get(self.point or "")
        return self.amount if known is None else max(known, self.amount or 0)

    def _unlocked(self, task: Task, lease: Lease) -> str | None:
        """Why the run may not write the path now; what lies in the task's own folder needs no lock."""
        if self.point != "write" or self.subject is None or self.subject.startswith(tuple(ARTIFACT_PATHS.values())):
            return None
        path = normalised("subject", self.subject)
        if isinstance(path, AofError) or may_write(task, lease.run_id, path):
            return None
        return required(task, path).message

    def _too_risky(self, agent: Agent) -> Ruling | None:
        why = too_little(agent, level=None, risk=_risk(self.risk)) if self.risk is not None else None
        if why is None or self.point is None:
            return None
        reason = f"{agent.id}: {why}; escalate it"
        return Ruling(outcome="blocked", point=self.point, stage="limits", reason=reason)

    def _before_work(self, records: Records, task: Task) -> Verdict:
        """Whether the agent may take the task: what a claim would refuse, and what it should know beforehand."""
        name = self.acting
        ruled = _begin(records, task, name, _risk(self.risk))
        return _answer(task, name, told(ruled, name, AskedAction(point="iterations")), None)


def _begin(records: Records, task: Task, name: str, risk: Risk | None) -> Ruling:
    chart, agent = records.policy.org, entry(records, name)
    work = work_of(task.routing, task.profile)
    refused = routing.refusal(chart, work, name) if chart is not None and name in chart.by_id else None
    why = refused or too_little(agent, level=work.level, risk=risk or work.risk)
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


def _risk(said: str | None) -> Risk | None:
    return next((risk for risk in RISKS if risk == said), None)


def tool_calls(task: Task, lease: Lease) -> int:
    """How many the run has asked for and was let do."""
    used = task.usage.get("toolCalls", 0) if task.usage.get("runId") == lease.run_id else 0
    return int(used)


def _answer(task: Task, agent: str, payload: dict[str, Any], run: str | None) -> Decision:
    return Decision(drafts=(Draft(type="autonomy.checked", task_id=task.id, run_id=run, payload=payload),), agent=agent)
