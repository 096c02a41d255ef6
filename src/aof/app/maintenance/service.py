"""Looking after a data directory: taking in what people did to the files, and finding and healing what is wrong.

Must not know how a store keeps anything; it finds, and the core judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from aof.app import faults
from aof.app.commands.context import Environment
from aof.app.commands.identity import Authentication
from aof.app.commands.unit_of_work import refusal, settle
from aof.app.documents.mailbox import repair
from aof.app.maintenance import merging
from aof.app.maintenance.merging import MergedHistories
from aof.app.operations.results import Result
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.tasks import EditWaits, NothingWaits
from aof.core.model.policy import Policy
from aof.core.validation import limits
from aof.ports.clock import Clock
from aof.ports.org import OrgSource
from aof.ports.progress import Say, silent
from aof.ports.store import Store
from aof.ports.working_copy import Problem


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


class MaintenanceService:
    """Takes in what people did to the files, and finds and heals what is wrong."""

    def __init__(self, environment: Environment, authentication: Authentication) -> None:
        self._environment = environment
        self._authentication = authentication

    def verify(self, *, limit: int | None = None) -> HistoryVerified:
        """Verify the log's chain of hashes; with `limit`, at most so many events beyond what was verified before."""
        if limit is not None and (problem := limits.whole("limit", limit, 1)):
            raise problem
        store = self._environment.store
        if store.working_copy is None:  # what is in memory nobody can change behind our back
            return HistoryVerified(verified_to=store.head(), head=store.head())
        verified = store.working_copy.verified(limit)
        return HistoryVerified(verified_to=verified, head=max(store.head(), verified))

    def sync(self, *, accept: str | None = None, refuse: str | None = None, say: Say = silent) -> Synced:
        """Take in everything that people did to the files.

        Or, as a maintainer, `accept` the edit of one task that waits, or `refuse` it: the log's version is restored,
        and the edited file is kept beside it.
        """
        here = self._environment
        if accept is None and refuse is None:
            return sync(here, say=say)
        if accept is not None and refuse is not None:
            raise InvalidInput("an edit is accepted or refused, not both", "give one of the two", Call("sync", {}))
        by = self._authentication.require_maintainer("accept or refuse an edit by hand")
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

    def merge(self, *, dry_run: bool = False) -> MergedHistories:
        """Merge the histories that several clones wrote; `dry_run` only reports what would be merged."""
        here = self._environment
        return merging.merge(here, dry_run=dry_run)

    def doctor(self, *, fix: bool = False, say: Say = silent) -> Diagnosis:
        """Compare everything with everything else; `fix` heals what can be healed without a person."""
        here = self._environment
        report = doctor(here.store, here.clock, here.policy, org=here.org, fix=fix, say=say)
        before = repair.found(here)
        if not before:
            return report
        if fix:
            repair.settle(here)
        left = repair.found(here)
        return Diagnosis(
            ok=report.ok and not left,
            problems=(*report.problems, *left),
            healed=(*report.healed, *(one for one in before if one not in left)),
            advice=report.advice,
        )


def sync(here: Environment, *, say: Say = silent) -> Synced:
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


def unaccepted(here: Environment) -> Iterator[Unaccepted]:
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
    from aof.app.documents import worklog_check

    with suppress(AofError, OSError):
        worklog_check.restore(environment)


def _of_documents(environment: Environment) -> Iterator[Problem]:
    """What is wrong with documents that people write too: nothing is lost, and a person has to judge it."""
    from aof.app.documents import worklog_check
    from aof.app.jobs import dispatch
    from aof.documents.worklog.model import PATH

    try:
        for finding in worklog_check.of_file(environment):
            if finding.severity == "error":
                place = f"{finding.where}:{finding.line}" if finding.line else finding.where
                yield Problem(finding.code, place, finding.detail, f"{finding.fix}; see 'aof worklog check'")
    except AofError as error:
        yield Problem("document_unusable", PATH, error.message, error.hint)
    yield from dispatch.problems(environment)


def _of_chart(org: OrgSource | None) -> Iterator[Problem]:
    """An org chart that cannot be used; what else may be odd about it, a look at the chart itself tells."""
    if org is None:
        return
    report = org.report()
    for finding in report.findings:
        if finding.severity == "error":
            detail = f"{finding.where}: {finding.detail}"
            yield Problem("org_chart_unusable", report.path, detail, f"{finding.fix}; see 'aof org check'")
