"""The operation that changes many tasks at once. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from aof.app.operations.rows.fields import IdempotencyKey, Reason
from aof.app.operations.rows.queries import ListParams
from aof.app.operations.spec import Cli, Operation, Spelling, param
from aof.app.tasks.bulk import BulkReport
from aof.core.model.kinds import Priority, Visibility


class BulkChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an edit of many tasks changes; an empty text takes a value away."""

    priority: Annotated[Priority, param("new priority", Spelling(option="--set-priority"))] | UnsetType = UNSET
    agent: Annotated[str, param("new target agent", Spelling(option="--set-agent"))] | UnsetType = UNSET
    role: Annotated[str, param("new target role", Spelling(option="--set-role"))] | UnsetType = UNSET
    team: Annotated[str, param("new target team", Spelling(option="--set-team"))] | UnsetType = UNSET
    tags: Annotated[list[str], param("new tag, in place of all", Spelling(option="--set-tag"))] | UnsetType = UNSET
    owner: Annotated[str, param("new owner", Spelling(option="--set-owner"))] | UnsetType = UNSET
    resource: Annotated[str, param("new resource", Spelling(option="--set-resource"))] | UnsetType = UNSET
    visibility: Annotated[Visibility, param("new visibility", Spelling(option="--set-visibility"))] | UnsetType = UNSET


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


ROWS: tuple[Operation, ...] = (
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
