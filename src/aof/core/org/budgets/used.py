"""What a run has used of its agent's budget, as far as AOF itself can tell: runs, time, files and lines.

Files are those that the report names as deliverables, and the paths that the run holds under an exclusive lock; lines
are those of the deliverables. Asked before a claim begins and before a completion is accepted. What a process does
without telling anybody is not seen here. Must not know how files are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aof.core.errors.base import Call
from aof.core.errors.guards import BudgetExceeded
from aof.core.model.org_chart import Agent
from aof.core.model.records import Records
from aof.core.model.task import Lease, Task
from aof.core.model.times import millis
from aof.core.org import membership
from aof.core.org.autonomy import limits_of
from aof.core.org.budgets.enforcement import AskedAction, Point, Ruling, ruling

_MINUTE: Final = 60_000


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
    found = membership.entry_of(chart, name, records.policy.maintainers) if chart is not None else None
    return found or Agent(id=name)
