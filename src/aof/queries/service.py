"""Everything that can be asked without changing anything, and what a run printed. Must not know the store in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from aof.errors import Call, InvalidInput, NoSuchAttempt
from aof.kernel import limits as kernel_limits
from aof.kernel.model import Stream
from aof.kernel.results import Printed
from aof.queries import history as queries_history
from aof.queries import views
from aof.runs import model as runs_model
from aof.runs.model import OUTPUT_FILES, Run
from aof.store import port
from aof.store.port import Store
from aof.support.printable import Say, silent
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from aof.kernel.context import Environment
    from aof.kernel.declarations import Filters
    from aof.kernel.model import Event, GraphForm, Priority, Status
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
        return output_piece(
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


LARGEST_PIECE = 65_536  # bytes
_CONTINUES, _CONTINUATION = 0b1100_0000, 0b1000_0000
_LONGEST_CHARACTER = 4
_LAST_WORDS, _LAST_LINES = 2_000, 5


def output_piece(
    store: Store, task_id: str, *, attempt: int | None, stream: Stream, offset: int, limit: int
) -> Printed:
    """The next piece of a run's output, whole characters only; the last run's where no attempt is named."""
    if stream not in OUTPUT_FILES:
        raise InvalidInput(f"there is no stream '{stream[:80]}'", kernel_limits.choices("stream", tuple(OUTPUT_FILES)))
    if offset < 0 or not _LONGEST_CHARACTER <= limit <= LARGEST_PIECE:
        raise InvalidInput(
            f"offset {offset} and limit {limit} are not possible",
            f"begin at 0 and read from {_LONGEST_CHARACTER} to {LARGEST_PIECE:,} bytes at a time",
        )
    run = _run(store, task_id, attempt)
    data, size = store.output(run, stream, offset, limit)
    ended = _over(store, run)
    data = data if ended and offset + len(data) >= size else _whole(data)
    after = offset + len(data)
    return Printed(
        task_id=task_id,
        run_id=run.run_id,
        attempt=run.attempt,
        stream=stream,
        offset=offset,
        next_offset=after,
        size=size,
        ended=ended and after >= size,
        text=data.decode("utf-8", "replace"),
    )


def end_of(store: Store, run: Run) -> dict[str, Any]:
    """How the process of a run that came to nothing ended, its last words, and where all that it printed lies."""
    if run.worker == "pull" or run.status in ("running", "completed"):
        return {}
    history = store.events(task_id=run.task_id)
    payload = next((one.payload for one in history if one.type == "run.exited" and one.run_id == run.run_id), None)
    if payload is None:
        return {}
    _, size = store.output(run, "stderr", 0, 0)
    data, _ = store.output(run, "stderr", max(size - _LAST_WORDS, 0), _LAST_WORDS)
    lines = data.decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
    found: dict[str, Any] = {name: payload[name] for name in ("exitCode", "signal", "stopped") if name in payload}
    kept = {name: told["path"] for name, told in payload["output"].items() if told.get("path")}
    return found | {"lastErrors": lines, "paths": kept}


def _run(store: Store, task_id: str, attempt: int | None) -> Run:
    runs = store.attempts(task_id)
    found = runs[-1:] if attempt is None else [one for one in runs if one.attempt == attempt]
    if not found:
        which = f"no attempt {attempt}" if attempt is not None else "not been run yet"
        raise NoSuchAttempt(f"{task_id} has {which}", "see its attempts", Call("show", {"task_id": task_id}))
    return found[0]


def _over(store: Store, run: Run) -> bool:
    """Whether nothing more can come: a worker process may print after it has reported, until it has exited."""
    if run.status == "running" or run.worker == "pull":
        return run.status != "running"
    history = store.events(task_id=run.task_id)
    return any(event.type == "run.exited" and event.run_id == run.run_id for event in history)


def _whole(data: bytes) -> bytes:
    """Without a character whose last bytes have not come yet."""
    for back in range(1, min(_LONGEST_CHARACTER, len(data)) + 1):
        first = data[-back]
        if first & _CONTINUES == _CONTINUATION:
            continue
        needed = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4  # noqa: PLR2004 - UTF-8
        return data[:-back] if needed > back else data
    return data
