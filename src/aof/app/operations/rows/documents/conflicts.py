"""Operations about proposals and disagreements. Must not know any surface."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from aof.app.documents.conflicts.service import Conflicts, ConflictShown, Posted
from aof.app.operations.spec import Cli, Family, Operation, Params, Spelling, param

_CONFLICT = Family(
    verb="conflict",
    help="see open proposals and disagreements, and settle them",
    default="list",
    example="aof conflict settle WL-0123456789abcdef 'use JSON Lines' --agent ada",
)
_Id = Annotated[
    str, param("proposal (PROP-001), counter-recommendation or escalation (WL-…)", Spelling(place="CONFLICT"))
]
_Agent = Annotated[str, param("agent that says it; else the caller", Spelling(metavar="A"))] | UnsetType
_Reasons = Annotated[list[str], param("a reason", Spelling(option="--reason", metavar="T"))] | UnsetType


class ConflictFilter(Params, frozen=True, kw_only=True):
    """Which of them."""

    settled: Annotated[bool, param("also those that are settled")] | UnsetType = UNSET


class OneConflict(Params, frozen=True, kw_only=True):
    """Which one."""

    conflict_id: _Id


class ConflictOutcome(OneConflict, frozen=True, kw_only=True):
    """What becomes of it."""

    text: Annotated[
        str, param("what was agreed, decided or is done meanwhile", Spelling(place="TEXT", also=("--text",)))
    ]
    agent: _Agent = UNSET
    reasons: _Reasons = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="conflict_list",
        parameters=ConflictFilter,
        result=Conflicts,
        help="Open proposals and disagreements, and what waits for the maintainer.",
        effect="read",
        tool="aof_conflict_list",
        verb="conflict list",
        cli=Cli(section="team", order=50, example="aof conflict", family=_CONFLICT),
        tier="mail",
    ),
    Operation(
        name="conflict_show",
        parameters=OneConflict,
        result=ConflictShown,
        help="A proposal or a disagreement with everything that belongs to it.",
        effect="read",
        tool="aof_conflict_show",
        verb="conflict show",
        cli=Cli(section="team", order=50, example="aof conflict show PROP-001", family=_CONFLICT),
        tier="mail",
    ),
    Operation(
        name="conflict_settle",
        parameters=ConflictOutcome,
        result=Posted,
        help="Record what was agreed or decided, as a decision that links back.",
        effect="append",
        tool="aof_conflict_settle",
        verb="conflict settle",
        cli=Cli(section="team", order=50, example="aof conflict settle PROP-001 'we do it'", family=_CONFLICT),
        tier="mail",
        acts="agent",
    ),
    Operation(
        name="conflict_default",
        parameters=ConflictOutcome,
        result=Posted,
        help="Go on with the lower-risk way for the time being; it waits for the maintainer's decision.",
        effect="append",
        tool="aof_conflict_default",
        verb="conflict default",
        cli=Cli(
            section="team",
            order=50,
            example="aof conflict default WL-0123456789abcdef 'keep the old format'",
            family=_CONFLICT,
        ),
        tier="mail",
        acts="agent",
    ),
)
