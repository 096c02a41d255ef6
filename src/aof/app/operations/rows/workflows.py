"""Operations about workflows. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from aof.app.operations.results import Moved, Result
from aof.app.operations.rows.fields import ExpectedRev
from aof.app.operations.spec import Cli, Extra, Family, Operation, Params, Spelling, TaskParams, param
from aof.app.workflows.view import Portrait

_WORKFLOW = Family(
    verb="workflow",
    help="check or show workflows, or show how far a task is in its workflow",
    place="a workflow or a task; none: all workflows",
    example="aof workflow show 001 --format mermaid",
)
_NAME = Spelling(place="NAME")


class WorkflowParams(Params, frozen=True, kw_only=True):
    """A workflow by its name, or a task in one."""

    name: Annotated[str, param("a workflow, or a task's ID", _NAME)]


class OptionalWorkflowParams(Params, frozen=True, kw_only=True):
    """One workflow, or all of them."""

    name: Annotated[str, param("none: all of them", _NAME)] | UnsetType = UNSET


class AttachParams(TaskParams, frozen=True, kw_only=True):
    """Which task begins its workflow."""

    expect_rev: ExpectedRev | UnsetType = UNSET


class WorkflowCheck(Result, frozen=True, kw_only=True):
    """Which templates were checked, and their problems."""

    ok: bool
    workflows: list[str]
    problems: list[dict[str, Any]]


def _check(fabric: Any, values: dict[str, Any]) -> WorkflowCheck:
    reports = fabric.workflow_check(**values)
    return WorkflowCheck(
        ok=all(report.ok for report in reports),
        workflows=[report.name for report in reports],
        problems=[{"file": report.path} | finding.told() for report in reports for finding in report.findings],
    )


ROWS: tuple[Operation, ...] = (
    Operation(
        name="workflow_check",
        parameters=OptionalWorkflowParams,
        result=WorkflowCheck,
        help="Check the workflow templates.",
        effect="read",
        tool="aof_workflow_check",
        verb="workflow check",
        cli=Cli(section="team", order=20, example="aof workflow check", family=_WORKFLOW),
        ask=_check,
    ),
    Operation(
        name="workflow_show",
        parameters=WorkflowParams,
        result=Portrait,
        help="A workflow, or how far a task is in its workflow.",
        effect="read",
        tool="aof_workflow_show",
        verb="workflow show",
        cli=Cli(
            section="team",
            order=20,
            example="aof workflow show 001",
            extra=(Extra(option="--format", help="text or mermaid", metavar="F"),),
            family=_WORKFLOW,
        ),
    ),
    Operation(
        name="workflow_attach",
        parameters=AttachParams,
        result=Moved,
        help="Start the workflow that a hand-written task names.",
        effect="write",
        tool="aof_workflow_attach",
        verb="workflow attach",
        cli=Cli(
            section="team",
            order=20,
            example="aof workflow attach 001",
            spelled=(("task_id", Spelling(place="NAME", target="name")),),
            family=_WORKFLOW,
        ),
        needs="lead",
    ),
)
