"""Which handoffs something is still to come of, and which audit records need not be kept in the files any longer.

Only tasks that were handed to somebody are looked at, and each again only when it has changed: every step of a handoff
raises its task's version. Must not know when a handoff is late, nor how the files are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from aof.core.errors.base import Unavailable
from aof.core.errors.storage import LogDamaged
from aof.core.handoffs import unanswered
from aof.core.handoffs.retention import SHORTEST_MS, closure_of, kept_until
from aof.core.model.handoffs.record import Handoff, age
from aof.core.model.task import Task
from aof.core.model.times import day
from aof.ports.store import Scope, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.core.handoffs.audit import AuditRecord
    from aof.ports.audit import Expired, Expires


class Pending:
    """Remembers what it has read for as long as a task stays as it was."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, tuple[Handoff, ...]]] = {}

    def messages(self, tasks: Iterable[Task]) -> tuple[Handoff, ...]:
        """The requests by message that have no answer and of which nothing was said yet, in the tasks' order."""
        handed = [task for task in tasks if any(link.kind == "handoff" for link in task.links)]
        last = ((task, self._all(task)[-1:]) for task in handed)
        return tuple(
            one
            for task, (*found,) in last
            for one in found
            if one.request is not None and one.state == "requested" and not unanswered.is_said(task, one.id)
        )

    def open(self, tasks: Iterable[Task]) -> tuple[tuple[Task, Handoff], ...]:
        """The engine's open handoffs of these tasks; one by message is over with its task."""
        found = ((task, one) for task in tasks for one in self._all(task) if one.is_open)
        return tuple((task, one) for task, one in found if one.request is None)

    def triggered(self, tasks: Iterable[Task]) -> frozenset[tuple[str, str, str]]:
        """The task, trigger and reason of every handoff that these tasks ever had."""
        handed = (task for task in tasks if any(link.kind == "handoff" for link in task.links))
        return frozenset((task.id, one.trigger, one.reason) for task in handed for one in self._all(task))

    def forget(self, tasks: Iterable[Task]) -> None:
        """Remember only these."""
        kept = {task.id for task in tasks}
        self._known = {name: known for name, known in self._known.items() if name in kept}

    def _all(self, task: Task) -> tuple[Handoff, ...]:
        known = self._known.get(task.id)
        if known is not None and known[0] == task.rev:
            return known[1]
        try:
            return self._read(task)
        except Unavailable:  # somebody keeps writing it: what lies there is for now, and is not remembered
            return self._store.handoffs((task,))

    def _read(self, task: Task) -> tuple[Handoff, ...]:
        """Under the task's lock, because the log tells of a step before the handoff's file does."""
        with self._store.unit(Scope(read=frozenset({task.id}))) as unit:
            current, found = unit.task(task.id), tuple(sorted(unit.handoffs(task.id), key=age))
        self._known[task.id] = (current.rev if current is not None else task.rev, found)
        return found


class Retention:
    """Applies the times of retention to the files of one data directory."""

    def __init__(self, environment: Environment) -> None:
        self._store = environment.store
        self._clock = environment.clock
        self._files = environment.store.audit_files(environment.policy.project)

    def expired(self) -> tuple[Expired, ...]:
        """What could be removed now."""
        return self._files.expired(self._before(), self.expires()) if self._files is not None else ()

    def prune(self) -> tuple[Expired, ...]:
        """Remove it."""
        return self._files.prune(self._before(), self.expires()) if self._files is not None else ()

    def expires(self) -> Expires:
        """Tells of records whether their time is over now; one of an unknown task is kept, and all by a broken log."""
        now = self._clock.now()

        def judged(records: tuple[AuditRecord, ...]) -> tuple[bool, ...]:
            try:
                tasks = self._store.records({record.context_snapshot.task_id for record in records}) if records else ()
            except LogDamaged:
                tasks = ()
            closures = {task.id: closure_of(task) for task in tasks}
            ends = (kept_until(record, closures.get(record.context_snapshot.task_id)) for record in records)
            return tuple(end is not None and end <= now for end in ends)

        return judged

    def _before(self) -> str:
        """No record of a later day can be past its time."""
        return day(self._clock.now() - SHORTEST_MS + 1)
