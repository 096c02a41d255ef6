"""Operations on what the agents of a workflow share: context, artifacts, locks on files.

Must not know any surface.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from aof.errors import CommitUnknown, DiskFull, StorageFailed
from aof.handoffs import context as handoffs_context
from aof.handoffs import guards, initiation
from aof.handoffs.context import ARTIFACT_STATUSES, ARTIFACT_TYPES, CONFLICT_RULES, Artifact, ContextVariables, Variable
from aof.handoffs.guards import MODES
from aof.kernel import limits as kernel_limits
from aof.kernel.declarations import (
    BY_KEY,
    Cli,
    ExpectedRev,
    Family,
    Operation,
    Params,
    Run,
    Spelling,
    TaskParams,
    one_of,
    param,
)
from aof.kernel.results import Result
from aof.org.budgets import POINTS
from aof.org.routing import RISKS
from aof.runs import model as runs_model
from aof.store.port import Scope
from aof.support.typed import prepare_type
from aof.workflows.model import held_leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.commands import OnTask
    from aof.kernel.context import Environment
    from aof.kernel.dispatcher import Dispatcher
    from aof.kernel.unit_of_work import Done
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


def reading(task_id: str) -> Scope:
    """The scope of a look at one task and at what the index knows of its relatives."""
    return Scope(read=frozenset({task_id}))


_CONTEXT = Family(
    verb="context",
    help="show or write what the agents of a workflow share",
    example="aof context set 001 --var branch=main --scope shared",
)
_ForTask = Annotated[str, param("task that the run is of", Spelling(option="--task", metavar="ID"))]


class LockParams(Params, frozen=True, kw_only=True):
    """Which files, and how."""

    path: Annotated[str, param("file or folder, from the project's folder", Spelling(place="PATH"))]
    task_id: _ForTask
    also: Annotated[list[str], param("another one: all are locked, or none", Spelling(metavar="PATH"))] | UnsetType = (
        UNSET
    )
    lock_type: (
        Annotated[
            str, param("exclusive (the default) or shared", Spelling(option="--type", metavar="T"), says=one_of(MODES))
        ]
        | UnsetType
    ) = UNSET
    run: Run | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class UnlockParams(Params, frozen=True, kw_only=True):
    """Which file, or all of the run."""

    path: Annotated[str, param("what was locked; without it, all of the run", Spelling(place="[PATH]"))] | UnsetType = (
        UNSET
    )
    task_id: _ForTask
    run: Run | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class LockFilterParams(Params, frozen=True, kw_only=True):
    """Which locks."""

    path: Annotated[str, param("only what is in the way of this one", Spelling(place="[PATH]"))] | UnsetType = UNSET
    task_id: Annotated[str, param("only of this task", Spelling(option="--task", metavar="ID"))] | UnsetType = UNSET
    agent: Annotated[str, param("only of this agent")] | UnsetType = UNSET


class ContextSetParams(TaskParams, frozen=True, kw_only=True):
    """Variables, and who may write them from now on."""

    variables: (
        Annotated[dict[str, Any], param("variable to write", Spelling(option="--var", metavar=BY_KEY))] | UnsetType
    ) = UNSET
    scope: (
        Annotated[str, param("who may write them: shared, an agent, role:NAME or team:NAME; else the writer alone")]
        | UnsetType
    ) = UNSET
    base: (
        Annotated[int, param("version that was read, so that a later write is noticed; 0: there was none", ge=0)]
        | UnsetType
    ) = UNSET
    conflicts: (
        Annotated[
            str,
            param(
                "for the orchestrator: which of two conflicting writes holds, first or last",
                says=one_of(CONFLICT_RULES),
            ),
        ]
        | UnsetType
    ) = UNSET
    run: Run | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class ContextDecideParams(TaskParams, frozen=True, kw_only=True):
    """What was decided."""

    description: Annotated[str, param("what was decided", Spelling(place="TEXT", also=("--text",)))]
    risk: (
        Annotated[
            str,
            param("low, medium or high; above what the agent may take, it becomes an escalation", says=one_of(RISKS)),
        ]
        | UnsetType
    ) = UNSET
    run: Run | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class ContextArtifactParams(TaskParams, frozen=True, kw_only=True):
    """What was made, and how far it is."""

    path: Annotated[str, param("path below the project's folder or the task's, or a URI")]
    type: (
        Annotated[str, param("file, code, document, test_result or review_comment", says=one_of(ARTIFACT_TYPES))]
        | UnsetType
    ) = UNSET
    status: Annotated[str, param("draft, final or superseded", says=one_of(ARTIFACT_STATUSES))] | UnsetType = UNSET
    description: Annotated[str, param("what it is", Spelling(metavar="T"))] | UnsetType = UNSET
    run: Run | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class PreflightParams(TaskParams, frozen=True, kw_only=True):
    """What the agent is about to do; without a point, the whole task."""

    point: (
        Annotated[
            str, param("read, write, command, network, iterations, duration, files or lines", says=one_of(POINTS))
        ]
        | UnsetType
    ) = UNSET
    subject: Annotated[str, param("path, command or host that it is about", Spelling(metavar="T"))] | UnsetType = UNSET
    amount: Annotated[int, param("how much will have been used in all", ge=0)] | UnsetType = UNSET
    risk: Annotated[str, param("risk of what is decided: low, medium or high", says=one_of(RISKS))] | UnsetType = UNSET
    agent: Annotated[str, param("agent that would begin the task; else the caller")] | UnsetType = UNSET
    run: Run | UnsetType = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="lock",
        parameters=LockParams,
        result=Locked,
        help="Lock files of the project for a run: all of them, or none.",
        effect="write",
        tool="aof_lock",
        verb="lock",
        cli=Cli(section="work", order=120, summary="lock files for a run", example="aof lock src/api.py --task 001"),
        tier="handoff",
    ),
    Operation(
        name="unlock",
        parameters=UnlockParams,
        result=Unlocked,
        help="Give back a lock of a run, or all that it has.",
        effect="write",
        tool="aof_unlock",
        verb="lock release",
        cli=Cli(
            section="work",
            order=121,
            former=("unlock",),
            summary="give back a run's locks",
            example="aof lock release --task 001",
        ),
        tier="handoff",
    ),
    Operation(
        name="locks",
        parameters=LockFilterParams,
        result=LockList,
        help="Who holds which files, since when.",
        effect="read",
        tool="aof_locks",
        verb="lock list",
        cli=Cli(section="work", order=122, former=("locks",), example="aof lock list src/api.py"),
        tier="handoff",
    ),
    Operation(
        name="context_show",
        parameters=TaskParams,
        result=ContextShown,
        help="What the agents of a workflow share: variables, decisions, artifacts, files in progress.",
        effect="read",
        tool="aof_context_show",
        verb="context show",
        cli=Cli(section="work", order=130, example="aof context show 001", family=_CONTEXT),
        tier="handoff",
    ),
    Operation(
        name="context_set",
        parameters=ContextSetParams,
        result=ContextShown,
        help="Write variables that the agents of a workflow share.",
        effect="write",
        tool="aof_context_set",
        verb="context set",
        cli=Cli(section="work", order=130, example="aof context set 001 --var branch=main", family=_CONTEXT),
        tier="handoff",
    ),
    Operation(
        name="context_decide",
        parameters=ContextDecideParams,
        result=DecisionRecorded,
        help="Record a decision for all agents of a workflow.",
        effect="append",
        tool="aof_context_decide",
        verb="context decide",
        cli=Cli(section="work", order=130, example='aof context decide 001 "REST, no GraphQL"', family=_CONTEXT),
        tier="handoff",
    ),
    Operation(
        name="context_artifact",
        parameters=ContextArtifactParams,
        result=Artifact,
        help="Record what was made in a workflow, or its new status.",
        effect="write",
        tool="aof_context_artifact",
        verb="context artifact",
        cli=Cli(
            section="work",
            order=130,
            example="aof context artifact 001 --path outputs/api.md --type document",
            family=_CONTEXT,
        ),
        tier="handoff",
    ),
    Operation(
        name="preflight",
        parameters=PreflightParams,
        result=Preflighted,
        help="Ask whether an agent may begin a task, or do something in its run.",
        effect="append",
        tool="aof_preflight",
        verb="preflight",
        cli=Cli(
            section="work",
            order=110,
            example="aof preflight 001 --point write --subject src/api.py",
            notes="Exit code 1 when it is blocked. A process that does not ask is not stopped.",
        ),
        tier="handoff",
        acts="agent",
    ),
)


class SharedWorkService:
    """Reads and writes what agents share."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def lock(
        self,
        path: str,
        *,
        task_id: str,
        also: Sequence[str] = (),
        lock_type: str = "exclusive",
        run: str | None = None,
        actor: str | None = None,
    ) -> Locked:
        """Lock files or folders of the project for a run: all of them, or none."""
        given: dict[str, Any] = {"paths": [path, *also], "mode": lock_type, "run": run, "actor": actor}
        task = self._changed(guards.LockFiles, task_id, given)
        return Locked(task_id=task.id, locks=tuple(guards.listed_lock(task, lock) for lock in task.locks))

    def unlock(
        self, path: str | None = None, *, task_id: str, run: str | None = None, actor: str | None = None
    ) -> Unlocked:
        """Give back a lock of a run, or all that it has."""
        given: dict[str, Any] = {"paths": [path] if path is not None else [], "run": run, "actor": actor}
        done = self._done(guards.UnlockFiles, task_id, given)
        released = [one for event in done.events for one in event.payload["paths"]]
        assert done.task is not None
        return Unlocked(task_id=done.task.id, released=tuple(released))

    def locks(self, path: str | None = None, *, task_id: str | None = None, agent: str | None = None) -> LockList:
        """The locks on files: all, or those that concern a path, a task or an agent."""
        wanted = kernel_limits.normalised("path", path) if path is not None else kernel_limits.WHOLE
        if not isinstance(wanted, str):
            raise wanted
        only = self._environment.lookup.resolve(task_id) if task_id is not None else None
        tasks = [task for task in self._environment.store.locking() if only in (None, task.id)]
        found = tuple(
            guards.listed_lock(task, lock, lost=lock.run_id in lost)
            for task in tasks
            for lost in (self._lost(task),)
            for lock in sorted(task.locks, key=lambda lock: lock.path)
            if kernel_limits.overlap(wanted, lock.path) and agent in (None, lock.agent)
        )
        return LockList(total=len(found), locks=found)

    def _lost(self, task: Task) -> frozenset[str]:
        """The runs of a task whose leases are over, though nobody has reclaimed them yet."""
        here = self._environment
        held, now = held_leases(task), here.clock.now()
        beats = here.store.heartbeats([place for place, _ in held])
        return frozenset(lease.run_id for place, lease in held if runs_model.lease_end(lease, beats[place]) <= now)

    def context_show(self, task_id: str) -> ContextShown:
        """What the agents of the workflow share, from the place of one of its tasks."""
        task = self._environment.lookup.get(task_id)
        top = self._top(task)
        return self._shown(task, top)

    def context_set(
        self,
        task_id: str,
        *,
        variables: dict[str, Any] | None = None,
        scope: str | None = None,
        base: int | None = None,
        conflicts: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> ContextShown:
        """Write variables that the agents of the workflow share, each within its scope."""
        given: dict[str, Any] = {"variables": variables or {}, "scope": scope, "base": base, "conflicts": conflicts}
        done = self._done(guards.SetContext, task_id, given | {"run": run, "actor": actor})
        assert done.task is not None
        with _made():
            return self.context_show(done.task.id)

    def context_decide(
        self,
        task_id: str,
        description: str,
        *,
        risk: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> DecisionRecorded:
        """Record a decision for all agents of the workflow. Above the agent's own risk it becomes an escalation."""
        given = {"description": description, "risk": risk, "run": run, "actor": actor}
        done = self._done(initiation.RecordDecision, task_id, given)
        with _made():
            return self._recorded(self._environment.lookup.get(task_id), done, description, risk)

    def _recorded(self, task: Task, done: Done, description: str, risk: str | None) -> DecisionRecorded:
        agent = str(done.decision.agent)
        asked = initiation.escalation_of(self._environment.store.handoffs((task,)), description, agent, risk)
        if asked is not None and asked.is_open:
            return DecisionRecorded(
                state="escalated", description=description.strip(), task_id=task.id, handoff_id=asked.id
            )
        made = initiation.decision_made(handoffs_context.context_of(self._top(task)), description, agent)
        assert made is not None
        return DecisionRecorded(state="recorded", **msgspec.structs.asdict(made))

    def context_artifact(
        self,
        task_id: str,
        *,
        path: str,
        type: str | None = None,  # noqa: A002 - what it is called everywhere
        status: str | None = None,
        description: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> Artifact:
        """Record something that was made in the workflow, or its new status."""
        given = {"path": path, "type": type, "status": status, "description": description}
        done = self._done(guards.RecordArtifact, task_id, given | {"run": run, "actor": actor})
        assert done.task is not None
        with _made():
            artifact = guards.artifact_of(self._top(done.task), path)
        assert artifact is not None
        return artifact

    def preflight(
        self,
        task_id: str,
        *,
        point: str | None = None,
        subject: str | None = None,
        amount: int | None = None,
        risk: str | None = None,
        agent: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> Preflighted:
        """Ask whether an agent may begin a task, or whether its run may do something; the answer is recorded."""
        given: dict[str, Any] = {"point": point, "subject": subject, "amount": amount, "risk": risk, "agent": agent}
        (event,) = self._done(guards.Preflight, task_id, given | {"run": run, "actor": actor}).events
        ruled = {name: event.payload[name] for name in ("outcome", "point", "stage", "reason", "agent")}
        warnings = event.payload.get("warnings", [])
        return msgspec.convert(ruled | {"taskId": event.task_id, "warnings": warnings}, prepare_type(Preflighted))

    def _top(self, task: Task) -> Task:
        here = self._environment
        with here.store.unit(reading(task.id)) as unit:
            above = unit.above(task.id)
        return here.lookup.get(above[-1]) if above else task

    def _shown(self, task: Task, top: Task) -> ContextShown:
        context = handoffs_context.context_of(top)
        taken = handoffs_context.snapshot(task, "sequential", top=top, files=self._files(top))
        return ContextShown(
            task_id=task.id,
            top_task_id=top.id,
            context_variables=taken.context_variables,
            context_variables_hash=taken.context_variables_hash,
            variables=context.variables,
            artifacts=taken.artifacts,
            conflicts=context.rule,
        )

    def _files(self, top: Task) -> list[FileLock]:
        """What the tasks of the tree have locked."""
        tasks = self._environment.store.locking()
        if not tasks:
            return []
        with self._environment.store.unit(reading(top.id)) as unit:
            tree = {top.id, *(child for children in unit.tree(top.id).values() for child in children)}
        return [lock for task in tasks if task.id in tree for lock in task.locks]

    def _changed(self, kind: type[OnTask], task_id: str, given: dict[str, Any]) -> Task:
        done = self._done(kind, task_id, given)
        assert done.task is not None
        return done.task

    def _done(self, kind: type[OnTask], task_id: str, given: dict[str, Any]) -> Done:
        return self._dispatcher.on_task(kind, task_id, **given)


@contextmanager
def _made() -> Iterator[None]:
    """The change is in the log: a disk that fails while the answer is read must not be taken for a refusal."""
    try:
        yield
    except (DiskFull, StorageFailed) as error:
        raise CommitUnknown(
            f"the change is made, but its answer could not be read ({error.message})", error.hint or "look again"
        ) from error
