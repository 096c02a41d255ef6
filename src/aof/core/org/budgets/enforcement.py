"""The eight points at which autonomy is enforced, and one ruling for each: proceed, with warnings, or blocked.

The order is fixed: security, explicit deny, explicit allow, limits, default deny. An earlier stage that decides is
never overruled. An agent whose chart says nothing about autonomy is not limited. What a run has used is counted as far
as AOF itself can tell: runs, time, the deliverables of its report, and the paths that it holds under an exclusive lock.
It is asked before a claim begins and before a report that work is complete is accepted; a report that the work is
blocked is never refused for this. Must not know how files are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, Protocol

import msgspec

from aof.core.errors.base import Call
from aof.core.errors.guards import BudgetExceeded
from aof.core.model.events import Draft
from aof.core.model.org_chart import Agent, Autonomy
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Lease, Task
from aof.core.model.times import millis
from aof.core.model.workflow import leases
from aof.core.org import rights
from aof.core.org.autonomy import limits_of
from aof.core.org.budgets import permissions
from aof.core.org.budgets.permissions import ACCESSES
from aof.core.validation.project_paths import normalised

_MINUTE: Final = 60_000
Point = Literal["read", "write", "command", "network", "iterations", "duration", "files", "lines"]
POINTS: Final[tuple[Point, ...]] = (*ACCESSES, "iterations", "duration", "files", "lines")
Outcome = Literal["proceed", "blocked", "proceed_with_warnings"]
Stage = Literal["security", "explicit_deny", "explicit_allow", "limits", "default_deny", "undeclared"]
_FIGURES: Final = {"iterations": "iterations", "duration": "minutes", "files": "files", "lines": "lines"}
_NEARLY: Final = 0.8


def iterations(task: Task) -> int:
    """How often the task was run so far; of a gated one, the hop that was run most often."""
    hops = [hop.get("epoch", 0) for hop in task.workflow.get("hops", ())]
    return max(hops, default=task.retry.attempts)


def one_run_too_many(agent: Agent, task: Task) -> BudgetExceeded | None:
    """The refusal of a claim that would be one iteration more than the agent may have."""
    ruled = ruling(agent, AskedAction(point="iterations", amount=iterations(task) + 1))
    return exceeded(task, agent, ruled) if ruled.outcome == "blocked" else None


def measured(agent: Agent) -> bool:
    """Whether the agent has a limit that is measured in files."""
    limits = limits_of(agent)
    return limits.files is not None or limits.lines is not None


def too_much(
    records: Records, task: Task, agent: Agent, lease: Lease | None, *, deliverables: Iterable[str], now: int
) -> Ruling | None:
    """The ruling that blocks a completion: by its time, its files or their lines; None where it may end."""
    took = -(-(now - millis(lease.acquired_at)) // _MINUTE) if lease is not None else 0
    late = ruling(agent, AskedAction(point="duration", amount=took))
    return late if late.outcome == "blocked" else too_large(records, task, agent, lease, deliverables)


def too_large(
    records: Records, task: Task, agent: Agent, lease: Lease | None, deliverables: Iterable[str]
) -> Ruling | None:
    """The ruling that blocks work for its files or their lines."""
    refs = frozenset(deliverables)
    sizes = [records.sizes.get((task.id, ref), (1, 0)) for ref in refs]
    run = lease.run_id if lease is not None else None
    locked = {lock.path for lock in task.locks if lock.run_id == run and lock.mode == "exclusive"}
    used: dict[Point, int] = {
        "files": sum(files for files, _ in sizes) + len(locked - refs),
        "lines": sum(lines for _, lines in sizes),
    }
    rulings = (ruling(agent, AskedAction(point=point, amount=amount)) for point, amount in used.items())
    return next((one for one in rulings if one.outcome == "blocked"), None)


def exceeded(task: Task, agent: Agent, ruled: Ruling) -> BudgetExceeded:
    """The refusal, with the point at which it was enforced."""
    return BudgetExceeded(
        f"{ruled.reason} ({ruled.point})",
        "report it as blocked, so that a person decides, or let a lead raise the agent's limits in the org chart",
        Call("complete", {"task_id": task.id, "outcome": "blocked", "blockers": [f"over budget: {ruled.point}"]}),
        agent=agent.id,
        point=ruled.point,
    )


def denied(agent: Agent, ruled: Ruling) -> BudgetExceeded:
    """The refusal of a step that the agent may not make."""
    return BudgetExceeded(
        f"{agent.id} may not do this: {ruled.reason} ({ruled.point}, {ruled.stage})",
        "escalate it, or let a lead change the agent's autonomy in the org chart",
        Call("org_show", {}),
        agent=agent.id,
        point=ruled.point,
        stage=ruled.stage,
    )


def entry(records: Records, name: str) -> Agent:
    """What the chart says of an agent; nothing limits one that no chart binds."""
    chart = records.policy.org
    found = rights.entry_of(chart, name, records.policy.maintainers) if chart is not None else None
    return found or Agent(id=name)


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
    if agent is None or not measured(agent):
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
    ruled = too_much(records, task, agent, lease, deliverables=report.deliverables, now=now)
    if ruled is None:
        return None
    payload = told(ruled, agent.id, AskedAction(point="files"))
    run = lease.run_id if lease is not None else None
    recorded = Draft(type="autonomy.checked", task_id=task.id, run_id=run, payload=payload)
    return Decision(drafts=(recorded,), agent=agent.id, refusal=exceeded(task, agent, ruled))


def _lease(task: Task | None, report: WorkReport) -> Lease | None:
    if task is None:
        return None
    if report.run is not None:
        return next((one for one in leases(task) if one.run_id == report.run), None)
    return next((one for one in leases(task) if one.agent == report.acting), None)


def _agent(records: Records, name: str) -> Agent | None:
    chart = records.policy.org
    return None if chart is None else rights.entry_of(chart, name, records.policy.maintainers)


class AskedAction(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is about to do: `subject` is a path, command or host; `amount` what it will have used in all."""

    point: Point
    subject: str | None = None
    amount: int | None = None


class Ruling(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether the agent may, which stage decided, and why."""

    outcome: Outcome
    point: str
    stage: Stage
    reason: str
    warnings: tuple[str, ...] = ()


def ruling(agent: Agent, action: AskedAction, *, tool_calls: int = 0, unlocked: str | None = None) -> Ruling:
    """The ruling on one action. `tool_calls` are those so far; `unlocked` says which lock a write lacks."""
    for access in ACCESSES:
        if access == action.point:
            return _access(agent, access, action.subject or "", tool_calls, unlocked)
    return _amount(agent, action.point, action.amount or 0)


def _access(agent: Agent, access: permissions.Access, subject: str, tool_calls: int, unlocked: str | None) -> Ruling:
    autonomy = agent.autonomy
    why = permissions.unsafe(access, subject) or unlocked
    if why is not None:
        return _ruled(access, "blocked", "security", why)
    if autonomy == Autonomy():
        return _undeclared(agent, access)
    if (pattern := permissions.denied(autonomy, access, subject)) is not None:
        return _ruled(access, "blocked", "explicit_deny", f"the chart denies {agent.id} '{pattern}'")
    if (pattern := permissions.allowed(autonomy, access, subject)) is not None:
        return _ruled(access, "proceed", "explicit_allow", f"the chart allows {agent.id} '{pattern}'")
    if not permissions.granted(autonomy, access):
        reason = f"nothing in the chart lets {agent.id} {access} this"
        return _ruled(access, "blocked", "default_deny", reason)
    most = limits_of(agent).tool_calls
    return _within(agent, access, "tool calls", tool_calls + 1, most)


def _amount(agent: Agent, point: str, amount: int) -> Ruling:
    if agent.autonomy == Autonomy():
        return _undeclared(agent, point)
    figure = _FIGURES[point]
    most: int | None = getattr(limits_of(agent), figure)
    return _within(agent, point, figure, amount, most)


def _within(agent: Agent, point: str, what: str, amount: int, most: int | None) -> Ruling:
    if most is None:
        return _ruled(point, "proceed", "limits", f"{agent.id} has no limit on {what}")
    reason = f"{agent.id} would use {amount:,} of the {most:,} {what} that it may use"
    if amount > most:
        return _ruled(point, "blocked", "limits", reason)
    if amount >= most * _NEARLY and amount:
        return _ruled(point, "proceed_with_warnings", "limits", reason, (f"nearly at the limit: {reason}",))
    return _ruled(point, "proceed", "limits", reason)


def _undeclared(agent: Agent, point: str) -> Ruling:
    return _ruled(point, "proceed", "undeclared", f"the chart sets no limits for {agent.id}")


def _ruled(point: str, outcome: Outcome, stage: Stage, reason: str, warnings: tuple[str, ...] = ()) -> Ruling:
    return Ruling(outcome=outcome, point=point, stage=stage, reason=reason, warnings=warnings)


def told(ruled: Ruling, agent: str, action: AskedAction) -> dict[str, Any]:
    """A ruling as the log tells of it."""
    asked = {"subject": action.subject, "amount": action.amount}
    whole: dict[str, Any] = msgspec.to_builtins(ruled)
    return {"agent": agent} | {name: one for name, one in asked.items() if one is not None} | whole
