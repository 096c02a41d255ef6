"""Whether the agents of a chart can be reached: the checks of a peer, what they come to, and who is left out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from aof.kernel.events import Event
from aof.org.model import OrgChart

UNAVAILABLE: Final = "agent.unavailable"
AVAILABLE: Final = "agent.available"
INTERVAL_MS: Final = 60_000  # between two checks
TIMEOUT_MS: Final = 10_000
THRESHOLD: Final = 3  # checks in a row that have failed


class AgentHealth(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The health record of an agent: whether it can be reached, since when, and why that was said."""

    agent: str
    available: bool
    since: str
    reason: str


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of one agent so far: when the last one was, and how many have failed since one succeeded."""

    checked_at: int
    failures: int = 0

    @property
    def due_at(self) -> int:
        """When the next check is due."""
        return self.checked_at + INTERVAL_MS

    @property
    def unhealthy(self) -> bool:
        """Whether enough checks in a row have failed."""
        return self.failures >= THRESHOLD


def checked_health(watch: Watch, answered_ms: int | None, now: int) -> Watch:
    """The checks after one more; `answered_ms` is how long the agent took, None without an answer."""
    healthy = answered_ms is not None and answered_ms <= TIMEOUT_MS
    return Watch(checked_at=now, failures=0 if healthy else watch.failures + 1)


def health_of(event: Event) -> AgentHealth | None:
    """What an event says of an agent's health; None when it says nothing of it."""
    if event.type not in (UNAVAILABLE, AVAILABLE):
        return None
    agent, reason = str(event.payload.get("agent", "")), str(event.payload.get("reason", ""))
    return AgentHealth(agent=agent, available=event.type == AVAILABLE, since=event.timestamp, reason=reason)


def without_unavailable(chart: OrgChart, unavailable: Collection[str]) -> OrgChart:
    """The chart as it is for who gives out work: an agent that cannot be reached is not active."""
    if not any(agent.id in unavailable and agent.active for agent in chart.agents):
        return chart
    agents = tuple(
        msgspec.structs.replace(agent, active=False) if agent.id in unavailable else agent for agent in chart.agents
    )
    return msgspec.structs.replace(chart, agents=agents)
