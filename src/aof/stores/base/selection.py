"""A query answered by looking at every task: what the index says in SQL, said in Python.

Must not know more about a task than what the query asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aof.core.model.ids import split_task_id
from aof.core.model.lifecycle import FINISHED, priority_rank
from aof.core.model.task import Task
from aof.core.model.workflow_state import has_open_hop, leases
from aof.ports.lists import Query


def select(query: Query, tasks: dict[str, Task]) -> list[Task]:
    """All tasks that the query keeps, in its order."""
    order = _schedule if query.order == "schedule" else _number
    return sorted((task for task in tasks.values() if _keeps(query, task, tasks)), key=order)


def _number(task: Task) -> tuple[Any, ...]:
    return split_task_id(task.id)


def _schedule(task: Task) -> tuple[Any, ...]:
    return (priority_rank(task.priority), task.created_at, *split_task_id(task.id))


def _keeps(query: Query, task: Task, tasks: dict[str, Task]) -> bool:
    return (
        (query.archived or not task.archived)
        and (query.hidden or task.visibility not in ("internal", "hidden"))
        and (not query.status or task.status in query.status)
        and (query.agent is None or _is_for(query.agent, task, unrouted_too=query.unrouted_too))
        and (query.tag is None or query.tag in task.routing.tags)
        and (query.search is None or _mentions(task, query.search))
        and (query.parent_id is None or task.parent_id == query.parent_id)
        and (query.runnable_at is None or _waits_for_nothing(task, tasks, query))
        and task.resource not in query.busy_resources
        and (not query.open_hops or has_open_hop(task))
        and (not query.open_handoffs or bool(task.handoffs))
    )


def _is_for(agent: str, task: Task, *, unrouted_too: bool) -> bool:
    holders = leases(task)
    whose = holders[0].agent if holders else None if task.gated else task.routing.agent
    return whose == agent or (unrouted_too and whose is None)


def _mentions(task: Task, text: str) -> bool:
    wanted = text.casefold()
    return wanted in task.title.casefold() or wanted in task.id.casefold()


def _waits_for_nothing(task: Task, tasks: dict[str, Task], query: Query) -> bool:
    return task.status == query.waiting_in and all(over(task, tasks, query.runnable_at or "") for over in _WAITS)


_WAITS: tuple[Callable[[Task, dict[str, Task], str], bool], ...] = (
    lambda task, _tasks, _moment: task.cancel is None and not task.archived and not task.metadata.get("draft"),
    lambda task, _tasks, _moment: not task.awaits_answer,
    lambda task, _tasks, _moment: _takable(task),
    lambda task, _tasks, moment: task.retry.not_before is None or task.retry.not_before <= moment,
    lambda task, tasks, _moment: all(edge in tasks and tasks[edge].status == "done" for edge in task.depends_on),
    lambda task, tasks, _moment: not task.metadata.get("waitForChildren") or not _open_below(task, tasks),
)


def _takable(task: Task) -> bool:
    return not task.gated or any(hop.get("status") == "ready" for hop in task.workflow["hops"])


def _open_below(task: Task, tasks: dict[str, Task]) -> bool:
    return any(child.parent_id == task.id and child.status not in FINISHED for child in tasks.values())
