"""Why a task cannot be run: the ready rule, asked of every unfinished task at once. Must not know the rule itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from aof.core.model.lifecycle import FINISHED, STATUSES
from aof.core.model.policy import Policy
from aof.core.model.records import Records
from aof.core.model.task import Task
from aof.core.tasks.graph import held_by_dependency, readiness
from aof.ports.lists import Query, Row
from aof.ports.store import Scope, ScopeTooNarrow, Store

UNFINISHED = tuple(status for status in STATUSES if status not in FINISHED)


def held_back(store: Store, policy: Policy, query: Query, now: int) -> tuple[Row, ...]:
    """Each unfinished task that matches and cannot be claimed now, with what it waits for."""
    around = _around(store, policy)
    wanted = store.find(query.but(status=UNFINISHED)).tasks
    return tuple(
        Row.of(task, refusal.message) for task in wanted if (refusal := readiness(around, task, now)) is not None
    )


def waits(store: Store, policy: Policy, task_ids: Collection[str], now: int) -> dict[str, str]:
    """What each of some tasks waits for, in words; those that can be claimed now are left out."""
    wanted = store.records(task_ids)
    around = _beside(store, policy, wanted)
    refusals = ((task.id, readiness(around, task, now)) for task in wanted)
    return {name: refusal.message.removeprefix(f"{name} ") for name, refusal in refusals if refusal is not None}


def wait_of(store: Store, policy: Policy, task: Task) -> str | None:
    """What a new task waits for, told without the index; None where it can be claimed, or that cannot be told."""
    scope = Scope(read=frozenset(task.depends_on))
    with suppress(ScopeTooNarrow), store.unit(scope) as unit:
        records = Records(policy=policy, tasks={one: unit.task(one) for one in task.depends_on})
        refusal = held_by_dependency(records, task)
        return None if refusal is None else refusal.message.removeprefix(f"{task.id} ")
    return None


def _beside(store: Store, policy: Policy, wanted: Iterable[Task]) -> Records:
    """What the ready rule may look at where it is asked about these tasks only."""
    records = Records(policy=policy, tasks={task.id: task for task in wanted})
    for task in wanted:
        below = store.find(Query(parent_id=task.id)).tasks if task.waits_for_children else ()
        records.tasks |= {child.id: child for child in below}
        records.children[task.id] = tuple(child.id for child in below)
    edges = {edge for task in wanted for edge in task.depends_on} - records.tasks.keys()
    records.tasks |= dict.fromkeys(edges) | {task.id: task for task in store.records(edges)}
    if resources := {task.resource for task in wanted if task.resource is not None}:
        running = store.find(Query(status=("in-progress",))).tasks
        holders = {name: tuple(one.id for one in running if one.resource == name) for name in resources}
        records.resource_holders |= holders
    return records


def _around(store: Store, policy: Policy) -> Records:
    """All that the ready rule may look at."""
    everything = store.find(Query(archived=True)).tasks
    records = Records(policy=policy, tasks={task.id: task for task in everything})
    children: dict[str, list[str]] = {task.id: [] for task in everything}
    holders: dict[str, list[str]] = {}
    for task in everything:
        if task.parent_id is not None:
            children.setdefault(task.parent_id, []).append(task.id)
        if task.resource is not None:
            holders.setdefault(task.resource, []).extend([task.id] if task.status == "in-progress" else [])
    records.children |= {parent: tuple(below) for parent, below in children.items()}
    records.resource_holders |= {resource: tuple(held) for resource, held in holders.items()}
    return records
