"""What lists, one task, the log and the graph answer over the wire. Must not know any surface."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from aof.kernel.events import Event
from aof.kernel.results import Result
from aof.tasks.fields import LISTED

TYPE_CHECKING = False

Whole = dict[str, Any]
"""One task with all that belongs to it; its fields are those of its file, and more."""


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
