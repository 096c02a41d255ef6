"""Operations of people and programs that give out tasks, change them and steer them. Must not know any surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from aof.errors import AofError, Call, IdTaken, Internal, InvalidInput, Unavailable, UnreadableTask
from aof.kernel import commands
from aof.kernel import limits as kernel_limits
from aof.kernel import results as kernel_results
from aof.kernel.dispatcher import require_task
from aof.kernel.operation import Family, Spelling, method, operation
from aof.queries import views as queries_views
from aof.tasks import body as tasks_body
from aof.tasks import fields as tasks_fields
from aof.tasks import reversal
from aof.tasks import templates as tasks_templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, TypedDict, Unpack

    from aof.api.fabric import Fabric
    from aof.kernel.context import CallContext, Environment
    from aof.kernel.declarations import (
        FILLED,
        TASK_TEXT,
        ActingAgent,
        ExpectedRev,
        IdempotencyKey,
        Reason,
        Run,
        TaskId,
        param,
    )
    from aof.kernel.kinds import BlockedKind, Status
    from aof.kernel.results import Assigned, Commented, Created, Depends, Edited, Moved, TaskTemplates, Updated
    from aof.kernel.unit_of_work import Done

    class NewTask(TypedDict, total=False):
        """What a new task may have beside title and description; the rows of the fields say what that is."""

else:
    _OF_KINDS = {
        "whole": "int | None",
        "object": "dict[str, Any] | None",
        "list": "Sequence[Any]",
        "texts": "Sequence[str]",
        "tasks": "Sequence[str]",
    }

    class NewTask:
        """What a new task may have beside title and description, as programs give it."""

        __annotations__ = {
            row.name: _OF_KINDS.get(row.kind) or f"{row.choice or 'str'} | None"
            for row in tasks_fields.FIELDS
            if row.creates and row.name not in {"title", "description"}
        }


_SHOWN_OF_NEW = ("title", "brief", "agent", "team", "role", "priority", "depends_on", "parent_id", "tags", "metadata")
_DEP = Family(
    verb="dep",
    help="add or remove a dependency",
    choose="what to do (default: add)",
    default="add",
    aliases=("depends",),
    section="plan",
    order=40,
    example="aof dep add 002 001",
)


@operation(effect="read", section="plan", order=12, example="aof templates")
def templates(context: CallContext) -> TaskTemplates:
    """The templates that tasks can be created from."""
    return kernel_results.TaskTemplates(templates=tasks_templates.list_templates(context.environment.store))


@operation(
    effect="append",
    tool="aof_dispatch",
    section="plan",
    order=10,
    summary="create a task",
    aliases=("new", "add", "dispatch"),
    example='aof create "Add refresh endpoint" --priority high --text "It returns a new token."',
    tier="core",
    tool_shows=(*_SHOWN_OF_NEW, "workflow", "review", "actor"),
    tool_requires=("brief",),
    tool_example=(("priority", "high"),),
    wire_types={"fields": "aof.tasks.parameters.NewTask"},
)
def create(
    context: CallContext,
    title: Annotated[str, param("short title", Spelling(place="TITLE"))],
    brief: Annotated[str, param("description, as Markdown", TASK_TEXT)] = "",
    *,
    max_attempts: Annotated[int, param("failed runs after which the task is given up", ge=1)] | None = None,
    backlog: Annotated[bool, param("put it in the backlog instead of the ready queue")] | None = None,
    review: Annotated[bool, param("whether a review follows", Spelling(option="--no-review", help="skip the review"))]
    | None = None,
    template: Annotated[str, param("template to begin with, a file in templates/")] | None = None,
    key: IdempotencyKey | None = None,
    actor: str | None = None,
    **fields: Unpack[NewTask],
) -> Created:
    """Create a task and put it in the ready queue; with parentId and agent: delegate a part of that task.

    With a key, the same call again answers with the same task. With a template, the task begins with what that says,
    too.
    """
    environment, given = context.environment, dict[str, "Any"](fields)
    if template is not None:
        said = {"brief": brief, "max_attempts": max_attempts, "backlog": backlog, "review": review} | given
        whole = tasks_templates.merge_template(environment.store, template, said)
        return create(context, title, **whole, key=key, actor=actor)
    parent, workflow, priority = given.get("parent_id"), given.get("workflow"), given.get("priority")
    plain = {row.key: given[row.name] for row in tasks_fields.PLAIN if given.get(row.name) not in (None, (), {})}
    resolve = environment.lookup.resolve
    values = {
        "actor": actor,
        "title": title,
        "body": brief,
        "assignee": given.get("agent"),
        "role": given.get("role"),
        "team": given.get("team"),
        "priority": "normal" if priority is None else priority,
        "tags": tuple(given.get("tags", ())),
        "workflow": workflow,
        "depends_on": tuple(resolve(part) for part in given.get("depends_on", ())),
        "parent_id": resolve(parent) if parent else None,
        "fields": _as_kept(environment, plain),
        "metadata": (given.get("metadata") or {}) | ({"reviewRequired": False} if review is False else {}),
        "max_attempts": max_attempts,
        "status": "backlog" if backlog else "ready",
        "key": key,
        "conversation": context.principal.conversation,
    }

    def created(task_id: str) -> Done:
        command = context.dispatcher.command(commands.Create, values | {"task_id": task_id})
        return context.dispatcher.dispatch(environment.templates.gated(command, workflow))

    task = require_task(with_new_id(environment, created))
    waits = task.status == "ready" and bool(task.depends_on)
    return kernel_results.Created(
        task_id=task.id,
        status=task.status,
        file_path=environment.store.path_of(task),
        waits=queries_views.wait_of(environment.store, environment.policy, task) if waits else None,
        warning=environment.chart.no_route(task),
    )


@operation(
    effect="write",
    tool="aof_task_update",
    section="plan",
    order=30,
    summary="add to the work log, replace the body, or move the status",
    example='aof update 001 "tried the cache first" --agent swe-backend',
    tier="core",
    acts="agent",
    tool_shows=("task_id", "note", "body", "status", "wait_for_children", "reason", "run", "actor"),
    tool_example=(("note", "tried the cache first"),),
    needs_more=(("status", "done", "lead"), ("status", "cancelled", "lead")),  # which approve and cancel
)
def update(
    context: CallContext,
    task_id: TaskId,
    *,
    note: Annotated[str, param("added to the work log", Spelling(place="[TEXT]", also=("--text", "--note")))]
    | None = None,
    body: Annotated[
        str,
        param("replaces the body, as Markdown", Spelling(metavar="T", stdin=True, also=("--brief", "--description"))),
    ]
    | None = None,
    status: Annotated[Status, param("new status")] | None = None,
    wait_for_children: Annotated[bool, param("with status ready: until the tasks below it end")] = False,
    reason: Reason | None = None,
    run: Run | None = None,
    agent: ActingAgent | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Updated:
    """Add a note, or change body or status; also a sign of life."""
    done = context.dispatcher.on_task(
        commands.Update,
        task_id,
        run=run,
        agent=agent,
        actor=actor,
        key=key,
        expect_rev=expect_rev,
        body=body,
        note=note,
        status=status,
        wait_for_children=wait_for_children,
        reason=reason,
    )
    task = require_task(done)
    kinds = {event.type for event in done.events}
    return kernel_results.Updated(
        task_id=task.id,
        status=task.status,
        updated_at=task.updated_at,
        body_updated="task.updated" in kinds,
        transitioned="task.transitioned" in kinds,
        secret=done.secret or msgspec.UNSET,
    )


def _as_kept(environment: Environment, given: dict[str, Any]) -> dict[str, Any]:
    """Values of fields, by their keys, as tasks keep them: a moment such as `+3d` is counted from now."""
    kept = dict(given)
    for key, value in given.items():
        row = tasks_fields.BY_KEY.get(key)
        if row is not None and row.kind == "moment" and value is not None:
            kept[key] = kernel_limits.moment(key, str(value), environment.clock.now())
            if isinstance(kept[key], InvalidInput):
                raise kept[key]
    return kept


def _edit_over_wire(fabric: Fabric, values: dict[str, Any]) -> Edited:
    if "routing" in values:
        values["routing"] = {name: None if value == "" else value for name, value in values["routing"].items()}
    return fabric.edit(**values)


@operation(
    effect="write",
    tool="aof_task_edit",
    section="plan",
    order=20,
    example="aof edit 001 --priority critical",
    tier="core",
    tool_shows=("task_id", "title", "description", "priority", "routing", "metadata", "due", "actor"),
    tool_example=(("priority", "critical"),),
    over_wire=_edit_over_wire,
    wire_types={
        "parent_id": "aof.tasks.parameters.Parent",
        "clear": "aof.tasks.parameters.Cleared",
        "changes": "aof.tasks.parameters.EditedTask",
        "return": "aof.kernel.results.Edited",
    },
)
def edit(
    context: CallContext,
    task_id: TaskId,
    *,
    parent_id: str | None = None,
    clear: Sequence[str] = (),
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
    **changes: Any,
) -> Edited:
    """Change title, description, priority, routing and other fields.

    What `clear` names is taken away.
    """
    if parent_id is not None:
        changes["parentId"] = context.environment.lookup.resolve(parent_id)
    changes = _as_kept(context.environment, changes)
    if clear:
        changes |= _cleared(clear, changes)
    done = context.dispatcher.on_task(
        commands.Edit, task_id, actor=actor, key=key, expect_rev=expect_rev, changes=changes
    )
    task = require_task(done)
    changed: Sequence[str] = next(
        (event.payload["fields"] for event in done.events if event.type == "task.updated"), []
    )
    shown = {"title": task.title, "status": task.status, "priority": task.priority}
    return kernel_results.Edited(task_id=task.id, updated_fields=tuple(changed), task=shown)


def _cleared(names: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """What an edit takes away, as changes to null."""
    routing: dict[str, Any] = given.get("routing") or {}
    taken: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for name in names:
        row = tasks_fields.CLEARABLE.get(name)
        if row is None:
            there = ", ".join(tasks_fields.CLEARABLE)
            raise InvalidInput(f"'clear' cannot be {str(name)[:80]!r}", f"choose among {there}", parameter="clear")
        if row.key in (routing if row.inside == "routing" else given):
            raise InvalidInput(f"{name} is both set and cleared", "give it once", parameter="clear")
        (parts if row.inside == "routing" else taken)[row.key] = None
    return taken | ({"routing": routing | parts} if parts else {})


@operation(effect="write", tool="aof_task_assign", section="plan", order=22, example="aof assign 001 swe-backend")
def assign(
    context: CallContext,
    task_id: TaskId,
    agent: Annotated[str, param("agent that it is for", Spelling(place="[AGENT]"), says=FILLED)] | None = None,
    *,
    nobody: Annotated[bool, param("instead of an agent: whoever can take it first gets it")] = False,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Assigned:
    """Reserve a task for an agent: nobody else can claim it."""
    if (agent is None) != nobody:
        raise InvalidInput(
            "say whom the task is for: one agent, or nobody",
            "name the agent",
            Call("assign", {"task_id": task_id, "agent": "…"}),
            parameter="agent",
        )
    changes = {"routing": {"agent": agent}}
    done = context.dispatcher.on_task(
        commands.Edit, task_id, actor=actor, key=key, expect_rev=expect_rev, changes=changes
    )
    task = require_task(done)
    return kernel_results.Assigned(task_id=task.id, status=task.status, agent=task.routing.agent)


@operation(
    effect="append",
    tool="aof_task_comment",
    section="plan",
    order=25,
    example='aof comment 001 "The staging key is in the vault now"',
    tier="worker",
    acts="agent",
    tool_shows=("task_id", "text", "actor"),
)
def comment(
    context: CallContext,
    task_id: TaskId,
    text: Annotated[str, param("comment, as Markdown", Spelling(place="TEXT", stdin=True, also=("--text",)))],
    *,
    agent: Annotated[str, param("agent that says it; default: the actor")] | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Commented:
    """Say something of a task, whatever its status.

    The comment is in its file and in the log.
    """
    done = context.dispatcher.on_task(
        commands.Comment, task_id, agent=agent, actor=actor, key=key, expect_rev=expect_rev, text=text
    )
    task = require_task(done)
    said = tasks_body.comments_of(task.body)
    return kernel_results.Commented(task_id=task.id, status=task.status, comments=len(said))


@operation(
    effect="destructive",
    tool="aof_task_cancel",
    section="plan",
    order=110,
    example='aof cancel 001 --reason "superseded by 010"',
    tier="core",
)
def cancel(
    context: CallContext,
    task_id: TaskId,
    reason: Reason | None = None,
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Cancel a task and everything unfinished below it."""
    return context.dispatcher.move(
        commands.CancelTask, task_id, actor=actor, key=key, expect_rev=expect_rev, reason=reason
    )


@method
def settle(context: CallContext, task_id: str, *, actor: str | None = None) -> Moved:
    """Say that the worker of a task that is being cancelled has stopped."""
    return context.dispatcher.move(commands.Settle, task_id, actor=actor)


@operation(
    effect="write",
    tool="aof_task_block",
    section="plan",
    order=70,
    example='aof block 001 --reason "waiting for credentials"',
    tier="core",
    tool_shows=("task_id", "reason", "actor"),
)
def block(
    context: CallContext,
    task_id: TaskId,
    reason: Reason,
    *,
    kind: Annotated[BlockedKind, param("kind of obstacle")] = "blocked",
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Block a task for an external reason."""
    return context.dispatcher.move(
        commands.Block, task_id, actor=actor, key=key, expect_rev=expect_rev, reason=reason, kind=kind
    )


@operation(effect="write", tool="aof_task_unblock", section="plan", order=80, example="aof unblock 001", tier="core")
def unblock(
    context: CallContext,
    task_id: TaskId,
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Make a blocked task ready."""
    return context.dispatcher.move(commands.Unblock, task_id, actor=actor, key=key, expect_rev=expect_rev)


@operation(effect="write", tool="aof_task_pause", section="plan", order=90, example="aof pause 001", needs="lead")
def pause(
    context: CallContext,
    task_id: TaskId,
    reason: Reason | None = None,
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Pause a task until it is resumed."""
    return context.dispatcher.move(commands.Pause, task_id, actor=actor, key=key, expect_rev=expect_rev, reason=reason)


@operation(effect="write", tool="aof_task_resume", section="plan", order=100, example="aof resume 001", needs="lead")
def resume(
    context: CallContext,
    task_id: TaskId,
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Resume a paused task."""
    return context.dispatcher.move(commands.Resume, task_id, actor=actor, key=key, expect_rev=expect_rev)


@operation(
    effect="write",
    tool="aof_task_retry",
    section="plan",
    order=120,
    example='aof retry 001 --reason "the service is back"',
    needs="lead",
)
def retry(
    context: CallContext,
    task_id: TaskId,
    reason: Reason,
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Run a finished task again, or end the wait of a retry."""
    return context.dispatcher.move(
        commands.RetryTask, task_id, actor=actor, key=key, expect_rev=expect_rev, reason=reason
    )


@operation(effect="write", tool="aof_task_archive", section="plan", order=130, example="aof archive 001", needs="lead")
def archive(
    context: CallContext,
    task_id: TaskId,
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Archive a finished task."""
    return context.dispatcher.move(commands.ArchiveTask, task_id, actor=actor, key=key, expect_rev=expect_rev)


@operation(
    effect="write", tool="aof_task_unarchive", section="plan", order=132, example="aof unarchive 001", needs="lead"
)
def unarchive(
    context: CallContext,
    task_id: TaskId,
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Take a task out of the archive, in the status that it had."""
    return context.dispatcher.move(commands.UnarchiveTask, task_id, actor=actor, key=key, expect_rev=expect_rev)


@operation(
    effect="write",
    tool="aof_task_reopen",
    section="plan",
    order=125,
    example='aof reopen 001 --reason "the bug is back"',
    needs="lead",
)
def reopen(
    context: CallContext,
    task_id: TaskId,
    reason: Reason | None = None,
    *,
    backlog: Annotated[bool, param("put it in the backlog instead of the ready queue")] = False,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Open a finished task again, archived or not."""
    return context.dispatcher.move(
        reversal.ReopenTask, task_id, actor=actor, key=key, expect_rev=expect_rev, reason=reason, backlog=backlog
    )


@operation(effect="write", tool="aof_task_dep_add", example="aof dep add 002 001", family=_DEP, tier="core")
def dep_add(
    context: CallContext,
    task_id: TaskId,
    blocker_id: Annotated[str, param("task that must be done first", Spelling(place="BLOCKER"))],
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Depends:
    """Make a task wait until another one is done."""
    return _depends(context, commands.AddDependency, task_id, blocker_id, actor, key=key, expect_rev=expect_rev)


@operation(
    effect="write",
    tool="aof_task_dep_remove",
    verb="dep rm",
    example="aof dep rm 002 001",
    family=_DEP,
    tier="core",
)
def dep_remove(
    context: CallContext,
    task_id: TaskId,
    blocker_id: Annotated[str, param("task that must be done first", Spelling(place="BLOCKER"))],
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Depends:
    """Make a task no longer wait for another one."""
    return _depends(context, commands.RemoveDependency, task_id, blocker_id, actor, key=key, expect_rev=expect_rev)


def _depends(
    context: CallContext, kind: type[commands.OnTask], task_id: str, blocker_id: str, actor: str | None, **given: Any
) -> Depends:
    blocker = context.environment.lookup.resolve(blocker_id)
    task = require_task(context.dispatcher.on_task(kind, task_id, actor=actor, blocker_id=blocker, **given))
    return kernel_results.Depends(task_id=task.id, blocker_id=blocker, depends_on=task.depends_on)


@operation(
    effect="write",
    tool="aof_task_link",
    section="plan",
    order=50,
    example="aof link 002 source_task 001",
    wire_types={"kind": "aof.tasks.parameters.LinkKind", "target": "aof.tasks.parameters.LinkTarget"},
)
def link(
    context: CallContext,
    task_id: TaskId,
    kind: str,
    target: str,
    *,
    reason: Reason | None = None,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Connect a task with a task, a run, an artifact or evidence."""
    return _linked(
        context, commands.AddLink, task_id, kind, target, actor, key=key, expect_rev=expect_rev, reason=reason
    )


@operation(
    effect="write",
    tool="aof_task_unlink",
    verb="link rm",
    section="plan",
    order=60,
    former=("unlink",),
    example="aof link rm 002 source_task 001",
    wire_types={"kind": "aof.tasks.parameters.LinkKind", "target": "aof.tasks.parameters.LinkTarget"},
)
def unlink(
    context: CallContext,
    task_id: TaskId,
    kind: str,
    target: str,
    *,
    key: IdempotencyKey | None = None,
    expect_rev: ExpectedRev | None = None,
    actor: str | None = None,
) -> Moved:
    """Remove a link between a task and something else."""
    return _linked(context, commands.RemoveLink, task_id, kind, target, actor, key=key, expect_rev=expect_rev)


def _linked(  # noqa: PLR0917 - the parts of one request
    context: CallContext,
    command: type[commands.OnTask],
    task_id: str,
    kind: str,
    target: str,
    actor: str | None,
    **given: Any,
) -> Moved:
    """Each edge is written at one end: a dependency at the task that waits, a parent at the child."""
    resolve = context.environment.lookup.resolve
    if kind in ("child", "blocks"):
        task_id, kind, target = target, {"child": "parent", "blocks": "blocked_by"}[kind], task_id
    if kind == "blocked_by":
        given.pop("reason", None)
        change = commands.AddDependency if command is commands.AddLink else commands.RemoveDependency
        _depends(context, change, task_id, target, actor, **given)
        task = context.environment.lookup.get(task_id)
        return kernel_results.Moved(task_id=task.id, status=task.status)
    target_id = resolve(target) if kind in ("parent", "source_task") else target
    return context.dispatcher.move(command, task_id, actor=actor, kind=kind, target_id=target_id, **given)


def with_new_id(environment: Environment, create: Callable[[str], Done]) -> Done:
    """Let something create a task under a new ID. A number that is not needed after all is put back."""
    store = environment.store
    while True:
        task_id = store.reserve_id(environment.clock.now())
        try:
            done = create(task_id)
        except (Unavailable, Internal):  # something may have come of it
            raise
        except AofError as error:
            if error.details.get("task_id") != task_id or not isinstance(error, IdTaken | UnreadableTask):
                store.put_back_id(task_id)
                raise
            continue  # a person has a file of this name; the next number is free
        if done.task is None or done.task.id != task_id:
            store.put_back_id(task_id)
        return done
