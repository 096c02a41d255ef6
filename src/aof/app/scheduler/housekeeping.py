"""What the scheduler does beside the tasks: audit files follow the log, and records past their retention go.

Must not know how long a record is kept, nor how files are written.
"""

from __future__ import annotations

from typing import Any

from aof.app.commands.environment import Environment
from aof.app.faults import Faults
from aof.app.handoffs.retention import Retention
from aof.core.model.times import day, millis
from aof.core.scheduling.snapshot import Overdue

_DAY = 86_400_000
_FOLLOWING = ("audit files",)


class Housekeeping:
    """Looks once a day for what can be removed: no time of retention is shorter."""

    def __init__(self, environment: Environment) -> None:
        self._clock = environment.clock
        self._files = environment.store.audit_files(environment.policy.project)
        self._retention = Retention(environment)
        self._looked = ""
        self._found: tuple[Overdue, ...] = ()

    def follow(self, faults: Faults) -> None:
        """Let the audit files catch up with the log; what keeps them from it concerns nothing else."""
        if self._files is None or faults.wait(_FOLLOWING):
            return
        try:
            self._files.follow()
            faults.succeeded(_FOLLOWING)
        except Exception as error:  # noqa: BLE001 - the edge of one action
            faults.failed(_FOLLOWING, "writing the audit files", "", error)

    def look(self) -> dict[str, Any]:
        """What a plan should know of the files, as fields of its snapshot."""
        return {"overdue": self.overdue(), "overdue_at": self.look_again()}

    def overdue(self) -> tuple[Overdue, ...]:
        """The audit files with records that need not be kept any longer."""
        today = day(self._clock.now())
        if self._looked != today:
            self._found = tuple(Overdue(path=one.path, records=one.records) for one in self._retention.expired())
            self._looked = today
        return self._found

    def look_again(self) -> int | None:
        """The moment from which there may be more; None where there are no files."""
        return millis(day(self._clock.now())) + _DAY if self._files is not None and self._files.exist() else None

    def prune(self) -> str | None:
        """Remove those records; why that was not done, if so."""
        self._looked = ""
        return None if self._retention.prune() else "it has changed in the meantime"
