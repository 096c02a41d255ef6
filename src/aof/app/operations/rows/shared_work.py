"""Operations on what the agents of a workflow share: context, artifacts, locks on files. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from aof.app.handoffs.results import ContextShown, DecisionRecorded, Locked, LockList, Preflighted, Unlocked
from aof.app.operations.rows.fields import BY_KEY, ExpectedRev, Run
from aof.app.operations.spec import Cli, Family, Operation, Params, Spelling, TaskParams, one_of, param
from aof.core.handoffs.file_locks import MODES
from aof.core.model.handoffs.context import ARTIFACT_STATUSES, ARTIFACT_TYPES, CONFLICT_RULES, Artifact
from aof.core.org.autonomy import RISKS
from aof.core.org.budgets.enforcement import POINTS

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
    run: Run = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class UnlockParams(Params, frozen=True, kw_only=True):
    """Which file, or all of the run."""

    path: Annotated[str, param("what was locked; without it, all of the run", Spelling(place="[PATH]"))] | UnsetType = (
        UNSET
    )
    task_id: _ForTask
    run: Run = UNSET
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
    run: Run = UNSET
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
    run: Run = UNSET
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
    run: Run = UNSET
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
    run: Run = UNSET


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
