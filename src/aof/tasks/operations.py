"""Operations for creating tasks, working on them, steering them, changing many at once.

Exchanging them with other tools.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from aof.interchange.service import Exported, Imported
from aof.kernel import kinds
from aof.kernel.declarations import (
    FILLED,
    TASK_TEXT,
    ChangeParams,
    Cli,
    ExpectedRev,
    Extra,
    Family,
    Hop,
    IdempotencyKey,
    LeaseTime,
    Object,
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
from aof.queries.operations import ListParams
from aof.runs.operations import (
    CompleteParams,
    DeliverParams,
    FailParams,
    HeartbeatParams,
    ProgressParams,
    ReleaseParams,
    UpdateParams,
)
from aof.tasks.changes import BulkReport, Undone
from aof.tasks.fields import CLEARABLE, FIELDS, ROUTING, TaskField
from aof.tasks.rules import KINDS

TYPE_CHECKING = False
_STATED: dict[str, Any] = {  # the types of values, by the kinds of fields; any other one is a text
    "whole": int,
    "texts": list[str],
    "tasks": list[str],
    "list": list[str | Object],
    "object": Object,
}
_SHORT_WAYS = {  # options that set one key of an object
    "profile": (
        Extra(
            option="--capability",
            help="required capability, as NAME or NAME:0.8 for a minimum proficiency",
            metavar="C",
            many=True,
            key="requiredCapabilities",
        ),
    )
}
# What schemas say that a new task has where nothing is given, as clients of the tools know it.
_STATED_DEFAULTS: dict[str, Any] = {"priority": "normal", "dependsOn": [], "tags": [], "metadata": {}}
_Parameter = tuple[str, Any, Any]  # name, type and default


def field_type(row: TaskField) -> Any:
    """The type of a field's values."""
    return getattr(kinds, row.choice) if row.kind == "choice" else _STATED.get(row.kind, str)


def _parameter(row: TaskField, *, creates: bool = False, bulk: bool = False) -> _Parameter:
    """A field as a parameter that may be left out."""
    says: dict[str, Any] = {"minimum": row.least, "maximum": row.most} if row.kind == "whole" else {}
    if creates and row.key in _STATED_DEFAULTS:
        says = {"default": _STATED_DEFAULTS[row.key]}
    if bulk:
        spelling = Spelling(option=f"--set-{row.option.lstrip('-') or row.name}")
        return row.name, Annotated[field_type(row), param(row.bulk, spelling, says=says or None)] | UnsetType, UNSET
    spelling = Spelling(
        option=row.option, metavar=row.metavar, note=row.note, help=row.usage, extra=_SHORT_WAYS.get(row.key, ())
    )
    return row.name, Annotated[field_type(row), param(row.help, spelling, says=says or None)] | UnsetType, UNSET


def _params(name: str, about: str, parameters: list[_Parameter], *, base: type[Any] = Params) -> type[Any]:
    """A struct of parameters, as if it had been written out."""
    made = msgspec.defstruct(
        name, parameters, bases=(base,), module=__name__, frozen=True, kw_only=True, forbid_unknown_fields=True
    )
    made.__doc__ = about
    return made


CreateParams = _params(
    "CreateParams",
    "A new task.",
    [
        ("title", Annotated[str, param("short title", Spelling(place="TITLE"))], msgspec.NODEFAULT),
        ("brief", Annotated[str, param("description, as Markdown", TASK_TEXT)] | UnsetType, UNSET),
        *(_parameter(row, creates=True) for row in FIELDS if row.creates and row.key not in ("title", "description")),
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


_CLEARABLE: Any = Literal.__getitem__(tuple(CLEARABLE))
RoutingChange = _params(
    "RoutingChange",
    "Who should do a task; only what is given changes, and an empty text takes it away.",
    [_parameter(row) for row in ROUTING if row.edits],
    base=msgspec.Struct,
)
_EDITED: dict[str, Any] = {  # what an edit takes in another way than a creation
    "title": Annotated[str, param("new title", says=FILLED)],
    "description": Annotated[str, param("description, as Markdown; the work log stays", TASK_TEXT)],
    "routing": RoutingChange,
}
EditParams = _params(
    "EditParams",
    "What a task says of itself.",
    [
        *(
            (row.name, _EDITED[row.key] | UnsetType, UNSET) if row.key in _EDITED else _parameter(row)
            for row in FIELDS
            if row.edits and row.inside != "routing"
        ),
        (
            "clear",
            Annotated[list[_CLEARABLE], param("field to take away")] | UnsetType,
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
        routing = msgspec.to_builtins(values["routing"])
        values["routing"] = {name: None if value == "" else value for name, value in routing.items()}
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


if TYPE_CHECKING:
    BulkChanges = msgspec.Struct
else:
    BulkChanges = _params(
        "BulkChanges",
        "What an edit of many tasks changes; an empty text takes a value away.",
        [_parameter(row, bulk=True) for row in FIELDS if row.bulk],
        base=msgspec.Struct,
    )


class BulkParams(ListParams, frozen=True, kw_only=True):
    """Which tasks, by their IDs or by the filters of lists, and what to do with them."""

    command: Annotated[Literal["cancel", "archive", "retry", "edit"], param("what to do", Spelling(place="COMMAND"))]
    task_ids: Annotated[list[str], param("the tasks; none: all that match the filters", Spelling(place="[ID…]"))] = (
        msgspec.field(default_factory=list)
    )
    reason: Reason | UnsetType = UNSET
    changes: BulkChanges | UnsetType = UNSET
    dry_run: Annotated[bool, param("report what would be done, and change nothing")] | UnsetType = UNSET
    expect_revs: (
        Annotated[
            dict[str, int],
            param("change a task only if it still has this revision", Spelling(option="--expect-rev", metavar="ID=N")),
        ]
        | UnsetType
    ) = UNSET
    key: IdempotencyKey | UnsetType = UNSET


def _bulk(fabric: Any, values: dict[str, Any]) -> BulkReport:
    if "changes" in values:
        values["changes"] = msgspec.to_builtins(values["changes"])
    report: BulkReport = fabric.bulk(**values)
    return report


BULK_ROWS: tuple[Operation, ...] = (
    Operation(
        name="bulk",
        parameters=BulkParams,
        result=BulkReport,
        help="Cancel, archive, retry or edit many tasks: by their IDs, or all that match a filter.",
        effect="destructive",
        tool="aof_bulk",
        verb="bulk",
        cli=Cli(
            section="plan",
            order=135,
            summary="cancel, archive, retry or edit many tasks",
            notes="The filters are those of 'aof list'. Exit code 1 says that some tasks were refused; the others are "
            "changed all the same.",
            example='aof bulk cancel --tag stale --reason "not wanted" --dry-run',
        ),
        ask=_bulk,
    ),
)


class ImportParams(Params, frozen=True, kw_only=True):
    """From which tool, and its files."""

    source: (
        Annotated[
            Literal["backlog", "beads", "taskmaster", "github", "csv"],
            param("the tool that the tasks come from", Spelling(option="--from", metavar="TOOL")),
        ]
        | UnsetType
    ) = UNSET
    files: Annotated[
        list[dict[str, str]],
        param(
            "the files, each as an object with name and text",
            Spelling(
                place="FILE",
                target="file",
                help="the file or folder to read; without --from: an archive that 'aof export' wrote",
            ),
        ),
    ] = msgspec.field(default_factory=list)
    dry_run: Annotated[bool, param("report what would be imported, and change nothing")] | UnsetType = UNSET


class ExportParams(ListParams, frozen=True, kw_only=True):
    """Which tasks, as what."""

    format: Annotated[
        Literal["json", "csv"],
        param(
            "the form of the text",
            Spelling(help="tasks as json or csv (else as FILE ends, or everything)"),
        ),
    ] = "json"


INTERCHANGE_ROWS: tuple[Operation, ...] = (
    Operation(
        name="import_tasks",
        parameters=ImportParams,
        result=Imported,
        help="Import tasks from Backlog.md, beads, Task Master, GitHub issues or CSV, each once.",
        effect="append",
        tool="aof_import",
        verb="import",
        cli=Cli(
            section="data",
            order=70,
            summary="import tasks of another tool, or an exported data directory",
            notes="With --from, the tasks of a file or folder come into this data directory; again, only those that "
            "are new. Without it, a data directory is created from an exported file.",
            example="aof import .beads/issues.jsonl --from beads --dry-run",
        ),
        needs="lead",
    ),
    Operation(
        name="export_tasks",
        parameters=ExportParams,
        result=Exported,
        help="The tasks that match, as JSON or CSV.",
        effect="read",
        tool="aof_export",
        verb="export",
        cli=Cli(
            section="data",
            order=60,
            summary="write the whole data directory, or a list of tasks, into a file",
            notes="Without --format, the file is an archive of everything, for 'aof import'. With it, the tasks that "
            "match the filters; '-' writes them to standard output.",
            example="aof export tasks.csv --format csv",
            extra=(Extra(option="[FILE]", help="the file to write"),),
        ),
    ),
)
