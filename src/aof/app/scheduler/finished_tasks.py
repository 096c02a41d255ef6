"""The finished tasks that are to be archived, and the one that is next. Must not know how that is done."""

from __future__ import annotations

from typing import Final

from aof.app.commands.context import Environment
from aof.core.model.task import Task
from aof.core.scheduling.plan import archive_at
from aof.ports.lists import Query

_AT_ONCE: Final = 100  # tasks that one tick archives
_STATUSES: Final = ("done", "cancelled")  # a dead one waits for a person


class FinishedTasks:
    """Looks when the next task is due: none that ends later can be due before."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._look_at = 0
        self._next: tuple[Task, ...] = ()

    def look(self) -> tuple[Task, ...]:
        """The tasks whose time is over, a bounded number of them, or the one whose time is over next."""
        wait = self._environment.policy.scheduling.archive_ms
        now = self._environment.clock.now()
        if wait is None or now < self._look_at:
            return self._next
        found = self._environment.store.find(Query(status=_STATUSES, counted=False)).tasks
        dated = sorted((archive_at(task, wait) or 0, task.id, task) for task in found)
        due = [task for moment, _, task in dated if moment <= now][:_AT_ONCE]
        later = dated[len(due) :]
        self._next = tuple(task for moment, _, task in later[:1] if moment > now)
        self._look_at = min(later[0][0] if later else now + wait, now + wait)
        return (*due, *self._next)
