"""Operations that look after the data. Must not know any surface."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from aof.app.maintenance.service import Diagnosis, Synced
from aof.app.operations.results import Recovered, Result
from aof.app.operations.spec import Operation, Params
from aof.app.scheduler.tick import Ticked


class Doctor(Params, frozen=True, kw_only=True):
    """Whether to mend."""

    fix: bool | UnsetType = UNSET


class Tick(Params, frozen=True, kw_only=True):
    """Whether to do it, or only to tell."""

    dry_run: bool | UnsetType = UNSET


class Recoveries(Result, frozen=True, kw_only=True):
    """What was recovered of vanished workers."""

    recovered: tuple[Recovered, ...]


def _recover(fabric: Any, _values: dict[str, Any]) -> Recoveries:
    return Recoveries(recovered=fabric.recover())


ROWS: tuple[Operation, ...] = (
    Operation(
        name="tick",
        parameters=Tick,
        result=Ticked,
        help="Do what is due: recover, promote, give up, alert.",
        effect="write",
        tool="aof_tick",
        verb="tick",
        needs="lead",
    ),
    Operation(
        name="recover",
        parameters=Params,
        result=Recoveries,
        help="Requeue what vanished workers left.",
        effect="write",
        tool="aof_recover",
        verb="recover",
        needs="lead",
        ask=_recover,
    ),
    Operation(
        name="sync",
        parameters=Params,
        result=Synced,
        help="Take in what people changed in the files.",
        effect="write",
        tool="aof_sync",
        verb="sync",
        needs="lead",
    ),
    Operation(
        name="doctor",
        parameters=Doctor,
        result=Diagnosis,
        help="Check the data, and mend what can be mended.",
        effect="write",
        tool="aof_doctor",
        verb="doctor",
        needs="lead",
        needs_more=(("fix", True, "admin"),),
    ),
)
