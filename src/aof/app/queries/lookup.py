"""Finds a task by its ID, or by a part of it as people type it. Must not change anything but import edits.

A merge of histories may have renumbered a task: its old ID then belongs to another one, and who has it may mean either.
So it answers with both, until the caller says `=ID` for the task that has that ID now.
"""

from __future__ import annotations

from collections.abc import Sequence

from aof.app.commands import unit_of_work
from aof.core.errors.base import Call
from aof.core.errors.tasks import AmbiguousId, TaskNotFound
from aof.core.model import times
from aof.core.model.ids import is_part, is_task_id, matches, split_task_id, task_of_run
from aof.core.model.lifecycle import FINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.task import Task
    from aof.ports.clock import Clock
    from aof.ports.store import Store

_EXACT = "="  # in front of an ID: no task that only had it elsewhere
_CONSIDERED = 500  # matches that are put in order
_SHOWN = 10  # matches that an ambiguous part is answered with


class Lookup:
    """From what a caller wrote to a task."""

    def __init__(self, store: Store, clock: Clock, policy: unit_of_work.PolicyOf) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy

    def resolve(self, part: str) -> str:
        """The full ID that a part of one stands for."""
        asked = _text(part)
        exact = asked.startswith(_EXACT)
        part = self._numbered(_as_meant(asked.removeprefix(_EXACT)))
        renumbered = {} if exact else self._renumbered(part)
        if is_task_id(part) and not renumbered:
            return part
        found = self._store.ids(part) if is_part(part) else ()
        if renumbered:
            found = tuple(sorted({*found, *renumbered}, key=split_task_id))
        if len(found) == 1:
            return found[0]
        if renumbered:
            raise _either(part, found, renumbered)
        if not found:
            said = f"there is no task {asked[:80]!r}"
            raise TaskNotFound(said, "list what there is", Call("list", {}), asked=asked[:80])
        likely = self._likely(found)
        hint = f"use more of the ID, such as '{likely[0].removeprefix('TASK-')}'"
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        shown = ", ".join(likely[:_SHOWN]) + more
        raise AmbiguousId(f"{part!r} stands for {len(found)} tasks: {shown}", hint, matches=likely)

    def _numbered(self, part: str) -> str:
        """The part, with the zeros that people leave out of a number, where a task has that number."""
        padded = part.zfill(3)
        short = part.isascii() and part.isdigit() and padded != part
        return padded if short and (self._store.ids(padded) or self._renumbered(padded)) else part

    def _renumbered(self, part: str) -> dict[str, str]:
        """The tasks that had an ID like this where they were made, each with that ID."""
        aliases = self._store.aliases()
        if not aliases or not is_part(part):
            return {}
        return {task: old for old in matches(part, sorted(aliases)) for task in aliases[old]}

    def _likely(self, found: Sequence[str]) -> list[str]:
        """The same IDs, those of open tasks first, then of today's, then the newest; of many only the newest."""
        newest = found[-_CONSIDERED:]
        finished = {task.id for task in self._store.records(newest) if task.status in FINISHED or task.archived}
        today = times.day(self._clock.now())
        first = [one for one in reversed(newest) if one not in finished]
        last = [one for one in reversed(newest) if one in finished]
        return [one for part in (first, last) for one in sorted(part, key=lambda one: split_task_id(one)[0] != today)]

    def get(self, task_id: str) -> Task:
        """The task as a record; a whole ID, as AOF itself has it, means the task that has it now."""
        given = _text(task_id)
        whole = given if is_task_id(given) else self.resolve(task_id)
        task = unit_of_work.look(self._store, self._clock, self._policy, whole)
        if task is None:
            raise TaskNotFound(f"there is no task {task_id}", "list what there is", Call("list", {}), asked=task_id)
        return task


def _either(part: str, found: Sequence[str], renumbered: dict[str, str]) -> AmbiguousId:
    """The refusal of an ID that two clones used: the tasks that it may mean, and how to name each of them."""
    now = [one for one in found if one not in renumbered]
    new = ", ".join(f"{one} (was {renumbered[one]} where it was made)" for one in found if one in renumbered)
    both = f"{', '.join(now)} and {new}" if now else new
    first = f"'{_EXACT}{now[0]}' for the task that has that ID now, or " if len(now) == 1 else ""
    return AmbiguousId(
        f"{part!r} may mean {len(found)} tasks, because two clones used that number: {both}",
        f"write {first}'{next(one for one in found if one in renumbered)}'",
        matches=list(found),
    )


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
