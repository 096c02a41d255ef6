"""Operations on what the agents of a workflow share: context, artifacts, locks on files.

Must not know any surface.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import msgspec

from aof.errors import CommitUnknown, DiskFull, StorageFailed
from aof.handoffs import access, context_commands
from aof.handoffs import context as handoffs_context
from aof.handoffs.access import MODES
from aof.handoffs.context import ARTIFACT_STATUSES, ARTIFACT_TYPES, CONFLICT_RULES, Artifact, ContextVariables, Variable
from aof.kernel import limits as kernel_limits
from aof.kernel.declarations import BY_KEY, ExpectedRev, Run, TaskId, one_of, param
from aof.kernel.operation import Family, Spelling, operation
from aof.kernel.results import Result
from aof.org.budgets import POINTS
from aof.org.routing import RISKS
from aof.runs import model as runs_model
from aof.store.port import Scope
from aof.support.typed import prepare_type
from aof.workflows.model import held_leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext
    from aof.tasks.model import FileLock, Task


class Locked(Result, frozen=True, kw_only=True):
    """All locks of the task after the call."""

    task_id: str
    locks: tuple[dict[str, Any], ...]


class Unlocked(Result, frozen=True, kw_only=True):
    """The paths that were given back."""

    task_id: str
    released: tuple[str, ...]


class LockList(Result, frozen=True, kw_only=True):
    """Who holds what, since when; `lost` is one whose holder shows no life any more."""

    total: int
    locks: tuple[dict[str, Any], ...]


class ContextShown(Result, frozen=True, kw_only=True):
    """The context of a workflow: as a handoff carries it, and each variable with scope, writer and version."""

    task_id: str
    top_task_id: str
    context_variables: ContextVariables
    context_variables_hash: str
    variables: dict[str, Variable]
    artifacts: tuple[Artifact, ...]
    conflicts: str


class DecisionRecorded(Result, frozen=True, kw_only=True, omit_defaults=True):
    """A decision of the workflow: `recorded`, or `escalated` by a handoff that has to come back first."""

    state: str
    description: str
    task_id: str
    decision_id: str | None = None
    made_by: str | None = None
    timestamp: str | None = None
    handoff_id: str | None = None


class Preflighted(Result, frozen=True, kw_only=True):
    """Whether the agent may: `proceed`, `proceed_with_warnings` or `blocked`, and which stage decided."""

    task_id: str
    agent: str
    outcome: str
    point: str
    stage: str
    reason: str
    warnings: tuple[str, ...] = ()


_FAMILY = Family(
    verb="context",
    help="show or write what the agents of a workflow share",
    example="aof context set 001 --var branch=main --scope shared",
    section="work",
    order=130,
)
_context = partial(operation, family=_FAMILY, tier="handoff")
_ForTask = Annotated[str, param("task that the run is of", Spelling(option="--task", metavar="ID"))]


@operation(
    effect="write",
    section="work",
    order=120,
    summary="lock files for a run",
    example="aof lock src/api.py --task 001",
    tier="handoff",
)
def lock(
    context: CallContext,
    path: Annotated[str, param("file or folder, from the project's folder", Spelling(place="PATH"))],
    *,
    task_id: _ForTask,
    also: Annotated[Sequence[str], param("another one: all are locked, or none", Spelling(metavar="PATH"))] = (),
    lock_type: Annotated[
        str, param("exclusive (the default) or shared", Spelling(option="--type", metavar="T"), says=one_of(MODES))
    ] = "exclusive",
    run: Run | None = None,
    actor: str | None = None,
    expect_rev: ExpectedRev | None = None,
) -> Locked:
    """Lock files of the project for a run: all of them, or none."""
    given: dict[str, Any] = {"paths": [path, *also], "mode": lock_type}
    done = context.dispatcher.on_task(access.LockFiles, task_id, run=run, actor=actor, expect_rev=expect_rev, **given)
    task = done.task
    assert task is not None
    return Locked(task_id=task.id, locks=tuple(access.listed_lock(task, lock) for lock in task.locks))


@operation(
    effect="write",
    verb="lock release",
    section="work",
    order=121,
    former=("unlock",),
    summary="give back a run's locks",
    example="aof lock release --task 001",
    tier="handoff",
)
def unlock(
    context: CallContext,
    path: Annotated[str, param("what was locked; without it, all of the run", Spelling(place="[PATH]"))] | None = None,
    *,
    task_id: _ForTask,
    run: Run | None = None,
    actor: str | None = None,
    expect_rev: ExpectedRev | None = None,
) -> Unlocked:
    """Give back a lock of a run, or all that it has."""
    paths = [path] if path is not None else []
    done = context.dispatcher.on_task(
        access.UnlockFiles, task_id, run=run, actor=actor, expect_rev=expect_rev, paths=paths
    )
    released = [one for event in done.events for one in event.payload["paths"]]
    assert done.task is not None
    return Unlocked(task_id=done.task.id, released=tuple(released))


@operation(
    effect="read",
    verb="lock list",
    section="work",
    order=122,
    former=("locks",),
    example="aof lock list src/api.py",
    tier="handoff",
)
def locks(
    context: CallContext,
    path: Annotated[str, param("only what is in the way of this one", Spelling(place="[PATH]"))] | None = None,
    *,
    task_id: Annotated[str, param("only of this task", Spelling(option="--task", metavar="ID"))] | None = None,
    agent: Annotated[str, param("only of this agent")] | None = None,
) -> LockList:
    """Who holds which files, since when."""
    wanted = kernel_limits.normalised("path", path) if path is not None else kernel_limits.WHOLE
    if not isinstance(wanted, str):
        raise wanted
    only = context.environment.lookup.resolve(task_id) if task_id is not None else None
    tasks = [task for task in context.environment.store.locking() if only in (None, task.id)]
    found = tuple(
        access.listed_lock(task, lock, lost=lock.run_id in lost)
        for task in tasks
        for lost in (_lost(context, task),)
        for lock in sorted(task.locks, key=lambda lock: lock.path)
        if kernel_limits.overlap(wanted, lock.path) and agent in (None, lock.agent)
    )
    return LockList(total=len(found), locks=found)


def _lost(context: CallContext, task: Task) -> frozenset[str]:
    """The runs of a task whose leases are over, though nobody has reclaimed them yet."""
    here = context.environment
    held, now = held_leases(task), here.clock.now()
    beats = here.store.heartbeats([place for place, _ in held])
    return frozenset(lease.run_id for place, lease in held if runs_model.lease_end(lease, beats[place]) <= now)


@_context(effect="read", example="aof context show 001")
def context_show(context: CallContext, task_id: TaskId) -> ContextShown:
    """What the agents of a workflow share: variables, decisions, artifacts, files in progress."""
    task = context.environment.lookup.get(task_id)
    top = _top(context, task)
    shared = handoffs_context.context_of(top)
    taken = handoffs_context.snapshot(task, "sequential", top=top, files=_files(context, top))
    return ContextShown(
        task_id=task.id,
        top_task_id=top.id,
        context_variables=taken.context_variables,
        context_variables_hash=taken.context_variables_hash,
        variables=shared.variables,
        artifacts=taken.artifacts,
        conflicts=shared.rule,
    )


@_context(effect="write", example="aof context set 001 --var branch=main")
def context_set(
    context: CallContext,
    task_id: TaskId,
    *,
    variables: Annotated[dict[str, Any], param("variable to write", Spelling(option="--var", metavar=BY_KEY))]
    | None = None,
    scope: Annotated[str, param("who may write them: shared, an agent, role:NAME or team:NAME; else the writer alone")]
    | None = None,
    base: Annotated[int, param("version that was read, so that a later write is noticed; 0: there was none", ge=0)]
    | None = None,
    conflicts: Annotated[
        str,
        param(
            "for the orchestrator: which of two conflicting writes holds, first or last",
            says=one_of(CONFLICT_RULES),
        ),
    ]
    | None = None,
    run: Run | None = None,
    actor: str | None = None,
    expect_rev: ExpectedRev | None = None,
) -> ContextShown:
    """Write variables that the agents of a workflow share."""
    given: dict[str, Any] = {"variables": variables or {}, "scope": scope, "base": base, "conflicts": conflicts}
    done = context.dispatcher.on_task(
        context_commands.SetContext, task_id, run=run, actor=actor, expect_rev=expect_rev, **given
    )
    assert done.task is not None
    with _made():
        return context_show(context, done.task.id)


@_context(effect="append", example='aof context decide 001 "REST, no GraphQL"')
def context_decide(
    context: CallContext,
    task_id: TaskId,
    description: Annotated[str, param("what was decided", Spelling(place="TEXT", also=("--text",)))],
    *,
    risk: Annotated[
        str,
        param("low, medium or high; above what the agent may take, it becomes an escalation", says=one_of(RISKS)),
    ]
    | None = None,
    run: Run | None = None,
    actor: str | None = None,
    expect_rev: ExpectedRev | None = None,
) -> DecisionRecorded:
    """Record a decision for all agents of a workflow."""
    given = {"description": description, "risk": risk}
    done = context.dispatcher.on_task(
        context_commands.RecordDecision, task_id, run=run, actor=actor, expect_rev=expect_rev, **given
    )
    here, agent = context.environment, str(done.decision.agent)
    with _made():
        task = here.lookup.get(task_id)
        asked = context_commands.escalation_of(here.store.handoffs((task,)), description, agent, risk)
        if asked is not None and asked.is_open:
            said = description.strip()
            return DecisionRecorded(state="escalated", description=said, task_id=task.id, handoff_id=asked.id)
        made = context_commands.decision_made(handoffs_context.context_of(_top(context, task)), description, agent)
    assert made is not None
    return DecisionRecorded(state="recorded", **msgspec.structs.asdict(made))


@_context(effect="write", example="aof context artifact 001 --path outputs/api.md --type document")
def context_artifact(
    context: CallContext,
    task_id: TaskId,
    *,
    path: Annotated[str, param("path below the project's folder or the task's, or a URI")],
    type: Annotated[  # noqa: A002 - the name of the field
        str, param("file, code, document, test_result or review_comment", says=one_of(ARTIFACT_TYPES))
    ]
    | None = None,
    status: Annotated[str, param("draft, final or superseded", says=one_of(ARTIFACT_STATUSES))] | None = None,
    description: Annotated[str, param("what it is", Spelling(metavar="T"))] | None = None,
    run: Run | None = None,
    actor: str | None = None,
    expect_rev: ExpectedRev | None = None,
) -> Artifact:
    """Record what was made in a workflow, or its new status."""
    given = {"path": path, "type": type, "status": status, "description": description}
    done = context.dispatcher.on_task(
        context_commands.RecordArtifact, task_id, run=run, actor=actor, expect_rev=expect_rev, **given
    )
    assert done.task is not None
    with _made():
        artifact = context_commands.artifact_of(_top(context, done.task), path)
    assert artifact is not None
    return artifact


@operation(
    effect="append",
    section="work",
    order=110,
    example="aof preflight 001 --point write --subject src/api.py",
    notes="Exit code 1 when it is blocked. A process that does not ask is not stopped.",
    tier="handoff",
    acts="agent",
)
def preflight(
    context: CallContext,
    task_id: TaskId,
    *,
    point: Annotated[
        str, param("read, write, command, network, iterations, duration, files or lines", says=one_of(POINTS))
    ]
    | None = None,
    subject: Annotated[str, param("path, command or host that it is about", Spelling(metavar="T"))] | None = None,
    amount: Annotated[int, param("how much will have been used in all", ge=0)] | None = None,
    risk: Annotated[str, param("risk of what is decided: low, medium or high", says=one_of(RISKS))] | None = None,
    agent: Annotated[str, param("agent that would begin the task; else the caller")] | None = None,
    run: Run | None = None,
    actor: str | None = None,
) -> Preflighted:
    """Ask whether an agent may begin a task, or do something in its run."""
    given: dict[str, Any] = {"point": point, "subject": subject, "amount": amount, "risk": risk, "agent": agent}
    (event,) = context.dispatcher.on_task(access.Preflight, task_id, run=run, actor=actor, **given).events
    ruled = {name: event.payload[name] for name in ("outcome", "point", "stage", "reason", "agent")}
    warnings = event.payload.get("warnings", [])
    return msgspec.convert(ruled | {"taskId": event.task_id, "warnings": warnings}, prepare_type(Preflighted))


def _top(context: CallContext, task: Task) -> Task:
    here = context.environment
    with here.store.unit(Scope(read=frozenset({task.id}))) as unit:
        above = unit.above(task.id)
    return here.lookup.get(above[-1]) if above else task


def _files(context: CallContext, top: Task) -> list[FileLock]:
    """What the tasks of the tree have locked."""
    tasks = context.environment.store.locking()
    if not tasks:
        return []
    with context.environment.store.unit(Scope(read=frozenset({top.id}))) as unit:
        tree = {top.id, *(child for children in unit.tree(top.id).values() for child in children)}
    return [lock for task in tasks if task.id in tree for lock in task.locks]


@contextmanager
def _made() -> Iterator[None]:
    """The change is in the log: a disk that fails while the answer is read must not be taken for a refusal."""
    try:
        yield
    except (DiskFull, StorageFailed) as error:
        raise CommitUnknown(
            f"the change is made, but its answer could not be read ({error.message})", error.hint or "look again"
        ) from error
