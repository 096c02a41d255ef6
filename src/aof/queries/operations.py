"""Operations that only look, at how things are and at what happened. Must not know any surface or store in use.

What lists need is loaded for them; all else is loaded where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from aof.kernel.operation import Extra, Spelling, StandIn, method, operation
from aof.queries import history as queries_history
from aof.queries import read_models, ready_queue, results, views
from aof.queries import views as printed_output
from aof.runs import model as runs_model
from aof.store import port
from aof.support.printable import Say, silent
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal, TypedDict, Unpack

    from aof.api.fabric import Fabric
    from aof.kernel.context import CallContext
    from aof.kernel.declarations import EVENT, IN_PYTHON, At, Cursor, EventName, TaskId, param
    from aof.kernel.events import Event
    from aof.kernel.kinds import GraphForm, Priority, Sort, Status, Stream
    from aof.kernel.results import Printed
    from aof.queries.read_models import Listed, ShownTask, Summary, TasksThen
    from aof.queries.results import Events
    from aof.queries.views import Drawing
    from aof.store.lists import Row
    from aof.tasks.model import Task
else:
    from aof.kernel.operation import Said as TypedDict


_NOT_TAKEN_YET = ("backlog", "ready")
_MOST_EVENTS = 1000
_SHOWN = StandIn(operation="show", keeps=("task_id",))
_WHEN = Spelling(metavar="WHEN", note="(a day, a moment, or -7d)")


class Filters(TypedDict, total=False):
    """Which tasks."""

    status: Annotated[Status, param("only this status")] | Annotated[Sequence[Status], IN_PYTHON] | None
    agent: Annotated[str, param("only what this agent holds or is meant to do")] | None
    tag: Annotated[str, param("only with this tag")] | None
    search: Annotated[str, param("only with these words in title, ID or text", Spelling(metavar="T"))] | None
    priority: Annotated[Priority, param("only this priority")] | None
    parent_id: Annotated[str, param("only children of this task", Spelling(option="--parent", metavar="ID"))] | None
    created_after: Annotated[str, param("created then or later", _WHEN)] | None
    created_before: Annotated[str, param("created earlier", _WHEN)] | None
    updated_after: Annotated[str, param("changed then or later", _WHEN)] | None
    updated_before: Annotated[str, param("not changed since", _WHEN)] | None
    due_before: Annotated[str, param("due earlier", _WHEN)] | None
    overdue: Annotated[bool, param("only what should have been done by now")]
    archived: Annotated[bool, param("also what was archived")]
    sort: (
        Annotated[Literal["id", "priority", "created", "updated", "due", "title", "status"], param("order")]
        | Annotated[Sort, IN_PYTHON]
        | None
    )
    reverse: Annotated[bool, param("in the opposite order")]
    limit: Annotated[int, param("at most this many", ge=0)] | None
    cursor: Cursor | None


@method
def resolve(context: CallContext, part: str) -> str:
    """The full ID that a part of one stands for."""
    return context.environment.lookup.resolve(part)


@method
def get(context: CallContext, task_id: str) -> Task:
    """The task as a record."""
    return context.environment.lookup.get(task_id)


@operation(
    effect="read",
    section="see",
    order=50,
    summary="how many tasks are in which status",
    example="aof status --compact",
    tier="core",
    tool_shows=("agent", "status", "compact", "limit", "actor"),
    shows_defaults=("compact",),
    wire_types={"return": "aof.queries.results.TaskCounts"},
)
def status(
    context: CallContext,
    *,
    compact: Annotated[bool, param("counts only", Spelling(hidden=True))] = False,
    **filters: Unpack[Filters],
) -> Summary:
    """How many tasks are in which status, and which."""
    models = context.environment.read_models
    return models.summary(models.query(**filters), compact=compact)


@operation(
    effect="read",
    tool="aof_task_show",
    section="see",
    order=40,
    summary="everything about one task",
    aliases=("get", "view"),
    example="aof show 001",
    tier="core",
    tool_shows=("task_id", "full", "actor"),
    tool_defaults=(("full", False),),
    shows_defaults=("full",),
    wire_types={"return": "aof.queries.results.Whole"},
)
def show(
    context: CallContext,
    task_id: TaskId,
    *,
    at: At | None = None,
    full: Annotated[bool, param("also history and bookkeeping", Spelling(hidden=True))] = True,
) -> ShownTask:
    """One task: brief, state, relations, progress.

    With its attempts and relationships; `at` an event: as it was then. Else in short, unless it is `full`.
    """
    environment = context.environment
    full_id = environment.lookup.resolve(task_id)
    if at is not None:
        seq = queries_history.number_of(environment.store, at)
        return read_models.ShownTask(
            queries_history.past_view(queries_history.task_at(environment.store, full_id, seq))
        )
    shown = environment.read_models.show(full_id)
    if shown["status"] in _NOT_TAKEN_YET and environment.chart.readable() is not None:
        warning = environment.chart.no_route(environment.lookup.get(shown["id"]))
        if warning is not None:
            shown["warning"] = msgspec.to_builtins(warning)
    return read_models.ShownTask(shown if full else views.outline(shown))


def _ready_and_why_not(
    fabric: Fabric,
    *,
    explain: Annotated[bool, param("say why each of the other tasks cannot be claimed")] = False,
    **filters: Unpack[Filters],
) -> dict[str, Any]:
    listed = fabric.ready(**filters)
    if not explain:
        return listed
    among: Any = {name: value for name, value in filters.items() if name not in {"limit", "cursor"}}
    return {**listed, "notReady": fabric.held_back(**among)}


@operation(
    effect="read",
    stand_in=StandIn(operation="status", keeps=("agent", "limit"), adds=(("status", "ready"),)),
    section="see",
    order=10,
    aliases=("next",),
    example="aof ready --agent swe-backend --limit 5",
    spelled=(("limit", Spelling(note="(default 50)")),),
    tier="worker",
    tool_shows=("agent", "tag", "limit", "explain", "actor"),
    tool_caller="agent",
    over_wire=_ready_and_why_not,
    wire_types={"return": "aof.queries.results.ReadyTasks"},
    python_only=("status", "archived", "sort", "reverse"),
)
def ready(context: CallContext, **filters: Unpack[Filters]) -> Listed:
    """What can be claimed now, most urgent first.

    With `agent`, by that one. A gated task that runs is among it where a hop of it is free.
    """
    return ready_queue.ReadyQueue(context.environment, context.principal).ready(**filters)


@method
def held_back(context: CallContext, **filters: Unpack[Filters]) -> tuple[Row, ...]:
    """Every unfinished task that cannot be claimed now, or not by that agent, and why."""
    return ready_queue.ReadyQueue(context.environment, context.principal).held_back(**filters)


@operation(
    name="list",
    effect="read",
    stand_in=StandIn(operation="status", keeps=("agent", "status", "limit")),
    section="see",
    order=20,
    summary="list tasks",
    aliases=("ls",),
    example="aof list --status in-progress",
    extra=(Extra(option="--tree", help="children below their parents"),),
    shows_defaults=("full",),
    wire_types={"return": "aof.queries.results.ListedTasks"},
)
def list_tasks(
    context: CallContext,
    *,
    waits: Annotated[bool, param("only what is ready and waits for something", Spelling(option="--waiting"))]
    | None = None,
    full: Annotated[
        bool, param("also tags, parent, progress, subtasks and whose work is in review", Spelling(hidden=True))
    ] = False,
    **filters: Unpack[Filters],
) -> Listed:
    """Tasks in the order of their IDs, or sorted otherwise.

    In `full` as a board's card has it. `waits`: false lists what is ready and waits for nothing.
    """
    models = context.environment.read_models
    return models.listed(models.query(**filters), waits=waits, full=full)


@operation(
    effect="read",
    section="see",
    order=25,
    aliases=("find", "grep"),
    example='aof search "refresh token" --status review',
    wire_types={"return": "aof.queries.results.FoundTasks"},
)
def search(
    context: CallContext,
    text: Annotated[str, param("words; a task has to have all of them, or their beginnings", Spelling(place="TEXT"))],
    *,
    status: Annotated[Status, param("only this status")] | None = None,
    agent: Annotated[str, param("only what this agent holds or is meant to do")] | None = None,
    tag: Annotated[str, param("only with this tag")] | None = None,
    priority: Annotated[Priority, param("only this priority")] | None = None,
    archived: Annotated[bool, param("also what was archived")] = False,
    limit: Annotated[int, param("at most this many", Spelling(note="(default 20)"), ge=0)] = 20,
    cursor: Cursor | None = None,
) -> Listed:
    """Find tasks by words in title, description, comments and work log.

    Matches in titles come first, and newer tasks before older ones.
    """
    models = context.environment.read_models
    query = models.query(
        search=views.checked_search(text),
        status=status,
        agent=agent,
        tag=tag,
        priority=priority,
        archived=archived,
        limit=limit,
        sort="relevance",
        reverse=True,
        cursor=cursor,
    )
    listed = models.listed(query)
    views.explain_matches(context.environment.store, listed.tasks, text)
    return listed


@operation(
    effect="read",
    stand_in=StandIn(operation="status", keeps=("agent", "limit"), adds=(("status", "blocked"),)),
    section="see",
    order=30,
    example="aof blocked",
    python_only=("status", "archived"),
    wire_types={"return": "aof.queries.results.TaskPage"},
)
def blocked(context: CallContext, **filters: Unpack[Filters]) -> Listed:
    """What is blocked, and why."""
    models = context.environment.read_models
    return models.listed(models.query(**filters).but(status=("blocked",)))


@operation(
    effect="read",
    tool="aof_task_output",
    stand_in=_SHOWN,
    section="see",
    order=45,
    example="aof output 001 --offset 4096",
)
def output(
    context: CallContext,
    task_id: TaskId,
    *,
    attempt: Annotated[int, param("number of the run (else the last one)", ge=1)] | None = None,
    stream: Annotated[Stream, param("what it was printed to")] = "stdout",
    offset: Annotated[int, param("bytes to skip", ge=0)] = 0,
    limit: Annotated[int, param("at most this many bytes", ge=4, le=65_536)] = 65_536,
) -> Printed:
    """What a run printed, from an offset on."""
    environment = context.environment
    return printed_output.output_piece(
        environment.store,
        environment.lookup.resolve(task_id),
        attempt=attempt,
        stream=stream,
        offset=offset,
        limit=limit,
    )


def _drawn(
    fabric: Fabric,
    *,
    task_id: Annotated[str, param("only what is connected with this task", Spelling(place="ID"))] | None = None,
    format: Annotated[GraphForm, param("form of the graph")] = "tree",  # noqa: A002 - its name over the wire
) -> results.Drawn:
    drawn = fabric.graph(task_id, form=format)
    return results.Drawn(format=format, graph=drawn.text, edges=drawn.edges)


@operation(
    effect="read",
    stand_in=_SHOWN,
    section="see",
    order=60,
    example="aof graph --format mermaid",
    over_wire=_drawn,
    shows_defaults=("format",),
)
def graph(context: CallContext, task_id: str | None = None, *, form: GraphForm = "tree") -> Drawing:
    """What depends on what.

    The task graph, or the part of it around one task, as `tree`, `mermaid`, `dot` or `svg`.
    """
    environment = context.environment
    root = environment.lookup.get(task_id).id if task_id is not None else None
    return views.draw([*environment.store.find(environment.read_models.query()).tasks], root, form)


@method
def claimable(context: CallContext, **filters: Unpack[Filters]) -> int:
    """How many tasks in `ready` wait for nothing."""
    models = context.environment.read_models
    return models.listed(models.runnable(models.query(**filters)).but(limit=0)).total


@method
def running(context: CallContext) -> tuple[Task, ...]:
    """The tasks that somebody holds."""
    return context.environment.store.find(context.environment.read_models.query(status="in-progress")).tasks


@method
def tasks(context: CallContext, **filters: Unpack[Filters]) -> tuple[Task, ...]:
    """Whole records, without their bodies: for views that draw more of a task than a row has."""
    return context.environment.store.find(context.environment.read_models.query(**filters)).tasks


@method
def branches(context: CallContext, **filters: Unpack[Filters]) -> Sequence[tuple[str, str]]:
    """The IDs of the tasks that match, children below their parents, each with the branch that leads to it."""
    return views.branches({task.id: task.parent_id for task in tasks(context, **filters)})


@method
def relatives(context: CallContext, task_ids: Sequence[str]) -> dict[str, Task]:
    """Some tasks as the log knows them; whatever is not there, or waits with an edit, is left out."""
    found: dict[str, Task] = {}
    for task_id in task_ids:
        try:
            with context.environment.store.unit(port.Scope(read=frozenset({task_id}))) as unit:
                task = unit.task(task_id)
        except port.ScopeTooNarrow:
            continue
        if task is not None:
            found[task_id] = task
    return found


@method
def lease_ends(context: CallContext, task_ids: Sequence[str]) -> dict[str, int]:
    """When each lease ends, in UTC milliseconds, with the last sign of life counted in.

    The lease of a task goes by its ID, that of a hop by the place of its run, `ID/hops/HOP`.
    """
    ends: dict[str, int] = {}
    for task_id in task_ids:
        try:
            with context.environment.store.unit(port.Scope(read=frozenset({task_id}))) as unit:
                task = unit.task(task_id)
                for place, lease in workflows_model.held_leases(task) if task is not None else ():
                    ends[place] = runs_model.lease_end(lease, unit.heartbeat(place))
        except port.ScopeTooNarrow:
            continue
    return ends


@operation(
    effect="read",
    stand_in=_SHOWN,
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
    wire_types={"return": "aof.queries.results.Events"},
)
def log(
    context: CallContext,
    task_id: Annotated[str, param("only this task", Spelling(place="ID"))] | None = None,
    *,
    after: Annotated[int, param("only events with a greater number", Spelling(metavar="SEQ"), ge=0)] | None = None,
    type: Annotated[str, param("only events of this type")] | None = None,  # noqa: A002 - what it is called everywhere
    limit: Annotated[int, param("only the last N events", ge=0)] | None = None,
    cursor: Cursor | None = None,
) -> Events:
    """What happened, in order.

    Without a limit or a start, the last thousand events.
    """
    store = context.environment.store
    most = _MOST_EVENTS if limit is None and after is None else limit
    end = read_models.number_in("log", cursor) if cursor is not None else store.head() + 1
    start = after or 0
    if most is not None and task_id is None and type is None:
        start = max(start, end - most - 2)  # no further back than the page goes
    found: list[Event] = []
    for event in events(context, after=start, task_id=task_id):
        if event.seq >= end:
            break
        if type in (None, event.type):
            found.append(event)
    if not found and task_id is not None:
        context.environment.lookup.get(task_id)  # a task that is not there is not one without news
    if most is None:
        return results.Events(events=tuple(found))
    page = tuple(found[max(len(found) - most, 0) :] if most else ())
    more = page and len(found) > most
    return results.Events(
        events=page, next_cursor=read_models.place_in("log", str(page[0].seq)) if more else msgspec.UNSET
    )


@method
def events(context: CallContext, *, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
    """The durable events in order, of all tasks or of one."""
    return context.environment.store.events(after, context.environment.lookup.resolve(task_id) if task_id else None)


@method
def follow(context: CallContext, *, after: int = 0, timeout: float = 60.0) -> Iterator[Event]:
    """Events as they come; ends when nothing came for so long."""
    store = context.environment.store
    while store.wait(after, timeout):
        for event in store.events(after):
            after = event.seq
            yield event


@operation(
    effect="read",
    verb="admin replay",
    section="data",
    order=100,
    former=("replay",),
    example="aof admin replay --at 12",
    python_only=("say",),
    wire_types={"return": "aof.queries.results.PastTasks"},
)
def replay(
    context: CallContext,
    at: Annotated[EventName, param("the event: its number, or 8 or more digits of its hash", EVENT)],
    *,
    say: Say = silent,
) -> TasksThen:
    """All tasks as they were after an event."""
    store = context.environment.store
    seq = queries_history.number_of(store, at)
    past = queries_history.tasks_at(store, seq, say).values()
    return read_models.TasksThen({"seq": seq, "tasks": [queries_history.past_view(task) for task in past]})
