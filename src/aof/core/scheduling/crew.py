"""The agents that can be given work, as the scheduler sees them. Must not know how an org chart is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from aof.core.model.task import Task

STARTED = frozenset({"process", "a2a"})  # the kinds of runner that a service starts by itself


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """One agent: how it is run, how many runs it may have at once, and how long one may take.

    `ack_ms` is how long it may take to answer a handoff, where the chart says so.
    """

    agent: str
    kind: str = "pull"
    team: str | None = None
    concurrency: int | None = None
    limit_ms: int | None = None
    active: bool = True
    ack_ms: int | None = None


class Nobody(msgspec.Struct, frozen=True):
    """Why no agent can be named for a task."""

    reason: str


Route = Callable[[Task, Mapping[str, int]], "tuple[str, ...] | Nobody"]
RouteHop = Callable[[Task, str, Mapping[str, int]], "tuple[str, ...] | Nobody"]


def by_name(task: Task, _load: Mapping[str, int]) -> tuple[str, ...] | Nobody:
    """Without a chart only the agent that the task itself names is known."""
    return (task.routing.agent,) if task.routing.agent is not None else Nobody("any agent may claim it")


def by_claiming(_task: Task, _hop: str, _load: Mapping[str, int]) -> tuple[str, ...] | Nobody:
    """Without a chart nobody is known to have the role of a hop."""
    return Nobody("any agent may claim it")


def nothing_lacks(_task: Task, _agent: str) -> tuple[str, ...]:
    """Without a chart nobody knows what an agent cannot do."""
    return ()


def nobody_is_able(_task: Task) -> tuple[str, ...]:
    """Without a chart nobody knows who can do something."""
    return ()


class Crew(msgspec.Struct, frozen=True, kw_only=True):
    """All agents, the limits of the teams, and which agents fit a task or one of its hops: best first, by load.

    `lacking` is what an agent cannot do of what a task needs, `able` are those that can do all of it. `orchestrators`
    has who is asked about an agent's work, where its team has such an agent.
    """

    seats: Mapping[str, Seat] = {}
    team_limits: Mapping[str, int] = {}
    route: Route = by_name
    route_hop: RouteHop = by_claiming
    lacking: Callable[[Task, str], tuple[str, ...]] = nothing_lacks
    able: Callable[[Task], tuple[str, ...]] = nobody_is_able
    orchestrators: Mapping[str, str] = {}

    def limit_of(self, agent: str) -> int | None:
        """How long a run of this agent may take."""
        seat = self.seats.get(agent)
        return seat.limit_ms if seat is not None else None
