"""The scheduler's operations. What they need is loaded when they are asked for. Must not know any surface."""

from __future__ import annotations

from aof.app.commands import trust
from aof.app.messages.service import Messaging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.operations.results import Recovered
    from aof.app.runs.claimed_run import Held
    from aof.app.scheduler.tick import Ticked
    from aof.core.model.org_chart import Agent
    from aof.ports.runner import Orphans
    from aof.ports.trust import Trust


class Scheduling(Messaging):
    """The part of a fabric that decides what happens next."""

    _orphans: Orphans | None = None
    _trust: Trust | None = None

    def _untrusted(self, agent: Agent) -> str | None:
        """Why the command of an agent must not be started, if so. Without a keeper of trust every command may."""
        command = trust.of_agent(agent)
        return None if self._trust is None or self._trust.covers(command) else trust.refusal(command)

    def tick(self, *, dry_run: bool = False) -> Ticked:
        """Do what is due: recover, promote, give up, alert. `dry_run` only tells what would be done, and why."""
        from aof.app.scheduler.tick import Tick

        return Tick(self).ticked(dry_run=dry_run)

    def own_run(self) -> Held:
        """The run that this process was started for, as `$AOF_RUN_ID` says. Raises StaleLease when it is over."""
        from aof.app.runs.claimed_run import own_run

        return own_run(self, self._run)

    def recover(self) -> tuple[Recovered, ...]:
        """Recover every run whose lease has ended: by its reported result, else by requeueing."""
        from aof.app.scheduler.tick import Tick

        return Tick(self).recovered()
