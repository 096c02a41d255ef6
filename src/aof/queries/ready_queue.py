"""The ready queue: what could be claimed right now, as each agent sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aof.errors import AofError
from aof.kernel import commands, identity
from aof.kernel.model import PRIORITIES, STATUSES
from aof.org import routing
from aof.queries import ended_leases as ended
from aof.queries import read_models, views
from aof.queries.read_models import Listed
from aof.store.lists import Query, Row, Rows
from aof.workflows import hops
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Unpack

    from aof.api.fabric import Fabric
    from aof.kernel.context import Environment, Principal
    from aof.queries.ended_leases import EndedLease
    from aof.queries.operations import Filters
    from aof.tasks.model import Task
    from aof.workflows.model import HopState


_CANDIDATES = 16
_AT_HOPS, _QUEUED = "0", "1"  # in the order of the ready queue, hops of what runs come before what waits


def queue_order(task: Task) -> str:
    """What the queue is ordered by: urgency, then age."""
    return f"{PRIORITIES.index(task.priority)}{task.created_at}"


def unrecovered_leases(environment: Environment) -> Iterator[EndedLease]:
    """The leases that have ended and that nobody has recovered: a claim does. Where nothing runs, nothing is loaded."""
    if not environment.store.rows(Query(status=("in-progress",), limit=1, counted=False)).rows:
        return iter(())
    return ended.ended_leases(environment)


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
    """The queue as each agent sees it; what the caller may not claim for an agent is not in that agent's."""

    def __init__(self, environment: Environment, principal: Principal) -> None:
        self._environment = environment
        self._principal = principal
        self._store = environment.store
        self._models = environment.read_models
        self._chart = environment.chart

    def ready(self, **filters: Unpack[Filters]) -> Listed:
        """What could be claimed right now, most urgent first; with `agent`, by that one.

        A gated task that runs is among it where a hop of it is free.
        """
        cursor, limit = filters.pop("cursor", None), filters.get("limit")
        behind = read_models.found_in("ready", cursor, 2) if cursor is not None else None
        agent = filters.get("agent")
        at_hops = self._waiting_at_hops(**filters)
        refused = tuple(
            task.id for task in at_hops if agent is not None and isinstance(self._hop(task, agent), AofError)
        )
        waiting = self._waiting(refused, behind if behind is not None and behind[0][:1] == _QUEUED else None, **filters)
        open_hops = self._open_hops(**filters)
        beside = self._beside(agent, open_hops) if self._store.rows(open_hops).rows else []
        total = waiting.total + len(beside)
        places = [(f"{_AT_HOPS}{queue_order(task)}", task.id) for task in beside]
        left = [task for task, place in zip(beside, places, strict=True) if behind is None or place > behind]
        rows = (*self._models.rows(left), *waiting.rows)
        self._say_hops(rows, (*left, *at_hops), agent)
        if limit is None or len(rows) <= limit:
            return Listed(total=total, tasks=rows, next_cursor=self._further(waiting) if limit else None)
        end = places[len(beside) - len(left) + limit - 1] if 0 < limit <= len(left) else self._end(rows, limit)
        return Listed(total=total, tasks=rows[:limit], next_cursor=read_models.place_in("ready", *end) if end else None)

    def _further(self, waiting: Rows) -> str | None:
        """The cursor behind a whole page of the queue, where others follow it."""
        return read_models.place_in("ready", f"{_QUEUED}{waiting.end[0]}", waiting.end[1]) if waiting.end else None

    def _end(self, rows: tuple[Row, ...], limit: int) -> tuple[str, str] | None:
        """The place of the last row of a page that ends within the queue."""
        last = self._store.records((rows[limit - 1].id,)) if limit else ()
        return (f"{_QUEUED}{queue_order(last[0])}", last[0].id) if last else None

    def held_back(self, **filters: Unpack[Filters]) -> tuple[Row, ...]:
        """Every unfinished task that cannot be claimed now, or not by that agent, and why."""
        policy, now = self._environment.policy, self._environment.clock.now()
        agent = filters.get("agent")
        query = self._models.query(**filters).but(unrouted_too=agent is not None)
        held = views.held_back(self._store, policy, query, now)
        late = {
            one.task.id: f"{one.task.id} is {one.what}; a claim of it recovers the run"
            for one in unrecovered_leases(self._environment)
        }
        held = tuple(Row(**{**row, "reason": late[row.id]}) if row.id in late else row for row in held)
        if agent is None:
            return held
        offered = ((task, self._hop(task, agent)) for task in self._waiting_at_hops(**filters))
        at_hops = {task.id: Row.of(task, hop.message) for task, hop in offered if isinstance(hop, AofError)}
        held = (*(row for row in held if row.id not in at_hops), *at_hops.values())
        chart = self._chart.bound(agent)
        if chart is None:
            return held
        found = self._store.find(self._models.runnable(self._models.query(**filters))).tasks
        why = (
            (task, routing.routing_refusal(chart, routing.work_of(task.routing, task.profile), agent)) for task in found
        )
        told = (Row.of(task, f"{agent} may not take it: {reason}") for task, reason in why if reason)
        return (*held, *(row for row in told if row.id not in at_hops))

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

    def reviews(self, agent: str) -> list[tuple[Task, HopState]]:
        """The hops in which the agent could judge what others did, or does so already."""
        running = self._store.find(self._models.query(status="in-progress")).tasks
        tasks = (*(task for task in running if task.gated), *self._waiting_at_hops())
        found = ((task, self.review(task, agent)) for task in tasks)
        return [(task, hop) for task, hop in found if hop is not None and not isinstance(hop, AofError)]

    def review(self, task: Task, agent: str) -> HopState | AofError | None:
        """The hop in which the agent judges what others did, or why it may not; None where none such is open."""
        flow = workflows_model.workflow_of(task)
        judging = [hop for hop in flow.hops if hops.authors_of(flow, hop.id)]
        held = next((hop for hop in judging if hop.lease is not None and hop.lease.agent == agent), None)
        if held is not None or not any(hop.status == "ready" for hop in judging):
            return held
        offered = self._hop(task, agent)
        return offered if isinstance(offered, AofError) or offered in judging else None

    def running_under(self, key: str) -> Task | None:
        """The running task that was claimed with this key, or a hop of it."""
        running = self._store.find(self._models.query(status="in-progress")).tasks
        return next((task for task in running if any(one.key == key for one in workflows_model.leases(task))), None)

    def _waiting_at_hops(self, **filters: Unpack[Filters]) -> tuple[Task, ...]:
        """The gated tasks of the queue; where there are none, nothing is loaded."""
        query = self._models.runnable(self._models.query(**filters)).but(at_hops=True, limit=None, counted=False)
        return self._store.find(query).tasks if self._store.rows(query.but(limit=1)).rows else ()

    def _hop(self, task: Task, agent: str) -> HopState | AofError:
        """The hop that a claim by the caller for this agent would take, or why there is none."""
        caller, who = self._principal, self._principal.identity
        command = commands.Claim(
            actor=caller.actor,
            agent=agent,
            task_id=task.id,
            session=None if who is None else identity.name_of(who) or who.session,
            unnamed=who is None and caller.is_default(self._environment.place),
        )
        known = commands.Records(policy=self._chart.readable_policy())
        return hops.chosen(known, task, command, self._environment.clock.now())

    def _say_hops(self, rows: Iterable[Row], tasks: Iterable[Task], agent: str | None) -> None:
        """Say in each row of a gated task which hop is offered, and whose work it judges."""
        gated = {task.id: task for task in tasks}
        for row in rows:
            if (task := gated.get(row.id)) is None:
                continue
            flow = workflows_model.workflow_of(task)
            offered = self._hop(task, agent) if agent is not None else None
            free = next((hop for hop in flow.hops if hop.status == "ready"), None)
            hop = free if offered is None or isinstance(offered, AofError) else offered
            if hop is not None:
                row.offer(hop.id, hop.role, hops.authors_of(flow, hop.id))

    def _waiting(self, refused: tuple[str, ...], behind: tuple[str, ...] | None, **filters: Unpack[Filters]) -> Rows:
        query, agent = self._models.query(**filters), filters.get("agent")
        place = (behind[0][1:], behind[1]) if behind is not None else None
        runnable = self._models.runnable(query).but(behind=place, without=refused)
        if self._chart.bound(agent) is None or agent is None:
            return self._models.page(runnable)
        may_take = self._chart.may_take(agent)
        found = self._store.find(runnable.but(limit=None, behind=None)).tasks
        kept = [task for task in found if may_take(task)]
        rest = [task for task in kept if place is None or (queue_order(task), task.id) > place]
        shown = rest[: query.limit]
        end = (queue_order(shown[-1]), shown[-1].id) if shown and len(rest) > len(shown) else None
        return Rows(dict(Counter(task.status for task in kept)), self._models.rows(shown), end)

    def _open_hops(self, **filters: Unpack[Filters]) -> Query:
        query = self._models.query(**filters)
        return query.but(agent=None, limit=None, open_hops=True, order="schedule", counted=False)

    def _beside(self, agent: str | None, open_hops: Query) -> list[Task]:
        found = self._store.find(open_hops).tasks
        may_take = self._chart.may_take(agent) if found and agent is not None else lambda _task: True
        return [
            task
            for task in found
            if may_take(task) and not (agent is not None and isinstance(self._hop(task, agent), AofError))
        ]
