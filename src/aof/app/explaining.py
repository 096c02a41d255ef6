"""Why a task cannot be run: the ready rule, asked of every unfinished task at once. Must not know the rule itself."""

from __future__ import annotations

from aof.core.policy import Policy
from aof.core.records import Records
from aof.core.tasks.graph import readiness
from aof.core.tasks.lifecycle import FINISHED, STATUSES
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
    for task in everything:
        if task.parent_id is not None:
            records.children[task.parent_id] = (*records.children.get(task.parent_id, ()), task.id)
        if task.resource is not None:
            held = (task.id,) if task.status == "in-progress" else ()
            records.resource_holders[task.resource] = (*records.resource_holders.get(task.resource, ()), *held)
    for task in everything:
        records.children.setdefault(task.id, ())
    return records
