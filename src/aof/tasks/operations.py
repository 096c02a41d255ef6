"""Operations for creating tasks, working on them, steering them, changing many at once.

Exchanging them with other tools.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from aof.kernel.declarations import (
    FILLED,
    TASK_TEXT,
    ChangeParams,
    Cli,
    ExpectedRev,
    Family,
    Hop,
    IdempotencyKey,
    LeaseTime,
    Operation,
    Params,
    Reason,
    Spelling,
    StandIn,
    one_of,
    param,
)
from aof.kernel.kinds import BlockedKind
from aof.kernel.results import (
    Assigned,
    Beaten,
    Claimed,
    Commented,
    Completed,
    Created,
    Depends,
    Edited,
    Moved,
    Released,
    Reported,
    TaskTemplates,
    Updated,
)
from aof.runs.operations import (
    CompleteParams,
    DeliverParams,
    FailParams,
    HeartbeatParams,
    ProgressParams,
    ReleaseParams,
    UpdateParams,
)
from aof.tasks import parameters
from aof.tasks.rules import KINDS

TYPE_CHECKING = False
_Parameter = tuple[str, Any, Any]  # name, type and default


def _params(name: str, about: str, given: list[_Parameter], *, base: type[Any] = Params) -> type[Any]:
    """A struct of parameters, as if it had been written out."""
    made = msgspec.defstruct(
        name, given, bases=(base,), module=__name__, frozen=True, kw_only=True, forbid_unknown_fields=True
    )
    made.__doc__ = about
    return made


CreateParams = _params(
    "CreateParams",
    "A new task.",
    [
        ("title", Annotated[str, param("short title", Spelling(place="TITLE"))], msgspec.NODEFAULT),
        ("brief", Annotated[str, param("description, as Markdown", TASK_TEXT)] | UnsetType, UNSET),
        *((name, kind | UnsetType, UNSET) for name, kind in parameters.NewTask.__annotations__.items()),
        (
            "max_attempts",
            Annotated[int, param("failed runs after which the task is given up", ge=1)] | UnsetType,
            UNSET,
        ),
        ("backlog", Annotated[bool, param("put it in the backlog instead of the ready queue")] | UnsetType, UNSET),
        (
            "review",
            Annotated[bool, param("whether a review follows", Spelling(option="--no-review", help="skip the review"))]
            | UnsetType,
            UNSET,
        ),
        (
            "template",
            Annotated[str, param("template to begin with, a file in templates/")] | UnsetType,
            UNSET,
        ),
        ("key", IdempotencyKey | UnsetType, UNSET),
    ],
)


class ClaimParams(Params, frozen=True, kw_only=True):
    """Which task to take; none: the next one."""

    task_id: Annotated[str, param("task (default: the next)", Spelling(place="ID"))] | UnsetType = UNSET
    agent: Annotated[str, param("who takes it (default: you)")] | UnsetType = UNSET
    ttl: LeaseTime | UnsetType = UNSET
    wait: (
        Annotated[float, param("seconds to wait for work", Spelling(metavar="S", seconds=True), ge=0, le=60)]
        | UnsetType
    ) = UNSET
    key: IdempotencyKey | UnsetType = UNSET
    hop: Hop | UnsetType = UNSET
    keep: Annotated[bool, param("hold it beyond this session; your calls renew it")] | UnsetType = UNSET
    steal: Annotated[bool, param("assign a reserved task to you first")] | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class AssignParams(ChangeParams, frozen=True, kw_only=True):
    """Whom a task is for."""

    agent: Annotated[str, param("agent that it is for", Spelling(place="[AGENT]"), says=FILLED)] | UnsetType = UNSET
    nobody: Annotated[bool, param("instead of an agent: whoever can take it first gets it")] | UnsetType = UNSET


EditParams = _params(
    "EditParams",
    "What a task says of itself.",
    [
        ("parent_id", parameters.Parent | UnsetType, UNSET),
        *((name, kind | UnsetType, UNSET) for name, kind in parameters.EditedTask.__annotations__.items()),
        (
            "clear",
            Annotated[list[parameters.Clearable], param("field to take away")] | UnsetType,
            UNSET,
        ),
    ],
    base=ChangeParams,
)


def _claim(fabric: Any, values: dict[str, Any]) -> Claimed:
    claimed: Claimed = fabric.claim(**({"agent": fabric.actor} | values))
    return claimed


def _edit(fabric: Any, values: dict[str, Any]) -> Edited:
    if "routing" in values:
        values["routing"] = {name: None if value == "" else value for name, value in values["routing"].items()}
    edited: Edited = fabric.edit(**values)
    return edited


_TARGET = ("title", "brief", "agent", "team", "role", "priority", "depends_on", "parent_id", "tags", "metadata")

TASK_ROWS: tuple[Operation, ...] = (
    Operation(
        name="templates",
        parameters=Params,
        result=TaskTemplates,
        help="The templates that tasks can be created from.",
        effect="read",
        tool="aof_templates",
        verb="templates",
        cli=Cli(section="plan", order=12, example="aof templates"),
    ),
    Operation(
        name="create",
        parameters=CreateParams,
        result=Created,
        help="Create a task and put it in the ready queue; with parentId and agent: delegate a part of that task.",
        effect="append",
        tool="aof_dispatch",
        verb="create",
        cli=Cli(
            section="plan",
            order=10,
            summary="create a task",
            aliases=("new", "add", "dispatch"),
            example='aof create "Add refresh endpoint" --priority high --text "It returns a new token."',
        ),
        tier="core",
        tool_shows=(*_TARGET, "workflow", "review", "actor"),
        tool_requires=("brief",),
        example=(("priority", "high"),),
    ),
    Operation(
        name="claim",
        parameters=ClaimParams,
        result=Claimed,
        help="Take a task: one winner, under a lease that this session renews.",
        effect="write",
        tool="aof_task_claim",
        verb="claim",
        cli=Cli(
            section="work",
            order=10,
            summary="take a task: one winner, under a lease",
            aliases=("start", "take"),
            example="aof claim --agent swe-backend",
        ),
        tier="core",
        acts="agent",
        tool_shows=("task_id", "wait", "hop", "keep", "steal", "agent", "actor"),
        example=(("task_id", "001"),),
        ask=_claim,
    ),
    Operation(
        name="assign",
        parameters=AssignParams,
        result=Assigned,
        help="Reserve a task for an agent: nobody else can claim it.",
        effect="write",
        tool="aof_task_assign",
        verb="assign",
        cli=Cli(section="plan", order=22, example="aof assign 001 swe-backend"),
    ),
    Operation(
        name="complete",
        parameters=CompleteParams,
        result=Completed,
        help="Finish a task or workflow hop. In review: approve.",
        effect="write",
        tool="aof_task_complete",
        verb="complete",
        cli=Cli(
            section="work",
            order=40,
            summary="end a run with its outcome; in review: approve",
            aliases=("done", "close", "finish"),
            example='aof complete 001 "12 tests passing" --agent swe-backend',
        ),
        tier="core",
        acts="agent",
        tool_shows=(
            *("task_id", "summary", "outcome", "blockers", "caller_role"),
            *("allow_open_children", "withdraw_questions", "run", "actor"),
        ),
        example=(("summary", "12 tests passing"),),
    ),
    Operation(
        name="update",
        parameters=UpdateParams,
        result=Updated,
        help="Add a note, or change body or status; also a sign of life.",
        effect="write",
        tool="aof_task_update",
        verb="update",
        cli=Cli(
            section="plan",
            order=30,
            summary="add to the work log, replace the body, or move the status",
            example='aof update 001 "tried the cache first" --agent swe-backend',
        ),
        tier="core",
        acts="agent",
        tool_shows=(
            *("task_id", "note", "body", "status", "wait_for_children"),
            *("reason", "run", "actor"),
        ),
        example=(("note", "tried the cache first"),),
        needs_more=(("status", "done", "lead"), ("status", "cancelled", "lead")),  # which approve and cancel
    ),
    Operation(
        name="edit",
        parameters=EditParams,
        result=Edited,
        help="Change title, description, priority, routing and other fields.",
        effect="write",
        tool="aof_task_edit",
        verb="edit",
        cli=Cli(section="plan", order=20, example="aof edit 001 --priority critical"),
        tier="core",
        tool_shows=(*("task_id", "title", "description", "priority", "routing", "metadata", "due", "actor"),),
        example=(("priority", "critical"),),
        ask=_edit,
    ),
    Operation(
        name="progress",
        parameters=ProgressParams,
        result=Reported,
        help="Report how far your run is; also a sign of life.",
        effect="append",
        tool="aof_task_progress",
        verb="progress",
        cli=Cli(
            section="work",
            order=30,
            summary="report how far a run is",
            example='aof progress 001 "core logic done" --percent 60 --agent swe-backend',
        ),
        tier="worker",
        acts="agent",
        tool_shows=("task_id", "text", "percent", "note", "run", "actor"),
        example=(("text", "core logic done"), ("percent", 60)),
    ),
    Operation(
        name="heartbeat",
        parameters=HeartbeatParams,
        result=Beaten,
        help="Show that a run is alive.",
        effect="write",
        tool="aof_task_heartbeat",
        stand_in=StandIn(operation="update", keeps=("task_id", "run")),
        verb="heartbeat",
        cli=Cli(
            section="work",
            order=20,
            aliases=("beat",),
            example="aof heartbeat 001 --run RUN-2026-02-21-001-1-5f0c93ab",
        ),
        acts="agent",
    ),
    Operation(
        name="release",
        parameters=ReleaseParams,
        result=Released,
        help="Give a claimed task back unfinished; after delegating, until its children have ended.",
        effect="write",
        tool="aof_task_release",
        verb="release",
        cli=Cli(section="work", order=60, aliases=("unclaim",), example="aof release 001 --agent swe-backend"),
        tier="worker",
        acts="agent",
        stand_in=StandIn(
            operation="update", keeps=("task_id", "run", "reason", "wait_for_children"), adds=(("status", "ready"),)
        ),
    ),
    Operation(
        name="deliver",
        parameters=DeliverParams,
        result=Moved,
        help="Record whether a task's output has reached its receiver.",
        effect="write",
        tool="aof_task_deliver",
        verb="deliver",
        cli=Cli(section="work", order=45, example="aof deliver 001 --to channel:releases"),
        acts="agent",
    ),
    Operation(
        name="fail",
        parameters=FailParams,
        result=Moved,
        help="End your run as failed; it is retried while attempts are left.",
        effect="write",
        tool="aof_task_fail",
        verb="fail",
        cli=Cli(
            section="work",
            order=50,
            summary="end a run as failed; it is retried while attempts are left",
            example='aof fail 001 --code tests_failed --reason "3 of 20 failed" --agent swe-qa',
        ),
        acts="agent",
        example=(("code", "tests_failed"), ("message", "3 of 20 failed")),
    ),
)


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


CONTROL_ROWS: tuple[Operation, ...] = (
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
