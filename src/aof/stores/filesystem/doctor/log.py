"""Checks the log. A broken chain is reported and never cut; events that only the files still know are put back."""

from __future__ import annotations

import os

import msgspec

from aof.core.errors.base import AofError
from aof.core.errors.storage import LaneRefused, LogDamaged
from aof.core.model.commands import ImportEdit
from aof.core.model.events import Draft, is_remark
from aof.core.model.task import Task
from aof.core.model.workflow import workflow_of
from aof.ports.store import Scope
from aof.ports.working_copy import Problem
from aof.stores.base.fold import Folded
from aof.stores.filesystem.doctor import indexed, rewritten_log
from aof.stores.filesystem.doctor.finding import Case, DoctorFinding
from aof.stores.filesystem.integrity import line_endings, verification
from aof.stores.filesystem.io.read import Seen, read, seen
from aof.stores.filesystem.loaded_task import Loaded
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.merge.proof import prove_lanes
from aof.stores.filesystem.recovery import journal, lost_log
from aof.stores.filesystem.store import FilesystemStore
from aof.stores.filesystem.working_copy import markdown
from aof.stores.filesystem.working_copy.changes import examine, same_task

DOCTOR = "doctor"
_NOT_RESTORED = ("id", "rev", "updatedAt", "layout")
_FROM_BACKUP = (
    "restore the file from a backup or from version control; or move the log's files from there on out of events/, "
    "and 'aof doctor --fix' puts what the tasks' files say into the log again"
)

_LANE_BACK = "restore the file from git, or get it from the clone that wrote it; tasks and history are as they were"


def check(store: FilesystemStore) -> tuple[list[DoctorFinding], dict[str, Folded] | None]:
    """Verify number, place and hash of every event, and fold them all; None where the log cannot be relied on."""
    found: list[DoctorFinding] = []
    folded: dict[str, Folded] | None = None
    try:
        folded = _folded(store)
        found += _beside(store)
    except LogDamaged as damage:
        told = line_endings.explained(store.paths, _first_wrong(store) or damage)
        day = told.details.get("day")
        where = f"events/{day}.jsonl" if day else "events/"
        found.append(
            DoctorFinding(
                Problem(
                    told.code,
                    where,
                    _with_what_is_left(store, told),
                    told.hint if told.code != damage.code or isinstance(told, LaneRefused) else _FROM_BACKUP,
                )
            )
        )
    if store.log.is_poisoned():
        what = "a flush of the log has failed, and nothing can be written since"
        problem = Problem("log_poisoned", "events/", what, "'aof doctor --fix' rewrites the files and verifies them")
        heal = None if folded is None else lambda _now: _unpoison(store)
        return [*found, DoctorFinding(problem, 0, heal)], None  # until then nobody may redo what a failed writer left
    return found, folded


def _beside(store: FilesystemStore) -> list[DoctorFinding]:
    """The first thing that is wrong with a lane beside the path, or with a merge; the path itself holds."""
    layout = store.reader.layout()
    try:
        if layout is not None:
            prove_lanes(store.paths, layout)
    except LogDamaged as damage:
        where = f"events/{damage.details.get('day')}.jsonl"
        return [DoctorFinding(Problem(damage.code, where, damage.message, _LANE_BACK))]
    return []


def _first_wrong(store: FilesystemStore) -> LogDamaged | None:
    """The first event whose line, number or hash is wrong."""
    try:
        verification.prove(store.paths, store.reader.path())
    except LogDamaged as damage:
        return damage
    return None


def _with_what_is_left(store: FilesystemStore, damage: LogDamaged) -> str:
    """The damage, and how many tasks files and index know a version of that the sound part of the log does not."""
    seq = damage.details.get("seq")
    if not isinstance(seq, int):
        return damage.message
    filed = {task_id for task_id, rev in store.recovery.revs() if rev >= seq}
    known = {task_id for task_id, rev in indexed.revs(store.paths).items() if rev >= seq} - filed
    return (
        f"{damage.message}; from there on, the files of {len(filed)} tasks can be restored, "
        f"and the index knows {len(known)} more, without their text"
    )


def _folded(store: FilesystemStore) -> dict[str, Folded]:
    here = Position()
    folded: dict[str, Folded] = {}
    for behind, lines in store.reader.commits(here):
        digest, seq = here.digest, here.seq
        for line, event in lines:
            if not chain.proves(line, digest) or event.seq <= seq:
                raise LogDamaged(f"the chain is broken at event {event.seq}", "", seq=event.seq, day=behind.segment)
            digest, seq = event.hash, event.seq
            try:
                if event.task_id and not is_remark(event):
                    folded.setdefault(event.task_id, Folded()).add(event)
            except (ValueError, KeyError, TypeError) as error:
                what = f"event {event.seq} cannot be applied: {error}"
                raise LogDamaged(what, "", seq=event.seq, day=behind.segment) from error
        here = behind
    return folded


def _unpoison(store: FilesystemStore) -> None:
    """Everything before the checkpoint was synced as a whole; the files since then are written to new places."""
    known = journal.load_checkpoint(store.paths)
    store.log.heal(since=known.position.segment if known is not None else "")
    _folded(store)


def lacking(case: Case) -> DoctorFinding | None:
    """Whether events that were durable are gone: the log was deleted, cut or replaced by an older one."""
    detail = _lost(case)
    if detail is None:
        return None
    fix = (
        "copy events/ aside, then restore it from a backup; "
        "or 'aof doctor --fix' puts what the tasks' files say into the log again"
    )
    return DoctorFinding(Problem("log_lacks_events", "events/", detail, fix), 1, lambda now: _put_back(case, now))


def _lost(case: Case) -> str | None:
    store, newest = case.store, case.scan.newest
    if store.damage is not None:
        return store.damage.message
    known = journal.load_checkpoint(store.paths)
    if known is not None and not store.reader.has_seen(known.position):
        return f"the log lacks event {known.position.seq}, which was durable"
    if (last := rewritten_log.cut(store)) is not None:
        gone = "its end was cut" if store.reader.newest() else "it is empty; the files in events/ are gone"
        return f"the log lacks event {last.seq}, which was acknowledged: {gone}"
    if not store.reader.newest():
        try:
            store.refuse_lost_log()
        except LogDamaged as damage:
            return damage.message
    if newest and next(store.reader.events(newest - 1), None) is None:
        return f"the log lacks event {newest}, which a task's head was written by"
    return None


def _put_back(case: Case, now: int) -> None:
    """Every file that knows more than the log becomes an event. Can be done again wherever it stops."""
    store = case.store
    store.log.restate(floor=store.recovery.highest_rev())
    _trust(store)
    for task_id, folders in case.scan.places.items():
        one = case.folded.get(task_id)
        known = one.task if one is not None else None
        if any(
            (version := version_of(store, task_id, folder)) and (known is None or _goes_on(known, version))
            for folder in folders
        ):
            restore(store, task_id, now)
    if not store.reader.newest():  # nothing could be put back, and nobody could go on beside what is left
        for path in list(lost_log.remains(store.paths)):
            kept = f"{path}.conflict" if path.endswith(".md") else f"{store.paths.torn}/{os.path.basename(path)}"
            store.files.keep_beside(path, kept)
    held = store.stripes.take_all()
    try:
        known_now = frozenset(store.reader.ids())
        for task_id in [task_id for task_id in store.heads.ids() if task_id not in known_now]:
            store.heads.forget(task_id)
        store.begin_anew(held)
    finally:
        store.locks.release(held)


def _trust(store: FilesystemStore) -> None:
    """From here on the log counts as it is, whatever was written under the stripes before."""
    held = store.stripes.take_all()
    try:
        for lock in held:
            store.intents.clear(lock, store.log.position)
    finally:
        store.locks.release(held)


def _goes_on(known: Task, version: Task) -> bool:
    """Whether a file has a later version of the same task; one of another task is never put over it."""
    return version.rev > known.rev and same_task(known, version)


def version_of(store: FilesystemStore, task_id: str, folder: str) -> Task | None:
    """The task in a file that we once wrote, whether or not the log knows it."""
    try:
        data = read(store.paths.task(folder, task_id))
        task = markdown.parse(data, archived=folder == "archive") if data is not None else None
        if task is not None and task.gated:
            workflow_of(task)
    except (OSError, AofError, msgspec.ValidationError):
        return None
    return task if task is not None and task.id == task_id and task.rev > 0 else None


def restore(store: FilesystemStore, task_id: str, now: int) -> None:
    """Put a task into the log as its file has it: the newest, where there are several."""
    with store.unit(Scope(write=frozenset({task_id}))) as unit:
        examined = examine(store.paths, store.files, store.histories.of(task_id), task_id)
        states = {folder: seen(store.paths.task(folder, task_id)) for folder in store.files.present(task_id)}
        known = examined.folded.task
        versions = [
            (task, folder)
            for folder in states
            if (task := version_of(store, task_id, folder)) is not None and (known is None or same_task(known, task))
        ]
        if not versions:
            return
        task, examined.at = max(versions, key=lambda version: version[0].rev)
        examined.layout, examined.problem = task.layout, None
        examined.beside = [(folder, True) for folder in states if folder != examined.at]
        examined.seen = {folder: state for folder, state in states.items() if isinstance(state, Seen)}
        unit.assume(task_id, Loaded(examined.folded.task, examined.at, states[examined.at], examined))
        fields = {name: value for name, value in msgspec.to_builtins(task).items() if name not in _NOT_RESTORED}
        draft = Draft(
            type="task.restored", task_id=task_id, payload={"task": fields, "reason": "restored from its file"}
        )
        unit.take_in(ImportEdit(actor=DOCTOR, task_id=task_id), (draft,), now)
