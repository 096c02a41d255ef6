"""Operations that hold, stop, order and connect tasks. Must not know any surface."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from aof.app.operations.results import Commented, Depends, Moved
from aof.app.operations.rows.fields import ChangeParams, Reason
from aof.app.operations.spec import Cli, Family, Operation, Params, Spelling, one_of, param
from aof.app.tasks.undo import Undone
from aof.core.model.kinds import BlockedKind
from aof.core.tasks.links import KINDS

LINK_KINDS = ("parent", "child", "blocked_by", "blocks", *KINDS)
Kind = Annotated[
    str, param(f"how they are connected: {', '.join(LINK_KINDS)}", Spelling(place="KIND"), says=one_of(LINK_KINDS))
]
Target = Annotated[str, param("the other end: a task, a run, a path", Spelling(place="TARGET"))]
_DEP = Family(
    verb="dep",
    help="add or remove a dependency",
    choose="what to do (default: add)",
    default="add",
    aliases=("depends",),
    example="aof dep add 002 001",
)


class OptionalReasonParams(ChangeParams, frozen=True, kw_only=True):
    """A task, and perhaps why."""

    reason: Reason | UnsetType = UNSET


class ReasonParams(ChangeParams, frozen=True, kw_only=True):
    """A task, and why."""

    reason: Reason


class ReopenParams(OptionalReasonParams, frozen=True, kw_only=True):
    """Which task, and where it goes."""

    backlog: Annotated[bool, param("put it in the backlog instead of the ready queue")] | UnsetType = UNSET


class UndoParams(Params, frozen=True, kw_only=True):
    """Which change."""

    task_id: Annotated[str, param("only of this task", Spelling(place="ID"))] | UnsetType = UNSET
    seq: Annotated[int, param("the change that this event belongs to, whoever made it", ge=1)] | UnsetType = UNSET
    dry_run: Annotated[bool, param("show what it would do, and change nothing")] | UnsetType = UNSET


class BlockParams(ReasonParams, frozen=True, kw_only=True):
    """What is in the way."""

    kind: Annotated[BlockedKind, param("kind of obstacle")] | UnsetType = UNSET


class DependencyParams(ChangeParams, frozen=True, kw_only=True):
    """A task, and the one that must be done first."""

    blocker_id: Annotated[str, param("task that must be done first", Spelling(place="BLOCKER"))]


class LinkParams(ChangeParams, frozen=True, kw_only=True):
    """A task, and what it is connected with."""

    kind: Kind
    target: Target
    reason: Reason | UnsetType = UNSET


class UnlinkParams(ChangeParams, frozen=True, kw_only=True):
    """A task, and what it is connected with."""

    kind: Kind
    target: Target


class CommentParams(ChangeParams, frozen=True, kw_only=True):
    """What is said of a task."""

    text: Annotated[str, param("comment, as Markdown", Spelling(place="TEXT", stdin=True, also=("--text",)))]
    agent: Annotated[str, param("agent that says it; default: the actor")] | UnsetType = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="comment",
        parameters=CommentParams,
        result=Commented,
        help="Say something of a task, whatever its status.",
        effect="append",
        tool="aof_task_comment",
        verb="comment",
        cli=Cli(
            section="plan",
            order=25,
            example='aof comment 001 "The staging key is in the vault now"',
        ),
        tier="worker",
        acts="agent",
        tool_shows=("task_id", "text", "actor"),
    ),
    Operation(
        name="cancel",
        parameters=OptionalReasonParams,
        result=Moved,
        help="Cancel a task and everything unfinished below it.",
        effect="destructive",
        tool="aof_task_cancel",
        verb="cancel",
        cli=Cli(section="plan", order=110, example='aof cancel 001 --reason "superseded by 010"'),
        tier="core",
    ),
    Operation(
        name="dep_add",
        parameters=DependencyParams,
        result=Depends,
        help="Make a task wait until another one is done.",
        effect="write",
        tool="aof_task_dep_add",
        verb="dep add",
        cli=Cli(section="plan", order=40, example="aof dep add 002 001", family=_DEP),
        tier="core",
    ),
    Operation(
        name="dep_remove",
        parameters=DependencyParams,
        result=Depends,
        help="Make a task no longer wait for another one.",
        effect="write",
        tool="aof_task_dep_remove",
        verb="dep rm",
        cli=Cli(section="plan", order=40, example="aof dep rm 002 001", family=_DEP),
        tier="core",
    ),
    Operation(
        name="block",
        parameters=BlockParams,
        result=Moved,
        help="Block a task for an external reason.",
        effect="write",
        tool="aof_task_block",
        verb="block",
        cli=Cli(section="plan", order=70, example='aof block 001 --reason "waiting for credentials"'),
        tier="core",
        tool_shows=("task_id", "reason", "actor"),
    ),
    Operation(
        name="unblock",
        parameters=ChangeParams,
        result=Moved,
        help="Make a blocked task ready.",
        effect="write",
        tool="aof_task_unblock",
        verb="unblock",
        cli=Cli(section="plan", order=80, example="aof unblock 001"),
        tier="core",
    ),
    Operation(
        name="pause",
        parameters=OptionalReasonParams,
        result=Moved,
        help="Pause a task until it is resumed.",
        effect="write",
        tool="aof_task_pause",
        verb="pause",
        cli=Cli(section="plan", order=90, example="aof pause 001"),
        needs="lead",
    ),
    Operation(
        name="resume",
        parameters=ChangeParams,
        result=Moved,
        help="Resume a paused task.",
        effect="write",
        tool="aof_task_resume",
        verb="resume",
        cli=Cli(section="plan", order=100, example="aof resume 001"),
        needs="lead",
    ),
    Operation(
        name="retry",
        parameters=ReasonParams,
        result=Moved,
        help="Run a finished task again, or end the wait of a retry.",
        effect="write",
        tool="aof_task_retry",
        verb="retry",
        cli=Cli(section="plan", order=120, example='aof retry 001 --reason "the service is back"'),
        needs="lead",
    ),
    Operation(
        name="archive",
        parameters=ChangeParams,
        result=Moved,
        help="Archive a finished task.",
        effect="write",
        tool="aof_task_archive",
        verb="archive",
        cli=Cli(section="plan", order=130, example="aof archive 001"),
        needs="lead",
    ),
    Operation(
        name="unarchive",
        parameters=ChangeParams,
        result=Moved,
        help="Take a task out of the archive, in the status that it had.",
        effect="write",
        tool="aof_task_unarchive",
        verb="unarchive",
        cli=Cli(section="plan", order=132, example="aof unarchive 001"),
        needs="lead",
    ),
    Operation(
        name="reopen",
        parameters=ReopenParams,
        result=Moved,
        help="Open a finished task again, archived or not.",
        effect="write",
        tool="aof_task_reopen",
        verb="reopen",
        cli=Cli(section="plan", order=125, example='aof reopen 001 --reason "the bug is back"'),
        needs="lead",
    ),
    Operation(
        name="undo",
        parameters=UndoParams,
        result=Undone,
        help="Reverse your last change of a task, by new events.",
        effect="write",
        tool="aof_undo",
        verb="undo",
        cli=Cli(
            section="plan",
            order=140,
            summary="reverse your last change",
            notes="Without ID: your last change of any task, a bulk change as a whole. Again: the one before it. "
            "What cannot be undone says why; 'aof undo --seq 12' reverses the change that an event belongs to, also an "
            "undo.",
            example="aof undo --dry-run",
        ),
    ),
    Operation(
        name="link",
        parameters=LinkParams,
        result=Moved,
        help="Connect a task with a task, a run, an artifact or evidence.",
        effect="write",
        tool="aof_task_link",
        verb="link",
        cli=Cli(section="plan", order=50, example="aof link 002 source_task 001"),
    ),
    Operation(
        name="unlink",
        parameters=UnlinkParams,
        result=Moved,
        help="Remove a link between a task and something else.",
        effect="write",
        tool="aof_task_unlink",
        verb="link rm",
        cli=Cli(section="plan", order=60, former=("unlink",), example="aof link rm 002 source_task 001"),
    ),
)
