"""Operations that only look. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from aof._support.typed import prepare_type
from aof.app.operations.results import Printed, Result
from aof.app.operations.rows.fields import Sequence
from aof.app.operations.spec import Cli, Extra, Operation, Params, Spelling, TaskParams, param
from aof.app.portable import schemas as portable
from aof.app.queries import primer
from aof.core.errors.base import InvalidInput
from aof.core.model.events import Event
from aof.core.model.kinds import Priority, Status

_MOST_EVENTS = 1000
_WHEN = Spelling(metavar="WHEN", note="(a day, a moment, or -7d)")


class FilterParams(Params, frozen=True, kw_only=True):
    """Which tasks."""

    agent: Annotated[str, param("only what this agent holds or is meant to do")] | UnsetType = UNSET
    tag: Annotated[str, param("only with this tag")] | UnsetType = UNSET
    search: Annotated[str, param("only with this text in title or ID", Spelling(metavar="T"))] | UnsetType = UNSET
    priority: Annotated[Priority, param("only this priority")] | UnsetType = UNSET
    parent_id: (
        Annotated[str, param("only children of this task", Spelling(option="--parent", metavar="ID"))] | UnsetType
    ) = UNSET
    created_after: Annotated[str, param("created then or later", _WHEN)] | UnsetType = UNSET
    created_before: Annotated[str, param("created earlier", _WHEN)] | UnsetType = UNSET
    updated_after: Annotated[str, param("changed then or later", _WHEN)] | UnsetType = UNSET
    updated_before: Annotated[str, param("not changed since", _WHEN)] | UnsetType = UNSET
    due_before: Annotated[str, param("due earlier", _WHEN)] | UnsetType = UNSET
    overdue: Annotated[bool, param("only what should have been done by now")] | UnsetType = UNSET
    limit: Annotated[int, param("at most this many", ge=0)] | UnsetType = UNSET


class PageParams(FilterParams, frozen=True, kw_only=True):
    """Which tasks, in which order, from where on."""

    sort: (
        Annotated[Literal["id", "priority", "created", "updated", "due", "title", "status"], param("order")] | UnsetType
    ) = UNSET
    reverse: Annotated[bool, param("in the opposite order")] | UnsetType = UNSET
    cursor: Annotated[str, param("next page: 'nextCursor' of the page before", Spelling(metavar="C"))] | UnsetType = (
        UNSET
    )


class ListParams(PageParams, frozen=True, kw_only=True):
    """Which tasks, in which status."""

    status: Annotated[Status, param("only this status")] | UnsetType = UNSET
    archived: Annotated[bool, param("also what was archived")] | UnsetType = UNSET


class ReadyParams(FilterParams, frozen=True, kw_only=True):
    """Whose work, and whether to explain the rest."""

    explain: Annotated[bool, param("say why each of the other tasks cannot be claimed")] | UnsetType = UNSET


class CountsParams(ListParams, frozen=True, kw_only=True):
    """Which tasks, and how much of them."""

    compact: Annotated[bool, param("counts only", Spelling(hidden=True))] = False


class ShowParams(TaskParams, frozen=True, kw_only=True):
    """Which task, and when."""

    at: Sequence | UnsetType = UNSET


class OutputParams(TaskParams, frozen=True, kw_only=True):
    """Whose output, and which piece of it."""

    attempt: Annotated[int, param("number of the run (else the last one)", ge=1)] | UnsetType = UNSET
    stream: Annotated[Literal["stdout", "stderr"], param("what it was printed to")] | UnsetType = UNSET
    offset: Annotated[int, param("bytes to skip", ge=0)] | UnsetType = UNSET
    limit: Annotated[int, param("at most this many bytes", ge=4, le=65_536)] | UnsetType = UNSET


class LogParams(Params, frozen=True, kw_only=True):
    """Which events."""

    task_id: Annotated[str, param("only this task", Spelling(place="ID"))] | UnsetType = UNSET
    after: Annotated[int, param("only events with a greater number", Spelling(metavar="SEQ"), ge=0)] | UnsetType = UNSET
    type: Annotated[str, param("only events of this type")] | UnsetType = UNSET
    limit: Annotated[int, param("only the last N events", ge=0)] | UnsetType = UNSET


class GraphParams(Params, frozen=True, kw_only=True):
    """Which part, in which form."""

    task_id: Annotated[str, param("only what is connected with this task", Spelling(place="ID"))] | UnsetType = UNSET
    format: Annotated[Literal["tree", "mermaid", "dot", "svg"], param("form of the graph")] = "tree"


class ReplayParams(Params, frozen=True, kw_only=True):
    """After which event."""

    at: Annotated[int, param("number of the event", Spelling(metavar="SEQ"), ge=0)]


class SnapshotParams(Params, frozen=True, kw_only=True):
    """When, and whether with what was archived."""

    at: Sequence | UnsetType = UNSET
    archived: Annotated[bool, param("also what was archived")] | UnsetType = UNSET


class PrimeParams(Params, frozen=True, kw_only=True):
    """Whose session begins."""

    agent: Annotated[str, param("whose session begins (else the actor)")] | UnsetType = UNSET


class TaskRow(Result, frozen=True, kw_only=True):
    """One line of a list: who holds the task or is meant to do it, why it is held, and what is odd about its file.

    `waits` says what a task in `ready` waits for; one without it can be claimed.
    """

    id: str
    title: str
    status: str
    priority: str
    agent: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    waits: str | UnsetType = UNSET
    due: str | UnsetType = UNSET
    overdue: bool | UnsetType = UNSET
    state: str | UnsetType = UNSET


class TaskPage(Result, frozen=True, kw_only=True):
    """A page of tasks, how many match in all, and the cursor of the next page where there is one."""

    total: int
    tasks: tuple[TaskRow, ...]
    next_cursor: str | UnsetType = UNSET


class TaskCounts(TaskPage, frozen=True, kw_only=True):
    """The tasks that match, counted by status."""

    by_status: dict[str, int]


class ReadyTasks(TaskPage, frozen=True, kw_only=True):
    """What can be claimed and, when that was asked, why the others cannot."""

    not_ready: tuple[TaskRow, ...] | UnsetType = UNSET


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


class PastTasks(Result, frozen=True, kw_only=True):
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


def _replay(fabric: Any, values: dict[str, Any]) -> PastTasks:
    return msgspec.convert(fabric.replay(values["at"]), prepare_type(PastTasks))


def _prime(fabric: Any, values: dict[str, Any]) -> Primed:

    agent = values.get("agent", fabric.actor)
    if not agent.strip():
        raise InvalidInput("'agent' must not be empty", "give the name of the agent whose session begins")
    return Primed(text=primer.prime(fabric, agent))


def _snapshot_schema() -> dict[str, Any]:
    return portable.SNAPSHOT


def _portable_schema() -> dict[str, Any]:
    events = {"type": "array", "items": portable.EVENT}
    return {"type": "object", "required": ["events"], "properties": {"events": events}}


ROWS: tuple[Operation, ...] = (
    Operation(
        name="status",
        parameters=CountsParams,
        result=TaskCounts,
        help="How many tasks are in which status, and which.",
        effect="read",
        tool="aof_status",
        verb="status",
        cli=Cli(section="see", order=50, summary="how many tasks are in which status", example="aof status --compact"),
        tier="core",
        tool_shows=("agent", "status", "compact", "limit", "actor"),
    ),
    Operation(
        name="show",
        parameters=ShowParams,
        result=dict[str, Any],
        help="Everything about one task: brief, history of runs, relations, progress.",
        effect="read",
        tool="aof_task_show",
        verb="show",
        cli=Cli(
            section="see",
            order=40,
            summary="everything about one task",
            aliases=("get", "view"),
            example="aof show 001",
        ),
        tier="core",
    ),
    Operation(
        name="ready",
        parameters=ReadyParams,
        result=ReadyTasks,
        help="What can be claimed now, most urgent first.",
        effect="read",
        tool="aof_ready",
        verb="ready",
        cli=Cli(
            section="see",
            order=10,
            aliases=("next",),
            example="aof ready --agent swe-backend --limit 5",
            spelled=(("limit", Spelling(note="(default 50)")),),
        ),
        ask=_ready,
    ),
    Operation(
        name="list",
        parameters=ListParams,
        result=TaskPage,
        help="Tasks in the order of their IDs, or sorted otherwise.",
        effect="read",
        tool="aof_list",
        verb="list",
        cli=Cli(
            section="see",
            order=20,
            summary="list tasks",
            aliases=("ls",),
            example="aof list --status in-progress",
            extra=(Extra(option="--tree", help="children below their parents"),),
        ),
    ),
    Operation(
        name="blocked",
        parameters=PageParams,
        result=TaskPage,
        help="What is blocked, and why.",
        effect="read",
        tool="aof_blocked",
        verb="blocked",
        cli=Cli(section="see", order=30, example="aof blocked"),
    ),
    Operation(
        name="log",
        parameters=LogParams,
        result=Events,
        help="What happened, in order.",
        effect="read",
        tool="aof_log",
        verb="log",
        cli=Cli(
            section="see",
            order=90,
            summary="what happened",
            aliases=("events", "history"),
            example="aof log 001",
            extra=(
                Extra(option="--follow", help="continue as events arrive"),
                Extra(option="--format", help="native, or agentruntime for the portable event names", metavar="F"),
            ),
        ),
        ask=events,
    ),
    Operation(
        name="output",
        parameters=OutputParams,
        result=Printed,
        help="What a run printed, from an offset on.",
        effect="read",
        tool="aof_task_output",
        verb="output",
        cli=Cli(section="see", order=45, example="aof output 001 --offset 4096"),
    ),
    Operation(
        name="graph",
        parameters=GraphParams,
        result=Drawn,
        help="What depends on what.",
        effect="read",
        tool="aof_graph",
        verb="graph",
        cli=Cli(section="see", order=60, example="aof graph --format mermaid"),
        ask=_graph,
    ),
    Operation(
        name="replay",
        parameters=ReplayParams,
        result=PastTasks,
        help="All tasks as they were after an event.",
        effect="read",
        tool="aof_replay",
        verb="replay",
        cli=Cli(section="see", order=100, example="aof replay --at 12"),
        ask=_replay,
    ),
    Operation(
        name="snapshot",
        parameters=SnapshotParams,
        result=dict[str, Any],
        help="All tasks, their graph and what is blocked, in a portable form.",
        effect="read",
        tool="aof_snapshot",
        verb="snapshot",
        answer=_snapshot_schema,
        cli=Cli(section="see", order=110, example="aof snapshot --json"),
    ),
    Operation(
        name="portable_log",
        parameters=LogParams,
        result=PortableEvents,
        help="What happened, as portable events.",
        effect="read",
        tool="aof_portable_log",
        verb="log --format agentruntime",
        answer=_portable_schema,
    ),
    Operation(
        name="prime",
        parameters=PrimeParams,
        result=Primed,
        help="What an agent needs to know when its session begins.",
        effect="read",
        tool="aof_prime",
        verb="prime",
        cli=Cli(section="connect", order=10, example="aof prime --agent swe-backend"),
        ask=_prime,
    ),
)
