"""Selects and orders tasks for a query by looking at every one, as a store does that has them all in memory.

The index of the filesystem store answers the same queries in SQL (`files/index/queries.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aof.kernel.model import FINISHED, STATUSES, end_of, priority_rank, split_task_id
from aof.store.lists import NEVER, OPEN, PARTS, Query
from aof.support.words import hold, wanted
from aof.tasks.body import parts
from aof.tasks.model import Task
from aof.workflows.model import has_open_hop, leases, waits_at_hop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.lists import Place, Span


def select_tasks(query: Query, tasks: dict[str, Task]) -> list[Task]:
    """All tasks that the query keeps, in its order."""
    kept = (task for task in tasks.values() if _keeps(query, task, tasks))
    return sorted(kept, key=lambda task: _position(_place(query, task)), reverse=query.reverse)


def page_of(query: Query, chosen: list[Task]) -> tuple[list[Task], Place | None]:
    """The part of what was selected that the query asks for, and where it ends if more follows."""
    if query.behind is not None:
        behind = _position(query.behind)
        positions = ((task, _position(_place(query, task))) for task in chosen)
        chosen = [task for task, here in positions if (here < behind if query.reverse else here > behind)]
    if query.limit is None:
        return chosen[query.offset :], None
    end = query.offset + query.limit
    shown = chosen[query.offset : end]
    return shown, _place(query, shown[-1]) if shown and len(chosen) > end else None


def _place(query: Query, task: Task) -> Place:
    """The task's place in the order of the query."""
    if query.order == "relevance":
        return _relevance(task, query.search or ""), task.id
    return _ORDERS[query.order](task), task.id


def _position(where: Place) -> tuple[str | int, ...]:
    return (where[0], *split_task_id(where[1]))


# What tasks are ordered by, then by their IDs. A task that is never due comes last.
_ORDERS: Final[dict[str, Callable[[Task], str | int]]] = {
    "id": lambda _task: 0,
    "schedule": lambda task: f"{priority_rank(task.priority)}{task.created_at}",
    "created": lambda task: task.created_at,
    "updated": lambda task: task.updated_at,
    "due": lambda task: _due(task) or NEVER,
    "title": lambda task: task.title.casefold(),
    "status": lambda task: len(STATUSES) if task.archived else STATUSES.index(task.status),
}


def _due(task: Task) -> str | None:
    return end_of(task.due) if task.due is not None else None


def _keeps(query: Query, task: Task, tasks: dict[str, Task]) -> bool:
    return (
        (query.archived or not task.archived)
        and (query.hidden or task.visibility not in ("internal", "hidden"))
        and (not query.status or task.status in query.status)
        and (query.agent is None or _is_for(query.agent, task, unrouted_too=query.unrouted_too))
        and (query.tag is None or query.tag in task.routing.tags)
        and (query.search is None or _mentions(task, query.search))
        and (query.parent_id is None or task.parent_id == query.parent_id)
        and (query.among is None or task.id in query.among)
        and (query.priority is None or task.priority == query.priority)
        and (not query.unfinished or task.status not in FINISHED)
        and _within(query.created, task.created_at)
        and _within(query.updated, task.updated_at)
        and _within(query.due, _due(task))
        and _is_in_queue(task, tasks, query)
        and task.id not in query.without
        and (not query.at_hops or waits_at_hop(task))
        and (not query.open_hops or (has_open_hop(task) and not _waits_below(task, tasks)))
        and (not query.open_handoffs or bool(task.handoffs))
    )


def _within(span: Span, moment: str | None) -> bool:
    since, before = span
    if moment is None:
        return span == OPEN
    return (since is None or moment >= since) and (before is None or moment < before)


def _is_for(agent: str, task: Task, *, unrouted_too: bool) -> bool:
    holders = leases(task)
    whose = holders[0].agent if holders else None if task.gated else task.routing.agent
    return whose == agent or (unrouted_too and whose is None)


def _mentions(task: Task, text: str) -> bool:
    sought = wanted(text)
    return _is_named(task, text) or bool(sought and hold((task.title, *parts(task.body)), sought))


def _is_named(task: Task, text: str) -> bool:
    said = text.casefold()
    return said in task.title.casefold() or said in task.id.casefold()


def _relevance(task: Task, text: str) -> int:
    """The part that holds all that is sought: title, description, comments, work log, or no single one of them."""
    sought = wanted(text)
    if _is_named(task, text):
        return len(PARTS)
    texts = (task.title, *parts(task.body))
    return next((len(PARTS) - place for place, one in enumerate(texts) if sought and hold((one,), sought)), 0)


def _is_in_queue(task: Task, tasks: dict[str, Task], query: Query) -> bool:
    """Whether it is runnable, where the query asks for that; or waits, where it asks for those that do."""
    if query.waiting:
        here = task.status == query.waiting_in and not task.archived
        return here and not _is_in_queue(task, tasks, query.but(waiting=False))
    free = query.runnable_at is None or _waits_for_nothing(task, tasks, query, query.runnable_at)
    return free and task.resource not in query.busy_resources


def _waits_for_nothing(task: Task, tasks: dict[str, Task], query: Query, moment: str) -> bool:
    return (
        not (query.dependent and not task.depends_on)
        and task.status == query.waiting_in
        and task.cancel is None
        and not task.archived
        and not task.metadata.get("draft")
        and not task.awaits_answer
        and (not task.gated or any(hop.get("status") == "ready" for hop in task.workflow["hops"]))
        and (task.retry.not_before is None or task.retry.not_before <= moment)
        and all(edge in tasks and tasks[edge].status == "done" for edge in task.depends_on)
        and not _waits_below(task, tasks)
    )


def _waits_below(task: Task, tasks: dict[str, Task]) -> bool:
    return task.waits_for_children and any(
        child.parent_id == task.id and child.status not in FINISHED for child in tasks.values()
    )
