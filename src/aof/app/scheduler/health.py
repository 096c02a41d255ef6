"""Checks agents that hold something, and records who cannot be reached and who can be again.

Only changes are events. What is looked at depends on the runner: of a process whether it lives, of a pulling agent when
it was last heard of, of a peer whether its card comes. Must not know when a check is due.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aof.app.commands import trust
from aof.app.commands.environment import Environment
from aof.app.messages import router
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import Handoff
from aof.core.model.ids import OURSELVES
from aof.core.model.org_chart import Agent
from aof.core.model.task import Task
from aof.core.model.times import millis
from aof.core.model.workflow_state import held_leases
from aof.core.org.health.agent_health import AVAILABLE, INTERVAL_MS, THRESHOLD, UNAVAILABLE, Watch, checked
from aof.core.scheduling.crew import STARTED
from aof.core.scheduling.snapshot import Snapshot

Probe = Callable[[Agent], int | None]  # the milliseconds until the agent answered; None without an answer
_AT_ONCE = 0


class Health:
    """The health of the agents of one data directory, as one scheduler sees it."""

    def __init__(self, environment: Environment, probes: Mapping[str, Probe] | None = None) -> None:
        self._environment = environment
        self._probes = probes or {}
        self._watches: dict[str, Watch] = {}

    def watched(self, running: tuple[Task, ...], handed: tuple[tuple[Task, Handoff], ...]) -> dict[str, Watch]:
        """The agents to check: those that hold a run or an accepted handoff, and those that could not be reached."""
        now = self._environment.clock.now()
        holding = {lease.agent for task in running for _, lease in held_leases(task)}
        holding |= {one.to_agent for _, one in handed if one.state == "accepted"}
        gone = {name for name, health in self._environment.store.health().items() if not health.available}
        known = self._environment.chart.readable()
        names = (holding | gone) & (known.by_id.keys() if known is not None else set())
        self._watches = {name: self._watches.get(name) or Watch(checked_at=now) for name in names}
        return self._watches

    def check(self, name: str, snapshot: Snapshot) -> str | None:
        """Check one agent; three failures in a row say that it cannot be reached, and one success that it can."""
        chart = self._environment.chart.readable()
        agent = chart.by_id.get(name) if chart is not None else None
        if agent is None or name not in self._watches:
            return "it has changed in the meantime"
        watch = checked(self._watches[name], self._answered(agent, snapshot), self._environment.clock.now())
        self._watches[name] = watch
        if not watch.failures:
            self._say(name, "it has answered a check", available=True)
        elif watch.unhealthy:
            self._say(name, f"{THRESHOLD} checks in a row have failed", available=False)
        return None

    def lost(self, name: str, reason: str) -> None:
        """The agent cannot be reached, whatever a check would say."""
        self._say(name, reason, available=False)

    def _answered(self, agent: Agent, snapshot: Snapshot) -> int | None:
        probe = self._probes.get(agent.runner.kind)
        if probe is not None:
            return probe(agent)
        if agent.runner.kind in STARTED:
            return self._alive(agent, snapshot)
        return self._heard_of(agent, snapshot)

    def _alive(self, agent: Agent, snapshot: Snapshot) -> int | None:
        """Every process of the agent has a host that lives; one without a process can be started."""
        own = {lease.run_id for task in snapshot.running for _, lease in held_leases(task) if lease.agent == agent.id}
        if own & snapshot.orphaned or trust.untrusted(self._environment.trust, agent):
            return None
        return _AT_ONCE

    def _heard_of(self, agent: Agent, snapshot: Snapshot) -> int | None:
        """A sign of life of one of its runs, or an answer to a handoff, since the last check was due."""
        beats = (
            snapshot.heartbeats.get(place)
            for task in snapshot.running
            for place, lease in held_leases(task)
            if lease.agent == agent.id
        )
        heard = [millis(beat.last_heartbeat) for beat in beats if beat is not None]
        heard += [millis(one.answered_at) for _, one in snapshot.handed if one.to_agent == agent.id and one.answered_at]
        recent = self._environment.clock.now() - max(heard, default=0) <= INTERVAL_MS
        return _AT_ONCE if recent else None

    def _say(self, name: str, reason: str, *, available: bool) -> None:
        """Record a change, once."""
        known = self._environment.store.health().get(name)
        if (known.available if known is not None else True) is available:
            return
        kind = AVAILABLE if available else UNAVAILABLE
        draft = Draft(type=kind, task_id="", payload={"agent": name, "reason": reason})
        router.record(self._environment.store, self._environment.clock, draft, OURSELVES)
