"""Finds a task by its ID, or by a part of it as people type it. Must not change anything but import edits."""

from __future__ import annotations

from aof.app.commands import unit_of_work
from aof.core.model.errors import AmbiguousId, Call, TaskNotFound
from aof.core.model.ids import is_part, is_task_id, task_of_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.policy import Policy
    from aof.core.model.task import Task
    from aof.ports.clock import Clock
    from aof.ports.store import Store

_SHOWN = 10  # matches that an ambiguous part is answered with


class Lookup:
    """From what a caller wrote to a task."""

    def __init__(self, store: Store, clock: Clock, policy: Policy) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy

    def resolve(self, part: str) -> str:
        """The full ID that a part of one stands for."""
        asked = _text(part)
        part = _as_meant(asked)
        if is_task_id(part):
            return part
        found = self._store.ids(part) if is_part(part) else ()
        if len(found) == 1:
            return found[0]
        padded = part.zfill(3)
        if part.isascii() and part.isdigit() and padded != part and self._store.ids(padded):
            hint, call = f"did you mean '{padded}'?", None
        elif found:
            hint, call = f"use more of the ID, such as '{found[-1].removeprefix('TASK-')}'", None
        else:
            hint, call = "list what there is", Call("list", {})
        if not found:
            raise TaskNotFound(f"there is no task {asked[:80]!r}", hint, call, asked=asked[:80])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        shown = ", ".join(found[:_SHOWN]) + more
        raise AmbiguousId(f"{part!r} stands for {len(found)} tasks: {shown}", hint, matches=list(found))

    def get(self, task_id: str) -> Task:
        """The task as a record."""
        task = unit_of_work.look(self._store, self._clock, self._policy, self.resolve(task_id))
        if task is None:
            raise TaskNotFound(f"there is no task {task_id}", "list what there is", Call("list", {}), asked=task_id)
        return task


def _text(given: object) -> str:
    """Callers without a type checker may send anything; only text can stand for a task."""
    return given.strip() if isinstance(given, str) else ""


def _as_meant(part: str) -> str:
    """The part as it is written in IDs: people type `#007` and `task-…`, and copy the IDs of runs."""
    part = part.removeprefix("#")
    upper = part.upper()
    # The random part of a run's ID is in lower case.
    task = task_of_run(f"RUN{part[3:].lower()}") if upper.startswith("RUN-") else None
    return task or upper
