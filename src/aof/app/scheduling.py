"""The scheduler's operations. What they need is loaded when they are asked for. Must not know any surface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aof.app.organising import Organising
from aof.core.ids import task_of_run
from aof.core.tasks import commands as c

if TYPE_CHECKING:
    from aof.app.execute import Done
    from aof.app.results import Recovered
    from aof.app.tick import Ticked


class Scheduling(Organising):
    """The part of a fabric that decides what happens next."""

    def tick(self, *, dry_run: bool = False) -> Ticked:
        """Do what is due: recover, promote, give up, alert. `dry_run` only tells what would be done, and why."""
        from aof.app.tick import Tick

        return Tick(self).ticked(dry_run=dry_run)

    def recover(self) -> tuple[Recovered, ...]:
        """Recover every run whose lease has ended: by its reported result, else by requeueing."""
        from aof.app.tick import Tick

        return Tick(self).recovered()

    def _execute(self, command: c.OnTask) -> Done:
        raise NotImplementedError

    def send(self, message: str | dict[str, Any], *, run: str | None = None) -> Any:
        """Interim."""
        raise NotImplementedError(message, run)

    def session_end(self, *, run: str) -> Any:
        """Interim."""
        task_id = task_of_run(run)
        self._execute(c.Fail(actor="aof", task_id=str(task_id), run=run, code="no_completion_report"))
