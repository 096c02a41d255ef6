"""Operations that only look. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from aof._support.typed import prepare_type
from aof.app.operations.results import Result
from aof.app.operations.spec import Count, OnTask, Operation, Params, TaskId, Text
from aof.app.queries import primer
from aof.core.errors.base import InvalidInput
from aof.core.model.events import Event
from aof.core.model.kinds import Status

_MOST_EVENTS = 1000


class Filters(Params, frozen=True, kw_only=True):
    """Which tasks."""

    agent: Annotated[str, Meta(description="holds it or is meant to do it")] | UnsetType = UNSET
    tag: Text = UNSET
    search: Annotated[str, Meta(description="text in title or ID")] | UnsetType = UNSET
    limit: Count = UNSET


class List(Filters, frozen=True, kw_only=True):
    """Which tasks, in which status."""

    status: Status | UnsetType = UNSET
    archived: bool | UnsetType = UNSET


class Ready(Filters, frozen=True, kw_only=True):
    """Whose work, and whether to explain the rest."""

    explain: Annotated[bool, Meta(description="why each other one is not")] | UnsetType = UNSET


class Counts(List, frozen=True, kw_only=True):
    """Which tasks, and how much of them."""

    compact: Annotated[bool, Meta(description="counts only")] = False


class Show(OnTask, frozen=True, kw_only=True):
    """Which task, and when."""

    at: Annotated[int, Meta(description="as it was after this event", ge=0)] | UnsetType = UNSET


class Log(Params, frozen=True, kw_only=True):
    """Which events."""

    task_id: TaskId | UnsetType = UNSET
    after: Annotated[int, Meta(description="greater numbers only", ge=0)] | UnsetType = UNSET
    type: Text = UNSET
    limit: Annotated[int, Meta(description="the last so many", ge=0)] | UnsetType = UNSET


class Graph(Params, frozen=True, kw_only=True):
    """Which part, in which form."""

    task_id: TaskId | UnsetType = UNSET
    format: Literal["tree", "mermaid", "dot", "svg"] = "tree"


class Replay(Params, frozen=True, kw_only=True):
    """After which event."""

    at: Annotated[int, Meta(ge=0)]


class Snapshot(Params, frozen=True, kw_only=True):
    """When, and whether with what was put away."""

    at: Annotated[int, Meta(description="as it was after this event", ge=0)] | UnsetType = UNSET
    archived: bool | UnsetType = UNSET


class Prime(Params, frozen=True, kw_only=True):
    """Whose session begins."""

    agent: Text = UNSET


class Row(Result, frozen=True, kw_only=True):
    """One line of a list: who holds the task or is meant to do it, why it waits, and what is odd about its file."""

    id: str
    title: str
    status: str
    priority: str
    agent: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    state: str | UnsetType = UNSET


class Listed(Result, frozen=True, kw_only=True):
    """A page of tasks, and how many match in all."""

    total: int
    tasks: tuple[Row, ...]


class Summary(Listed, frozen=True, kw_only=True):
    """The tasks that match, counted by status."""

    by_status: dict[str, int]


class ReadyTasks(Listed, frozen=True, kw_only=True):
    """What can be claimed and, when that was asked, why the others cannot."""

    not_ready: tuple[Row, ...] | UnsetType = UNSET


class Events(Result, frozen=True, kw_only=True):
    """Events in order."""

    events: tuple[Event, ...]


class PortableEvents(Result, frozen=True, kw_only=True):
    """Events in order, in the words of the agent task contract."""

    events: tuple[dict[str, Any], ...]


class Drawn(Result, frozen=True, kw_only=True):
    """A graph as text, and its edges: from, to and kind."""

    format: str
    graph: str
    edges: tuple[tuple[str, ...], ...]


class Past(Result, frozen=True, kw_only=True):
    """Every task as it was after an event."""

    seq: int
    tasks: list[dict[str, Any]]


class Primed(Result, frozen=True, kw_only=True):
    """What an agent needs to know when its session begins."""

    text: str


def _ready(fabric: Any, values: dict[str, Any]) -> dict[str, Any]:
    explain = values.pop("explain", False)
    listed: dict[str, Any] = fabric.ready(**values)
    if not explain:
        return listed
    values.pop("limit", None)
    return listed | {"notReady": fabric.held_back(**values)}


def events(fabric: Any, values: dict[str, Any]) -> Events:
    """The events that were asked for; without a limit or a start, the last thousand."""
    after, task_id, kind = values.get("after", 0), values.get("task_id"), values.get("type")
    most = values.get("limit", None if "after" in values else _MOST_EVENTS)
    found = [event for event in fabric.events(after=after, task_id=task_id) if kind in (None, event.type)]
    if not found and task_id is not None:
        fabric.get(task_id)  # a task that is not there is not one without news
    if most is not None:
        found = found[max(len(found) - most, 0) :] if most else []
    return Events(events=tuple(found))


def _graph(fabric: Any, values: dict[str, Any]) -> Drawn:
    drawn = fabric.graph(values.get("task_id"), form=values["format"])
    return Drawn(format=values["format"], graph=drawn.text, edges=drawn.edges)


def _replay(fabric: Any, values: dict[str, Any]) -> Past:
    return msgspec.convert(fabric.replay(values["at"]), prepare_type(Past))


def _prime(fabric: Any, values: dict[str, Any]) -> Primed:

    agent = values.get("agent", fabric.actor)
    if not agent.strip():
        raise InvalidInput("'agent' must not be empty", "give the name of the agent whose session begins")
    return Primed(text=primer.prime(fabric, agent))


ROWS: tuple[Operation, ...] = (
    Operation(
        name="status",
        parameters=Counts,
        result=Summary,
        help="How many tasks are in which status, and which.",
        effect="read",
        tool="aof_status",
        verb="status",
        tier="core",
        tool_shows=("agent", "status", "compact", "limit", "actor"),
    ),
    Operation(
        name="show",
        parameters=Show,
        result=dict[str, Any],
        help="Everything about one task: brief, history of runs, relations, progress.",
        effect="read",
        tool="aof_task_show",
        verb="show",
        tier="core",
    ),
    Operation(
        name="ready",
        parameters=Ready,
        result=ReadyTasks,
        help="What can be claimed now, most urgent first.",
        effect="read",
        tool="aof_ready",
        verb="ready",
        ask=_ready,
    ),
    Operation(
        name="list",
        parameters=List,
        result=Listed,
        help="Tasks in the order of their IDs.",
        effect="read",
        tool="aof_list",
        verb="list",
    ),
    Operation(
        name="blocked",
        parameters=Filters,
        result=Listed,
        help="What is blocked, and why.",
        effect="read",
        tool="aof_blocked",
        verb="blocked",
    ),
    Operation(
        name="log",
        parameters=Log,
        result=Events,
        help="What happened, in order.",
        effect="read",
        tool="aof_log",
        verb="log",
        ask=events,
    ),
    Operation(
        name="graph",
        parameters=Graph,
        result=Drawn,
        help="What depends on what.",
        effect="read",
        tool="aof_graph",
        verb="graph",
        ask=_graph,
    ),
    Operation(
        name="replay",
        parameters=Replay,
        result=Past,
        help="All tasks as they were after an event.",
        effect="read",
        tool="aof_replay",
        verb="replay",
        ask=_replay,
    ),
    Operation(
        name="snapshot",
        parameters=Snapshot,
        result=dict[str, Any],
        help="All tasks, their graph and what is blocked, in a portable form.",
        effect="read",
        tool="aof_snapshot",
        verb="snapshot",
    ),
    Operation(
        name="portable_log",
        parameters=Log,
        result=PortableEvents,
        help="What happened, in portable words.",
        effect="read",
        tool="aof_portable_log",
        verb="log --format agentruntime",
    ),
    Operation(
        name="prime",
        parameters=Prime,
        result=Primed,
        help="What an agent needs to know when its session begins.",
        effect="read",
        tool="aof_prime",
        verb="prime",
        ask=_prime,
    ),
)
