"""What could be claimed right now, by anybody or by one agent, and why the rest could not.

What is under way comes first: a free hop of a gated task that runs. Must not change anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.app.queries import explain
from aof.app.queries.lists import Listed
from aof.core.model import workflow_state
from aof.core.org import routing, work_profile
from aof.ports.lists import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from aof.app.commands.environment import Environment
    from aof.app.queries.filters import Filters
    from aof.core.model.task import Task
    from aof.ports.lists import Query

_CANDIDATES = 16


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
        listed = self._waiting(**filters)
        open_hops = self._open_hops(**filters)
        if not self._store.rows(open_hops).rows:
            return listed
        beside, limit = self._beside(filters.get("agent"), open_hops), filters.get("limit")
        rows = (*self._models.rows(beside), *listed.tasks)
        return Listed(total=listed.total + len(beside), tasks=rows if limit is None else rows[:limit])

    def held_back(self, **filters: Unpack[Filters]) -> tuple[Row, ...]:
        """Every unfinished task that cannot be claimed now, or not by that agent, and why."""
        policy, now = self._environment.policy, self._environment.clock.now()
        held = explain.held_back(self._store, policy, self._models.query(**filters), now)
        agent = filters.get("agent")
        chart = self._chart.bound(agent)
        if chart is None or agent is None:
            return held
        found = self._store.find(self._models.runnable(self._models.query(**filters))).tasks
        why = (
            (task, routing.refusal(chart, work_profile.work_of(task.routing, task.profile), agent)) for task in found
        )
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
        return next((task for task in running if any(one.key == key for one in workflow_state.leases(task))), None)

    def _waiting(self, **filters: Unpack[Filters]) -> Listed:
        query, agent = self._models.query(**filters), filters.get("agent")
        if self._chart.bound(agent) is None or agent is None:
            waiting = self._models.listed(self._models.runnable(query))
            return Listed(total=waiting.total, tasks=waiting.tasks)
        may_take = self._chart.may_take(agent)
        found = self._store.find(self._models.runnable(query.but(limit=None))).tasks
        kept = [task for task in found if may_take(task)]
        return Listed(total=len(kept), tasks=self._models.rows(kept[: query.limit]))

    def _open_hops(self, **filters: Unpack[Filters]) -> Query:
        query = self._models.query(**filters)
        return query.but(agent=None, limit=None, open_hops=True, order="schedule", counted=False)

    def _beside(self, agent: str | None, open_hops: Query) -> list[Task]:
        found = self._store.find(open_hops).tasks
        may_take = self._chart.may_take(agent) if found and agent is not None else lambda _task: True
        return [task for task in found if may_take(task)]
