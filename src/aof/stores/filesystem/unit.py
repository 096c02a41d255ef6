"""One unit of work on the filesystem: what was loaded under its locks, and the commit that follows from it.

The order is what makes it safe: note the intent, append and flush the log (the commit), write the files, clear the
intent. Whatever is interrupted is redone by the next holder of the stripe.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import compress
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from aof.core.errors.base import AofError
from aof.core.errors.storage import CommitUnknown, LogDamaged
from aof.core.evolve.run import RUN_EVENTS, evolve_result, evolve_run
from aof.core.evolve.task import evolve
from aof.core.model.commands import ImportEdit
from aof.core.model.events import Draft, Event, about_handoff, is_remark, numbered
from aof.core.model.ids import is_task_id
from aof.core.model.run import Heartbeat
from aof.core.model.task import Task
from aof.core.model.times import day, iso
from aof.ports.store import Scope, ScopeTooNarrow
from aof.stores.filesystem.integrity import line_endings
from aof.stores.filesystem.integrity.log_identity import LogReplaced, Overtaken, TipsApart
from aof.stores.filesystem.io.locks import HeldLock, stripe
from aof.stores.filesystem.io.paths import folder_of
from aof.stores.filesystem.io.read import digest, seen
from aof.stores.filesystem.io.system import failed
from aof.stores.filesystem.loaded_task import Change, Loaded
from aof.stores.filesystem.log import chain
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.questions import DocumentQuestions, IndexQuestions, RecordQuestions
from aof.stores.filesystem.records import hop_runs
from aof.stores.filesystem.working_copy import markdown
from aof.stores.filesystem.working_copy.files import document

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore

_UNWRITTEN = 1 << 60  # numbers of events that have none yet: greater than every rev
_TRIES = 20
_replace = msgspec.structs.replace


class FilesystemUnit(IndexQuestions, RecordQuestions, DocumentQuestions):
    """Keeps the contract of `ports.store.Unit`."""

    def __init__(self, store: FilesystemStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._held: list[HeldLock] = []
        self._loaded: dict[str, Loaded] = {}
        self._taking = ""
        self._unsure: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        self._store.disk.begin()
        try:
            self._held = self._take()
        except OSError as error:
            raise failed(error, "lock the tasks") from error
        return self

    def _take(self) -> list[HeldLock]:
        try:
            return self._store.stripes.take(self._scope)
        except LogDamaged:
            if not self._store.merger.untangle():
                raise
        return self._store.stripes.take(self._scope)

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
            raise line_endings.explained(self._store.paths, error) from error

    def task(self, task_id: str) -> Task | None:
        """The task as the log knows it."""
        return self._load(task_id).task

    def edit(self, task_id: str) -> ImportEdit | AofError | None:
        """A person's edit that waits to be imported, or why it never can be."""
        examined = self._load(task_id).examined
        return (examined.problem or examined.edit) if examined is not None else None

    def _load(self, task_id: str) -> Loaded:
        loaded = self._loaded.get(task_id)
        if loaded is None:
            loaded = self._loaded[task_id] = self._store.load(task_id, writable=task_id in self._scope.write)
        return loaded

    def assume(self, task_id: str, loaded: Loaded) -> None:
        """Go on as if this had been loaded: for who knows more of a task than its file and the log."""
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
        changing = [not is_remark(draft) for draft in drafts]
        outside = {draft.task_id for draft in compress(drafts, changing)} - self._scope.write
        if outside:
            raise ScopeTooNarrow(Scope(write=frozenset(outside)))
        events = numbered(drafts, actor=actor, agent=agent, timestamp=iso(now), last=_UNWRITTEN, caller=caller)
        changes = self._evolve(compress(events, changing))
        for change in changes.values():
            self._prepare(change)
        self._refuse_links(changes)
        self._store.keep_attributes()
        stripes = self._stripes(changes)
        self._announce(changes)
        self._note(stripes)
        try:
            sealed, behind = self._append(events, changes, day(now))
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
        try:
            self._write_all(changes)
            self._clear(stripes, behind)
            self._alone(stripes)
        except OSError as error:
            raise CommitUnknown(
                f"the change is in the log, but its files could not be written ({error.strerror})",
                "free some space or repair the disk; the next command on the task writes them",
            ) from error
        return sealed

    def _announce(self, changes: dict[str, Change]) -> None:
        """Before an edge is in the log: whoever ends its other end from now on looks for those that wait."""
        for change in changes.values():
            known = change.before.task.ends if change.before.task is not None else ()
            if (ends := change.task.ends) and ends != known:
                self._store.waited.add(ends)

    def _refuse_links(self, changes: dict[str, Change]) -> None:
        """Before anything is in the log: whatever will be written must lie where it seems to lie."""
        paths = self._store.paths
        folders = [paths.temporary]
        for task_id, change in changes.items():
            folders.append(paths.place_of(change.task).rpartition("/")[0])
            runs = f"{paths.runs}/{task_id}"
            if change.documents or change.begins:
                folders.append(f"{runs}/attempts/{change.earlier_runs}" if change.earlier_runs else runs)
            if change.hops is not None:
                folders += [f"{runs}/hops/{hop}/attempts" for hop in change.hops]
            if change.handed is not None:
                own = paths.files(change.before.folder or folder_of(change.task), task_id)
                folders += [paths.handoffs, *(f"{own}/{place}".rpartition("/")[0] for place in change.handed.attached)]
        self._store.disk.prove(*folders)

    def _evolve(self, events: Iterable[Event]) -> dict[str, Change]:
        changes: dict[str, Change] = {}
        for event in events:
            change = changes.get(event.task_id)
            if change is None:
                before = self._load(event.task_id)
                change = changes[event.task_id] = Change(before, evolve(before.task, event), 0)
                if before.examined is not None:
                    own = before.examined if event.task_id == self._taking else before.examined.folded.task
                    change.task = _replace(change.task, layout=own.layout if own is not None else None)
            else:
                change.task = evolve(change.task, event)
            change.last = event.commit[0]
            if event.type in RUN_EVENTS and "hop" in event.payload:
                change.hops = hop_runs.after(self._store, change.hops, event, change.before.task)
            elif event.type in RUN_EVENTS:
                if event.type == "task.attempt.started":
                    change.begins = True
                    change.ended_run = change.run  # one that ends in the same commit, such as a sender's
                    change.earlier_runs = change.before.task.retry.attempts if change.before.task else 0
                elif change.run is None:
                    change.run = self.run(event.task_id)
                change.run = evolve_run(change.run, event)
                change.result = evolve_result(change.result, event)
            elif about_handoff(event):
                change.handed = self._store.handed.after(change.handed, event, change.task)
        return changes

    def _prepare(self, change: Change) -> None:
        change.prepared = markdown.prepare(change.task)
        documents: dict[str, bytes] = {}
        if change.run is not None:
            documents["run.json"] = document(change.run)
        if change.result is not None:
            documents["run_result.json"] = document(change.result)
        change.documents = documents if change.hops is None else documents | hop_runs.documents(change.hops)

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
            with suppress(OSError):  # what is not noted is found in the log
                for task_id, change in changes.items():
                    self._store.revs.put(task_id, change.task.rev)

        behind = self._store.log.append(today, build, appended)
        return tuple(sealed), behind

    def _refuse_overtaken(self) -> None:
        """Raise Overtaken, under the log's lock, where a held lock is lost or a loaded task has a newer event.

        Where somebody deletes lock files or moves them away, two processes can hold the same lock.
        """
        if any(map(self._store.locks.is_lost, self._held)):
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
        files = {paths.name_of(change.task): change.digest}
        for name, data in change.documents.items():
            files[f"runs/{change.task.id}/{name}"] = digest(data)
        if change.handed is not None:
            own = paths.relative(paths.files(folder_of(change.task), change.task.id))
            files |= change.handed.finish(seq - change.last, own)
        return files

    def _stripes(self, changes: dict[str, Change]) -> dict[str, list[str]]:
        if len(changes) == 1:
            return {stripe(task_id): [task_id] for task_id in changes}
        stripes: dict[str, list[str]] = {}
        for task_id in changes:
            stripes.setdefault(stripe(task_id), []).append(task_id)
        return stripes

    def _note(self, stripes: dict[str, list[str]]) -> None:
        for held in self._held:
            if held.name in stripes:
                self._store.intents.note(held, stripes[held.name])

    def _clear(self, stripes: dict[str, list[str]], behind: Position | None = None) -> None:
        for held in self._held:
            if held.name in stripes:
                self._store.intents.clear(held, behind)

    def _alone(self, stripes: dict[str, list[str]]) -> None:
        """Where a lock was lost, somebody else may have written the same files meanwhile: they are redone."""
        for held in self._held:
            if held.name in stripes and self._store.locks.is_lost(held):
                self._unsure[held.name] = stripes[held.name]

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
        store, files = self._store, self._store.files
        folder = folder_of(change.task)
        if change.ended_run is not None:
            files.write_run(task_id, "run.json", document(change.ended_run), new=False)
        if change.begins:
            files.begin_run(task_id, change.earlier_runs)
        if change.hops is not None:
            hop_runs.write(files, task_id, change.hops, change.documents)
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
