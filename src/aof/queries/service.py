"""Everything that can be asked without changing anything. Must not know the store in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from aof.queries import history as queries_history
from aof.queries import views
from aof.runs import model as runs_model
from aof.runs import output as printed_output
from aof.store import port
from aof.support.printable import Say, silent
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from aof.kernel.context import Environment
    from aof.kernel.declarations import Filters
    from aof.kernel.events import Event
    from aof.kernel.kinds import GraphForm, Priority, Status, Stream
    from aof.kernel.results import Printed
    from aof.queries.read_models import Listed, Summary
    from aof.queries.views import Drawing
    from aof.tasks.model import Task


_NOT_TAKEN_YET = ("backlog", "ready")


class QueryService:
    """Lists, one task, the history, the graph."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._store = environment.store
        self._models = environment.read_models

    def resolve(self, part: str) -> str:
        """The full ID that a part of one stands for."""
        return self._environment.lookup.resolve(part)

    def get(self, task_id: str) -> Task:
        """The task as a record."""
        return self._environment.lookup.get(task_id)

    def show(self, task_id: str, *, at: int | str | None = None, full: bool = True) -> dict[str, Any]:
        """The whole of one task, with attempts and relationships; `at` an event: as it was then. Else in short."""
        if at is not None:
            seq = queries_history.number_of(self._store, at)
            return queries_history.portrait(queries_history.task_at(self._store, self.resolve(task_id), seq))
        shown = self._models.show(self.resolve(task_id))
        if shown["status"] in _NOT_TAKEN_YET and self._environment.chart.readable() is not None:
            warning = self._environment.chart.no_route(self.get(shown["id"]))
            if warning is not None:
                shown["warning"] = msgspec.to_builtins(warning)
        return shown if full else views.outline(shown)

    def output(
        self,
        task_id: str,
        *,
        attempt: int | None = None,
        stream: Stream = "stdout",
        offset: int = 0,
        limit: int = 65_536,
    ) -> Printed:
        """What a run printed, from an offset on; without an `attempt`, what the last run did."""
        return printed_output.output_piece(
            self._store, self.resolve(task_id), attempt=attempt, stream=stream, offset=offset, limit=limit
        )

    def list(self, *, waits: bool | None = None, full: bool = False, **filters: Unpack[Filters]) -> Listed:
        """Tasks by `status`, `agent`, `tag`, `search`, `limit`, `archived`; in `full` as a board's card has it."""
        return self._models.listed(self._models.query(**filters), waits=waits, full=full)

    def search(
        self,
        text: str,
        *,
        status: Status | None = None,
        agent: str | None = None,
        tag: str | None = None,
        priority: Priority | None = None,
        archived: bool = False,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Listed:
        """Tasks whose title, description, comments or work log have these words; title matches and newer ones first."""
        from aof.queries import views

        query = self._models.query(
            search=views.checked_search(text),
            status=status,
            agent=agent,
            tag=tag,
            priority=priority,
            archived=archived,
            limit=limit,
            sort="relevance",
            reverse=True,
            cursor=cursor,
        )
        listed = self._models.listed(query)
        views.explain_matches(self._store, listed.tasks, text)
        return listed

    def blocked(self, **filters: Unpack[Filters]) -> Listed:
        """What is blocked, and why."""
        return self._models.blocked(self._models.query(**filters))

    def status(self, *, compact: bool = False, **filters: Unpack[Filters]) -> Summary:
        """Counts by status."""
        return self._models.summary(self._models.query(**filters), compact=compact)

    def claimable(self, **filters: Unpack[Filters]) -> int:
        """How many tasks in `ready` wait for nothing."""
        return self._models.listed(self._models.runnable(self._models.query(**filters)).but(limit=0)).total

    def running(self) -> tuple[Task, ...]:
        """The tasks that somebody holds."""
        return self._store.find(self._models.query(status="in-progress")).tasks

    def tasks(self, **filters: Unpack[Filters]) -> tuple[Task, ...]:
        """Whole records, without their bodies: for views that draw more of a task than a row has."""
        return self._store.find(self._models.query(**filters)).tasks

    def branches(self, **filters: Unpack[Filters]) -> Sequence[tuple[str, str]]:
        """The IDs of the tasks that match, children below their parents, each with the branch that leads to it."""
        return views.branches({task.id: task.parent_id for task in self.tasks(**filters)})

    def relatives(self, task_ids: Sequence[str]) -> dict[str, Task]:
        """Some tasks as the log knows them; whatever is not there, or waits with an edit, is left out."""
        found: dict[str, Task] = {}
        for task_id in task_ids:
            try:
                with self._store.unit(port.Scope(read=frozenset({task_id}))) as unit:
                    task = unit.task(task_id)
            except port.ScopeTooNarrow:
                continue
            if task is not None:
                found[task_id] = task
        return found

    def lease_ends(self, task_ids: Sequence[str]) -> dict[str, int]:
        """When each lease ends, in UTC milliseconds, with the last sign of life counted in.

        The lease of a task goes by its ID, that of a hop by the place of its run, `ID/hops/HOP`.
        """
        ends: dict[str, int] = {}
        for task_id in task_ids:
            try:
                with self._store.unit(port.Scope(read=frozenset({task_id}))) as unit:
                    task = unit.task(task_id)
                    for place, lease in workflows_model.held_leases(task) if task is not None else ():
                        ends[place] = runs_model.lease_end(lease, unit.heartbeat(place))
            except port.ScopeTooNarrow:
                continue
        return ends

    def replay(self, at: int | str, *, say: Say = silent) -> dict[str, Any]:
        """All tasks as they were after an event, which is named by its number or its hash."""
        seq = queries_history.number_of(self._store, at)
        tasks = queries_history.tasks_at(self._store, seq, say).values()
        return {"seq": seq, "tasks": [queries_history.portrait(task) for task in tasks]}

    def graph(self, task_id: str | None = None, *, form: GraphForm = "tree") -> Drawing:
        """The task graph, or the part of it around one task, as `tree`, `mermaid`, `dot` or `svg`."""
        root = self.get(task_id).id if task_id is not None else None
        return views.draw([*self._store.find(self._models.query()).tasks], root, form)

    def events(self, *, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        """The durable events in order, of all tasks or of one."""
        return self._store.events(after, self.resolve(task_id) if task_id else None)

    def follow(self, *, after: int = 0, timeout: float = 60.0) -> Iterator[Event]:
        """Events as they come; ends when nothing came for so long."""
        while self._store.wait(after, timeout):
            for event in self._store.events(after):
                after = event.seq
                yield event
