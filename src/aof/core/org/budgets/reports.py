"""A report that work is complete, held against the budget of its agent before it is accepted.

The refusal is recorded with the enforcement point. A report that the work is blocked is never refused for this. Must
not know what else a report must be, nor how it arrived.
"""

from __future__ import annotations

from typing import Protocol

from aof.core.model.events import Draft
from aof.core.model.org_chart import Agent
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Lease, Task
from aof.core.model.workflow_state import leases
from aof.core.org import membership
from aof.core.org.budgets import used
from aof.core.org.budgets.enforcement import AskedAction, told
from aof.core.validation.project_paths import normalised


class WorkReport(Protocol):
    """What is asked of a report, whether it is a command or a message."""

    @property
    def task_id(self) -> str:
        """The task."""
        ...

    @property
    def run(self) -> str | None:
        """The run that reports, where it is named."""
        ...

    @property
    def acting(self) -> str:
        """Who reports, where no run says so."""
        ...

    @property
    def outcome(self) -> str | None:
        """How the work ended."""
        ...

    @property
    def deliverables(self) -> tuple[str, ...]:
        """What was made, among the task's own files."""
        ...


def sizes(known: Records, task: Task | None, report: WorkReport) -> frozenset[tuple[str, str]]:
    """The deliverables that must be measured, where the agent has a limit on them."""
    lease = _lease(task, report)
    agent = _agent(known, lease.agent if lease is not None else report.acting)
    if agent is None or not used.measured(agent):
        return frozenset()
    safe = (ref for ref in report.deliverables if isinstance(normalised("deliverables", ref), str))
    return frozenset((report.task_id, ref) for ref in safe)


def judged(records: Records, report: WorkReport, verdict: Verdict, now: int) -> Decision | None:
    """What refuses and records a report of more work than the agent may do by itself; None where it may.

    `verdict` is what would become of the report: only one that is accepted, and changes something, is judged.
    """
    task = records.look(report.task_id)
    accepted = isinstance(verdict, Decision) and verdict.drafts and verdict.refusal is None
    if task is None or not accepted or report.outcome == "blocked" or task.status not in ("ready", "in-progress"):
        return None
    lease = _lease(task, report)
    agent = _agent(records, lease.agent if lease is not None else report.acting)
    if agent is None or (task.status == "in-progress" and lease is None):
        return None
    ruled = used.too_much(records, task, agent, lease, deliverables=report.deliverables, now=now)
    if ruled is None:
        return None
    payload = told(ruled, agent.id, AskedAction(point="files"))
    run = lease.run_id if lease is not None else None
    recorded = Draft(type="autonomy.checked", task_id=task.id, run_id=run, payload=payload)
    return Decision(drafts=(recorded,), agent=agent.id, refusal=used.exceeded(task, agent, ruled))


def _lease(task: Task | None, report: WorkReport) -> Lease | None:
    if task is None:
        return None
    if report.run is not None:
        return next((one for one in leases(task) if one.run_id == report.run), None)
    return next((one for one in leases(task) if one.agent == report.acting), None)


def _agent(records: Records, name: str) -> Agent | None:
    chart = records.policy.org
    return None if chart is None else membership.entry_of(chart, name, records.policy.maintainers)
