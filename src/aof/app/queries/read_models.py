"""Read models: lists, and one task with all that belongs to it. Changes nothing, except that it imports edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from aof.app.queries import explain, output
from aof.app.queries.lists import Listed, Summary
from aof.core.errors.base import InvalidInput
from aof.core.errors.tasks import UnreadableTask
from aof.core.model import times
from aof.core.model.lifecycle import STATUSES
from aof.core.runs import lease_clock
from aof.core.tasks import normalized_status
from aof.ports import store
from aof.ports.lists import Query, Row, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.org.chart_in_force import ChartInForce
    from aof.app.queries.lookup import Lookup
    from aof.core.errors.base import AofError
    from aof.core.model.handoffs.record import Handoff
    from aof.core.model.policy import Policy
    from aof.core.model.run import Heartbeat
    from aof.core.model.task import Task
    from aof.ports.clock import Clock
    from aof.ports.store import Store, Unit


_EXPLAINED = 200  # rows of a list that say what they wait for; those after them only say that they do


class ReadModels:
    """What lists and views are made of."""

    def __init__(self, store: Store, clock: Clock, policy: Policy, chart: ChartInForce, lookup: Lookup) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._chart = chart
        self._lookup = lookup

    def query(
        self,
        *,
        status: str | Sequence[str] | None = None,
        agent: str | None = None,
        tag: str | None = None,
        search: str | None = None,
        limit: int | None = None,
        archived: bool = False,
    ) -> Query:
        """The filters that all lists share, checked."""
        wanted = (status,) if isinstance(status, str) else tuple(status or ())
        for name in wanted:
            if name not in STATUSES:
                there = ", ".join(STATUSES)
                raise InvalidInput(
                    f"'status' cannot be {name[:80]!r}; choose one of {there}", "leave 'status' out for all of them"
                )
        if not _is_count(limit):
            raise InvalidInput(f"limit {limit!r} is not a whole number from zero up", "give a number such as 20")
        return Query(status=wanted, agent=agent, tag=tag, search=search, limit=limit, archived=archived)

    def listed(self, query: Query) -> Listed:
        """Tasks in the order of their IDs."""
        page = self._page(query)
        return Listed(total=page.total, tasks=page.rows)

    def runnable(self, query: Query) -> Query:
        """The query for tasks that wait for nothing."""
        slots = self._policy.resource_slots
        used = dict.fromkeys(slots, 0) | self._store.resources_in_use()
        busy = tuple(resource for resource, count in used.items() if count >= slots.get(resource, 1))
        return query.but(
            runnable_at=times.iso(self._clock.now()),
            busy_resources=busy,
            order="schedule",
            unrouted_too=query.agent is not None,
        )

    def blocked(self, query: Query) -> Listed:
        """What is blocked, and why."""
        return self.listed(query.but(status=("blocked",)))

    def summary(self, query: Query, *, compact: bool = False) -> Summary:
        """Counts by status; the tasks too, unless it should be short."""
        page = self._page(query.but(limit=0) if compact else query)
        return Summary(total=page.total, by_status=page.by_status, tasks=page.rows)

    def _page(self, query: Query) -> Rows:
        """Rows as the store has them; records are read only where there is something to note of them."""
        if self._chart.noting() is None:
            page = self._store.rows(query)
        else:
            found = self._store.find(query)
            page = Rows(found.by_status, self.rows(found.tasks))
        self._explain(query, page)
        return page

    def _explain(self, query: Query, page: Rows) -> None:
        """Say of each task in `ready` that cannot be claimed what it waits for."""
        queued = [row for row in page.rows if row.status == "ready"]
        if not queued or query.runnable_at is not None:
            return
        free = self._store.rows(self.runnable(query.but(status=("ready",), limit=None, offset=0, counted=False)))
        claimable = {row.id for row in free.rows}
        waiting = [row for row in queued if row.id not in claimable]
        if waiting:
            now = self._clock.now()
            told = explain.waits(self._store, self._policy, [row.id for row in waiting[:_EXPLAINED]], now)
            for row in waiting:
                row["waits"] = told.get(row.id, "waits")

    def rows(self, tasks: Iterable[Task]) -> tuple[Row, ...]:
        """Tasks as lines, each with why it is blocked or what else is to be noted of it."""
        note = self._chart.noting() or (lambda _task: None)
        files = self._store.working_copy
        return tuple(
            Row.of(
                task,
                task.blocked.reason if task.blocked else note(task),
                files.file_status(task) if files is not None else None,
            )
            for task in tasks
        )

    def show(self, task_id: str) -> dict[str, Any]:
        """The whole of one task; with `problem`, where its file holds something that cannot be imported."""
        task, problem = self._known(task_id)
        own = frozenset({task.id})
        with self._store.unit(store.Scope(read=own) if problem is None else store.Scope(write=own)) as unit:
            heartbeat, result = _last_beat(unit, task), unit.result(task.id)
            relationships = _relationships(task, unit.children(task.id), unit.dependents(task.id))
            handed = unit.handoffs(task.id) if any(link.kind == "handoff" for link in task.links) else ()
        shown: dict[str, Any] = msgspec.to_builtins(task)
        shown.pop("layout", None)
        shown.pop("archived", None)
        shown |= {"body": task.body, "filePath": self._store.path_of(task)}
        now = self._clock.now()
        shown["normalizedStatus"] = normalized_status.normalized_status(
            task, lease_clock.present(heartbeat, now, self._clock.boot()), now
        )
        runs = self._store.attempts(task.id)
        if problem is not None:
            shown["normalizedStatus"] = "stale" if "reason" in problem.details else "unknown"
            shown["problem"] = {"code": problem.code, "message": problem.message, "hint": problem.hint}
        shown["attempts"] = [msgspec.to_builtins(run) for run in runs]
        if runs and (end := output.end_of(self._store, runs[-1])):
            shown["attempts"][-1]["end"] = end
        if waits := explain.waits(self._store, self._policy, (task.id,), now) if task.status == "ready" else {}:
            shown["waits"] = waits[task.id]
        shown["relationships"] = relationships
        if handed:
            shown["handoffs"] = [_handed(one) for one in handed]
        shown["progress"] = task.progress or {"state": "unknown"}
        if isinstance(result, msgspec.Struct):
            shown["result"] = msgspec.to_builtins(result)
        return shown

    def _known(self, task_id: str) -> tuple[Task, AofError | None]:
        """The task as it is, else as the log has it, with what is wrong about its file."""
        try:
            return self._lookup.get(task_id), None
        except UnreadableTask as problem:
            name = self._lookup.resolve(task_id)
            with self._store.unit(store.Scope(write=frozenset({name}))) as unit:
                task = unit.task(name)
            if task is None:
                raise
            return task, problem


def _handed(one: Handoff) -> dict[str, str]:
    """A handoff in short; its own operation shows the rest."""
    return {"id": one.id, "type": one.type, "state": one.state, "fromAgent": one.from_agent, "toAgent": one.to_agent}


def _last_beat(unit: Unit, task: Task) -> Heartbeat | None:
    """The sign of life of its run; of several hops the one that lasts longest."""
    beats = [beat for place in task.run_places if (beat := unit.heartbeat(place)) is not None]
    return max(beats, key=lambda beat: beat.expires_at, default=None)


def _is_count(given: object) -> bool:
    return given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 0)


def _relationships(task: Task, children: tuple[str, ...], dependents: tuple[str, ...]) -> list[dict[str, str]]:
    edges = [("parent", task.parent_id)] if task.parent_id else []
    edges += [("child", child) for child in children]
    edges += [("blocked_by", blocker) for blocker in task.depends_on]
    edges += [("blocks", dependent) for dependent in dependents]
    edges += [(link.kind, link.target_id) for link in task.links]
    return [{"kind": kind, "targetId": target} for kind, target in edges]
