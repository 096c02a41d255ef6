"""Operations about the audit records of handoffs. Must not know which store is in use."""

from __future__ import annotations

from contextlib import suppress

from msgspec import UNSET, UnsetType

from aof.app.handoffs.pending import Retention
from aof.app.operations.results import Result
from aof.app.queries import cursors
from aof.core.errors.base import InvalidInput
from aof.core.errors.storage import StorageFailed
from aof.core.handoffs.audit import AuditRecord
from aof.ports.audit import AuditProblem, AuditQuery, Expired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment

MOST_RECORDS = 10_000


class AuditRecords(Result, frozen=True, kw_only=True):
    """Records in the order of the log; where `more` follow, ask again after the last one's `seq`."""

    records: tuple[AuditRecord, ...]
    more: bool = False
    next_cursor: str | UnsetType = UNSET


class AuditVerified(Result, frozen=True, kw_only=True):
    """Whether every record is what was written: how many were compared, and what is wrong."""

    ok: bool
    checked: int
    problems: tuple[AuditProblem, ...] = ()


class AuditPruned(Result, frozen=True, kw_only=True):
    """From which files how many records were removed, or would be."""

    dry_run: bool
    removed: tuple[Expired, ...] = ()


class AuditService:
    """Finds, verifies and prunes audit records."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def audit(
        self,
        *,
        handoff: str | None = None,
        task: str | None = None,
        from_agent: str | None = None,
        to_agent: str | None = None,
        after: int = 0,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AuditRecords:
        """The audit records of a handoff, of a task, from or to an agent, in the order of the log."""
        if after < 0 or (limit is not None and limit < 0):
            raise InvalidInput("'after' and 'limit' must not be negative", "leave them out, or give 0 or more")
        if cursor is not None:
            after = max(after, cursors.number_in("audit", cursor))
        here = self._environment
        most = MOST_RECORDS if limit is None else min(limit, MOST_RECORDS)
        query = AuditQuery(
            handoff_id=handoff,
            task_id=here.lookup.resolve(task) if task is not None else None,
            from_agent=from_agent,
            to_agent=to_agent,
            after=after,
            limit=most + 1,
        )
        found = here.store.audited(query)
        self._follow()
        page, more = found[:most], len(found) > most
        following = cursors.place_in("audit", str(page[-1].seq)) if more and page else UNSET
        return AuditRecords(records=page, more=more, next_cursor=following)

    def audit_verify(self) -> AuditVerified:
        """Compare the records in the log with its chain of hashes, and those in the files with the log."""
        here = self._environment
        files = here.store.audit_files(here.policy.project)
        if files is None:
            return AuditVerified(ok=True, checked=len(here.store.audited(AuditQuery())))
        found = files.verify(Retention(here).expires())
        return AuditVerified(ok=not found.problems, checked=found.checked, problems=found.problems)

    def audit_prune(self, *, dry_run: bool = False) -> AuditPruned:
        """Remove records whose time of retention is over from the files; the log keeps them."""
        retention = Retention(self._environment)
        if dry_run:
            return AuditPruned(dry_run=True, removed=retention.expired())
        self._follow()
        return AuditPruned(dry_run=False, removed=retention.prune())

    def _follow(self) -> None:
        """Let the files catch up: looking must not need space or the right to write."""
        here = self._environment
        files = here.store.audit_files(here.policy.project)
        if files is not None:
            with suppress(OSError, StorageFailed):
                files.follow()
