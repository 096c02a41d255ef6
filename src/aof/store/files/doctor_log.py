"""What the doctor says of the log, and the same look for who verifies it.

A broken chain is reported and never cut; events that only the files still know are put back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from aof.documents.hand_edits import is_marked, whole_sides
from aof.errors import AofError, LaneRefused, LogDamaged, LogRewritten
from aof.kernel.commands import ImportEdit
from aof.kernel.events import Draft, is_remark
from aof.store.directory import Problem
from aof.store.files import creation, integrity, locks, markdown
from aof.store.files.changes import examine, same_task
from aof.store.files.disk import Seen, read, seen
from aof.store.files.integrity import Scan
from aof.store.files.locks import STATE_AT, STRIPE_NAMES
from aof.store.files.log import chain
from aof.store.files.log.layout import State
from aof.store.files.log.writer import LOCK
from aof.store.files.merge import prove_lanes
from aof.store.files.paths import DOCUMENTS, Position
from aof.store.files.store import FilesystemStore
from aof.store.files.unit import Loaded
from aof.store.files.working_copy import file_status
from aof.store.fold import Folded
from aof.store.port import Scope
from aof.tasks.model import Task
from aof.workflows.model import workflow_of


class DoctorFinding(msgspec.Struct, frozen=True):
    """A problem; what repairs it (at a moment), if anything does; and the tasks whose events that reads again.

    Lower stages are repaired first, for one thing put right may show another.
    """

    problem: Problem
    stage: int = 0
    heal: Callable[[int], None] | None = None
    tasks: tuple[str, ...] = ()


class Case:
    """A data directory as it was read: what the log says of every task, and what lies in the folders."""

    __slots__ = ("folded", "scan", "store")

    def __init__(self, store: FilesystemStore, folded: dict[str, Folded], found: Scan) -> None:
        self.store = store
        self.folded = folded
        self.scan = found


DOCTOR = "doctor"
_NOT_RESTORED = ("id", "rev", "updatedAt", "layout")
_SHOWN = 20
MERGE = "run 'aof merge', then 'git add -A .aof' and 'git commit'"
_FROM_BACKUP = (
    "restore the file from a backup or from version control; or move the log's files from there on out of events/, "
    "and 'aof doctor --fix' puts what the tasks' files say into the log again"
)

_LANE_BACK = "restore the file from git, or get it from the clone that wrote it; tasks and history are as they were"


def check_log(store: FilesystemStore) -> tuple[list[DoctorFinding], dict[str, Folded] | None]:
    """Verify number, place and hash of every event, and fold them all; None where the log cannot be relied on."""
    found: list[DoctorFinding] = []
    folded: dict[str, Folded] | None = None
    try:
        folded = _fold_verified(store)
        found += _damage_beside_path(store)
    except LogDamaged as damage:
        first = integrity.explain_line_endings(store.paths, _first_wrong(store) or damage)
        day = first.details.get("day")
        where = f"events/{day}.jsonl" if day else "events/"
        fix = first.hint if first.code != damage.code or isinstance(first, LaneRefused) else _FROM_BACKUP
        found.append(DoctorFinding(Problem(first.code, where, _with_restorable_tasks(store, first), fix)))
    if store.log.is_poisoned():
        what = "a flush of the log has failed, and nothing can be written since"
        problem = Problem("log_poisoned", "events/", what, "'aof doctor --fix' rewrites the files and verifies them")
        heal = None if folded is None else lambda _now: _unpoison(store)
        return [*found, DoctorFinding(problem, 0, heal)], None  # until then nobody may redo what a failed writer left
    return found, folded


def _damage_beside_path(store: FilesystemStore) -> list[DoctorFinding]:
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
        integrity.prove(store.paths, store.reader.path())
    except LogDamaged as damage:
        return damage
    return None


def _with_restorable_tasks(store: FilesystemStore, damage: LogDamaged) -> str:
    """The damage, and how many tasks files and index know a version of that the sound part of the log does not."""
    seq = damage.details.get("seq")
    if not isinstance(seq, int):
        return damage.message
    filed = {task_id for task_id, rev in store.recovery.revs() if rev >= seq}
    known = {task_id for task_id, rev in creation.indexed_revs(store.paths).items() if rev >= seq} - filed
    return (
        f"{damage.message}; from there on, the files of {len(filed)} tasks can be restored, "
        f"and the index knows {len(known)} more, without their text"
    )


def _fold_verified(store: FilesystemStore) -> dict[str, Folded]:
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
    known = locks.load_checkpoint(store.paths)
    store.log.heal(since=known.position.segment if known is not None else "")
    _fold_verified(store)


def lacking_events(case: Case) -> DoctorFinding | None:
    """Whether events that were durable are gone: the log was deleted, cut or replaced by an older one."""
    detail = _why_lacking(case)
    if detail is None:
        return None
    fix = (
        "copy events/ aside, then restore it from a backup; "
        "or 'aof doctor --fix' puts what the tasks' files say into the log again"
    )
    return DoctorFinding(Problem("log_lacks_events", "events/", detail, fix), 1, lambda now: _put_back(case, now))


def _why_lacking(case: Case) -> str | None:
    store, newest = case.store, case.scan.newest
    if store.damage is not None:
        return store.damage.message
    known = locks.load_checkpoint(store.paths)
    if known is not None and not store.reader.has_seen(known.position):
        return f"the log lacks event {known.position.seq}, which was durable"
    if (last := cut_off_at(store)) is not None:
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
    _clear_journal(store)
    for task_id, folders in case.scan.places.items():
        one = case.folded.get(task_id)
        known = one.task if one is not None else None
        if any(
            (version := version_of(store, task_id, folder)) and (known is None or _is_later_version(known, version))
            for folder in folders
        ):
            restore_task(store, task_id, now)
    if not store.reader.newest():  # nothing could be put back, and nobody could go on beside what is left
        for path in list(creation.remains_of_log(store.paths)):
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


def _clear_journal(store: FilesystemStore) -> None:
    """From here on the log counts as it is, whatever was written under the stripes before."""
    held = store.stripes.take_all()
    try:
        for lock in held:
            store.intents.clear(lock, store.log.position)
    finally:
        store.locks.release(held)


def _is_later_version(known: Task, version: Task) -> bool:
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


def restore_task(store: FilesystemStore, task_id: str, now: int) -> None:
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


_FIX = (
    "copy events/ aside, then restore it from a backup or version control, and find out who did it; nothing is "
    "repaired, because nothing in this log can be proven; to go on without its history, move the log's files out of "
    "events/ and run 'aof doctor --fix', which puts what the tasks' files say into a new one"
)


def refuse_rewritten_log(store: FilesystemStore) -> None:
    """Raise LogRewritten where events that were appended here were replaced by others, while the tasks' files stayed.

    The chain must hold.
    """
    last = store.reader.newest()
    witnesses = [one for one in _witnesses(store) if one.seq]
    missing = [one for one in witnesses if not store.reader.has_seen(one)]
    changed = min((one.seq for one in missing if one.seq <= last), default=0)
    if not changed:
        return
    try:
        integrity.refuse_alone(store)
    except LogDamaged as damage:
        sound = max((one.seq for one in witnesses if one not in missing and one.seq < changed), default=0)
        which = f"event {changed}" if sound + 1 == changed else f"one of the events {sound + 1} to {changed}"
        what = (
            f"the log was tampered with: its hashes hold, but {which} is not what was appended, and is the first "
            f"that is wrong; {_intact_files(store)}; {damage.message}"
        )
        raise LogRewritten(what, _FIX, seq=changed) from None


def explain_damage(store: FilesystemStore, damage: LogDamaged) -> LogDamaged:
    """The damage, or LogRewritten where the chain holds all the same."""
    try:
        for _ in store.reader.proven(Position()):
            pass
        refuse_rewritten_log(store)
    except LogRewritten as rewritten:
        return rewritten
    except (LogDamaged, OSError):
        return damage
    return damage


def cut_off_at(store: FilesystemStore) -> Position | None:
    """The last event that was acknowledged, where the log ends before it."""
    stamp = _last_append(store)
    if stamp is None or stamp.seq <= store.reader.newest() or store.reader.has_seen(stamp):
        return None
    return stamp


def _witnesses(store: FilesystemStore) -> Iterator[Position]:
    """Where the log stood: after the last append, after the last write under each stripe, when all was synced."""
    stamped, known = _last_append(store), locks.load_checkpoint(store.paths)
    if stamped is not None:
        yield stamped
    if known is not None:
        yield known.position
    for name in STRIPE_NAMES:
        with suppress(OSError), _opened(f"{store.paths.locks}/{name}") as fd:
            if (noted := Position.parse(os.pread(fd, STATE_AT, 0).decode("ascii", "replace").split())) is not None:
                yield noted
    if (read := creation.indexed_position(store.paths)) is not None:
        yield read


def _last_append(store: FilesystemStore) -> Position | None:
    with suppress(OSError), _opened(f"{store.paths.locks}/{LOCK}") as fd:
        state = State.read(fd)
        return state.stamp.position if state is not None and state.stamp is not None else None
    return None


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """Open a file to look at it, and wait for nothing that lies in its place."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield fd
    finally:
        os.close(fd)


def _intact_files(store: FilesystemStore) -> str:
    """How much of what was acknowledged is still known without the log."""
    heads = store.heads.table()
    intact = sum(
        file_status(store.paths.task(head.folder, task_id), head.matches) is None for task_id, head in heads.items()
    )
    return f"the files of {intact} of {len(heads)} tasks are as they were last written"


def check_histories(case: Case) -> list[DoctorFinding]:
    """What waits for a merge: histories, or where there is one, documents that the merge driver keeps versions in."""
    tips = case.store.working_copy.tips()
    documents = [f"{case.store.paths.root}/{name}" for name in DOCUMENTS]
    return list(_waiting(case, tips, documents) if tips > 1 else _marked(case, documents, whole_sides))


def _waiting(case: Case, tips: int, documents: list[str]) -> Iterator[DoctorFinding]:
    store = case.store
    what = f"{tips} clones have written to the log since their histories were last merged"
    yield DoctorFinding(Problem("several_histories", "events/", what, MERGE), 1, lambda _now: _merge(store))
    doubled = [(task_id, places) for task_id, places in sorted(case.scan.places.items()) if len(places) > 1]
    for task_id, places in doubled[:_SHOWN]:
        where = ", ".join(store.paths.relative(store.paths.task(place, task_id)) for place in places)
        what = f"{task_id} lies in several folders: its clones have it in different states"
        yield DoctorFinding(Problem("task_in_two_folders", where, what, MERGE))
    files = [store.paths.task(place, one) for one in case.scan.changed for place in case.scan.places.get(one, ())]
    yield from _marked(case, [*files, *documents], lambda data: is_marked(data.decode("utf-8", "replace")))


def _marked(case: Case, paths: list[str], holds_marks: Callable[[bytes], object]) -> Iterator[DoctorFinding]:
    marked: list[str] = []
    for path in paths:
        with suppress(OSError):
            data = read(path)
            if data is not None and holds_marks(data):
                marked.append(path)
    for path in marked[:_SHOWN]:
        what = "it has conflict markers of git"
        yield DoctorFinding(Problem("conflict_marks", case.store.paths.relative(path), what, MERGE))


def _merge(store: FilesystemStore) -> None:
    store.working_copy.merge(dry_run=False)
