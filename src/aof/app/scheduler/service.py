"""The scheduler's operations. Must not know any surface."""

from __future__ import annotations

from aof.app.scheduler import tick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.operations.results import Recovered
    from aof.app.scheduler.tick import Ticked


class SchedulerService:
    """Decides what happens next, once; `aof up` does so again and again."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def tick(self, *, dry_run: bool = False) -> Ticked:
        """Do what is due: recover, promote, give up, alert. `dry_run` only shows what would be done, and why."""
        return tick.Tick(self._environment, self._dispatcher).ticked(dry_run=dry_run)

    def recover(self) -> tuple[Recovered, ...]:
        """Recover every run whose lease has ended: by its reported result, else by requeueing."""
        return tick.Tick(self._environment, self._dispatcher).recovered()
