"""One unit of work on files: what it loads under its locks, and the commit.

The order makes it safe: note the intent, append and flush the log (the commit), write the files, clear the intent.
Whatever is interrupted is redone by the next holder of the stripe.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from aof.errors import AofError, CommitUnknown, LogDamaged
from aof.kernel.commands import ImportEdit, Numbers
from aof.kernel.events import Draft, Event, about_handoff, is_remark, number_events
from aof.kernel.evolve import evolve
from aof.kernel.model import attempt_of, is_task_id, iso
from aof.runs.model import RUN_EVENTS, Heartbeat, Run, RunResult, attributed, evolve_result, evolve_run
from aof.store.files import integrity, markdown
from aof.store.files.disk import READING, Seen, digest, failed, read, seen
from aof.store.files.locks import HeldLock, stripe
from aof.store.files.log import chain
from aof.store.files.paths import LogReplaced, Overtaken, Position, TipsApart, folder_of
from aof.store.files.task_files import TaskFiles, document
from aof.store.port import Scope, ScopeTooNarrow
from aof.tasks.model import Task
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.documents.projection import Facts, Projection
    from aof.handoffs.model import Handoff
    from aof.store.files.changes import Examined
    from aof.store.files.handoffs import Handed
    from aof.store.files.store import FilesystemStore
    from aof.tasks.model import FileLock


class HopChange(msgspec.Struct):
    """What a commit does to one hop's runs; `earlier` is the number of the run that makes room for a new one."""

    begins: bool = False
    earlier: int = 0
    run: Run | None = None
    result: RunResult | None = None


HopChanges = dict[str, HopChange]


def hops_after(store: FilesystemStore, changes: HopChanges | None, event: Event, before: Task | None) -> HopChanges:
    """The changes so far, and what the event adds to them."""
    changes = {} if changes is None else changes
    hop = event.payload["hop"]
    change = changes.setdefault(hop, HopChange())
    if event.type == "task.attempt.started":
        change.begins = True
        change.earlier = _last_run(before, hop)
    elif change.run is None:
        change.run = _current(store, event, hop)
    change.run = evolve_run(change.run, event)
    change.result = evolve_result(change.result, event)
    return changes


def _last_run(task: Task | None, hop: str) -> int:
    for state in task.workflow.get("hops", ()) if task is not None else ():
        if state["id"] == hop and state.get("runId"):
            return attempt_of(state["runId"])
    return 0


def _current(store: FilesystemStore, event: Event, hop: str) -> Run | None:
    """From its file, else from the log."""
    found = store.files.read_run(f"{event.task_id}/hops/{hop}", "run.json", Run)
    if found is not None and found.run_id == event.run_id:
        return found
    return store.folded(event.task_id).last_of(hop)


def hop_documents(changes: HopChanges) -> dict[str, bytes]:
    """The files that are to be written, by their names below the task's folder of runs."""
    written: dict[str, bytes] = {}
    for hop, change in changes.items():
        if change.run is not None:
            written[f"hops/{hop}/run.json"] = document(change.run)
        if change.result is not None:
            written[f"hops/{hop}/run_result.json"] = document(change.result)
    return written


def write_hops(files: TaskFiles, task_id: str, changes: HopChanges, documents: Mapping[str, bytes]) -> None:
    """Make room where a run begins, and write those of these files that are of hops."""
    for hop, change in changes.items():
        if change.begins:
            files.make_way(f"{task_id}/hops")
            files.begin_run(f"{task_id}/hops/{hop}", change.earlier)
    for name, data in documents.items():
        if name.startswith("hops/"):
            _, hop, base = name.split("/")
            files.write_run(f"{task_id}/hops/{hop}", base, data, new=changes[hop].begins or base == "run_result.json")


class Loaded(msgspec.Struct):
    """A task under lock: its record, the folder of its file, and the file as it was read.

    `held` says that the file is a person's for now, who changed it after it was read; it is imported next time.
    There is no `file` after the last write of a unit, for nothing comes after it that could overwrite an edit.
    """

    task: Task | None
    folder: str | None = None
    file: Seen | None = None
    examined: Examined | None = None
    held: bool = False


class Change(msgspec.Struct):
    """What a commit does to one task; `folder` is where its file will lie."""

    before: Loaded
    task: Task
    last: int
    folder: str = ""
    earlier_runs: int = 0
    run: Run | None = None
    ended_run: Run | None = None
    result: RunResult | None = None
    begins: bool = False
    prepared: markdown.Prepared | None = None
    data: bytes = b""
    digest: str = ""
    documents: dict[str, bytes] = {}
    handed: Handed | None = None
    hops: HopChanges | None = None


class IndexQuestions:
    """The questions of a unit that the index answers."""

    _store: FilesystemStore
    _alone: dict[str, bool]  # whether anybody may wait for a task: under its lock that stays so

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below."""
        return () if self._is_alone(task_id) else self._store.index.children(task_id)

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for this one."""
        return self.dependents_of((task_id,))[task_id]

    def above(self, task_id: str) -> tuple[str, ...]:
        """The ancestors, from the parent up."""
        return self._store.index.above(task_id)

    def tree(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """The children of the task and of everything below it."""
        return self._store.index.tree(task_id)

    def dependents_of(self, task_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The tasks that wait for each of these."""
        found: dict[str, tuple[str, ...]] = dict.fromkeys(task_ids, ())
        asked = [task_id for task_id in task_ids if not self._is_alone(task_id)]
        if asked:
            found |= self._store.index.dependents_of(asked)
        return found

    def _is_alone(self, task_id: str) -> bool:
        alone = self._alone.get(task_id)
        if alone is None:
            alone = self._alone[task_id] = not self._store.blockers.may_have_dependents(task_id)
        return alone

    def reachable(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """All dependency edges on the ways that lead from this task."""
        return self._store.index.reachable(task_id)

    def resource_holders(self, resource: str) -> tuple[str, ...]:
        """The running tasks that occupy the resource."""
        return self._store.index.resource_holders(resource)

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds."""
        return self._store.index.held_by(agent)

    def file_locks(self) -> dict[str, tuple[FileLock, ...]]:
        """The locks on files, by the running tasks that hold them."""
        return {task.id: task.locks for task in self._store.index.locking()}

    def key_owner(self, key: str) -> str | None:
        """The task that was created with this key."""
        return self._store.index.key_owner(key)


class DocumentQuestions:
    """The questions of a unit about documents."""

    _store: FilesystemStore
    _held: list[HeldLock]

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds."""
        raise NotImplementedError

    def follow(self, projection: Projection) -> str:
        """Let a document's files catch up with the log."""
        facts: Facts = self
        return self._store.documents.follow(projection, self._held, facts)

    def document(self, path: str) -> str:
        """The text of a document's file, as it lies there."""
        return self._store.documents.text(path)

    def foreseen(self, projection: Projection, paths: Iterable[str]) -> dict[str, str]:
        """What the files would be after the document caught up; nothing is written."""
        facts: Facts = self
        return self._store.documents.foreseen(projection, paths, facts)

    def title(self, task_id: str) -> str | None:
        """The title of a task, from its file as it lies there."""
        return self._store.documents.title(task_id)


class RecordQuestions:
    """The questions of a unit about a task, its runs and its handoffs."""

    _store: FilesystemStore

    def task(self, task_id: str) -> Task | None:
        """The task as the log knows it."""
        raise NotImplementedError

    def _load(self, task_id: str) -> Loaded:
        raise NotImplementedError

    def run(self, task_id: str) -> Run | None:
        """The current or last run, from its file, else from the log."""
        task = self.task(task_id)
        if task is None or not task.retry.attempts:
            return None
        found = self._store.files.read_run(task_id, "run.json", Run, archived=task.archived)
        if found is not None and found.attempt == task.retry.attempts:
            return found
        return self._store.folded(task_id).run

    def result(self, task_id: str) -> RunResult | AofError | None:
        """What the current or last run has reported, if it has; an error where its file makes no sense."""
        task = self.task(task_id.partition("/")[0])
        if task is None:
            return None
        found = self._store.files.read_result(task_id, archived=task.archived)
        if isinstance(found, RunResult) and not found.run_id:
            return attributed(found, dict(workflows_model.held_leases(task)).get(task_id))
        return found

    def heartbeat(self, task_id: str) -> Heartbeat | None:
        """The last sign of life."""
        task = self.task(task_id.partition("/")[0])
        if task is None:
            return None
        return self._store.clone.last_sign(self._store.files, task_id, archived=task.archived)

    def numbers(self) -> Numbers:
        """How this clone numbers what it makes."""
        return self._store.clone.numbers()

    def handoffs(self, task_id: str) -> tuple[Handoff, ...]:
        """The handoffs of the task, from their files, else from the log."""
        task = self.task(task_id)
        return self._store.handed.of(task) if task is not None else ()

    def lacks(self, task_id: str, ref: str) -> bool:
        """Whether a file that should be among the task's own is not there."""
        folder = self._load(task_id).folder
        return folder is None or not os.path.isfile(f"{self._store.paths.files(folder, task_id)}/{ref}")

    def size(self, task_id: str, ref: str) -> tuple[int, int]:
        """How many files and lines a path among the task's own files has."""
        folder = self._load(task_id).folder
        return (1, 0) if folder is None else measure_path(self._store.paths.files(folder, task_id), ref)

    def digest(self, task_id: str, ref: str) -> str | None:
        """The SHA-256 of one of the task's own files."""
        folder = self._load(task_id).folder
        return None if folder is None else content_digest(self._store.paths.files(folder, task_id), ref)


_DAY = len("2026-01-01")
Stripes = dict[str, tuple[HeldLock, list[str]]]  # held ones, and the tasks below each that a commit changes
_UNWRITTEN = 1 << 60  # numbers of events that have none yet: greater than every rev
_TRIES = 20
_replace = msgspec.structs.replace


class FilesystemUnit(IndexQuestions, RecordQuestions, DocumentQuestions):
    """Implements `store.port.Unit`."""

    def __init__(self, store: FilesystemStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._held: list[HeldLock] = []
        self._loaded: dict[str, Loaded] = {}
        self._alone = {}
        self._taking = ""
        self._unsure: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        self._store.disk.begin()
        try:
            try:
                self._held = self._store.stripes.take(self._scope)
            except LogDamaged:
                if not self._store.merger.untangle():
                    raise
                self._held = self._store.stripes.take(self._scope)
        except OSError as error:
            raise failed(error, "lock the tasks") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.locks.release(self._held)
        self._held = []
        if self._unsure:
            self._store.stripes.redo(self._unsure)
        if isinstance(error, OSError):
            raise failed(error, "read or write the tasks") from error
        if isinstance(error, LogDamaged):
            raise integrity.explain_line_endings(self._store.paths, error) from error

    def task(self, task_id: str) -> Task | None:
        """The task as the log knows it."""
        return (self._loaded.get(task_id) or self._load(task_id)).task

    def edit(self, task_id: str) -> ImportEdit | AofError | None:
        """A person's edit that waits to be imported, or why it never can be."""
        examined = (self._loaded.get(task_id) or self._load(task_id)).examined
        return (examined.problem or examined.edit) if examined is not None else None

    def _load(self, task_id: str) -> Loaded:
        known = self._loaded.get(task_id)
        if known is None:
            known = self._loaded[task_id] = self._store.load(task_id, writable=task_id in self._scope.write)
        return known

    def assume(self, task_id: str, loaded: Loaded) -> None:
        """Use this as the loaded task: for a caller that knows more of it than its file and the log."""
        self._loaded[task_id] = loaded

    def take_in(self, edit: ImportEdit, drafts: tuple[Draft, ...], now: int) -> None:
        """A person's edit becomes part of the log; what means nothing is overwritten with what the log has."""
        self._taking = edit.task_id
        try:
            if drafts:
                self.commit(drafts, actor=edit.actor, agent=None, now=now)
            else:
                examined = self._loaded.pop(edit.task_id).examined
                assert examined is not None
                self._store.put_back(edit.task_id, examined)
        finally:
            self._taking = ""

    def beat(self, heartbeat: Heartbeat) -> None:
        """Write a sign of life, neither flushed nor logged."""
        try:
            heartbeat = self._store.clone.signed(heartbeat)
            first = heartbeat.beat_count == 0
            place = heartbeat.task_id if heartbeat.hop is None else f"{heartbeat.task_id}/hops/{heartbeat.hop}"
            try:
                self._store.files.write_run(place, "run_heartbeat.json", document(heartbeat), new=first)
            except FileNotFoundError:
                self._store.renew()
                self._store.files.write_run(place, "run_heartbeat.json", document(heartbeat), new=first)
        except OSError as error:
            raise failed(error, "write the heartbeat") from error

    def flush(self) -> None:
        """Nothing to do: under the locks only flushed records are read, for a writer keeps its locks until then."""

    def commit(
        self, drafts: tuple[Draft, ...], *, actor: str, agent: str | None, now: int, caller: str | None = None
    ) -> tuple[Event, ...]:
        """Log, then files; all or nothing."""
        store, timestamp = self._store, iso(now)
        events = number_events(drafts, actor=actor, agent=agent, timestamp=timestamp, last=_UNWRITTEN, caller=caller)
        changing: list[Event] = []
        outside: set[str] = set()
        for event in events:
            if not is_remark(event):
                changing.append(event)
                if event.task_id not in self._scope.write:
                    outside.add(event.task_id)
        if outside:
            raise ScopeTooNarrow(Scope(write=frozenset(outside)))
        changes = self._evolve(changing)
        self._prepare(changes.values())
        self._refuse_links(changes)
        store.keep_attributes()
        stripes = self._announce(changes)
        sealed, behind = self._log(events, changes, timestamp[:_DAY], stripes)
        try:
            self._write_all(changes)
            for held, task_ids in stripes.values():
                store.intents.clear(held, behind)
                if store.locks.is_lost(held):  # somebody else may have written the same files meanwhile
                    self._unsure[held.name] = task_ids
        except OSError as error:
            raise CommitUnknown(
                f"the change is in the log, but its files could not be written ({error.strerror})",
                "free some space or repair the disk; the next command on the task writes them",
            ) from error
        return sealed

    def _announce(self, changes: dict[str, Change]) -> Stripes:
        """Note what is about to be written, under each held stripe."""
        held = {lock.name: lock for lock in self._held}
        stripes: Stripes = {}
        for task_id, change in changes.items():
            task, before = change.task, change.before.task
            if (task.depends_on or task.parent_id) and (before is None or task.ends != before.ends):
                # Before an edge is in the log: whoever ends its other end from now on looks for those that wait.
                self._store.blockers.add(task.ends)
                self._alone.clear()
            name = stripe(task_id)
            stripes.setdefault(name, (held[name], []))[1].append(task_id)
        for lock, task_ids in stripes.values():
            self._store.intents.note(lock, task_ids)
        return stripes

    def _log(
        self, events: list[Event], changes: dict[str, Change], today: str, stripes: Stripes
    ) -> tuple[tuple[Event, ...], Position]:
        """The commit; where nothing was appended, what was noted as begun is taken back."""
        try:
            return self._append(events, changes, today)
        except CommitUnknown:
            raise
        except LogDamaged:
            self._clear(stripes)
            if not self._store.merger.untangle():
                raise
            raise ScopeTooNarrow(self._scope) from None
        except TipsApart:
            self._clear(stripes)
            self._store.apart = True
            raise ScopeTooNarrow(self._scope) from None
        except (LogReplaced, Overtaken) as other:
            self._clear(stripes)
            # begin again, with what the log says; the files of a task that it knows more about are put right
            raise ScopeTooNarrow(self._scope.union(Scope(write=frozenset(other.args)))) from None
        except AofError:  # nothing was appended; anything else may have come in between, and leaves the note to redo
            with suppress(OSError):
                self._clear(stripes)
            raise

    def _refuse_links(self, changes: dict[str, Change]) -> None:
        """Refuse links before anything is in the log: each file must lie where it seems to lie."""
        paths = self._store.paths
        folders = [paths.temporary]
        for task_id, change in changes.items():
            folders.append(paths.folder(change.folder))
            runs = f"{paths.runs}/{task_id}"
            if change.documents or change.begins:
                folders.append(f"{runs}/attempts/{change.earlier_runs}" if change.earlier_runs else runs)
            if change.hops is not None:
                folders += [f"{runs}/hops/{hop}/attempts" for hop in change.hops]
            if change.handed is not None:
                own = paths.files(change.before.folder or change.folder, task_id)
                folders += [paths.handoffs, *(f"{own}/{place}".rpartition("/")[0] for place in change.handed.attached)]
        self._store.disk.prove(*folders)

    def _evolve(self, events: Iterable[Event]) -> dict[str, Change]:
        changes: dict[str, Change] = {}
        for event in events:
            change = changes.get(event.task_id)
            if change is None:
                before = self._loaded.get(event.task_id) or self._load(event.task_id)
                change = changes[event.task_id] = Change(before, evolve(before.task, event), 0)
                if before.examined is not None:
                    own = before.examined if event.task_id == self._taking else before.examined.folded.task
                    change.task = _replace(change.task, layout=own.layout if own is not None else None)
            else:
                change.task = evolve(change.task, event)
            change.last = event.commit[0]
            if event.type in RUN_EVENTS and "hop" in event.payload:
                change.hops = hops_after(self._store, change.hops, event, change.before.task)
            elif event.type in RUN_EVENTS:
                if event.type == "task.attempt.started":
                    change.begins = True
                    change.ended_run = change.run  # one that ends in the same commit, such as a sender's
                    change.earlier_runs = change.before.task.retry.attempts if change.before.task else 0
                elif change.run is None:
                    change.run = self.run(event.task_id)
                change.run = evolve_run(change.run, event)
                change.result = evolve_result(change.result, event)
            elif "handoffId" in event.payload and about_handoff(event):
                change.handed = self._store.handed.after(change.handed, event, change.task)
        return changes

    def _prepare(self, changes: Iterable[Change]) -> None:
        """What the files of the changed tasks will be, but for the number of the event that they are written by."""
        for change in changes:
            change.folder = folder_of(change.task)
            change.prepared = markdown.prepare(change.task)
            documents: dict[str, bytes] = {}
            if change.run is not None:
                documents["run.json"] = document(change.run)
            if change.result is not None:
                documents["run_result.json"] = document(change.result)
            change.documents = documents if change.hops is None else documents | hop_documents(change.hops)

    def _append(
        self, events: list[Event], changes: dict[str, Change], today: str
    ) -> tuple[tuple[Event, ...], Position]:
        sealed: list[Event] = []

        def build(last: int, previous: str) -> tuple[bytes, int, str]:
            self._refuse_overtaken()
            sealed.clear()
            lines: list[bytes] = []
            for event in events:
                last += 1
                change = changes.get(event.task_id)
                files: dict[str, str] = {}
                layout = None
                if change is not None and change.last == event.commit[0]:
                    files = self._finish(change, last)
                    layout = markdown.layout_after(change.task) if change.task.layout is not None else None
                    if layout is None and _had_layout(change.before):
                        layout = ""
                final = _replace(event, seq=last, files=files, layout=layout)
                line, previous = chain.seal(final, previous)
                lines.append(line)
                sealed.append(final)
            return b"".join(lines), last, previous

        def appended() -> None:
            try:
                for task_id, change in changes.items():
                    self._store.revs.put(task_id, change.task.rev)
            except OSError:
                return  # what is not noted is found in the log

        behind = self._store.log.append(today, build, appended)
        return tuple(sealed), behind

    def _refuse_overtaken(self) -> None:
        """Raise Overtaken, under the log's lock, where a held lock is lost or a loaded task has a newer event.

        Where somebody deletes lock files or moves them away, two processes can hold the same lock.
        """
        for held in self._held:
            if self._store.locks.is_lost(held):
                raise Overtaken
        for task_id, loaded in self._loaded.items():
            known = loaded.task if loaded.examined is None else loaded.examined.folded.task
            if known is None and not is_task_id(task_id):
                continue
            if self._store.revs.newer(task_id, known.rev if known is not None else 0):
                self._store.doubted.add(task_id)
                raise Overtaken(task_id)

    def _finish(self, change: Change, seq: int) -> dict[str, str]:
        """Under the log's lock the number is known: fill it in, and tell what the files will be."""
        assert change.prepared is not None
        paths = self._store.paths
        change.task = _replace(change.task, rev=seq)
        change.data = change.prepared.fill(seq)
        change.digest = digest(change.data)
        files = {paths.relative(paths.task(change.folder, change.task.id)): change.digest}
        for name, data in change.documents.items():
            files[f"runs/{change.task.id}/{name}"] = digest(data)
        if change.handed is not None:
            own = paths.relative(paths.files(change.folder, change.task.id))
            files |= change.handed.finish(seq - change.last, own)
        return files

    def _clear(self, stripes: Stripes) -> None:
        for held, _ in stripes.values():
            self._store.intents.clear(held)

    def _write_all(self, changes: dict[str, Change]) -> None:
        try:
            for task_id, change in changes.items():
                self._write(task_id, change)
        except FileNotFoundError:  # somebody has deleted a folder: the files follow from the log, as after a crash
            self._redo(changes)
            for task_id in changes:
                self._loaded.pop(task_id, None)

    def _redo(self, task_ids: Iterable[str]) -> None:
        for _ in range(_TRIES):
            self._store.renew()
            with suppress(FileNotFoundError):  # unless somebody goes on deleting
                return self._store.recovery.redo_tasks(task_ids)
        return self._store.recovery.redo_tasks(task_ids)

    def _write(self, task_id: str, change: Change) -> None:
        store, files, folder = self._store, self._store.files, change.folder
        if change.ended_run is not None:
            files.write_run(task_id, "run.json", document(change.ended_run), new=False)
        if change.begins:
            files.begin_run(task_id, change.earlier_runs)
        if change.hops is not None:
            write_hops(files, task_id, change.hops, change.documents)
        else:
            for name, data in change.documents.items():
                files.write_run(task_id, name, data, new=change.begins or name == "run_result.json")
        before, examined = change.before, change.before.examined
        held = before.held or (examined is not None and task_id != self._taking)
        if not held:
            if examined is not None:
                store.tidy(task_id, examined)
            held = not files.place(task_id, change.data, before.folder, folder, before.file)
        if examined is not None:
            files.gather(task_id, folder)
        if change.handed is not None:
            store.handed.write(change.handed, task_id, folder)
        if change.task.archived != (before.task is not None and before.task.archived):
            files.move_runs(task_id, archived=change.task.archived)
        store.heads.put(task_id, change.task.rev, folder, change.digest)
        file = seen(store.paths.task(folder, task_id)) if self._taking and not held else None
        self._loaded[task_id] = Loaded(change.task, folder, file, held=held)


def _had_layout(loaded: Loaded) -> bool:
    """Whether the log's last version was laid out by a person."""
    task = loaded.examined.folded.task if loaded.examined is not None else loaded.task
    return task is not None and task.layout is not None


_MOST_FILES = 10_000
_MOST_BYTES = 256 * 1024 * 1024
_CHUNK = 1 << 20
_LARGEST = 4 * 1024 * 1024  # bytes: under a lock nobody reads more of one file
NAMED_ONLY = (1, 0)  # what is not there, or is no file, counts by its name


def measure_path(folder: str, ref: str) -> tuple[int, int]:
    """Files and lines of a path below the folder; the count ends where it is far beyond any limit."""
    path = os.path.realpath(f"{folder}/{ref}")
    if os.path.commonpath((os.path.realpath(folder), path)) != os.path.realpath(folder):
        return NAMED_ONLY
    files = lines = 0
    left = _MOST_BYTES
    for one in _files(path):
        more, size = _lines(one, left)
        files, lines, left = files + 1, lines + more, left - size
        if files >= _MOST_FILES or left <= 0:
            break
    return (files, lines) if files else NAMED_ONLY


def content_digest(folder: str, ref: str) -> str | None:
    """The SHA-256 of a file below the folder; None where it is none, lies elsewhere or is large."""
    path = os.path.realpath(f"{folder}/{ref}")
    if os.path.commonpath((os.path.realpath(folder), path)) != os.path.realpath(folder):
        return None
    try:
        data = read(path, limit=_LARGEST)
    except OSError:
        return None
    return None if data is None else digest(data)


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (f"{folder}/{name}" for name in sorted(names))


def _lines(path: str, most: int) -> tuple[int, int]:
    """The lines and bytes of one file; a last line without an end counts too."""
    try:
        fd = os.open(path, READING)
    except OSError:
        return 0, 0
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return 0, 0
        lines, size, last = 0, 0, b"\n"
        while size < most and (chunk := os.read(fd, _CHUNK)):
            lines, size, last = lines + chunk.count(b"\n"), size + len(chunk), chunk[-1:]
        return lines + (last != b"\n"), size
    except OSError:
        return 0, 0
    finally:
        os.close(fd)
