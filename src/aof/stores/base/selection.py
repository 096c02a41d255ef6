"""A query answered by looking at every task: what the index says in SQL, said in Python.

Must not know more about a task than what the query asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from aof._support.words import hold, wanted
from aof.core.evolve.work_log import parts
from aof.core.model.ids import split_task_id
from aof.core.model.lifecycle import FINISHED, STATUSES, priority_rank
from aof.core.model.task import Task
from aof.core.model.times import end_of
from aof.core.model.workflow import has_open_hop, leases, waits_at_hop
from aof.ports.lists import NEVER, OPEN, PARTS, Query

if TYPE_CHECKING:
    from aof.ports.lists import Place, Span

_FOLDERS: Final = (*STATUSES, "archive")


def select(query: Query, tasks: dict[str, Task]) -> list[Task]:
    """All tasks that the query keeps, in its order."""
    kept = (task for task in tasks.values() if _keeps(query, task, tasks))
    return sorted(kept, key=lambda task: _position(place(query, task)), reverse=query.reverse)


def page(query: Query, chosen: list[Task]) -> tuple[list[Task], Place | None]:
    """The part of what was selected that the query asks for, and where it ends if more follows."""
    behind = chosen if query.behind is None else _behind(query, chosen, _position(query.behind))
    if query.limit is None:
        return behind[query.offset :], None
    end = query.offset + query.limit
    shown = behind[query.offset : end]
    return shown, place(query, shown[-1]) if shown and len(behind) > end else None


def place(query: Query, task: Task) -> Place:
    """The task's place in the order of the query."""
    if query.order == "relevance":
        return _relevance(task, query.search or ""), task.id
    return _ORDERS[query.order](task), task.id


def _behind(query: Query, chosen: list[Task], behind: tuple[Any, ...]) -> list[Task]:
    positions = ((task, _position(place(query, task))) for task in chosen)
    return [task for task, here in positions if (here < behind if query.reverse else here > behind)]


def _position(where: Place) -> tuple[Any, ...]:
    return (where[0], *split_task_id(where[1]))


# What tasks are ordered by, then by their IDs. A task that is never due comes last.
_ORDERS: Final[dict[str, Callable[[Task], str | int]]] = {
    "id": lambda _task: 0,
    "schedule": lambda task: f"{priority_rank(task.priority)}{task.created_at}",
    "created": lambda task: task.created_at,
    "updated": lambda task: task.updated_at,
    "due": lambda task: _due(task) or NEVER,
    "title": lambda task: task.title.casefold(),
    "status": lambda task: _FOLDERS.index("archive" if task.archived else task.status),
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
    if query.waiting:
        here = task.status == query.waiting_in and not task.archived
        return here and not _is_in_queue(task, tasks, query.but(waiting=False))
    free = query.runnable_at is None or _waits_for_nothing(task, tasks, query)
    return free and task.resource not in query.busy_resources


def _waits_for_nothing(task: Task, tasks: dict[str, Task], query: Query) -> bool:
    if query.dependent and not task.depends_on:
        return False
    return task.status == query.waiting_in and all(over(task, tasks, query.runnable_at or "") for over in _WAITS)


_WAITS: tuple[Callable[[Task, dict[str, Task], str], bool], ...] = (
    lambda task, _tasks, _moment: task.cancel is None and not task.archived and not task.metadata.get("draft"),
    lambda task, _tasks, _moment: not task.awaits_answer,
    lambda task, _tasks, _moment: _takable(task),
    lambda task, _tasks, moment: task.retry.not_before is None or task.retry.not_before <= moment,
    lambda task, tasks, _moment: all(edge in tasks and tasks[edge].status == "done" for edge in task.depends_on),
    lambda task, tasks, _moment: not _waits_below(task, tasks),
)


def _takable(task: Task) -> bool:
    return not task.gated or any(hop.get("status") == "ready" for hop in task.workflow["hops"])


def _waits_below(task: Task, tasks: dict[str, Task]) -> bool:
    if not task.waits_for_children:
        return False
    return any(child.parent_id == task.id and child.status not in FINISHED for child in tasks.values())
