"""Operations about workflows. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from aof.app.operations.results import Moved, Result
from aof.app.operations.spec import OnTask, Operation, Params
from aof.app.workflows.view import Portrait


class OneWorkflow(Params, frozen=True, kw_only=True):
    """A workflow by its name, or a task in one."""

    name: Annotated[str, Meta(description="a workflow, or a task's ID")]


class MaybeWorkflow(Params, frozen=True, kw_only=True):
    """One workflow, or all of them."""

    name: Annotated[str, Meta(description="none: all of them")] | UnsetType = UNSET


class Checked(Result, frozen=True, kw_only=True):
    """Which templates were looked at, and what is wrong with them."""

    ok: bool
    workflows: list[str]
    problems: list[dict[str, Any]]


def _check(fabric: Any, values: dict[str, Any]) -> Checked:
    reports = fabric.workflow_check(**values)
    return Checked(
        ok=all(report.ok for report in reports),
        workflows=[report.name for report in reports],
        problems=[{"file": report.path} | finding.told() for report in reports for finding in report.findings],
    )


ROWS: tuple[Operation, ...] = (
    Operation(
        name="workflow_show",
        parameters=OneWorkflow,
        result=Portrait,
        help="A workflow, or where a task stands in its own.",
        effect="read",
        tool="aof_workflow_show",
        verb="workflow show",
    ),
    Operation(
        name="workflow_check",
        parameters=MaybeWorkflow,
        result=Checked,
        help="What is wrong with the workflows that are written down.",
        effect="read",
        tool="aof_workflow_check",
        verb="workflow check",
        ask=_check,
    ),
    Operation(
        name="workflow_attach",
        parameters=OnTask,
        result=Moved,
        help="Let a task that a person wrote by hand begin the workflow that it names.",
        effect="write",
        tool="aof_workflow_attach",
        verb="workflow attach",
        needs="lead",
    ),
)
