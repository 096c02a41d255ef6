"""What the log tells of work over time: runs with what they waited for, moves between statuses by day, lead times.

The data that views of the past are made of. Must not know how a store keeps it, nor how it is shown.
"""

from __future__ import annotations

from typing import NamedTuple


class RunWait(NamedTuple):
    """A time in which a run waited for an answer; None: it still does."""

    since: str
    until: str | None
    kind: str = "question"


class RunSpan(NamedTuple):
    """One run from its beginning to its end, None while it goes on."""

    seq: int
    run_id: str
    task_id: str
    hop: str | None
    agent: str
    attempt: int
    started_at: str
    ended_at: str | None
    status: str
    waits: tuple[RunWait, ...] = ()


class SpanQuery(NamedTuple):
    """Which runs, the last one first: of a task, an agent, that went on in a time, that began before an event."""

    task_id: str | None = None
    agent: str | None = None
    since: str | None = None
    before: str | None = None
    behind: int | None = None
    limit: int = 50


class SpanPage(NamedTuple):
    """A page of runs, and how many match in all."""

    total: int
    spans: tuple[RunSpan, ...]


class AgentRuns(NamedTuple):
    """How the runs of one agent ended."""

    agent: str
    attempts: int
    by_status: dict[str, int]


class FlowFacts(NamedTuple):
    """Moves by day from status to status (a new task comes from none), the times of what was finished, and runs.

    `moves` are all that there ever were, `leads` (day, milliseconds since creation, since the first run) and `agents`
    only those from the day on that was asked for.
    """

    moves: tuple[tuple[str, str, str, int], ...]
    leads: tuple[tuple[str, int, int], ...]
    agents: tuple[AgentRuns, ...]
