"""Merges the histories that several clones wrote, and reports the result in words.

Must not know how lanes are kept, nor the rules by which they are merged.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from aof.app.commands.context import Environment
from aof.app.commands.unit_of_work import settle
from aof.app.operations.results import Result
from aof.core.engine.merge.model import Renumbered, TaskReport
from aof.core.engine.merge.model import Report as MergeReport
from aof.core.errors.base import Conflict, Invalid, NotFound, Refused
from aof.core.model.commands import ImportEdit
from aof.core.model.policy import Policy
from aof.documents import catalogue
from aof.documents.projection import lock_of
from aof.ports.store import Scope, Store


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


def merge(here: Environment, *, dry_run: bool) -> MergedHistories:
    """Make one history of several, and let every file follow it; a store without files has only one.

    People's edits are imported at once: git knows both versions of a file only until somebody adds it.
    """
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


def _clash(store: Store, task_id: str) -> str:
    """What of a person's edit cannot go in because the log has another value; the store keeps their file beside."""
    with store.unit(Scope(write=frozenset({task_id}))) as unit:
        unit.task(task_id)
        edit = unit.edit(task_id)
    fields = ", ".join(edit.conflicts) if isinstance(edit, ImportEdit) else ""
    return f"an edit by hand of {fields} did not go in; that file is kept as .md.conflict" if fields else ""


def rebuild_documents(store: Store, policy: Policy, *, anew: bool = True) -> None:
    """Rewrite the documents from the log, and keep what people wrote into any version of them."""
    for document in catalogue.projections(policy, anew=anew):
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
