"""Who the caller is, where it may move a task, the tasks around one, and work over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from aof.errors import AofError, Call, InvalidInput, TaskNotFound
from aof.kernel import commands, identity
from aof.kernel import limits as kernel_limits
from aof.kernel import model as kernel_model
from aof.kernel.declarations import Cursor, EventName, TaskId, param
from aof.kernel.events import is_remark
from aof.kernel.evolve import evolve
from aof.kernel.model import STATUSES, is_task_id
from aof.kernel.operation import Spelling, operation
from aof.kernel.results import Result
from aof.org import rights
from aof.queries import read_models
from aof.queries.history import number_of
from aof.runs import authentication
from aof.store import port
from aof.store.lists import Row
from aof.supervision.inbox import MOST_ROWS, Limit
from aof.supervision.rules import SpanQuery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from aof.kernel.context import CallContext
    from aof.supervision.rules import AgentRuns, FlowFacts, RunSpan
    from aof.tasks.model import Task


MOST_DAYS: Final = 366
MOST_NEIGHBOURS: Final = 200
Source = Literal["given", "environment", "run", "token", "session", "user"]
_EVENT = Spelling(metavar="SEQ|HASH")
_WHEN = Spelling(metavar="WHEN", note="(a day, a moment, or -7d)")


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


@operation(
    effect="read",
    section="see",
    order=95,
    summary="who you are to AOF, what you may do, and where the data is",
    example="aof whoami",
    about_caller=True,
)
def whoami(context: CallContext) -> WhoAmI:
    """Who you are to AOF, where that name comes from, what you may do, and where the data is."""
    who, place = context.principal.identity or identity.NOBODY, context.environment.place
    name = identity.name_of(who) or context.principal.actor
    own = authentication.understood(who.secret) if who.secret is not None else None
    chart, maintainers = context.environment.chart.readable(), context.environment.policy.maintainers
    plain = own is None and not who.unproven
    local = place is not None and not who.token
    return WhoAmI(
        actor=name,
        source=_source(context, who, name),
        run_id=own.run if own is not None else context.principal.run,
        maintainer=plain and name in maintainers,
        roles=tuple(sorted(chart.roles_of.get(name, ()))) if chart is not None else (),
        kind=rights.kind_of(chart, name, maintainers if plain else ()) if chart is not None else None,
        scope=who.scope if who.token else None,
        acts_for_others=plain
        and who.agent is None
        and (not context.authentication.binds_callers or context.authentication.speaks_for_others(name)),
        data_dir=place.data_dir if place is not None and local else None,
        found_by=place.found_by if place is not None and local else None,
        lane=place.lane() if place is not None else None,
        version=place.version if place is not None else None,
        python=place.python if place is not None and local else None,
        format=place.format() if place is not None else None,
    )


def _source(context: CallContext, who: identity.Identity, name: str) -> Source:
    """What the caller's name comes from."""
    if who.secret is not None:
        return "run"
    if who.token:
        return "token"
    if who.session is not None:
        return "session"
    place = context.environment.place
    return place.actor_from if place is not None and place.actor == name else "given"


_TEXT = "…"


class _Offer(msgspec.Struct, frozen=True):
    """A change to try: its command with values, and the call that makes it, which shows others where it says so."""

    operation: str
    command: type[commands.OnTask]
    given: dict[str, Any] = {}
    shown: dict[str, Any] | None = None
    asks: tuple[str, ...] = ()
    confirm: bool = False
    drags: bool = False


@operation(effect="read", verb="show moves", section="see", order=47, former=("moves",), example="aof show moves 001")
def moves(context: CallContext, task_id: TaskId) -> Moves:
    """Where you may move a task now, and what else you may do with it."""
    task = context.environment.lookup.get(task_id)
    tried = [(offer, _tried(context, task, offer)) for offer in _offers(task)]
    found = [(offer, move) for offer, move in tried if move is not None]
    return Moves(
        task_id=task.id,
        status=task.status,
        rev=task.rev,
        moves=tuple(move for offer, move in found if offer.drags and move.to is not UNSET),
        actions=tuple(move for offer, move in found),
    )


def _tried(context: CallContext, task: Task, offer: _Offer) -> Move | None:
    try:
        decision = context.dispatcher.rehearse(offer.command, task.id, **offer.given)
    except AofError:
        return None
    own = (one for one in decision.drafts if one.task_id == task.id and one.type == "task.transitioned")
    to = next((one.payload["to"] for one in reversed([*own])), None)
    if not decision.drafts:
        return None  # it would change nothing
    return Move(
        operation=offer.operation,
        arguments={"taskId": task.id} | (offer.given if offer.shown is None else offer.shown),
        to=to if to is not None and to != task.status else UNSET,
        asks=offer.asks,
        confirm=offer.confirm,
    )


def _offers(task: Task) -> Iterator[_Offer]:
    """Everything that is worth trying with a task in this status."""
    yield _Offer("comment", commands.Comment, given={"text": _TEXT}, asks=("text",))
    yield from _judgements(task)
    for one in task.open_questions:
        given = {"text": _TEXT, "question": one.id}
        yield _Offer("answer", commands.AnswerQuestion, given=given, asks=("text",))
    if task.status in ("backlog", "ready"):
        other = "ready" if task.status == "backlog" else "backlog"
        yield _Offer("update", commands.Update, given={"status": other}, drags=True)
    if task.blocked is not None:
        if task.blocked.kind == "paused":
            yield _Offer("resume", commands.Resume, drags=True)
        else:
            yield _Offer("unblock", commands.Unblock, drags=True)
    if task.status not in ("blocked", "done", "cancelled", "deadletter"):
        yield _Offer("block", commands.Block, given={"reason": _TEXT}, asks=("reason",), drags=True)
        yield _Offer("pause", commands.Pause)
    if task.status == "in-progress":
        yield _Offer("release", commands.Release, drags=True)
    yield _Offer("retry", commands.RetryTask, given={"reason": _TEXT}, asks=("reason",), drags=True)
    if task.status not in ("done", "cancelled", "deadletter"):
        yield _Offer("cancel", commands.CancelTask, confirm=True, drags=True)
    title = {"changes": {"title": f"{task.title[:400]} {_TEXT}"}}
    yield _Offer("edit", commands.Edit, given=title, shown={}, asks=("title",))
    yield _Offer(
        "link",
        commands.AddLink,
        given={"kind": "evidence", "target_id": "outputs/x"},
        shown={},
        asks=("kind", "target"),
    )
    yield _Offer("unarchive", commands.UnarchiveTask) if task.archived else _Offer("archive", commands.ArchiveTask)


def _judgements(task: Task) -> Iterator[_Offer]:
    """Approving and rejecting, of each hop that waits for it."""
    hops = [hop["id"] for hop in task.workflow.get("hops", ()) if hop.get("status") == "review"] if task.gated else []
    for at in [{"hop": hop} for hop in hops] or ([{}] if task.status == "review" else []):
        yield _Offer("approve", commands.Approve, given=at, confirm=True)
        given = {"blockers": (_TEXT,)} | at
        yield _Offer("reject", commands.Reject, given=given, shown={"blockers": [_TEXT]} | at, asks=("blockers",))


_Edge = tuple[str, str, str]


@operation(
    effect="read",
    verb="graph near",
    section="see",
    order=62,
    summary="the tasks connected with one",
    former=("neighbourhood", "near"),
    example="aof graph near 001",
)
def neighbourhood(
    context: CallContext,
    task_id: TaskId,
    *,
    limit: Annotated[int, param("at most this many tasks", ge=1, le=MOST_NEIGHBOURS)] = 200,
) -> Neighbourhood:
    """The tasks connected with one, nearest first, and the edges between them."""
    if problem := kernel_limits.whole("limit", limit, 1, MOST_NEIGHBOURS):
        raise problem
    root = context.environment.lookup.get(task_id)
    found: dict[str, tuple[Task, int]] = {root.id: (root, 0)}
    edges: set[_Edge] = set()
    known = {root.id}
    border, depth = [root], 0
    while border and len(found) < limit:
        depth += 1
        near = _edges(context, border)
        edges |= near
        fresh = sorted({end for source, target, _ in near for end in (source, target)} - known)
        known.update(fresh)
        border = list(context.environment.store.records(fresh[: limit - len(found)]))
        found |= {task.id: (task, depth) for task in border}
    if border:
        near = _edges(context, border)
        edges |= near
        known |= {end for source, target, _ in near for end in (source, target)}
    shown = [edge for edge in sorted(edges) if edge[0] in found and edge[1] in found]
    missing = known - found.keys()
    return Neighbourhood(
        root=root.id,
        nodes=tuple(_node(task, at) for task, at in found.values()),
        edges=tuple(GraphEdge(source=one[0], target=one[1], kind=one[2]) for one in shown),
        left_out=len(missing),
    )


def _edges(context: CallContext, tasks: list[Task]) -> set[_Edge]:
    """All edges of these tasks, in both directions."""
    names = [task.id for task in tasks]
    edges: set[_Edge] = set()
    with context.environment.store.unit(port.Scope()) as unit:
        for waited, dependents in unit.dependents_of(names).items():
            edges |= {(waited, one, "blocks") for one in dependents}
        for name in names:
            edges |= {(name, child, "child") for child in unit.children(name)}
    for task in tasks:
        edges |= {(blocker, task.id, "blocks") for blocker in task.depends_on}
        if task.parent_id is not None:
            edges.add((task.parent_id, task.id, "child"))
        edges |= {(task.id, link.target_id, link.kind) for link in task.links if is_task_id(link.target_id)}
    return edges


def _node(task: Task, depth: int) -> GraphNode:
    row = Row.of(task, None)
    return GraphNode(
        id=task.id,
        title=task.title,
        status=task.status,
        priority=task.priority,
        depth=depth,
        agent=row.agent or UNSET,
    )


_DAY_MS = 86_400_000
_UNCHANGING = ("rev", "updatedAt")
_HIDDEN = ("layout", "archived")


@operation(
    effect="read",
    verb="insights timeline",
    section="see",
    order=85,
    former=("timeline",),
    example="aof insights timeline --agent swe-backend --since -1d",
)
def timeline(
    context: CallContext,
    *,
    task_id: Annotated[str, param("only runs of this task", Spelling(place="ID"))] | None = None,
    agent: Annotated[str, param("only runs of this agent")] | None = None,
    since: Annotated[str, param("only runs that were active then or later", _WHEN)] | None = None,
    before: Annotated[str, param("only runs that began earlier", _WHEN)] | None = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> TimelinePage:
    """Runs over time, latest first, with how long each worked and waited."""
    if problem := kernel_limits.whole("limit", limit, 0, MOST_ROWS):
        raise problem
    now = context.environment.clock.now()
    query = SpanQuery(
        task_id=context.environment.lookup.resolve(task_id) if task_id is not None else None,
        agent=agent,
        since=_moment(context, "since", since),
        before=_moment(context, "before", before),
        behind=read_models.number_in("timeline", cursor) if cursor is not None else None,
        limit=limit + 1,
    )
    page = context.environment.store.run_spans(query)
    shown = page.spans[:limit]
    titles = {task.id: task.title for task in context.environment.store.records({one.task_id for one in shown})}
    more = read_models.place_in("timeline", str(shown[-1].seq)) if shown and len(page.spans) > limit else UNSET
    rows = tuple(_span(one, titles.get(one.task_id, ""), now) for one in shown)
    return TimelinePage(total=page.total, rows=rows, now=kernel_model.iso(now), next_cursor=more)


def _moment(context: CallContext, name: str, said: str | None) -> str | None:
    if said is None:
        return None
    found = kernel_limits.moment(name, said, context.environment.clock.now())
    if isinstance(found, InvalidInput):
        raise found
    return kernel_model.iso(kernel_model.millis(found))


@operation(
    effect="read",
    verb="insights flow",
    section="see",
    order=86,
    former=("flow",),
    example="aof insights flow --days 14",
)
def flow(
    context: CallContext,
    *,
    days: Annotated[int, param("how many days, up to today", Spelling(note="(default 30)"), ge=1, le=MOST_DAYS)] = 30,
) -> Flow:
    """How work flows: tasks by status per day, throughput, lead times, runs by agent."""
    if problem := kernel_limits.whole("days", days, 1, MOST_DAYS):
        raise problem
    today = context.environment.clock.now()
    wanted = [kernel_model.day(today - back * _DAY_MS) for back in range(days - 1, -1, -1)]
    facts = context.environment.store.flow_facts(wanted[0])
    rows = _days(facts, wanted)
    done = sum(row.done for row in rows)
    return Flow(
        days=rows,
        done=done,
        per_day=round(done / days, 2),
        lead_time=_percentiles([lead for _, lead, _ in facts.leads]),
        cycle_time=_percentiles([cycle for _, _, cycle in facts.leads]),
        agents=tuple(_agent(one) for one in facts.agents),
    )


@operation(effect="read", verb="log at", section="see", order=92, former=("at",), example="aof log at 001 --seq 12")
def task_at(
    context: CallContext,
    task_id: TaskId,
    *,
    seq: Annotated[EventName, param("event by number or hash, or the last one before it (else the last)", _EVENT)]
    | None = None,
) -> TaskMoment:
    """A task as it was after one of its events, and what that event changed."""
    full = context.environment.lookup.resolve(task_id)
    last = number_of(context.environment.store, seq) if seq is not None else None
    events = [event for event in context.environment.store.events(task_id=full) if not is_remark(event)]
    place = max((number for number, event in enumerate(events) if last is None or event.seq <= last), default=None)
    if place is None:
        raise TaskNotFound(f"there was no task {full} at event {seq}", "see its events", Call("log", {"task_id": full}))
    before: Task | None = None
    for event in events[:place]:
        before = evolve(before, event)
    after = evolve(before, events[place])
    return TaskMoment(
        task_id=full,
        seq=events[place].seq,
        event=msgspec.to_builtins(events[place]),
        task=_portrait(after),
        changed=_changed(_portrait(before) if before is not None else {}, _portrait(after)),
        number=place + 1,
        events=len(events),
        first=events[0].seq,
        last=events[-1].seq,
        previous=events[place - 1].seq if place else UNSET,
        next=events[place + 1].seq if place + 1 < len(events) else UNSET,
    )


def _span(one: RunSpan, title: str, now: int) -> TimelineRow:
    end = kernel_model.millis(one.ended_at) if one.ended_at is not None else now
    start = kernel_model.millis(one.started_at)
    waited = sum(
        max(
            min(kernel_model.millis(wait.until) if wait.until is not None else end, end)
            - kernel_model.millis(wait.since),
            0,
        )
        for wait in one.waits
    )
    return TimelineRow(
        task_id=one.task_id,
        title=title,
        run_id=one.run_id,
        attempt=one.attempt,
        agent=one.agent,
        started_at=one.started_at,
        status=one.status,
        working=max(end - start - waited, 0) // 1000,
        waiting=waited // 1000,
        waits=tuple(WaitSpan(since=wait.since, until=wait.until or UNSET, kind=wait.kind) for wait in one.waits),
        hop=one.hop or UNSET,
        ended_at=one.ended_at or UNSET,
    )


def _days(facts: FlowFacts, wanted: Sequence[str]) -> tuple[FlowDay, ...]:
    """The status counts at the end of each day: what had moved until then."""
    counts: Counter[str] = Counter()
    by_day: dict[str, list[tuple[str, str, int]]] = {}
    for day, source, target, tasks in facts.moves:
        if day < wanted[0]:
            _count(counts, source, target, tasks)
        else:
            by_day.setdefault(day, []).append((source, target, tasks))
    rows = []
    for day in wanted:
        moved = by_day.get(day, [])
        for source, target, tasks in moved:
            _count(counts, source, target, tasks)
        rows.append(
            FlowDay(
                day=day,
                by_status={status: counts[status] for status in STATUSES if counts[status]},
                created=sum(tasks for source, _, tasks in moved if not source),
                done=sum(tasks for _, target, tasks in moved if target == "done"),
            )
        )
    return tuple(rows)


def _count(counts: Counter[str], source: str, target: str, tasks: int) -> None:
    counts[target] += tasks
    if source:
        counts[source] -= tasks


def _percentiles(spans: Iterable[int]) -> Percentiles:
    """By the nearest rank: each is a time that some task really took."""
    ordered = sorted(spans)
    if not ordered:
        return Percentiles(count=0)
    ranks = {f"p{share}": ordered[-(-share * len(ordered) // 100) - 1] // 1000 for share in (50, 75, 90, 95)}
    return Percentiles(count=len(ordered), **ranks)


def _agent(one: AgentRuns) -> AgentFlow:
    kinds = ("completed", "failed", "expired", "cancelled", "released", "running")
    return AgentFlow(agent=one.agent, attempts=one.attempts, **{kind: one.by_status.get(kind, 0) for kind in kinds})


def _portrait(task: Task) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(task)
    return {name: value for name, value in shown.items() if name not in _HIDDEN} | {"body": task.body}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> tuple[FieldChange, ...]:
    names = [name for name in (*after, *(name for name in before if name not in after)) if name not in _UNCHANGING]
    return tuple(
        FieldChange(field=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    )
