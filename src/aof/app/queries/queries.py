"""Everything that can be asked without changing anything, the same on every surface.

What a question rarely needs is loaded when it is asked. Must not know which store is in use.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.app.commands import unit_of_work
from aof.app.queries import explain, history
from aof.app.queries.read_models import Reading
from aof.core.errors import tasks as task_errors
from aof.core.errors.base import Call
from aof.ports.progress import Say, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.queries.graph import Drawing
    from aof.app.queries.lists import Listed, Summary
    from aof.core.model.events import Event
    from aof.core.model.policy import Policy
    from aof.core.model.task import Task
    from aof.ports.clock import Clock
    from aof.ports.lists import Row
    from aof.ports.store import Store


class Questions:
    """The reading half of a fabric."""

    def __init__(self, store: Store, clock: Clock, policy: Policy) -> None:
        self.store = store
        self._clock = clock
        self._policy = policy
        self._reading = Reading(store, clock, policy)

    def now(self) -> int:
        """What time it is for this fabric, in UTC milliseconds."""
        return self._clock.now()

    def resolve(self, part: str) -> str:
        """The full ID that a part of one stands for."""
        return self._reading.resolve(part)

    def get(self, task_id: str) -> Task:
        """The task as a record."""
        task = unit_of_work.look(self.store, self._clock, self._policy, self.resolve(task_id))
        if task is None:
            raise task_errors.TaskNotFound(
                f"there is no task {task_id}", "list what there is", Call("list", {}), asked=task_id
            )
        return task

    def show(self, task_id: str, *, at: int | None = None) -> dict[str, Any]:
        """The whole of one task, with attempts and relationships; `at` an event: as it was then."""
        if at is None:
            return self._reading.show(task_id)

        return history.portrait(history.task_at(self.store, self.resolve(task_id), at))

    def list(self, **filters: Any) -> Listed:
        """Tasks by `status`, `agent`, `tag`, `search`, `limit`, `archived`."""
        return self._reading.listed(self._reading.query(**filters))

    def ready(self, **filters: Any) -> Listed:
        """What could be claimed right now, most urgent first."""
        return self._reading.ready(self._reading.query(**filters))

    def held_back(self, **filters: Any) -> tuple[Row, ...]:
        """Every unfinished task that cannot be claimed now, and what it waits for."""
        return explain.held_back(self.store, self._policy, self._reading.query(**filters), self._clock.now())

    def running(self) -> tuple[Task, ...]:
        """The tasks that somebody holds."""
        return self.store.find(self._reading.query(status="in-progress")).tasks

    def replay(self, at: int, *, say: Say = silent) -> dict[str, Any]:
        """All tasks as they were after an event."""
        return {"seq": at, "tasks": [history.portrait(task) for task in history.tasks_at(self.store, at, say).values()]}

    def graph(self, task_id: str | None = None, *, form: str = "tree") -> Drawing:
        """The task graph, or the part of it around one task, as `tree`, `mermaid`, `dot` or `svg`."""
        from aof.app.queries.graph import draw

        root = self.get(task_id).id if task_id is not None else None
        return draw(list(self.store.find(self._reading.query()).tasks), root, form)

    def blocked(self, **filters: Any) -> Listed:
        """What is blocked, and why."""
        return self._reading.blocked(self._reading.query(**filters))

    def status(self, *, compact: bool = False, **filters: Any) -> Summary:
        """Counts by status."""
        return self._reading.summary(self._reading.query(**filters), compact=compact)

    def events(self, *, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        """The durable events in order, of all tasks or of one."""
        return self.store.events(after, self.resolve(task_id) if task_id else None)

    def follow(self, *, after: int = 0, timeout: float = 60.0) -> Iterator[Event]:
        """Events as they come; ends when nothing came for so long."""
        while self.store.wait(after, timeout):
            for event in self.store.events(after):
                after = event.seq
                yield event
