"""Which audit records need not be kept in the files any longer. Must not know how the files are kept."""

from __future__ import annotations

from aof.core.errors.storage import LogDamaged
from aof.core.handoffs.retention import SHORTEST_MS, closure_of, kept_until
from aof.core.model.times import day

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment
    from aof.core.handoffs.audit import AuditRecord
    from aof.ports.audit import Expired, Expires


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
