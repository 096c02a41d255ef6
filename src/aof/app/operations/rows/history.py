"""Operations that look at what happened, and at how everything was. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from aof._support.typed import prepare_type
from aof.app.operations.results import Result
from aof.app.operations.rows.fields import EVENT, At, Cursor, EventName
from aof.app.operations.spec import Cli, Extra, Operation, Params, Spelling, StandIn, param
from aof.app.portable import schemas as portable
from aof.app.queries import cursors
from aof.core.model.events import Event

_MOST_EVENTS = 1000


class LogParams(Params, frozen=True, kw_only=True):
    """Which events."""

    task_id: Annotated[str, param("only this task", Spelling(place="ID"))] | UnsetType = UNSET
    after: Annotated[int, param("only events with a greater number", Spelling(metavar="SEQ"), ge=0)] | UnsetType = UNSET
    type: Annotated[str, param("only events of this type")] | UnsetType = UNSET
    limit: Annotated[int, param("only the last N events", ge=0)] | UnsetType = UNSET


class LogPageParams(LogParams, frozen=True, kw_only=True):
    """Which events, and from where on backwards."""

    cursor: Cursor = UNSET


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
    end = cursors.number_in("log", values["cursor"]) if "cursor" in values else fabric.store.head() + 1
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
    return Events(events=page, next_cursor=cursors.place_in("log", str(page[0].seq)) if more else UNSET)


def _replay(fabric: Any, values: dict[str, Any]) -> PastTasks:
    return msgspec.convert(fabric.replay(values["at"]), prepare_type(PastTasks))


ROWS: tuple[Operation, ...] = (
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
        answer=portable.snapshot_schema,
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
        answer=portable.events_schema,
    ),
)
