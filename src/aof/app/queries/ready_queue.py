"""The ready queue: what could be claimed right now, as each agent sees it.

What is under way comes first: a free hop of a gated task that runs. Must not claim anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aof.app.queries import cursors, explain
from aof.app.queries.lists import Listed
from aof.core.model import workflow
from aof.core.model.lifecycle import PRIORITIES, STATUSES
from aof.core.org import routing
from aof.ports.lists import Query, Row, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from aof.app.commands.context import Environment
    from aof.app.fabric import Fabric
    from aof.app.operations.filters import Filters
    from aof.app.queries.ended_leases import EndedLease
    from aof.core.model.task import Task

_CANDIDATES = 16
_AT_HOPS, _QUEUED = "0", "1"  # in the order of the ready queue, hops of what runs come before what waits


def turn(task: Task) -> str:
    """What the queue is ordered by: urgency, then age."""
    return f"{PRIORITIES.index(task.priority)}{task.created_at}"


def ended(environment: Environment) -> Iterator[EndedLease]:
    """The leases that have ended and that nobody has recovered: a claim does. Where nothing runs, nothing is loaded."""
    if not environment.store.rows(Query(status=("in-progress",), limit=1, counted=False)).rows:
        return iter(())
    from aof.app.queries.ended_leases import ended_leases

    return ended_leases(environment)


def counts(fabric: Fabric, by_status: dict[str, int], **filters: Any) -> list[tuple[str, int]]:
    """How many tasks there are of each kind: `ready` are those that can be claimed now, the others of them wait."""
    found: list[tuple[str, int]] = []
    for name in sorted(by_status, key=STATUSES.index):
        if name != "ready":
            found.append((name, by_status[name]))
            continue
        free = fabric.claimable(**filters)
        found += [(word, count) for word, count in (("ready", free), ("waiting", by_status[name] - free)) if count]
    return found


class ReadyQueue:
    """The queue as each agent sees it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._store = environment.store
        self._models = environment.read_models
        self._chart = environment.chart

    def ready(self, **filters: Unpack[Filters]) -> Listed:
        """What could be claimed right now, most urgent first; with `agent`, by that one.

        A gated task that runs is among it where a hop of it is free.
        """
        cursor, limit = filters.pop("cursor", None), filters.get("limit")
        behind = cursors.found_in("ready", cursor, 2) if cursor is not None else None
        waiting = self._waiting(behind if behind is not None and behind[0][:1] == _QUEUED else None, **filters)
        open_hops = self._open_hops(**filters)
        beside = self._beside(filters.get("agent"), open_hops) if self._store.rows(open_hops).rows else []
        total = waiting.total + len(beside)
        places = [(f"{_AT_HOPS}{turn(task)}", task.id) for task in beside]
        left = [task for task, place in zip(beside, places, strict=True) if behind is None or place > behind]
        rows = (*self._models.rows(left), *waiting.rows)
        if limit is None or len(rows) <= limit:
            return Listed(total=total, tasks=rows, next_cursor=self._further(waiting) if limit else None)
        end = places[len(beside) - len(left) + limit - 1] if 0 < limit <= len(left) else self._end(rows, limit)
        return Listed(total=total, tasks=rows[:limit], next_cursor=cursors.place_in("ready", *end) if end else None)

    def _further(self, waiting: Rows) -> str | None:
        """The cursor behind a whole page of the queue, where others follow it."""
        return cursors.place_in("ready", f"{_QUEUED}{waiting.end[0]}", waiting.end[1]) if waiting.end else None

    def _end(self, rows: tuple[Row, ...], limit: int) -> tuple[str, str] | None:
        """The place of the last row of a page that ends within the queue."""
        last = self._store.records((rows[limit - 1].id,)) if limit else ()
        return (f"{_QUEUED}{turn(last[0])}", last[0].id) if last else None

    def held_back(self, **filters: Unpack[Filters]) -> tuple[Row, ...]:
        """Every unfinished task that cannot be claimed now, or not by that agent, and why."""
        policy, now = self._environment.policy, self._environment.clock.now()
        held = explain.held_back(self._store, policy, self._models.query(**filters), now)
        late = {
            one.task.id: f"{one.task.id} is {one.what}; a claim of it recovers the run"
            for one in ended(self._environment)
        }
        held = tuple(Row(**{**row, "reason": late[row.id]}) if row.id in late else row for row in held)
        agent = filters.get("agent")
        chart = self._chart.bound(agent)
        if chart is None or agent is None:
            return held
        found = self._store.find(self._models.runnable(self._models.query(**filters))).tasks
        why = ((task, routing.refusal(chart, routing.work_of(task.routing, task.profile), agent)) for task in found)
        return (*held, *(Row.of(task, f"{agent} may not take it: {reason}") for task, reason in why if reason))

    def offers(self, agent: str) -> Iterator[str]:
        """What the agent could claim, most urgent first, looked up again as long as something new turns up."""
        yield from (task.id for task in self._beside(agent, self._open_hops()))
        offered: set[str] = set()
        may_take = self._chart.may_take(agent)
        while True:
            query = self._models.query(agent=agent, limit=_CANDIDATES + 2 * len(offered))
            found = self._store.find(self._models.runnable(query).but(counted=False)).tasks
            fresh = [task for task in found if task.id not in offered]
            if not fresh:
                return
            offered.update(task.id for task in fresh)
            yield from (task.id for task in fresh if may_take(task))

    def running_under(self, key: str) -> Task | None:
        """The running task that was claimed with this key, or a hop of it."""
        running = self._store.find(self._models.query(status="in-progress")).tasks
        return next((task for task in running if any(one.key == key for one in workflow.leases(task))), None)

    def _waiting(self, behind: tuple[str, ...] | None, **filters: Unpack[Filters]) -> Rows:
        query, agent = self._models.query(**filters), filters.get("agent")
        place = (behind[0][1:], behind[1]) if behind is not None else None
        runnable = self._models.runnable(query).but(behind=place)
        if self._chart.bound(agent) is None or agent is None:
            return self._models.page(runnable)
        may_take = self._chart.may_take(agent)
        found = self._store.find(runnable.but(limit=None, behind=None)).tasks
        kept = [task for task in found if may_take(task)]
        rest = [task for task in kept if place is None or (turn(task), task.id) > place]
        shown = rest[: query.limit]
        end = (turn(shown[-1]), shown[-1].id) if shown and len(rest) > len(shown) else None
        return Rows(dict(Counter(task.status for task in kept)), self._models.rows(shown), end)

    def _open_hops(self, **filters: Unpack[Filters]) -> Query:
        query = self._models.query(**filters)
        return query.but(agent=None, limit=None, open_hops=True, order="schedule", counted=False)

    def _beside(self, agent: str | None, open_hops: Query) -> list[Task]:
        found = self._store.find(open_hops).tasks
        may_take = self._chart.may_take(agent) if found and agent is not None else lambda _task: True
        return [task for task in found if may_take(task)]
