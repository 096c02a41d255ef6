"""Operations about the audit records of handoffs. Must not know any surface."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from aof.app.handoffs.audit import AuditPruned, AuditRecords, AuditVerified
from aof.app.operations.rows.fields import Cursor
from aof.app.operations.spec import Cli, Family, Operation, Params, Spelling, param

_AUDIT = Family(
    verb="audit",
    help="audit records of handoffs: find, verify or prune them",
    default="list",
    example="aof audit --task 001",
)


class AuditFilters(Params, frozen=True, kw_only=True):
    """Which records."""

    handoff: Annotated[str, param("only of this handoff", Spelling(metavar="H"))] | UnsetType = UNSET
    task: Annotated[str, param("only of this task", Spelling(metavar="ID"))] | UnsetType = UNSET
    from_agent: Annotated[str, param("only from this agent", Spelling(option="--from", metavar="A"))] | UnsetType = (
        UNSET
    )
    to_agent: Annotated[str, param("only to this agent", Spelling(option="--to", metavar="A"))] | UnsetType = UNSET
    after: (
        Annotated[int, param("only records of events with a greater number", Spelling(metavar="SEQ"), ge=0)] | UnsetType
    ) = UNSET
    limit: Annotated[int, param("at most this many (10,000 at a time)", ge=0)] | UnsetType = UNSET
    cursor: Cursor = UNSET


class Prune(Params, frozen=True, kw_only=True):
    """Whether to do it, or only to tell."""

    dry_run: Annotated[bool, param("only show what would be removed")] | UnsetType = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="audit",
        parameters=AuditFilters,
        result=AuditRecords,
        help="Audit records of a handoff, of a task, from or to an agent.",
        effect="read",
        tool="aof_audit",
        verb="audit list",
        cli=Cli(section="team", order=40, example="aof audit --task 001", family=_AUDIT),
        tier="handoff",
    ),
    Operation(
        name="audit_verify",
        parameters=Params,
        result=AuditVerified,
        help="Find audit records that were changed, removed or reordered.",
        effect="read",
        tool="aof_audit_verify",
        verb="audit verify",
        cli=Cli(section="team", order=40, example="aof audit verify", family=_AUDIT),
        tier="handoff",
    ),
    Operation(
        name="audit_prune",
        parameters=Prune,
        result=AuditPruned,
        help="Remove audit records past their retention from the files; the log keeps them.",
        effect="destructive",
        tool="aof_audit_prune",
        verb="audit prune",
        cli=Cli(section="team", order=40, example="aof audit prune --dry-run", family=_AUDIT),
        tier="handoff",
    ),
)
