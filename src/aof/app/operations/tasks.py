"""Operations of whoever gives out work and of whoever does it. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from aof.app.operations.results import Beaten, Claimed, Created, Edited, Moved, Reported, Updated
from aof.app.operations.spec import OnTask, Operation, Params, Run, Taught, Text
from aof.core.model.kinds import Cause, Priority, Status, Visibility
from aof.core.workflows.outcomes import MEANINGS

Outcome = Literal["complete", "needs_review", "blocked"]
Object = dict[str, Any]
Hop = Annotated[str, Meta(description="hop of the workflow")] | UnsetType


class Create(Params, frozen=True, kw_only=True):
    """A new task."""

    title: str
    brief: Annotated[str, Meta(description="Markdown")] | UnsetType = UNSET
    agent: Annotated[str, Meta(description="target agent, skips routing")] | UnsetType = UNSET
    team: Text = UNSET
    role: Text = UNSET
    priority: Priority = "normal"
    depends_on: Annotated[list[str], Meta(description="task IDs")] = msgspec.field(default_factory=list)
    parent_id: Text = UNSET
    tags: list[str] = msgspec.field(default_factory=list)
    metadata: Object = msgspec.field(default_factory=dict)
    workflow: Text = UNSET
    acceptance: list[Any] | UnsetType = UNSET
    constraints: Object | UnsetType = UNSET
    profile: Object | UnsetType = UNSET
    resource: Text = UNSET
    visibility: Visibility | UnsetType = UNSET
    owner: Text = UNSET
    max_attempts: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    backlog: bool | UnsetType = UNSET
    review: bool | UnsetType = UNSET
    key: Annotated[str, Meta(description="idempotency key")] | UnsetType = UNSET


class Claim(Params, frozen=True, kw_only=True):
    """Which task to take; none: the next one."""

    task_id: Annotated[str, Meta(description="none: the next task for the agent")] | UnsetType = UNSET
    agent: Annotated[str, Meta(description="who takes it; default actor")] | UnsetType = UNSET
    ttl: Annotated[float, Meta(description="seconds")] | UnsetType = UNSET
    wait: Annotated[float, Meta(description="seconds to wait for work", ge=0, le=60)] | UnsetType = UNSET
    key: Text = UNSET
    hop: Hop = UNSET


class Worker(OnTask, frozen=True, kw_only=True):
    """A worker's write to a task."""

    run: Run = UNSET
    agent: Text = UNSET


class Heartbeat(Worker, frozen=True, kw_only=True):
    """A sign of life."""

    ttl: Annotated[float, Meta(description="seconds")] | UnsetType = UNSET


class Release(Worker, frozen=True, kw_only=True):
    """Why the task is given back."""

    reason: Text = UNSET


class Progress(Worker, frozen=True, kw_only=True):
    """How far the run is."""

    text: Text = UNSET
    percent: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET
    phase: Text = UNSET
    note: Text = UNSET
    blockers: list[str] | UnsetType = UNSET
    facts: Object | UnsetType = UNSET


class Update(Worker, frozen=True, kw_only=True):
    """A new body, a new status, or neither."""

    body: Annotated[str, Meta(description="replaces the body")] | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    reason: Text = UNSET


class Complete(Worker, frozen=True, kw_only=True):
    """The outcome of a run."""

    summary: Annotated[str, Meta(description="for the work log")] | UnsetType = UNSET
    outcome: Annotated[Outcome, Meta(description="required in a workflow")] | UnsetType = UNSET
    blockers: Annotated[list[str], Meta(description="required with needs_review and blocked")] | UnsetType = UNSET
    caller_role: Annotated[str, Meta(description="your role in the workflow")] | UnsetType = UNSET
    summary_ref: Text = UNSET
    deliverables: list[str] | UnsetType = UNSET
    tests: dict[str, int] | UnsetType = UNSET
    notes: Text = UNSET
    acceptance: list[Any] | UnsetType = UNSET
    hop: Hop = UNSET


class Fail(Worker, frozen=True, kw_only=True):
    """What went wrong."""

    code: Text = UNSET
    message: Text = UNSET
    cause: Cause | UnsetType = UNSET
    retryable: bool | UnsetType = UNSET


class Routing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who should do a task; only what is given changes, and an empty text takes it away."""

    role: Text = UNSET
    team: Text = UNSET
    agent: Text = UNSET
    tags: list[str] | UnsetType = UNSET


class Edit(OnTask, frozen=True, kw_only=True):
    """What a task says of itself."""

    title: Text = UNSET
    description: Annotated[str, Meta(description="Markdown; the work log stays")] | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    routing: Routing | UnsetType = UNSET
    metadata: Object | UnsetType = UNSET
    acceptance: list[Any] | UnsetType = UNSET
    constraints: Object | UnsetType = UNSET
    profile: Object | UnsetType = UNSET
    resource: Text = UNSET
    visibility: Visibility | UnsetType = UNSET
    owner: Text = UNSET


class Approve(OnTask, frozen=True, kw_only=True):
    """Why the work is accepted."""

    reason: Text = UNSET
    hop: Hop = UNSET


class Reject(OnTask, frozen=True, kw_only=True):
    """Why the work is sent back."""

    blockers: list[str]
    hop: Hop = UNSET


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
        name="create",
        parameters=Create,
        result=Created,
        help="Create a task and put it in the ready queue.",
        effect="append",
        tool="aof_dispatch",
        verb="create",
        tier="core",
        tool_shows=(*_TARGET, "workflow", "key", "actor"),
        tool_requires=("brief",),
    ),
    Operation(
        name="claim",
        parameters=Claim,
        result=Claimed,
        help="Take a task: one winner, under a lease that this session keeps alive.",
        effect="write",
        tool="aof_task_claim",
        verb="claim",
        tier="core",
        acts="agent",
        ask=_claim,
    ),
    Operation(
        name="complete",
        parameters=Complete,
        result=Moved,
        help="Finish a task or workflow hop. In review: approve.",
        effect="write",
        tool="aof_task_complete",
        verb="complete",
        tier="core",
        acts="agent",
        tool_shows=("task_id", "summary", "outcome", "blockers", "caller_role", "run", "actor"),
        taught=(Taught("outcome", MEANINGS, (("outcome", "complete"), ("summary", "…"))),),
    ),
    Operation(
        name="update",
        parameters=Update,
        result=Updated,
        help="Change body or status without completing; alone a sign of life.",
        effect="write",
        tool="aof_task_update",
        verb="update",
        tier="core",
        acts="agent",
        tool_shows=("task_id", "body", "status", "reason", "run", "actor"),
        needs_more=(("status", "done", "lead"), ("status", "cancelled", "lead")),  # which approve and cancel
    ),
    Operation(
        name="edit",
        parameters=Edit,
        result=Edited,
        help="Change title, description, priority or routing.",
        effect="write",
        tool="aof_task_edit",
        verb="edit",
        tier="core",
        tool_shows=("task_id", "title", "description", "priority", "routing", "metadata", "actor"),
        ask=_edit,
    ),
    Operation(
        name="progress",
        parameters=Progress,
        result=Reported,
        help="Report how far your run is; also a sign of life.",
        effect="append",
        tool="aof_task_progress",
        verb="progress",
        acts="agent",
    ),
    Operation(
        name="heartbeat",
        parameters=Heartbeat,
        result=Beaten,
        help="Show that the run's worker lives.",
        effect="write",
        tool="aof_task_heartbeat",
        verb="heartbeat",
        acts="agent",
    ),
    Operation(
        name="release",
        parameters=Release,
        result=Moved,
        help="Give a claimed task back unfinished.",
        effect="write",
        tool="aof_task_release",
        verb="release",
        acts="agent",
    ),
    Operation(
        name="fail",
        parameters=Fail,
        result=Moved,
        help="End your run as failed; it is retried while attempts are left.",
        effect="write",
        tool="aof_task_fail",
        verb="fail",
        acts="agent",
    ),
    Operation(
        name="approve",
        parameters=Approve,
        result=Moved,
        help="Accept what is in review.",
        effect="write",
        tool="aof_task_approve",
        verb="approve",
        needs="lead",
    ),
    Operation(
        name="reject",
        parameters=Reject,
        result=Moved,
        help="Send what is in review back.",
        effect="write",
        tool="aof_task_reject",
        verb="reject",
        needs="lead",
    ),
)
