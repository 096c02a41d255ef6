"""Operations that hold, stop, order and connect tasks. Must not know any surface."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from aof.app.operations.results import Depends, Moved
from aof.app.operations.spec import OnTask, Operation, TaskId, Text
from aof.core.model.kinds import BlockedKind


class Because(OnTask, frozen=True, kw_only=True):
    """A task, and perhaps why."""

    reason: Text = UNSET


class Reasoned(OnTask, frozen=True, kw_only=True):
    """A task, and why."""

    reason: str


class Block(Reasoned, frozen=True, kw_only=True):
    """What is in the way."""

    kind: BlockedKind | UnsetType = UNSET


class Dependency(OnTask, frozen=True, kw_only=True):
    """A task, and the one that must be done first."""

    blocker_id: TaskId


class Link(OnTask, frozen=True, kw_only=True):
    """A task, and what it is connected with."""

    kind: str
    target: str
    reason: Text = UNSET


class Unlink(OnTask, frozen=True, kw_only=True):
    """A task, and what it is connected with."""

    kind: str
    target: str


ROWS: tuple[Operation, ...] = (
    Operation(
        name="cancel",
        parameters=Because,
        result=Moved,
        help="Cancel a task and everything unfinished below it.",
        effect="destructive",
        tool="aof_task_cancel",
        verb="cancel",
        tier="core",
    ),
    Operation(
        name="dep_add",
        parameters=Dependency,
        result=Depends,
        help="Let a task wait until another one is done.",
        effect="write",
        tool="aof_task_dep_add",
        verb="dep add",
        tier="core",
    ),
    Operation(
        name="dep_remove",
        parameters=Dependency,
        result=Depends,
        help="Let a task no longer wait for another one.",
        effect="write",
        tool="aof_task_dep_remove",
        verb="dep rm",
        tier="core",
    ),
    Operation(
        name="block",
        parameters=Block,
        result=Moved,
        help="Hold a task for something that is no task.",
        effect="write",
        tool="aof_task_block",
        verb="block",
        tier="core",
        tool_shows=("task_id", "reason", "actor"),
    ),
    Operation(
        name="unblock",
        parameters=OnTask,
        result=Moved,
        help="Make a blocked task ready.",
        effect="write",
        tool="aof_task_unblock",
        verb="unblock",
        tier="core",
    ),
    Operation(
        name="pause",
        parameters=Because,
        result=Moved,
        help="Hold a task on purpose.",
        effect="write",
        tool="aof_task_pause",
        verb="pause",
        needs="lead",
    ),
    Operation(
        name="resume",
        parameters=OnTask,
        result=Moved,
        help="Let a paused task go on.",
        effect="write",
        tool="aof_task_resume",
        verb="resume",
        needs="lead",
    ),
    Operation(
        name="retry",
        parameters=Reasoned,
        result=Moved,
        help="Run a finished task again, or end the wait of a retry.",
        effect="write",
        tool="aof_task_retry",
        verb="retry",
        needs="lead",
    ),
    Operation(
        name="archive",
        parameters=OnTask,
        result=Moved,
        help="Put a finished task away.",
        effect="write",
        tool="aof_task_archive",
        verb="archive",
        needs="lead",
    ),
    Operation(
        name="link",
        parameters=Link,
        result=Moved,
        help="Connect a task with a task, a run, an artifact or evidence.",
        effect="write",
        tool="aof_task_link",
        verb="link",
    ),
    Operation(
        name="unlink",
        parameters=Unlink,
        result=Moved,
        help="Remove such a connection.",
        effect="write",
        tool="aof_task_unlink",
        verb="unlink",
    ),
)
