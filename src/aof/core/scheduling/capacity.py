"""How much is being run, and whether one run more would be too much. Must not know why a task is to be run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from aof.core.model.task import Task
from aof.core.scheduling.crew import Crew, Seat


class Capacity:
    """What runs at the moment of the plan, plus what the plan has given out since."""

    def __init__(
        self, running: Iterable[Task], crew: Crew, most: int | None, resource_slots: Mapping[str, int]
    ) -> None:
        self._crew = crew
        self._most = most
        self._slots = resource_slots
        self.total = 0
        self.agents: Counter[str] = Counter()
        self._teams: Counter[str] = Counter()
        self._resources: Counter[str] = Counter()
        for task in running:
            for number, agent in enumerate(_holders(task)):
                self.take(task, agent, beside=number > 0)

    def take(self, task: Task, agent: str | None, *, beside: bool = False) -> None:
        """Count one run more; one beside others of the same task needs no more of its resource."""
        self.total += 1
        if task.resource is not None and not beside:
            self._resources[task.resource] += 1
        if agent is None:
            return
        self.agents[agent] += 1
        seat = self._crew.seats.get(agent)
        if seat is not None and seat.team is not None:
            self._teams[seat.team] += 1

    def busy_resource(self, task: Task) -> str | None:
        """Why the task's resource cannot take another run."""
        if task.resource is None:
            return None
        used, slots = self._resources[task.resource], self._slots.get(task.resource, 1)
        return f"resource '{task.resource}' is used by {used} of {slots}" if used >= slots else None

    def full(self) -> str | None:
        """Why no agent can begin another run."""
        if self._most is None or self.total < self._most:
            return None
        return f"{self.total} runs of {self._most} at once"

    def full_for(self, seat: Seat) -> str | None:
        """Why this agent cannot begin another run."""
        if seat.concurrency is not None and self.agents[seat.agent] >= seat.concurrency:
            return f"{seat.agent} runs {self.agents[seat.agent]} of {seat.concurrency}"
        most = self._crew.team_limits.get(seat.team) if seat.team is not None else None
        if most is not None and seat.team is not None and self._teams[seat.team] >= most:
            return f"team {seat.team} runs {self._teams[seat.team]} of {most}"
        return None


def _holders(task: Task) -> tuple[str | None, ...]:
    """The agents that run the task, one per hop of a gated one; a single None where there is no lease."""
    if task.gated:
        held = tuple(hop["lease"]["agent"] for hop in task.workflow["hops"] if "lease" in hop)
        return held or (None,)
    return (task.lease.agent if task.lease is not None else None,)
