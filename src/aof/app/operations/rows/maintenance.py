"""Operations that look after the data. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from aof.app.maintenance.merging import MergedHistories
from aof.app.maintenance.service import Diagnosis, HistoryVerified, Synced
from aof.app.operations.results import Recovered, Result
from aof.app.operations.spec import Cli, Operation, Params, Spelling, param
from aof.app.scheduler.tick import Ticked


class DoctorParams(Params, frozen=True, kw_only=True):
    """Whether to repair."""

    fix: Annotated[bool, param("repair what can be repaired")] | UnsetType = UNSET


class VerifyParams(Params, frozen=True, kw_only=True):
    """How much at once."""

    limit: (
        Annotated[int, param("at most this many events beyond those that this process has verified", ge=1)] | UnsetType
    ) = UNSET


class MergeParams(Params, frozen=True, kw_only=True):
    """Whether to do it, or only to tell."""

    dry_run: Annotated[bool, param("only show what would be merged")] | UnsetType = UNSET


class SyncParams(Params, frozen=True, kw_only=True):
    """Which edit that waits is to be imported or turned down; without either, all that need nobody are imported."""

    accept: (
        Annotated[str, param("import the edit of this task, which waits for a maintainer", Spelling(metavar="ID"))]
        | UnsetType
    ) = UNSET
    refuse: (
        Annotated[
            str,
            param("restore the log's version of this task, and keep the edited file beside it", Spelling(metavar="ID")),
        ]
        | UnsetType
    ) = UNSET


class TickParams(Params, frozen=True, kw_only=True):
    """Whether to do it, or only to tell."""

    dry_run: Annotated[bool, param("only show what would be done, and why")] | UnsetType = UNSET


class Recoveries(Result, frozen=True, kw_only=True):
    """What was recovered of vanished workers."""

    recovered: tuple[Recovered, ...]


def _recover(fabric: Any, _values: dict[str, Any]) -> Recoveries:
    return Recoveries(recovered=fabric.recover())


ROWS: tuple[Operation, ...] = (
    Operation(
        name="tick",
        parameters=TickParams,
        result=Ticked,
        help="Do what is due: recover, promote, give up, alert.",
        effect="write",
        tool="aof_tick",
        verb="admin tick",
        cli=Cli(
            section="data",
            order=120,
            former=("tick",),
            summary="do once what is due: recover, promote, give up, alert",
            notes="Also says why each other unfinished task is left as it is. Only 'aof up' starts agents.",
            example="aof admin tick --dry-run",
        ),
        needs="lead",
    ),
    Operation(
        name="recover",
        parameters=Params,
        result=Recoveries,
        help="Requeue the tasks of vanished workers.",
        effect="write",
        tool="aof_recover",
        verb="admin recover",
        cli=Cli(section="data", order=125, former=("recover",), example="aof admin recover"),
        needs="lead",
        ask=_recover,
    ),
    Operation(
        name="sync",
        parameters=SyncParams,
        result=Synced,
        help="Import what people changed in the files.",
        effect="write",
        tool="aof_sync",
        verb="sync",
        cli=Cli(
            section="data",
            order=20,
            notes="With an org chart or strict identity, an edit that takes a task out of its review or changes what "
            "gates read waits for a maintainer: 'aof inbox' lists it.",
            example="aof sync --accept 001",
        ),
        needs="lead",
    ),
    Operation(
        name="merge",
        parameters=MergeParams,
        result=MergedHistories,
        help="Merge the histories that several clones wrote, after git has brought their files together.",
        effect="write",
        tool="aof_merge",
        verb="merge",
        cli=Cli(
            section="data",
            order=25,
            summary="merge the histories of several clones",
            notes="Commands that write do this first, unless git is in a merge, a rebase or a cherry-pick.",
            example="aof merge --dry-run",
        ),
        needs="lead",
    ),
    Operation(
        name="verify",
        parameters=VerifyParams,
        result=HistoryVerified,
        help="Verify the log's hash chain: that no event was changed, removed or reordered.",
        effect="read",
        tool="aof_verify",
        verb="admin verify",
        cli=Cli(
            section="data",
            order=90,
            former=("verify",),
            summary="verify the hash chain of the log",
            example="aof admin verify",
        ),
    ),
    Operation(
        name="doctor",
        parameters=DoctorParams,
        result=Diagnosis,
        help="Check the data directory, and repair what can be repaired.",
        effect="write",
        tool="aof_doctor",
        verb="doctor",
        cli=Cli(section="data", order=40, example="aof doctor --fix"),
        needs="lead",
        needs_more=(("fix", True, "admin"),),
    ),
)
