"""What a tick reads: the unfinished tasks as of one event of the log, and the other inputs of a plan.

Must not know what is planned for any of them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from aof.app.commands.context import Environment
from aof.app.scheduler.handoff_steps import OPEN_HANDOFFS, HandoffSteps
from aof.app.scheduler.housekeeping import Housekeeping
from aof.app.scheduler.worker_host import WorkerHost
from aof.core.model.task import Task
from aof.core.scheduling.plan import archive_at
from aof.core.scheduling.view import Snapshot
from aof.ports.lists import Query

_WHENEVER: Final = "9999"  # the plan looks at the time itself
_EXPLAINED: Final = ("blocked", "review", "backlog")
_AT_ONCE: Final = 100  # tasks that one tick archives
_FINISHED: Final = ("done", "cancelled")  # a dead one waits for a person


class Survey:
    """Reads one data directory for one scheduler."""

    def __init__(
        self, environment: Environment, handoffs: HandoffSteps, housekeeping: Housekeeping, host: WorkerHost | None
    ) -> None:
        self._environment = environment
        self._store = environment.store
        self._policy = environment.policy
        self._handoffs = handoffs
        self._housekeeping = housekeeping
        self._host = host
        self._finished_at = 0
        self._finished_next: tuple[Task, ...] = ()

    def running(self, only: str | None = None) -> Snapshot:
        """Only what runs, or `only` this task if it does."""
        found = self._find(_RUNNING)[0] if only is None else self._store.records((only,))
        return self._with_runs(tuple(task for task in found if task.status == "in-progress"))

    def whole(self, *, explain: bool) -> Snapshot:
        """The unfinished tasks; those that only wait for people are read where somebody wants to know why."""
        patience = self._policy.scheduling.patience_ms
        gated = ("review",) if self._environment.gates_in_force() else ()
        explained = [one for one in _EXPLAINED if explain or one in patience or one in gated]
        runnable = _RUNNABLE if self._policy.scheduling.promote else _RUNNABLE.but(dependent=True)
        asked = (_RUNNING, _READY, runnable, OPEN_HANDOFFS, *map(_in_status, explained))
        running, ready, promotable, handed, *rest = self._find(*asked)
        others = dict(zip(explained, rest, strict=True))
        free = {task.id for task in (*promotable, *ready) if not _waits(task)}
        if any(_waits(task) for task in ready):
            (now_free,) = self._find(Query(runnable_at=_WHENEVER, counted=False, order="schedule"))
            free |= {task.id for task in now_free}
        if any(task.gated and task.waits_for_children for task in running):
            (open_now,) = self._find(Query(open_hops=True, counted=False, order="schedule"))
            free |= {task.id for task in open_now}
        return msgspec.structs.replace(
            self._with_runs(running),
            **self._handoffs.look(running, ready, handed),
            **self._housekeeping.look(),
            hosting=self._host is not None,
            backlog=others.get("backlog") or promotable,
            ready=ready,
            blocked=others.get("blocked", ()),
            review=others.get("review", ()),
            finished=self._finished(),
            free=frozenset(free | {task.id for task in promotable}),
        )

    def _with_runs(self, running: tuple[Task, ...]) -> Snapshot:
        host = self._host
        return Snapshot(
            running=running,
            heartbeats=self._store.heartbeats(place for task in running for place in task.run_places),
            boot=self._environment.clock.boot(),
            hosted=host.hosted if host is not None else frozenset(),
            orphaned=host.orphaned if host is not None else frozenset(),
        )

    def _finished(self) -> tuple[Task, ...]:
        """The tasks to be archived, a bounded number of them, or the one whose time is over next.

        Looked for when the next one is due: none that ends later can be due before.
        """
        wait = self._policy.scheduling.archive_ms
        if wait is None:
            return ()
        now = self._environment.clock.now()
        if now < self._finished_at:
            return self._finished_next
        (found,) = self._find(Query(status=_FINISHED, counted=False))
        dated = sorted((archive_at(task, wait) or 0, task.id, task) for task in found)
        due = [task for moment, _, task in dated if moment <= now][:_AT_ONCE]
        later = dated[len(due) :]
        self._finished_next = tuple(task for moment, _, task in later[:1] if moment > now)
        self._finished_at = min(later[0][0] if later else now + wait, now + wait)
        return (*due, *self._finished_next)

    def _find(self, *queries: Query) -> list[tuple[Task, ...]]:
        return [page.tasks for page in self._store.pages(queries)]


def _in_status(status: str) -> Query:
    return Query(status=(status,), counted=False, order="schedule")


_RUNNING: Final = _in_status("in-progress")
_READY: Final = _in_status("ready")
_RUNNABLE: Final = Query(runnable_at=_WHENEVER, waiting_in="backlog", counted=False, order="schedule")


def _waits(task: Task) -> bool:
    """Whether other tasks may keep it waiting."""
    return bool(task.depends_on) or task.waits_for_children
