"""Operations for looking at a team at work, now and over time. Must not know any surface."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from aof.app.operations.rows.fields import Cursor, EventName
from aof.app.operations.rows.supervision.inbox import Limit
from aof.app.operations.spec import Cli, Operation, Params, Spelling, TaskParams, param
from aof.app.supervision.results import (
    MOST_DAYS,
    MOST_NEIGHBOURS,
    AgentPage,
    Flow,
    Moves,
    Neighbourhood,
    TaskMoment,
    TimelinePage,
    WhoAmI,
)

_EVENT = Spelling(metavar="SEQ|HASH")
_WHEN = Spelling(metavar="WHEN", note="(a day, a moment, or -7d)")


class AgentsParams(Params, frozen=True, kw_only=True):
    """Which agents."""

    agent: Annotated[str, param("only this agent")] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    cursor: Cursor = UNSET


class TimelineParams(Params, frozen=True, kw_only=True):
    """Whose runs, and when."""

    task_id: Annotated[str, param("only runs of this task", Spelling(place="ID"))] | UnsetType = UNSET
    agent: Annotated[str, param("only runs of this agent")] | UnsetType = UNSET
    since: Annotated[str, param("only runs that were active then or later", _WHEN)] | UnsetType = UNSET
    before: Annotated[str, param("only runs that began earlier", _WHEN)] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    cursor: Cursor = UNSET


class NeighbourhoodParams(TaskParams, frozen=True, kw_only=True):
    """Around which task, and how many tasks."""

    limit: Annotated[int, param("at most this many tasks", ge=1, le=MOST_NEIGHBOURS)] | UnsetType = UNSET


class FlowParams(Params, frozen=True, kw_only=True):
    """Over how many days."""

    days: (
        Annotated[int, param("how many days, up to today", Spelling(note="(default 30)"), ge=1, le=MOST_DAYS)]
        | UnsetType
    ) = UNSET


class MomentParams(TaskParams, frozen=True, kw_only=True):
    """Which task, after which event."""

    seq: (
        Annotated[EventName, param("event by number or hash, or the last one before it (else the last)", _EVENT)]
        | UnsetType
    ) = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="whoami",
        parameters=Params,
        result=WhoAmI,
        help="Who you are to AOF, where that name comes from, what you may do, and where the data is.",
        effect="read",
        tool="aof_whoami",
        verb="whoami",
        cli=Cli(
            section="see",
            order=95,
            summary="who you are to AOF, what you may do, and where the data is",
            example="aof whoami",
        ),
        about_caller=True,
    ),
    Operation(
        name="agents",
        parameters=AgentsParams,
        result=AgentPage,
        help="Who is working: when each agent was last seen, what it holds under which lease, its load and capacity.",
        effect="read",
        tool="aof_agents",
        verb="agents",
        cli=Cli(section="team", order=5, summary="which agents are working, and on what", example="aof agents"),
    ),
    Operation(
        name="moves",
        parameters=TaskParams,
        result=Moves,
        help="Where you may move a task now, and what else you may do with it.",
        effect="read",
        tool="aof_moves",
        verb="show moves",
        cli=Cli(section="see", order=47, former=("moves",), example="aof show moves 001"),
    ),
    Operation(
        name="timeline",
        parameters=TimelineParams,
        result=TimelinePage,
        help="Runs over time, latest first, with how long each worked and waited.",
        effect="read",
        tool="aof_timeline",
        verb="insights timeline",
        cli=Cli(
            section="see",
            order=85,
            former=("timeline",),
            example="aof insights timeline --agent swe-backend --since -1d",
        ),
    ),
    Operation(
        name="neighbourhood",
        parameters=NeighbourhoodParams,
        result=Neighbourhood,
        help="The tasks connected with one, nearest first, and the edges between them.",
        effect="read",
        tool="aof_neighbourhood",
        verb="graph near",
        cli=Cli(
            section="see",
            order=62,
            summary="the tasks connected with one",
            former=("neighbourhood", "near"),
            example="aof graph near 001",
        ),
    ),
    Operation(
        name="flow",
        parameters=FlowParams,
        result=Flow,
        help="How work flows: tasks by status per day, throughput, lead times, runs by agent.",
        effect="read",
        tool="aof_flow",
        verb="insights flow",
        cli=Cli(section="see", order=86, former=("flow",), example="aof insights flow --days 14"),
    ),
    Operation(
        name="task_at",
        parameters=MomentParams,
        result=TaskMoment,
        help="A task as it was after one of its events, and what that event changed.",
        effect="read",
        tool="aof_task_at",
        verb="log at",
        cli=Cli(section="see", order=92, former=("at",), example="aof log at 001 --seq 12"),
    ),
)
