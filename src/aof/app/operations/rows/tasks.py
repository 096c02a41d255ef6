"""Operations for creating tasks and for working on them. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from aof.app.operations.results import (
    Assigned,
    Beaten,
    Claimed,
    Completed,
    Created,
    Edited,
    Moved,
    Released,
    Reported,
    TaskTemplates,
    Updated,
)
from aof.app.operations.rows.fields import (
    TASK_TEXT,
    Acceptance,
    ChangeParams,
    Constraints,
    Due,
    ExpectedRev,
    Hop,
    IdempotencyKey,
    LeaseTime,
    Metadata,
    Owner,
    Parent,
    Profile,
    Resource,
    Tags,
    TargetAgent,
    TargetRole,
    TargetTeam,
    Visible,
)
from aof.app.operations.rows.reports import (
    CompleteParams,
    DeliverParams,
    FailParams,
    HeartbeatParams,
    ProgressParams,
    ReleaseParams,
    UpdateParams,
)
from aof.app.operations.spec import FILLED, Cli, Operation, Params, Spelling, StandIn, param
from aof.core.model.kinds import Priority


class CreateParams(Params, frozen=True, kw_only=True):
    """A new task."""

    title: Annotated[str, param("short title", Spelling(place="TITLE"))]
    brief: Annotated[str, param("description, as Markdown", TASK_TEXT)] | UnsetType = UNSET
    agent: TargetAgent | UnsetType = UNSET
    team: TargetTeam | UnsetType = UNSET
    role: TargetRole | UnsetType = UNSET
    priority: (
        Annotated[
            Priority, param("urgency", Spelling(help="critical, high, normal or low"), says={"default": "normal"})
        ]
        | UnsetType
    ) = UNSET
    depends_on: Annotated[list[str], param("task that must be done first", Spelling(option="--dep", metavar="ID"))] = (
        msgspec.field(default_factory=list)
    )
    parent_id: Parent | UnsetType = UNSET
    tags: Tags = msgspec.field(default_factory=list)
    metadata: Metadata = msgspec.field(default_factory=dict)
    workflow: Annotated[str, param("workflow to pass through")] | UnsetType = UNSET
    acceptance: Acceptance | UnsetType = UNSET
    constraints: Constraints | UnsetType = UNSET
    profile: Profile | UnsetType = UNSET
    resource: Resource | UnsetType = UNSET
    visibility: Visible | UnsetType = UNSET
    due: Due | UnsetType = UNSET
    owner: Owner | UnsetType = UNSET
    max_attempts: Annotated[int, param("failed runs after which the task is given up", ge=1)] | UnsetType = UNSET
    backlog: Annotated[bool, param("put it in the backlog instead of the ready queue")] | UnsetType = UNSET
    review: (
        Annotated[bool, param("whether a review follows", Spelling(option="--no-review", help="skip the review"))]
        | UnsetType
    ) = UNSET
    template: Annotated[str, param("template to begin with, a file in templates/")] | UnsetType = UNSET
    key: IdempotencyKey | UnsetType = UNSET


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
    hop: Hop = UNSET
    keep: Annotated[bool, param("hold it beyond this session; your calls renew it")] | UnsetType = UNSET
    steal: Annotated[bool, param("assign a reserved task to you first")] | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class AssignParams(ChangeParams, frozen=True, kw_only=True):
    """Whom a task is for."""

    agent: Annotated[str, param("agent that it is for", Spelling(place="[AGENT]"), says=FILLED)] | UnsetType = UNSET
    nobody: Annotated[bool, param("instead of an agent: whoever can take it first gets it")] | UnsetType = UNSET


Clearable = Literal[
    "description",
    "owner",
    "resource",
    "due",
    "parent",
    "acceptance",
    "constraints",
    "profile",
    "agent",
    "role",
    "team",
    "tags",
]


class RoutingChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who should do a task; only what is given changes, and an empty text takes it away."""

    role: TargetRole | UnsetType = UNSET
    team: TargetTeam | UnsetType = UNSET
    agent: TargetAgent | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET


class EditParams(ChangeParams, frozen=True, kw_only=True):
    """What a task says of itself."""

    title: Annotated[str, param("new title", says=FILLED)] | UnsetType = UNSET
    description: Annotated[str, param("description, as Markdown; the work log stays", TASK_TEXT)] | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    routing: RoutingChange | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    acceptance: Acceptance | UnsetType = UNSET
    constraints: Constraints | UnsetType = UNSET
    profile: Profile | UnsetType = UNSET
    resource: Resource | UnsetType = UNSET
    visibility: Visible | UnsetType = UNSET
    owner: Owner | UnsetType = UNSET
    due: Due | UnsetType = UNSET
    parent_id: Parent | UnsetType = UNSET
    clear: Annotated[list[Clearable], param("field to take away")] | UnsetType = UNSET


def _claim(fabric: Any, values: dict[str, Any]) -> Claimed:
    claimed: Claimed = fabric.claim(**({"agent": fabric.actor} | values))
    return claimed


def _edit(fabric: Any, values: dict[str, Any]) -> Edited:
    if "routing" in values:
        routing = msgspec.to_builtins(values["routing"])
        values["routing"] = {name: None if value == "" else value for name, value in routing.items()}
    edited: Edited = fabric.edit(**values)
    return edited


_TARGET = ("title", "brief", "agent", "team", "role", "priority", "depends_on", "parent_id", "tags", "metadata")

ROWS: tuple[Operation, ...] = (
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
