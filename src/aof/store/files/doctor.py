"""Doctor: compares log, files, runs, manifest, index and counter with each other, and heals one from the other.

The log is read and verified once; only what looks wrong is looked at again, under its lock, so that work goes on
meanwhile. What is wrong with the log comes first: nothing else can be told before that is right. A broken chain is
reported and never cut; events that only the files still know are put back. Then come the files and caches that follow
from the log (`doctor_files`), links, modes and git.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from aof.documents.hand_edits import is_marked, whole_sides
from aof.errors import LaneRefused, LogDamaged, LogRewritten, Unmerged
from aof.kernel.events import is_remark
from aof.kernel.model import is_task_id
from aof.store.directory import Checkup, Problem
from aof.store.files import creation, disk, doctor_files, git_files, integrity, locks
from aof.store.files.changes import same_task
from aof.store.files.disk import read
from aof.store.files.doctor_files import Case, DoctorFinding, restore_task, version_of
from aof.store.files.index import index
from aof.store.files.integrity import scan
from aof.store.files.locks import STATE_AT, STRIPE_NAMES, stripe
from aof.store.files.log import chain
from aof.store.files.log.layout import State
from aof.store.files.merge import prove_lanes
from aof.store.files.paths import DIRECTORIES, DOCUMENTS, Position
from aof.store.files.store import FilesystemStore
from aof.store.files.working_copy import file_status
from aof.store.fold import Folded
from aof.support.confined_folder import is_link

_ROUNDS = 6
_UNMERGED_SHOWN, _UNMERGED_NAMED = 20, 3
_SETTLE = (
    "run 'aof merge', then 'git add -A .aof': it brings both histories together and writes the files of tasks anew; "
    "settings such as aof.toml are settled as any other file; or give the merge up with 'git merge --abort'"
)
_LINKS_MOST = 1_000
# What may hold links at any depth, and what is a link in itself.
_TOP = ("org", "workflows", "templates", "events", "logs", "handoffs", "locks", "tmp", "runs", "archive", "push")
_SINGLE = ("tokens.json", "org", "workflows", "templates", ".gitattributes", "handoffs", "logs", "push")
_GROUP_AND_OTHERS = 0o077
_PRIVATE = ("tokens.json",)


def diagnose(store: FilesystemStore) -> Checkup:
    """Everything that is wrong, and the tasks with edits that the core has to judge."""
    findings, edited, shared = _findings(store)
    return Checkup(tuple(finding.problem for finding in findings), tuple(edited), tuple(_advice(store)), shared)


def repair(store: FilesystemStore, now: int) -> None:
    """Heal stage by stage, looking again after each, for one thing put right may show another."""
    refuse_unmerged(store.paths.root)
    tampered = any(finding.problem.code == "log_rewritten" for finding in _findings(store)[0])
    store.repairs = True
    if store.restarted and store.damage is None and not tampered:
        with suppress(LogDamaged):  # which is reported as such
            store.recover()
    store.stripes.finish_left()
    for _ in range(_ROUNDS):
        healable = [finding for finding in _findings(store)[0] if finding.heal is not None]
        stage = min((finding.stage for finding in healable), default=None)
        if stage is None:
            break
        at_once = [finding for finding in healable if finding.stage == stage]
        tasks = {task_id for one in at_once for task_id in one.tasks}
        if tasks:
            store.log.refresh()
            store.histories.announce(tasks, store.log.position)
        try:
            for finding in at_once:
                if finding.heal is not None:
                    finding.heal(now)
        finally:
            store.histories.announce((), Position())
    _remove_temporary_files(store)
    with suppress(OSError):  # a link there is reported as such
        git_files.complete(store.paths.root, store.disk)
    _tighten_access(store)


def _findings(store: FilesystemStore) -> tuple[list[DoctorFinding], list[str], dict[str, tuple[str, ...]]]:
    """What is wrong, the tasks that wait with an edit, and the tasks of each resource that several occupy."""
    found, folded = check_log(store)
    root = store.paths.root
    unmerged = [
        Problem("unmerged_paths", path, "git has not merged this path yet", _SETTLE)
        for path in git_files.unmerged(root)[:_UNMERGED_SHOWN]
    ]
    found = [*(DoctorFinding(problem) for problem in (*unmerged, *check_links(root))), *found]
    if folded is None:
        return found, [], {}
    case = Case(store, folded, scan(store.paths, store.heads))
    if pending := check_histories(case):
        return [*found, *pending], [], {}
    try:
        refuse_rewritten_log(store)
    except LogRewritten as rewritten:
        return [*found, DoctorFinding(Problem(rewritten.code, "events/", rewritten.message, rewritten.hint))], [], {}
    lost = lacking_events(case)
    if lost is not None:
        return [*found, lost], [], {}
    left = frozenset(store.stripes.left())
    about_files, edited = doctor_files.check_files(case)
    found += [finding for finding in about_files if not finding.tasks or not left.issuperset(finding.tasks)]
    occupied: dict[str, tuple[str, ...]] = {}
    for task_id, one in folded.items():
        if one.task is not None and one.task.resource is not None and one.task.status == "in-progress":
            occupied[one.task.resource] = (*occupied.get(one.task.resource, ()), task_id)
    shared = {resource: holders for resource, holders in occupied.items() if len(holders) > 1}
    return found, [task_id for task_id in edited if task_id not in left], shared


def _advice(store: FilesystemStore) -> Iterator[Problem]:
    """What is not damage: what the next command finishes, who may read what, and what git has not been told."""
    if store.restarted:
        what = "the machine was restarted, and nobody has put right yet what a power cut may have undone"
        yield Problem("not_recovered", "locks/checkpoint", what, "the next command or 'aof doctor --fix' does it")
    for task_id in sorted(store.stripes.left()):
        what = f"a command on {task_id} was killed after its change was in the log and before all files were written"
        fix = "the next command, 'aof sync' or 'aof doctor --fix' writes them"
        yield Problem("unfinished_write", f"locks/{stripe(task_id)}", what, fix)
    with suppress(OSError):
        for name, lines in git_files.lacking(store.paths.root).items():
            what = f"git is not told what to leave alone: {', '.join(lines)}"
            fix = "'aof doctor --fix', or the next change of a task, adds the lines"
            yield Problem("git_lines_missing", name, what, fix)
    if store.files.lanes.several() and git_files.lacks_driver(store.paths.root):
        what = "several clones write tasks, and git merges their files line by line here"
        yield Problem("no_merge_driver", ".gitattributes", what, git_files.ADVICE)
    odd = [path for path, _ in _odd_modes(store)]
    if odd:
        where = os.path.relpath(odd[0], store.paths.root)
        whom = (
            "cannot be used by the whole group, or by others too" if store.shared else "can be reached by other users"
        )
        what = f"{len(odd):,} files and folders {whom}, such as {where}"
        fix = "'aof doctor --fix' sets the modes; 'shared' in aof.toml says for whom: \"owner\" or \"group\""
        yield Problem("open_to_others", where, what, fix)


def refuse_unmerged(root: str) -> None:
    """Raise where a merge is unsettled."""
    paths = git_files.unmerged(root)
    if paths:
        more = f" and {len(paths) - _UNMERGED_NAMED} more" if len(paths) > _UNMERGED_NAMED else ""
        named = ", ".join(paths[:_UNMERGED_NAMED])
        raise Unmerged(f"git has not merged {named}{more}; nothing was changed", _SETTLE, paths=paths[:_UNMERGED_SHOWN])


def links_in_the_way(root: str) -> list[Problem]:
    """Links among what every command opens: nothing else can be told before they are gone."""
    return [_link(name) for name in (*DIRECTORIES, "index.sqlite") if is_link(f"{root}/{name}")]


def check_links(root: str) -> list[Problem]:
    """All links in the way, up to a thousand."""
    found = dict.fromkeys(name for name in (*DIRECTORIES, "index.sqlite", *_SINGLE) if is_link(f"{root}/{name}"))
    for top in _TOP:
        if top not in found:
            for path in _links_below(f"{root}/{top}"):
                found[os.path.relpath(path, root)] = None
                if len(found) >= _LINKS_MOST:
                    break
    for name in DIRECTORIES:  # a task's own folder; what a person links inside of it is that person's
        if name.startswith("tasks/") and not is_link(f"{root}/{name}"):
            with suppress(OSError), os.scandir(f"{root}/{name}") as entries:
                for entry in entries:
                    if is_task_id(entry.name) and entry.is_symlink():
                        found[f"{name}/{entry.name}"] = None
    return [_link(name) for name in list(found)[:_LINKS_MOST]]


def _link(name: str) -> Problem:
    what = "a symbolic link lies where AOF reads or writes, and links are not followed"
    fix = "put what it leads to in its place, or remove the link; AOF goes through none"
    return Problem("link_in_the_way", name, what, fix)


def _links_below(folder: str) -> Iterator[str]:
    """The links at any depth; what a link leads to is not looked at."""
    waiting = [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_symlink() and not entry.path.endswith(".jsonl"):  # else it is damage of the log
                    yield entry.path


def _remove_temporary_files(store: FilesystemStore) -> None:
    """Remove what dead writers left; it harms nobody."""
    held = store.stripes.take_all()
    try:
        held += store.locks.acquire_all([(index.INDEX_LOCK, True)])
        for entry in os.scandir(store.paths.temporary):
            if entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    store.disk.unlink(entry.path)
    finally:
        store.locks.release(held)


def _tighten_access(store: FilesystemStore) -> None:
    """Set the modes; what belongs to somebody else stays as it is."""
    for path, mode in list(_odd_modes(store)):
        if path.endswith(_PRIVATE):
            continue  # closing it would make tokens valid that a clone may have brought
        with suppress(OSError):
            store.disk.set_mode(path, mode)
    store.disk.bind(store.paths.root, disk.shared_with(group=store.shared))


def _odd_modes(store: FilesystemStore) -> Iterator[tuple[str, int]]:
    """What has another mode than it should, of those that this user may change; each with the right one.

    What lies in a folder that is closed is closed, whatever its own mode says.
    """
    own, waiting = os.geteuid(), [store.paths.root]
    while waiting:
        path = waiting.pop()
        try:
            found = os.stat(path, follow_symlinks=path == store.paths.root)
            folder = stat.S_ISDIR(found.st_mode)
            if not (folder or stat.S_ISREG(found.st_mode)):
                continue
            mode = disk.permission_bits(found.st_mode)
            if folder and (store.shared or mode & _GROUP_AND_OTHERS):
                waiting += sorted((f"{path}/{name}" for name in os.listdir(path)), reverse=True)
        except OSError:
            continue
        wanted = _wanted(mode, folder=folder, shared=store.shared and not path.endswith(_PRIVATE))
        if mode != wanted and own in (0, found.st_uid):
            yield path, wanted


def _wanted(mode: int, *, folder: bool, shared: bool) -> int:
    if not shared:
        return mode & ~_GROUP_AND_OTHERS & 0o777
    if folder:
        return disk.GROUP_FOLDER
    executable = 0o110 if mode & 0o100 else 0
    return 0o660 | executable


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
        versions = [version_of(store, task_id, folder) for folder in folders]
        later = known is None or any(one.rev > known.rev and same_task(known, one) for one in versions if one)
        if any(versions) and later:  # a file of another task is never put over it
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
    with suppress(OSError), _opened(store.paths.state) as fd:
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
    yield DoctorFinding(
        Problem("several_histories", "events/", what, MERGE), 1, lambda _now: store.working_copy.merge(dry_run=False)
    )
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
