"""Why a task cannot be run: the ready rule, asked of every unfinished task at once. Must not know the rule itself."""

from __future__ import annotations

from aof.core.model.lifecycle import FINISHED, STATUSES
from aof.core.model.policy import Policy
from aof.core.model.records import Records
from aof.core.tasks.graph import readiness
from aof.ports.lists import Query, Row
from aof.ports.store import Store

UNFINISHED = tuple(status for status in STATUSES if status not in FINISHED)


def held_back(store: Store, policy: Policy, query: Query, now: int) -> tuple[Row, ...]:
    """Each unfinished task that matches and cannot be claimed now, with what it waits for."""
    around = _around(store, policy)
    wanted = store.find(query.but(status=UNFINISHED)).tasks
    return tuple(
        Row.of(task, refusal.message) for task in wanted if (refusal := readiness(around, task, now)) is not None
    )


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
