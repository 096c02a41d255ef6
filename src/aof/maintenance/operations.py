"""Operations that look after a data directory.

Taking in edits, finding and healing what is wrong, merging histories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated

import msgspec

from aof.documents import mail_service
from aof.documents import reading as documents_reading
from aof.documents.projection import lock_of
from aof.errors import AofError, Call, Conflict, EditWaits, Invalid, InvalidInput, NotFound, NothingWaits, Refused
from aof.kernel import faults
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import ImportEdit
from aof.kernel.context import Environment
from aof.kernel.declarations import param
from aof.kernel.model import Policy
from aof.kernel.operation import Spelling, operation
from aof.kernel.results import Result
from aof.kernel.unit_of_work import refusal, settle
from aof.merge.model import Renumbered, TaskReport
from aof.merge.model import Report as MergeReport
from aof.store.directory import OrgSource, Problem
from aof.store.port import Clock, Scope, Store
from aof.support.printable import Say, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext


class Unaccepted(Result, frozen=True, kw_only=True):
    """Something that a person did and that cannot be imported: it stays as it is."""

    path: str
    code: str
    reason: str
    hint: str


class Synced(Result, frozen=True, kw_only=True):
    """What was imported of people's changes to the files: edited or moved tasks, new ones, and what was refused.

    `waiting` are edits that a maintainer has to confirm; `put_aside` are the copies of one that was turned down.
    """

    taken_in: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    refused: tuple[Unaccepted, ...] = ()
    waiting: tuple[Unaccepted, ...] = ()
    put_aside: tuple[str, ...] = ()


class Diagnosis(Result, frozen=True, kw_only=True):
    """The state of the data: `problems` are there now, `healed` were; `advice` is about what could be better."""

    ok: bool
    problems: tuple[Problem, ...] = ()
    healed: tuple[Problem, ...] = ()
    advice: tuple[Problem, ...] = ()


class HistoryVerified(Result, frozen=True, kw_only=True):
    """How far the log's chain of hashes was verified, and how far the log goes."""

    verified_to: int
    head: int


@operation(
    effect="write",
    section="data",
    order=20,
    notes="With an org chart or strict identity, an edit that takes a task out of its review or changes what "
    "gates read waits for a maintainer: 'aof inbox' lists it.",
    example="aof sync --accept 001",
    needs="lead",
    python_only=("say",),
)
def sync(
    context: CallContext,
    *,
    accept: Annotated[str, param("import the edit of this task, which waits for a maintainer", Spelling(metavar="ID"))]
    | None = None,
    refuse: Annotated[
        str,
        param("restore the log's version of this task, and keep the edited file beside it", Spelling(metavar="ID")),
    ]
    | None = None,
    say: Say = silent,
) -> Synced:
    """Import what people changed in the files.

    Or, as a maintainer, `accept` the edit of one task that waits, or `refuse` it: the log's version is restored, and
    the edited file is kept beside it.
    """
    here = context.environment
    if accept is None and refuse is None:
        return _take_in(here, say)
    if accept is not None and refuse is not None:
        raise InvalidInput("an edit is accepted or refused, not both", "give one of the two", Call("sync", {}))
    by = context.authentication.require_maintainer("accept or refuse an edit by hand")
    task_id = here.lookup.resolve(str(accept if accept is not None else refuse))
    waiting = refusal(here.store, here.clock, here.policy_for_edits, task_id)
    if not isinstance(waiting, EditWaits):
        raise waiting or NothingWaits(
            f"no edit by hand of {task_id} waits",
            "see which do",
            Call("inbox", {"kind": ["edit"]}),
            task_id=task_id,
        )
    if accept is not None:
        settle(here.store, here.clock, here.policy_for_edits, task_id, odd=True, accepted_by=by)
        return Synced(taken_in=(task_id,))
    assert here.store.working_copy is not None
    return Synced(put_aside=here.store.working_copy.quarantine(task_id))


@operation(
    effect="write",
    section="data",
    order=25,
    summary="merge the histories of several clones",
    notes="Commands that write do this first, unless git is in a merge, a rebase or a cherry-pick.",
    example="aof merge --dry-run",
    needs="lead",
)
def merge(
    context: CallContext, *, dry_run: Annotated[bool, param("only show what would be merged")] = False
) -> MergedHistories:
    """Merge the histories that several clones wrote, after git has brought their files together.

    People's edits are imported at once: git knows both versions of a file only until somebody adds it. A store without
    files has only one history.
    """
    here = context.environment
    store, files = here.store, here.store.working_copy
    if files is None:
        return MergedHistories(dry_run=dry_run)
    report = files.merge(dry_run=dry_run)
    kept: list[str] = []
    if not dry_run:
        for task_id in files.preloaded(files.changes()[1]):
            with suppress(Refused, Invalid, Conflict, NotFound):  # it stays as it is, and `doctor` tells
                clash = _clash(store, task_id)
                settle(store, here.clock, here.policy_for_edits, task_id, odd=True)
                kept += [f"{task_id}: {clash}"] if clash else []
        rebuild_documents(store, here.policy, anew=report is not None)
    told = MergedHistories(dry_run=dry_run) if report is None else _told(report, dry_run=dry_run)
    return msgspec.structs.replace(told, notes=(*told.notes, *kept))


@operation(
    effect="read",
    verb="admin verify",
    section="data",
    order=90,
    former=("verify",),
    summary="verify the hash chain of the log",
    example="aof admin verify",
)
def verify(
    context: CallContext,
    *,
    limit: Annotated[int, param("at most this many events beyond those that this process has verified", ge=1)]
    | None = None,
) -> HistoryVerified:
    """Verify the log's hash chain: that no event was changed, removed or reordered."""
    if limit is not None and (problem := kernel_limits.whole("limit", limit, 1)):
        raise problem
    store = context.environment.store
    if store.working_copy is None:  # what is in memory nobody can change behind our back
        return HistoryVerified(verified_to=store.head(), head=store.head())
    verified = store.working_copy.verified(limit)
    return HistoryVerified(verified_to=verified, head=max(store.head(), verified))


@operation(
    name="doctor",
    effect="write",
    section="data",
    order=40,
    example="aof doctor --fix",
    needs="lead",
    needs_more=(("fix", True, "admin"),),
    python_only=("say",),
)
def examine(
    context: CallContext, *, fix: Annotated[bool, param("repair what can be repaired")] = False, say: Say = silent
) -> Diagnosis:
    """Check the data directory, and repair what can be repaired."""
    here = context.environment
    report = doctor(here.store, here.clock, here.policy, org=here.org, fix=fix, say=say)
    before = mail_service.unfaithful_tables(here)
    if not before:
        return report
    if fix:
        mail_service.rewrite_tables(here)
    left = mail_service.unfaithful_tables(here)
    return Diagnosis(
        ok=report.ok and not left,
        problems=(*report.problems, *left),
        healed=(*report.healed, *(one for one in before if one not in left)),
        advice=report.advice,
    )


def _take_in(here: Environment, say: Say) -> Synced:
    """Import every edit, move and new file; report what cannot be imported, and what waits."""
    files, clock = here.store.working_copy, here.clock
    if files is None:
        return Synced()
    taken: list[str] = []
    new: list[str] = []
    refused: list[Unaccepted] = []
    waiting: list[Unaccepted] = []
    say("comparing the files with the log")
    untracked, modified = files.changes()
    for path in untracked:
        try:
            files.adopt(path, clock.now())
        except Exception as error:  # noqa: BLE001 - the edge of one file
            refused.append(_unaccepted(path, error))
    if untracked:  # what has an ID now is new
        _, modified = files.changes()
    for task_id in files.preloaded(modified):
        say(f"taking in {task_id}")
        try:
            before, after = settle(here.store, clock, here.policy_for_edits, task_id, odd=True)
        except Exception as error:  # noqa: BLE001 - the edge of one file
            refused.append(_unaccepted(task_id, error))
            continue
        if before is None and after is not None:
            new.append(task_id)
        elif before is not None and after is not None and before.rev != after.rev:
            taken.append(task_id)
        elif held := refusal(here.store, clock, here.policy_for_edits, task_id):
            waiting.append(_unaccepted(task_id, held))
    return Synced(taken_in=tuple(taken), new=tuple(new), refused=tuple(refused), waiting=tuple(waiting))


def unaccepted_edits(here: Environment) -> Iterator[Unaccepted]:
    """What people did to the files and what is refused. Looks at every file, and imports nothing."""
    files = here.store.working_copy
    if files is None:
        return
    for task_id in files.preloaded(files.changes()[1]):
        error = refusal(here.store, here.clock, here.policy_for_edits, task_id)
        if error is not None and not isinstance(error, EditWaits):
            yield _unaccepted(", ".join(files.places(task_id)), error)


def _unaccepted(path: str, error: Exception) -> Unaccepted:
    """The machine's own trouble is not a refusal: it ends the whole. What nobody foresaw concerns one file."""
    if not isinstance(error, AofError):
        what = f"taking in {path} failed: {faults.describe(error)} (reference {faults.record(path, error)})"
        return Unaccepted(path=path, code="internal", reason=what, hint="report it with the traceback from the log")
    if error.kind in ("unavailable", "internal"):
        raise error
    return Unaccepted(path=path, code=error.code, reason=error.message, hint=error.hint)


def doctor(
    store: Store, clock: Clock, policy: Policy, *, org: OrgSource | None = None, fix: bool = False, say: Say = silent
) -> Diagnosis:
    """Problems; with `fix`, everything that is safe to repair is repaired, and edits are imported."""
    here = Environment(store, clock, policy, org=org)
    say("comparing everything with everything else")
    before, advised = _problems(here)
    if not fix:
        return Diagnosis(ok=not before, problems=before, advice=advised)
    files = store.working_copy
    if files is None:
        return Diagnosis(ok=not before, problems=before, advice=advised)
    say("repairing")
    files.repair()
    done: dict[str, str] = {}
    for task_id in files.preloaded(files.diagnose().edited):
        error = refusal(store, clock, here.policy_for_edits, task_id)
        if error is None:
            settle(store, clock, here.policy_for_edits, task_id)
        elif not isinstance(error, EditWaits):
            kept = ", ".join(files.quarantine(task_id))
            where = f"the log's version is in {', '.join(files.places(task_id))} again"
            done[task_id] = f"{where}, and yours was kept as {kept}" if kept else where
    _restore_documents(here)
    say("looking again")
    after, advice = _problems(here)
    left = {*after, *advice}
    healed = tuple(_with_what(one, done) for one in (*before, *advised) if one not in left)
    return Diagnosis(ok=not after, problems=after, healed=healed, advice=advice)


def _with_what(healed: Problem, done: Mapping[str, str]) -> Problem:
    """What was a person's change that is refused says where that went."""
    what = done.get(healed.path) if healed.code == "edit_refused" else None
    if healed.code == "unreadable_task":
        what = "the log's version is there again, and yours was kept beside it"
    if what is None:
        return healed
    return Problem(healed.code, healed.path, f"{healed.detail}; {what}", healed.fix)


def _problems(here: Environment) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """What is wrong, and what could be better or waits for somebody."""
    files = here.store.working_copy
    if files is None:
        return tuple(_of_chart(here.org)), ()
    found = files.diagnose()
    judged: list[Problem] = []
    advice = [*found.advice, *_of_resources(found.shared, here.policy)]
    for task_id in files.preloaded(found.edited):
        error = refusal(here.store, here.clock, here.policy_for_edits, task_id)
        if isinstance(error, EditWaits):
            advice.append(Problem(error.code, task_id, error.message, error.hint))
        elif error is not None:
            judged.append(Problem("edit_refused", task_id, error.message, error.hint))
    problems = (*found.problems, *judged, *_of_chart(here.org))
    if problems:
        return problems, tuple(advice)  # documents follow from what must be right first
    return (), (*advice, *_of_documents(here))


def _of_resources(shared: Mapping[str, Sequence[str]], policy: Policy) -> Iterator[Problem]:
    """Resources that more tasks occupy than there are slots, as after a merge, or where the slots were made fewer."""
    for resource, holders in shared.items():
        slots = policy.resource_slots.get(resource, 1)
        if len(holders) > slots:
            what = f"{', '.join(holders)} occupy '{resource}' at once, which has {slots} slot{'s' * (slots != 1)}"
            yield Problem("resource_overbooked", resource, what, "release all but as many tasks as there are slots")


def _restore_documents(environment: Environment) -> None:
    """Undo what was done to entries that are never edited; what cannot be undone is told."""
    from aof.documents import worklog_operations

    with suppress(AofError, OSError):
        worklog_operations.restore(environment)


def _of_documents(environment: Environment) -> Iterator[Problem]:
    """What is wrong with documents that people write too: nothing is lost, and a person has to judge it."""
    from aof.documents import worklog_operations
    from aof.documents.worklog_text import PATH
    from aof.jobs import operations as jobs_operations

    try:
        for finding in worklog_operations.file_findings(environment):
            if finding.severity == "error":
                place = f"{finding.where}:{finding.line}" if finding.line else finding.where
                yield Problem(finding.code, place, finding.detail, f"{finding.fix}; see 'aof worklog check'")
    except AofError as error:
        yield Problem("document_unusable", PATH, error.message, error.hint)
    yield from jobs_operations.job_problems(environment)


def _of_chart(org: OrgSource | None) -> Iterator[Problem]:
    """An org chart that cannot be used; what else may be odd about it, a look at the chart itself tells."""
    if org is None:
        return
    report = org.report()
    for finding in report.findings:
        if finding.severity == "error":
            detail = f"{finding.where}: {finding.detail}"
            yield Problem("org_chart_unusable", report.path, detail, f"{finding.fix}; see 'aof org check'")


class MergedHistories(Result, frozen=True, kw_only=True):
    """What came together: `merged` is false where there was one history already, or with `dryRun`.

    `histories` counts what was brought together, `commits` the changes in them that not all had, and `touched` the
    tasks that these are about. `tasks` are those that somebody should look at.
    """

    merged: bool = False
    dry_run: bool = False
    histories: int = 1
    commits: int = 0
    touched: int = 0
    renumbered: tuple[Renumbered, ...] = ()
    tasks: tuple[TaskReport, ...] = ()
    notes: tuple[str, ...] = ()


def _clash(store: Store, task_id: str) -> str:
    """What of a person's edit cannot go in because the log has another value; the store keeps their file beside."""
    with store.unit(Scope(write=frozenset({task_id}))) as unit:
        unit.task(task_id)
        edit = unit.edit(task_id)
    fields = ", ".join(edit.conflicts) if isinstance(edit, ImportEdit) else ""
    return f"an edit by hand of {fields} did not go in; that file is kept as .md.conflict" if fields else ""


def rebuild_documents(store: Store, policy: Policy, *, anew: bool = True) -> None:
    """Rewrite the documents from the log, and keep what people wrote into any version of them."""
    for document in documents_reading.projections(policy, anew=anew):
        with store.unit(Scope(names=frozenset({lock_of(document.name)}))) as unit:
            unit.follow(document)


def _told(report: MergeReport, *, dry_run: bool) -> MergedHistories:
    return MergedHistories(
        merged=not dry_run,
        dry_run=dry_run,
        histories=len(report.lanes),
        commits=report.commits,
        touched=report.touched,
        renumbered=report.renumbered,
        tasks=report.tasks,
        notes=report.notes,
    )
