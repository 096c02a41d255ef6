"""Operations for judging work that is in review. Must not know any surface."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from aof.app.operations.results import Moved
from aof.app.operations.rows.fields import ChangeParams, Hop, NeededBlockers, OpenChildren, Reason
from aof.app.operations.spec import Cli, Operation, StandIn


class ApproveParams(ChangeParams, frozen=True, kw_only=True):
    """Why the work is accepted."""

    reason: Reason | UnsetType = UNSET
    hop: Hop = UNSET
    allow_open_children: OpenChildren = UNSET


class RejectParams(ChangeParams, frozen=True, kw_only=True):
    """Why the work is sent back."""

    blockers: NeededBlockers
    hop: Hop = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="approve",
        parameters=ApproveParams,
        result=Moved,
        help="Accept what is in review.",
        effect="write",
        tool="aof_task_approve",
        stand_in=StandIn(operation="complete", keeps=("task_id",)),
        verb="approve",
        cli=Cli(section="review", order=10, example="aof approve 001"),
        needs="lead",
    ),
    Operation(
        name="reject",
        parameters=RejectParams,
        result=Moved,
        help="Send what is in review back.",
        effect="write",
        tool="aof_task_reject",
        stand_in=StandIn(operation="update", keeps=("task_id",), adds=(("status", "ready"), ("reason", "…"))),
        verb="reject",
        cli=Cli(section="review", order=20, example='aof reject 001 --reason "no tests"'),
        needs="lead",
    ),
)
