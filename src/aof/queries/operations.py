"""Operations that only look, at how things are and at what happened. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from aof.errors import InvalidInput
from aof.kernel.declarations import (
    EVENT,
    At,
    Cli,
    Cursor,
    EventName,
    Extra,
    Operation,
    Params,
    Spelling,
    StandIn,
    TaskParams,
    param,
)
from aof.kernel.events import Event
from aof.kernel.kinds import GraphForm, Priority, Status, Stream
from aof.kernel.results import Primed, Printed, Result
from aof.portable import schemas
from aof.queries import read_models
from aof.runs import brief
from aof.support.typed import prepare_type
from aof.tasks.fields import LISTED

TYPE_CHECKING = False
_SHOWN = StandIn(operation="show", keeps=("task_id",))
_WHEN = Spelling(metavar="WHEN", note="(a day, a moment, or -7d)")


class FilterParams(Params, frozen=True, kw_only=True):
    """Which tasks."""

    agent: Annotated[str, param("only what this agent holds or is meant to do")] | UnsetType = UNSET
    tag: Annotated[str, param("only with this tag")] | UnsetType = UNSET
    search: Annotated[str, param("only with these words in title, ID or text", Spelling(metavar="T"))] | UnsetType = (
        UNSET
    )
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
    cursor: Cursor | UnsetType = UNSET


class ListParams(PageParams, frozen=True, kw_only=True):
    """Which tasks, in which status."""

    status: Annotated[Status, param("only this status")] | UnsetType = UNSET
    archived: Annotated[bool, param("also what was archived")] | UnsetType = UNSET


class ListedParams(ListParams, frozen=True, kw_only=True):
    """Which tasks, and how much of each. `waits`: false lists what is ready and waits for nothing."""

    waits: (
        Annotated[
            bool,
            param(
                "only what is ready and waits for something",
                Spelling(option="--waiting"),
            ),
        ]
        | UnsetType
    ) = UNSET
    full: Annotated[
        bool, param("also tags, parent, progress, subtasks and whose work is in review", Spelling(hidden=True))
    ] = False


class ReadyParams(FilterParams, frozen=True, kw_only=True):
    """Whose work, and whether to explain the rest."""

    explain: Annotated[bool, param("say why each of the other tasks cannot be claimed")] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class SearchParams(Params, frozen=True, kw_only=True):
    """What to look for, and among which tasks."""

    text: Annotated[str, param("words; a task has to have all of them, or their beginnings", Spelling(place="TEXT"))]
    status: Annotated[Status, param("only this status")] | UnsetType = UNSET
    agent: Annotated[str, param("only what this agent holds or is meant to do")] | UnsetType = UNSET
    tag: Annotated[str, param("only with this tag")] | UnsetType = UNSET
    priority: Annotated[Priority, param("only this priority")] | UnsetType = UNSET
    archived: Annotated[bool, param("also what was archived")] | UnsetType = UNSET
    limit: Annotated[int, param("at most this many", Spelling(note="(default 20)"), ge=0)] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class CountsParams(ListParams, frozen=True, kw_only=True):
    """Which tasks, and how much of them."""

    compact: Annotated[bool, param("counts only", Spelling(hidden=True))] = False


class ShowParams(TaskParams, frozen=True, kw_only=True):
    """Which task, and when."""

    at: At | UnsetType = UNSET
    full: Annotated[bool, param("also history and bookkeeping", Spelling(hidden=True))] = True


class OutputParams(TaskParams, frozen=True, kw_only=True):
    """Whose output, and which piece of it."""

    attempt: Annotated[int, param("number of the run (else the last one)", ge=1)] | UnsetType = UNSET
    stream: Annotated[Stream, param("what it was printed to")] | UnsetType = UNSET
    offset: Annotated[int, param("bytes to skip", ge=0)] | UnsetType = UNSET
    limit: Annotated[int, param("at most this many bytes", ge=4, le=65_536)] | UnsetType = UNSET


class GraphParams(Params, frozen=True, kw_only=True):
    """Which part, in which form."""

    task_id: Annotated[str, param("only what is connected with this task", Spelling(place="ID"))] | UnsetType = UNSET
    format: Annotated[GraphForm, param("form of the graph")] = "tree"


class PrimeParams(Params, frozen=True, kw_only=True):
    """Whose session begins."""

    agent: Annotated[str, param("whose session begins (else the actor)")] | UnsetType = UNSET


class RowHead(Result, frozen=True, kw_only=True):
    """What every line of a list begins with."""

    id: str
    title: str
    status: str
    priority: str
    agent: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    waits: str | UnsetType = UNSET


if TYPE_CHECKING:
    RowFields = RowHead
else:
    RowFields = msgspec.defstruct(
        "RowFields",
        [(row.name, (int if row.kind == "whole" else str) | UnsetType, UNSET) for row in LISTED],
        bases=(RowHead,),
        frozen=True,
        kw_only=True,
    )


class TaskRow(RowFields, frozen=True, kw_only=True):
    """One line of a list: who holds the task or is meant to do it, why it is held, and what is odd about its file.

    `waits` says what a task in `ready` waits for; one without it can be claimed.
    """

    overdue: bool | UnsetType = UNSET
    state: str | UnsetType = UNSET


class Subtasks(Result, frozen=True, kw_only=True):
    """How far the tasks directly below one are."""

    total: int
    done: int
    finished: int


class ListedTask(TaskRow, frozen=True, kw_only=True):
    """One line of a list; in full with what a card of a board says, where there is something to say.

    `since` is when the task came to its status, or was blocked. `authors` are the agents whose work is in review.
    """

    since: str | UnsetType = UNSET
    parent_id: str | UnsetType = UNSET
    parent_title: str | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    role: str | UnsetType = UNSET
    team: str | UnsetType = UNSET
    progress: dict[str, Any] | UnsetType = UNSET
    children: Subtasks | UnsetType = UNSET
    authors: tuple[str, ...] | UnsetType = UNSET
    attempts: int | UnsetType = UNSET


class TaskPage(Result, frozen=True, kw_only=True):
    """A page of tasks, how many match in all, and the cursor of the next page where there is one."""

    total: int
    tasks: tuple[TaskRow, ...]
    next_cursor: str | UnsetType = UNSET


class ListedTasks(TaskPage, frozen=True, kw_only=True):
    """A page of tasks, how many match in all, and the cursor of the next page where there is one."""

    tasks: tuple[ListedTask, ...]


class FoundTask(TaskRow, frozen=True, kw_only=True):
    """One line of an answer to a search: the part of the task that matched, and the words there."""

    where: str | UnsetType = UNSET
    excerpt: str | UnsetType = UNSET


class FoundTasks(Result, frozen=True, kw_only=True):
    """The tasks that a search found, matches in titles first, and the cursor of the next page where there is one."""

    total: int
    tasks: tuple[FoundTask, ...]
    next_cursor: str | UnsetType = UNSET


class TaskCounts(TaskPage, frozen=True, kw_only=True):
    """The tasks that match, counted by status."""

    by_status: dict[str, int]


class ReadyTask(TaskRow, frozen=True, kw_only=True):
    """One line of what can be claimed; of a gated task the hop, its role, and whose work the hop reviews."""

    hop: str | UnsetType = UNSET
    role: str | UnsetType = UNSET
    reviews: tuple[str, ...] | UnsetType = UNSET


class ReadyTasks(TaskPage, frozen=True, kw_only=True):
    """What can be claimed and, when that was asked, why the others cannot."""

    tasks: tuple[ReadyTask, ...]
    not_ready: tuple[TaskRow, ...] | UnsetType = UNSET


class Drawn(Result, frozen=True, kw_only=True):
    """A graph as text, and its edges: from, to and kind."""

    format: str
    graph: str
    edges: tuple[tuple[str, ...], ...]


def _ready(fabric: Any, values: dict[str, Any]) -> dict[str, Any]:
    explain = values.pop("explain", False)
    listed: dict[str, Any] = fabric.ready(**values)
    if not explain:
        return listed
    for name in ("limit", "cursor"):
        values.pop(name, None)
    return listed | {"notReady": fabric.held_back(**values)}


def _graph(fabric: Any, values: dict[str, Any]) -> Drawn:
    drawn = fabric.graph(values.get("task_id"), form=values["format"])
    return Drawn(format=values["format"], graph=drawn.text, edges=drawn.edges)


def _prime(fabric: Any, values: dict[str, Any]) -> Primed:

    agent = values.get("agent", fabric.actor)
    if not agent.strip():
        raise InvalidInput("'agent' must not be empty", "give the name of the agent whose session begins")
    return Primed(text=brief.prime(fabric, agent))


QUERY_ROWS: tuple[Operation, ...] = (
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
        help="One task: brief, state, relations, progress.",
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
        tool_shows=("task_id", "full", "actor"),
        tool_defaults=(("full", False),),
    ),
    Operation(
        name="ready",
        parameters=ReadyParams,
        result=ReadyTasks,
        help="What can be claimed now, most urgent first.",
        effect="read",
        tool="aof_ready",
        stand_in=StandIn(operation="status", keeps=("agent", "limit"), adds=(("status", "ready"),)),
        verb="ready",
        cli=Cli(
            section="see",
            order=10,
            aliases=("next",),
            example="aof ready --agent swe-backend --limit 5",
            spelled=(("limit", Spelling(note="(default 50)")),),
        ),
        tier="worker",
        tool_shows=("agent", "tag", "limit", "explain", "actor"),
        tool_caller="agent",
        ask=_ready,
    ),
    Operation(
        name="list",
        parameters=ListedParams,
        result=ListedTasks,
        help="Tasks in the order of their IDs, or sorted otherwise.",
        effect="read",
        tool="aof_list",
        stand_in=StandIn(operation="status", keeps=("agent", "status", "limit")),
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
        name="search",
        parameters=SearchParams,
        result=FoundTasks,
        help="Find tasks by words in title, description, comments and work log.",
        effect="read",
        tool="aof_search",
        verb="search",
        cli=Cli(
            section="see",
            order=25,
            aliases=("find", "grep"),
            example='aof search "refresh token" --status review',
        ),
    ),
    Operation(
        name="blocked",
        parameters=PageParams,
        result=TaskPage,
        help="What is blocked, and why.",
        effect="read",
        tool="aof_blocked",
        stand_in=StandIn(operation="status", keeps=("agent", "limit"), adds=(("status", "blocked"),)),
        verb="blocked",
        cli=Cli(section="see", order=30, example="aof blocked"),
    ),
    Operation(
        name="output",
        parameters=OutputParams,
        result=Printed,
        help="What a run printed, from an offset on.",
        effect="read",
        tool="aof_task_output",
        stand_in=_SHOWN,
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
        stand_in=_SHOWN,
        verb="graph",
        cli=Cli(section="see", order=60, example="aof graph --format mermaid"),
        ask=_graph,
    ),
    Operation(
        name="prime",
        parameters=PrimeParams,
        result=Primed,
        help="What an agent needs to know when its session begins.",
        effect="read",
        tool="aof_prime",
        verb="prime",
        cli=Cli(
            section="serve",
            order=10,
            example="aof prime --agent swe-backend",
            extra=(Extra(option="--hook", help="for a client's hook: always succeed, and give up after 5 seconds"),),
        ),
        ask=_prime,
    ),
)


_MOST_EVENTS = 1000


class LogParams(Params, frozen=True, kw_only=True):
    """Which events."""

    task_id: Annotated[str, param("only this task", Spelling(place="ID"))] | UnsetType = UNSET
    after: Annotated[int, param("only events with a greater number", Spelling(metavar="SEQ"), ge=0)] | UnsetType = UNSET
    type: Annotated[str, param("only events of this type")] | UnsetType = UNSET
    limit: Annotated[int, param("only the last N events", ge=0)] | UnsetType = UNSET


class LogPageParams(LogParams, frozen=True, kw_only=True):
    """Which events, and from where on backwards."""

    cursor: Cursor | UnsetType = UNSET


class ReplayParams(Params, frozen=True, kw_only=True):
    """After which event."""

    at: Annotated[EventName, param("the event: its number, or 8 or more digits of its hash", EVENT)]


class SnapshotParams(Params, frozen=True, kw_only=True):
    """When, and whether with what was archived."""

    at: At | UnsetType = UNSET
    archived: Annotated[bool, param("also what was archived")] | UnsetType = UNSET


class Events(Result, frozen=True, kw_only=True):
    """Events in order, and the cursor of the page before these where there is one and a limit was given."""

    events: tuple[Event, ...]
    next_cursor: str | UnsetType = UNSET


class PortableEvents(Result, frozen=True, kw_only=True):
    """Events in order, in the words of the agent task contract."""

    events: tuple[dict[str, Any], ...]


class PastTasks(Result, frozen=True, kw_only=True):
    """Every task as it was after an event."""

    seq: int
    tasks: list[dict[str, Any]]


def events(fabric: Any, values: dict[str, Any]) -> Events:
    """The events that were asked for; without a limit or a start, the last thousand."""
    after, task_id, kind = values.get("after", 0), values.get("task_id"), values.get("type")
    most = values.get("limit", None if "after" in values else _MOST_EVENTS)
    end = read_models.number_in("log", values["cursor"]) if "cursor" in values else fabric.store.head() + 1
    start = after
    if most is not None and task_id is None and kind is None:
        start = max(after, end - most - 2)  # no further back than the page goes
    found: list[Event] = []
    for event in fabric.events(after=start, task_id=task_id):
        if event.seq >= end:
            break
        if kind in (None, event.type):
            found.append(event)
    if not found and task_id is not None:
        fabric.get(task_id)  # a task that is not there is not one without news
    if most is None:
        return Events(events=tuple(found))
    page = tuple(found[max(len(found) - most, 0) :] if most else ())
    more = page and len(found) > most
    return Events(events=page, next_cursor=read_models.place_in("log", str(page[0].seq)) if more else UNSET)


def _replay(fabric: Any, values: dict[str, Any]) -> PastTasks:
    return msgspec.convert(fabric.replay(values["at"]), prepare_type(PastTasks))


HISTORY_ROWS: tuple[Operation, ...] = (
    Operation(
        name="log",
        parameters=LogPageParams,
        result=Events,
        help="What happened, in order.",
        effect="read",
        tool="aof_log",
        stand_in=StandIn(operation="show", keeps=("task_id",)),
        verb="log",
        cli=Cli(
            section="see",
            order=90,
            summary="what happened",
            aliases=("events", "history"),
            example="aof log 001",
            extra=(
                Extra(option="--follow", help="continue as events arrive"),
                Extra(option="--types", help="show every event with its type"),
                Extra(option="--format", help="native, or agentruntime for the portable event names", metavar="F"),
            ),
        ),
        ask=events,
    ),
    Operation(
        name="replay",
        parameters=ReplayParams,
        result=PastTasks,
        help="All tasks as they were after an event.",
        effect="read",
        tool="aof_replay",
        verb="admin replay",
        cli=Cli(section="data", order=100, former=("replay",), example="aof admin replay --at 12"),
        ask=_replay,
    ),
    Operation(
        name="snapshot",
        parameters=SnapshotParams,
        result=dict[str, Any],
        help="All tasks, their graph and what is blocked, in a portable form.",
        effect="read",
        tool="aof_snapshot",
        verb="admin snapshot",
        answer=schemas.snapshot_schema,
        cli=Cli(section="data", order=110, former=("snapshot",), example="aof admin snapshot --json"),
    ),
    Operation(
        name="portable_log",
        parameters=LogParams,
        result=PortableEvents,
        help="What happened, as portable events.",
        effect="read",
        tool="aof_portable_log",
        verb="log --format agentruntime",
        answer=schemas.events_schema,
    ),
)
