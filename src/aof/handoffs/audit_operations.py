"""Operations about the audit records of handoffs; and which handoffs something is still to come of."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Annotated

from msgspec import UNSET, UnsetType

from aof.errors import InvalidInput, LogDamaged, StorageFailed, Unavailable
from aof.handoffs import delegation
from aof.handoffs.audit import SHORTEST_MS, AuditRecord, kept_until
from aof.handoffs.model import Handoff, by_age
from aof.kernel.declarations import Cursor, Family, Spelling, param
from aof.kernel.model import day
from aof.kernel.operation import operation
from aof.kernel.results import Result
from aof.queries import read_models
from aof.store.directory import AuditProblem, AuditQuery, Expired
from aof.store.port import Scope, Store
from aof.tasks.model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext, Environment
    from aof.store.directory import Expires


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


_FAMILY = Family(
    verb="audit",
    help="audit records of handoffs: find, verify or prune them",
    default="list",
    example="aof audit --task 001",
    section="team",
    order=40,
)
_audit = partial(operation, family=_FAMILY, tier="handoff")


@_audit(effect="read", verb="audit list", example="aof audit --task 001")
def audit(
    context: CallContext,
    *,
    handoff: Annotated[str, param("only of this handoff", Spelling(metavar="H"))] | None = None,
    task: Annotated[str, param("only of this task", Spelling(metavar="ID"))] | None = None,
    from_agent: Annotated[str, param("only from this agent", Spelling(option="--from", metavar="A"))] | None = None,
    to_agent: Annotated[str, param("only to this agent", Spelling(option="--to", metavar="A"))] | None = None,
    after: Annotated[int, param("only records of events with a greater number", Spelling(metavar="SEQ"), ge=0)] = 0,
    limit: Annotated[int, param("at most this many (10,000 at a time)", ge=0)] | None = None,
    cursor: Cursor | None = None,
) -> AuditRecords:
    """Audit records of a handoff, of a task, from or to an agent."""
    if after < 0 or (limit is not None and limit < 0):
        raise InvalidInput("'after' and 'limit' must not be negative", "leave them out, or give 0 or more")
    if cursor is not None:
        after = max(after, read_models.number_in("audit", cursor))
    here = context.environment
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
    _follow(context)
    page, more = found[:most], len(found) > most
    following = read_models.place_in("audit", str(page[-1].seq)) if more and page else UNSET
    return AuditRecords(records=page, more=more, next_cursor=following)


@_audit(effect="read", example="aof audit verify")
def audit_verify(context: CallContext) -> AuditVerified:
    """Find audit records that were changed, removed or reordered."""
    here = context.environment
    files = here.store.audit_files(here.policy.project)
    if files is None:
        return AuditVerified(ok=True, checked=len(here.store.audited(AuditQuery())))
    found = files.verify(Retention(here).expires())
    return AuditVerified(ok=not found.problems, checked=found.checked, problems=found.problems)


@_audit(effect="destructive", example="aof audit prune --dry-run")
def audit_prune(
    context: CallContext, *, dry_run: Annotated[bool, param("only show what would be removed")] = False
) -> AuditPruned:
    """Remove audit records past their retention from the files; the log keeps them."""
    retention = Retention(context.environment)
    if dry_run:
        return AuditPruned(dry_run=True, removed=retention.expired())
    _follow(context)
    return AuditPruned(dry_run=False, removed=retention.prune())


def _follow(context: CallContext) -> None:
    """Let the files catch up: looking must not need space or the right to write."""
    here = context.environment
    files = here.store.audit_files(here.policy.project)
    if files is not None:
        with suppress(OSError, StorageFailed):
            files.follow()


class Pending:
    """Remembers what it has read for as long as a task stays as it was."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, tuple[Handoff, ...]]] = {}

    def messages(self, tasks: Iterable[Task]) -> tuple[Handoff, ...]:
        """The requests by message that have no answer and of which nothing was said yet, in the tasks' order."""
        handed = [task for task in tasks if any(link.kind == "handoff" for link in task.links)]
        last = ((task, self._all(task)[-1:]) for task in handed)
        return tuple(
            one
            for task, (*found,) in last
            for one in found
            if one.request is not None and one.state == "requested" and not delegation.recorded_unanswered(task, one.id)
        )

    def open(self, tasks: Iterable[Task]) -> tuple[tuple[Task, Handoff], ...]:
        """The engine's open handoffs of these tasks; one by message is over with its task."""
        found = ((task, one) for task in tasks for one in self._all(task) if one.is_open)
        return tuple((task, one) for task, one in found if one.request is None)

    def triggered(self, tasks: Iterable[Task]) -> frozenset[tuple[str, str, str]]:
        """The task, trigger and reason of every handoff that these tasks ever had."""
        handed = (task for task in tasks if any(link.kind == "handoff" for link in task.links))
        return frozenset((task.id, one.trigger, one.reason) for task in handed for one in self._all(task))

    def forget(self, tasks: Iterable[Task]) -> None:
        """Remember only these."""
        kept = {task.id for task in tasks}
        self._known = {name: known for name, known in self._known.items() if name in kept}

    def _all(self, task: Task) -> tuple[Handoff, ...]:
        known = self._known.get(task.id)
        if known is not None and known[0] == task.rev:
            return known[1]
        try:
            return self._read(task)
        except Unavailable:  # somebody keeps writing it: what lies there is for now, and is not remembered
            return self._store.handoffs((task,))

    def _read(self, task: Task) -> tuple[Handoff, ...]:
        """Under the task's lock, because the log tells of a step before the handoff's file does."""
        with self._store.unit(Scope(read=frozenset({task.id}))) as unit:
            current, found = unit.task(task.id), tuple(sorted(unit.handoffs(task.id), key=by_age))
        self._known[task.id] = (current.rev if current is not None else task.rev, found)
        return found


class Retention:
    """Applies the times of retention to the files of one data directory."""

    def __init__(self, environment: Environment) -> None:
        self._store = environment.store
        self._clock = environment.clock
        self._files = environment.store.audit_files(environment.policy.project)

    def expired(self) -> tuple[Expired, ...]:
        """What could be removed now."""
        return self._files.expired(self._before(), self.expires()) if self._files is not None else ()

    def prune(self) -> tuple[Expired, ...]:
        """Remove it."""
        return self._files.prune(self._before(), self.expires()) if self._files is not None else ()

    def expires(self) -> Expires:
        """Tells of records whether their time is over now; one of an unknown task is kept, and all by a broken log."""
        now = self._clock.now()

        def judged(records: tuple[AuditRecord, ...]) -> tuple[bool, ...]:
            try:
                found = self._store.records({record.context_snapshot.task_id for record in records}) if records else ()
            except LogDamaged:
                found = ()
            tasks = {task.id: task for task in found}
            ends = (kept_until(record, tasks.get(record.context_snapshot.task_id)) for record in records)
            return tuple(end is not None and end <= now for end in ends)

        return judged

    def _before(self) -> str:
        """No record of a later day can be past its time."""
        return day(self._clock.now() - SHORTEST_MS + 1)
