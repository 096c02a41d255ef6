"""What people who supervise agents are answered: by the operations in `inbox` and `views`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, UnsetType

from aof.errors import Call
from aof.kernel.declarations import Spelling, param
from aof.kernel.results import Result

MOST_ROWS: Final = 1_000  # on a page
MOST_DAYS: Final = 366
MOST_NEIGHBOURS: Final = 200


Source = Literal["given", "environment", "run", "token", "session", "user"]


class WhoAmI(Result, frozen=True, kw_only=True):
    """The caller.

    `source` is what its name comes from: the call itself, $AOF_ACTOR, a run's secret, a token, the session, or the user
    of the operating system. `kind` and `roles` are those of the org chart, `scope` is that of the token; `lane` is the
    part of the log that this clone appends to. A caller with a token is not told where the data directory lies.
    """

    actor: str
    source: Source
    run_id: str | None
    maintainer: bool
    acts_for_others: bool
    kind: str | None
    roles: tuple[str, ...]
    scope: str | None
    data_dir: str | None
    found_by: Literal["given", "environment", "folder"] | None
    lane: str | None
    version: str | None
    python: str | None
    format: int | None


class NextCall(Result, frozen=True, kw_only=True):
    """A call that works, with its arguments under the names that they have over the wire."""

    operation: str
    arguments: dict[str, Any]

    @classmethod
    def of(cls, call: Call) -> NextCall:
        """The call as an answer shows it."""
        return cls(operation=call.operation, arguments={_wired(name): value for name, value in call.arguments.items()})


def _wired(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


class InboxItem(Result, frozen=True, kw_only=True):
    """One thing that needs a person. `reason` is text by others; `next` are calls that work, the usual one first.

    `agent` is who asks, worked, holds or is silent; `person` whom it waits for, where that is one person.
    """

    id: str
    kind: str
    since: str
    age: int
    reason: str
    task_id: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    priority: str | UnsetType = UNSET
    rev: int | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    person: str | UnsetType = UNSET
    hop: str | UnsetType = UNSET
    question: str | UnsetType = UNSET
    choices: tuple[str, ...] | UnsetType = UNSET
    message_id: str | UnsetType = UNSET
    handoff_id: str | UnsetType = UNSET
    next: tuple[NextCall, ...] = ()


class InboxPage(Result, frozen=True, kw_only=True):
    """What needs a person, oldest first, and how much of it there is by kind."""

    total: int
    by_kind: dict[str, int]
    items: tuple[InboxItem, ...]
    next_cursor: str | UnsetType = UNSET


class HeldWork(Result, frozen=True, kw_only=True):
    """A task, or a hop, that an agent holds; `left` is negative where the lease ran out so many seconds ago."""

    task_id: str
    title: str
    status: str
    run_id: str
    since: str
    lease_ends: str
    left: int
    expired: bool
    hop: str | UnsetType = UNSET
    question: str | UnsetType = UNSET


class AgentRow(Result, frozen=True, kw_only=True):
    """One agent: its last sign of life, its load against its capacity, and what it holds.

    `reason` and `since` say why and since when it does not answer; `listed` whether the org chart has it.
    """

    id: str
    listed: bool
    active: bool
    available: bool
    load: int
    holds: tuple[HeldWork, ...]
    name: str | UnsetType = UNSET
    team: str | UnsetType = UNSET
    runner: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    since: str | UnsetType = UNSET
    last_seen: str | UnsetType = UNSET
    capacity: int | UnsetType = UNSET


class AgentPage(Result, frozen=True, kw_only=True):
    """Agents in the order of their names."""

    total: int
    agents: tuple[AgentRow, ...]
    next_cursor: str | UnsetType = UNSET


class Move(Result, frozen=True, kw_only=True):
    """A change that would be accepted now: the call, where the task would go, and what to ask the caller for first.

    `asks` names the parameters that only the caller can fill in; `confirm` says that the change cannot be undone.
    """

    operation: str
    arguments: dict[str, Any]
    to: str | UnsetType = UNSET
    asks: tuple[str, ...] = ()
    confirm: bool = False


class Moves(Result, frozen=True, kw_only=True):
    """Where the caller may move a task now (never an approval), and everything else that it may do with it."""

    task_id: str
    status: str
    rev: int
    moves: tuple[Move, ...]
    actions: tuple[Move, ...]


class WaitSpan(Result, frozen=True, kw_only=True):
    """A time in which a run waited; without `to` it still does."""

    since: str
    kind: str
    until: str | UnsetType = UNSET


class TimelineRow(Result, frozen=True, kw_only=True):
    """One run: who, when, how it ended, and how many seconds it worked and waited."""

    task_id: str
    title: str
    run_id: str
    attempt: int
    agent: str
    started_at: str
    status: str
    working: int
    waiting: int
    waits: tuple[WaitSpan, ...]
    hop: str | UnsetType = UNSET
    ended_at: str | UnsetType = UNSET


class TimelinePage(Result, frozen=True, kw_only=True):
    """Runs, the last one first."""

    total: int
    rows: tuple[TimelineRow, ...]
    now: str
    next_cursor: str | UnsetType = UNSET


class GraphNode(Result, frozen=True, kw_only=True):
    """A task near the one that was asked for; `depth` is how many edges lie between."""

    id: str
    title: str
    status: str
    priority: str
    depth: int
    agent: str | UnsetType = UNSET


class GraphEdge(Result, frozen=True, kw_only=True):
    """From a blocker to what waits for it, from a parent to its child, or a link."""

    source: str
    target: str
    kind: str


class Neighbourhood(Result, frozen=True, kw_only=True):
    """The tasks around one, nearest first. `left_out` counts neighbours that are known and were not followed."""

    root: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    left_out: int


class FlowDay(Result, frozen=True, kw_only=True):
    """How many tasks were in each status at the end of a day, and how many were created and done on it."""

    day: str
    by_status: dict[str, int]
    created: int
    done: int


class Percentiles(Result, frozen=True, kw_only=True):
    """Times in seconds, of so many tasks."""

    count: int
    p50: int = 0
    p75: int = 0
    p90: int = 0
    p95: int = 0


class AgentFlow(Result, frozen=True, kw_only=True):
    """How the runs of one agent ended."""

    agent: str
    attempts: int
    completed: int
    failed: int
    expired: int
    cancelled: int
    released: int
    running: int


class Flow(Result, frozen=True, kw_only=True):
    """How work flows: by day, how long finished tasks took since their creation and since their first run, by agent."""

    days: tuple[FlowDay, ...]
    done: int
    per_day: float
    lead_time: Percentiles
    cycle_time: Percentiles
    agents: tuple[AgentFlow, ...]


class FieldChange(Result, frozen=True, kw_only=True):
    """A field of a task before and after an event; null where it was not set."""

    field: str
    before: Any
    after: Any


class TaskMoment(Result, frozen=True, kw_only=True):
    """A task as it was after one of its events, the event, and what that changed; with the events beside it."""

    task_id: str
    seq: int
    event: dict[str, Any]
    task: dict[str, Any]
    changed: tuple[FieldChange, ...]
    number: int
    events: int
    first: int
    last: int
    previous: int | UnsetType = UNSET
    next: int | UnsetType = UNSET


Limit = Annotated[int, param("at most this many", Spelling(note="(default 50)"), ge=0, le=MOST_ROWS)]
