"""Work over time: runs on a timeline, how tasks flow through statuses, one task at each of its events.

Everything but one task's own history comes from tables that follow the log. Must not know any surface.
"""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec import UNSET

from aof.app.queries import cursors
from aof.app.queries.history import number_of
from aof.app.supervision import results
from aof.core.errors.base import Call, InvalidInput
from aof.core.errors.tasks import TaskNotFound
from aof.core.evolve.task import evolve
from aof.core.model import times
from aof.core.model.events import is_remark
from aof.core.model.lifecycle import STATUSES
from aof.core.runs.chronicle import SpanQuery
from aof.core.validation import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from aof.app.commands.context import Environment
    from aof.app.supervision.results import Flow, TaskMoment, TimelinePage, TimelineRow
    from aof.core.model.task import Task
    from aof.core.runs.chronicle import AgentRuns, FlowFacts, RunSpan

_DAY_MS = 86_400_000
_UNCHANGING = ("rev", "updatedAt")
_HIDDEN = ("layout", "archived")


class ChronicleService:
    """Answers questions about the past."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._store = environment.store
        self._clock = environment.clock

    def timeline(
        self,
        *,
        task_id: str | None = None,
        agent: str | None = None,
        since: str | None = None,
        before: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> TimelinePage:
        """Runs, latest first: of one task or agent, or active in a period. Working and waiting are separate."""
        if problem := limits.whole("limit", limit, 0, results.MOST_ROWS):
            raise problem
        now = self._clock.now()
        query = SpanQuery(
            task_id=self._environment.lookup.resolve(task_id) if task_id is not None else None,
            agent=agent,
            since=self._moment("since", since),
            before=self._moment("before", before),
            behind=cursors.number_in("timeline", cursor) if cursor is not None else None,
            limit=limit + 1,
        )
        page = self._store.run_spans(query)
        shown = page.spans[:limit]
        titles = {task.id: task.title for task in self._store.records({one.task_id for one in shown})}
        more = cursors.place_in("timeline", str(shown[-1].seq)) if shown and len(page.spans) > limit else UNSET
        rows = tuple(_span(one, titles.get(one.task_id, ""), now) for one in shown)
        return results.TimelinePage(total=page.total, rows=rows, now=times.iso(now), next_cursor=more)

    def _moment(self, name: str, said: str | None) -> str | None:
        if said is None:
            return None
        found = limits.moment(name, said, self._clock.now())
        if isinstance(found, InvalidInput):
            raise found
        return times.iso(times.millis(found))

    def flow(self, *, days: int = 30) -> Flow:
        """Statuses by day, throughput, how long finished tasks took, and how the runs of each agent ended."""
        if problem := limits.whole("days", days, 1, results.MOST_DAYS):
            raise problem
        today = self._clock.now()
        wanted = [times.day(today - back * _DAY_MS) for back in range(days - 1, -1, -1)]
        facts = self._store.flow_facts(wanted[0])
        rows = _days(facts, wanted)
        done = sum(row.done for row in rows)
        return results.Flow(
            days=rows,
            done=done,
            per_day=round(done / days, 2),
            lead_time=_percentiles([lead for _, lead, _ in facts.leads]),
            cycle_time=_percentiles([cycle for _, _, cycle in facts.leads]),
            agents=tuple(_agent(one) for one in facts.agents),
        )

    def task_at(self, task_id: str, *, seq: int | str | None = None) -> TaskMoment:
        """One task as it was after one of its events (else the last one), and what that event changed."""
        full = self._environment.lookup.resolve(task_id)
        last = number_of(self._store, seq) if seq is not None else None
        events = [event for event in self._store.events(task_id=full) if not is_remark(event)]
        place = max((number for number, event in enumerate(events) if last is None or event.seq <= last), default=None)
        if place is None:
            raise TaskNotFound(
                f"there was no task {full} at event {seq}", "see its events", Call("log", {"task_id": full})
            )
        before: Task | None = None
        for event in events[:place]:
            before = evolve(before, event)
        after = evolve(before, events[place])
        return results.TaskMoment(
            task_id=full,
            seq=events[place].seq,
            event=msgspec.to_builtins(events[place]),
            task=_portrait(after),
            changed=_changed(_portrait(before) if before is not None else {}, _portrait(after)),
            number=place + 1,
            events=len(events),
            first=events[0].seq,
            last=events[-1].seq,
            previous=events[place - 1].seq if place else UNSET,
            next=events[place + 1].seq if place + 1 < len(events) else UNSET,
        )


def _span(one: RunSpan, title: str, now: int) -> TimelineRow:
    end = times.millis(one.ended_at) if one.ended_at is not None else now
    start = times.millis(one.started_at)
    waited = sum(
        max(min(times.millis(wait.until) if wait.until is not None else end, end) - times.millis(wait.since), 0)
        for wait in one.waits
    )
    return results.TimelineRow(
        task_id=one.task_id,
        title=title,
        run_id=one.run_id,
        attempt=one.attempt,
        agent=one.agent,
        started_at=one.started_at,
        status=one.status,
        working=max(end - start - waited, 0) // 1000,
        waiting=waited // 1000,
        waits=tuple(
            results.WaitSpan(since=wait.since, until=wait.until or UNSET, kind=wait.kind) for wait in one.waits
        ),
        hop=one.hop or UNSET,
        ended_at=one.ended_at or UNSET,
    )


def _days(facts: FlowFacts, wanted: Sequence[str]) -> tuple[results.FlowDay, ...]:
    """The status counts at the end of each day: what had moved until then."""
    counts: Counter[str] = Counter()
    by_day: dict[str, list[tuple[str, str, int]]] = {}
    for day, source, target, tasks in facts.moves:
        if day < wanted[0]:
            _count(counts, source, target, tasks)
        else:
            by_day.setdefault(day, []).append((source, target, tasks))
    rows = []
    for day in wanted:
        moved = by_day.get(day, [])
        for source, target, tasks in moved:
            _count(counts, source, target, tasks)
        rows.append(
            results.FlowDay(
                day=day,
                by_status={status: counts[status] for status in STATUSES if counts[status]},
                created=sum(tasks for source, _, tasks in moved if not source),
                done=sum(tasks for _, target, tasks in moved if target == "done"),
            )
        )
    return tuple(rows)


def _count(counts: Counter[str], source: str, target: str, tasks: int) -> None:
    counts[target] += tasks
    if source:
        counts[source] -= tasks


def _percentiles(spans: Iterable[int]) -> results.Percentiles:
    """By the nearest rank: each is a time that some task really took."""
    ordered = sorted(spans)
    if not ordered:
        return results.Percentiles(count=0)
    ranks = {f"p{share}": ordered[-(-share * len(ordered) // 100) - 1] // 1000 for share in (50, 75, 90, 95)}
    return results.Percentiles(count=len(ordered), **ranks)


def _agent(one: AgentRuns) -> results.AgentFlow:
    kinds = ("completed", "failed", "expired", "cancelled", "released", "running")
    return results.AgentFlow(
        agent=one.agent, attempts=one.attempts, **{kind: one.by_status.get(kind, 0) for kind in kinds}
    )


def _portrait(task: Task) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(task)
    return {name: value for name, value in shown.items() if name not in _HIDDEN} | {"body": task.body}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> tuple[results.FieldChange, ...]:
    names = [name for name in (*after, *(name for name in before if name not in after)) if name not in _UNCHANGING]
    return tuple(
        results.FieldChange(field=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    )
