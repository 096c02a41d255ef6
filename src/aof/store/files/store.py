"""The store in files: plain files as the truth for people, the log as the commit point, an index as a cache.

Puts the parts together, each built on first use, so that read-only commands never load the write path. Must not know
any rule about tasks.
"""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cached_property

from aof.errors import LockTimeout, LogDamaged, NoDataDirectory, StorageFailed
from aof.kernel import model as kernel_model
from aof.kernel.model import is_task_id, run_place
from aof.runs import model as runs_model
from aof.store import fold, port
from aof.store.files import changes, creation, git_files, id_counter, integrity, locks, markdown, recovery, working_copy
from aof.store.files import unit as files_unit
from aof.store.files.disk import Disk, clearly, digest, failed, read, read_seen, seen, shared_with
from aof.store.files.locks import HeldLock, Journal, Locks, Opening, Stripes
from aof.store.files.log import reader, writer
from aof.store.files.log.reader import Reader
from aof.store.files.manifest import BlockerTable, Manifest
from aof.store.files.paths import DIRECTORIES, LaneNames, Paths, folder_of
from aof.store.files.working_copy import file_status
from aof.store.lists import Query, Rows
from aof.support.confined_folder import LinkInTheWay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.handoffs.audit import AuditRecord
    from aof.handoffs.model import Handoff
    from aof.kernel.events import Event
    from aof.org.routing import AgentHealth
    from aof.runs.model import Heartbeat, Run
    from aof.store.directory import AuditQuery
    from aof.store.files.audit import FilesystemAudit
    from aof.store.files.changes import Examined
    from aof.store.files.disk import Modes
    from aof.store.files.documents import Documents
    from aof.store.files.handoffs import HandoffRecords
    from aof.store.files.index.index import Index
    from aof.store.files.log.writer import Log, Revs
    from aof.store.files.merge import Merger
    from aof.store.files.recovery import Redo
    from aof.store.files.task_files import Clone, TaskFiles
    from aof.store.files.unit import FilesystemUnit, Loaded
    from aof.store.port import Clock, HashedEvent, Page, Scope
    from aof.supervision.rules import AttentionPage, AttentionQuery, FlowFacts, SpanPage, SpanQuery
    from aof.tasks.model import Task


AWAY_MS = 24 * 3_600_000  # how long a run of another clone counts as alive without a sign of life
_PARTS_TRIES = 50


class Parts:
    """What one process has of one data directory."""

    repairs: bool = True

    def __init__(
        self,
        root: str,
        clock: Clock,
        *,
        durable: bool,
        lock_timeout: float,
        disk: Disk,
        boot: str,
        modes: Modes | None = None,
        away_ms: int = AWAY_MS,
    ) -> None:
        self.paths = Paths(root)
        self.disk = disk
        disk.bind(root, modes)
        self._clock = clock
        self._boot = boot
        self._durable = durable
        self._away_ms = away_ms
        self._making = allocate_lock()
        self.locks = Locks(self.paths.locks, clock, lock_timeout, self.renew, disk)
        self.reader = Reader(self.paths, durable=durable, flush=self._flush)
        self.heads = Manifest(self.paths.heads, self.disk)
        self.intents = Journal(self.disk, self.paths.journal)

    @cached_property
    def blockers(self) -> BlockerTable:
        """The tasks that others may wait for; a command that neither makes nor ends such a wait does not ask."""
        return BlockerTable(self.paths.blockers, self.disk)

    @cached_property
    def log(self) -> writer.Log:
        """Where commits are appended; one for all threads."""
        with self._making:
            known: Log | None = self.__dict__.get("log")
            if known is None:
                layouts = self.reader.layouts
                known = writer.Log(
                    self.paths,
                    self.locks,
                    self.disk,
                    durable=self._durable,
                    layouts=layouts,
                    beginning=self.refuse_lost_log,
                )
                self.__dict__["log"] = known
            return known

    def refuse_unsound(self) -> None:
        """Raise where the end of the log may not be durable or is damaged: before answering from new events."""
        raise NotImplementedError

    def refuse_lost_log(self) -> None:
        """The log is empty: raise LogDamaged where anything shows that it was not."""
        raise NotImplementedError

    def _flush(self, fd: int) -> None:
        self.log.flush(fd)

    @cached_property
    def files(self) -> TaskFiles:
        """The files of all tasks."""
        from aof.store.files.task_files import TaskFiles

        return TaskFiles(self.paths, self.disk)

    @cached_property
    def revs(self) -> Revs:
        """What commits prove themselves against."""
        from aof.store.files.log.writer import Revs

        return Revs(self.paths, self.disk, self.reader)

    @cached_property
    def histories(self) -> reader.Histories:
        """What the log tells of single tasks."""
        return reader.Histories(self.reader)

    @cached_property
    def lane_names(self) -> LaneNames:
        """Whether other clones have written to the log, and whether histories were ever merged."""
        return LaneNames(self.paths)

    @cached_property
    def counter(self) -> id_counter.Counter:
        """Gives out the numbers of new tasks."""
        return id_counter.Counter(
            self.paths, self.locks, self.disk, self.reader, lambda: self._boot, numbers=self.clone.numbers
        )

    @cached_property
    def clone(self) -> Clone:
        """The identity of this clone among others of the same history."""
        from aof.store.files.log.segment import Claims
        from aof.store.files.task_files import Clone

        return Clone(self.locks, self.disk, Claims(self.paths, self.disk), self.lane_names, self._away_ms)

    @cached_property
    def documents(self) -> Documents:
        """The documents that follow the log."""
        from aof.store.files.documents import Documents

        return Documents(self, self._boot, durable=self._durable)

    def events_of_types(self, types: tuple[str, ...], since: str = "") -> Iterator[Event]:
        """Durable events of some types only."""
        self.refuse_unsound()
        return reader.events_since(self.reader, types, since)

    def events_by_hash(self, beginning: str) -> tuple[HashedEvent, ...]:
        """Durable events by the beginning of their hashes."""
        from aof.store.files import merge

        self.refuse_unsound()
        return merge.events_by_hash(self.reader, beginning)

    def make_folders(self) -> None:
        """Make what is missing, as after an interrupted beginning."""
        for _ in range(_PARTS_TRIES):
            with suppress(FileNotFoundError):  # unless somebody goes on deleting
                return self._make_folders()
        return self._make_folders()

    def _make_folders(self) -> None:
        self.disk.begin()
        for name in DIRECTORIES:
            path = f"{self.paths.root}/{name}"
            for _ in range(_PARTS_TRIES):  # others may make it and delete it meanwhile
                found = _is_folder(path)
                if found:
                    break
                if found is False:
                    hint = "move what lies there away; nothing was changed"
                    raise StorageFailed(f"{name} is not a folder", hint, path=path)
                with suppress(FileExistsError):
                    self.disk.make_dir(path)

    def renew(self) -> None:
        """Open all files again, after somebody has deleted folders or locks, as `git clean` does."""
        with suppress(FileNotFoundError):
            self.make_folders()
        self.heads.reopen()
        self.intents.reopen()
        if "clone" in self.__dict__:
            self.clone.forget()

    def close(self) -> None:
        """Let go of everything."""
        if "log" in self.__dict__:
            self.log.close()
        if "revs" in self.__dict__:
            self.revs.close()
        if "blockers" in self.__dict__:
            self.blockers.close()
        self.heads.close()
        self.intents.reopen()
        self.locks.close()
        self.disk.close()

    def __del__(self) -> None:
        """Keep no file open for a store that nobody has any more, and nobody has closed."""
        with suppress(Exception):  # at exit, modules may be gone
            Parts.close(self)


def _is_folder(path: str) -> bool | None:
    """Whether a folder of ours is there, None for nothing; a link is refused: what is written would lie elsewhere."""
    try:
        found = os.stat(path, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found):
        raise LinkInTheWay(path)
    return stat.S_ISDIR(found)


class IndexReadModel:
    """The questions of `store.port.ReadModel`, answered by the index."""

    @cached_property
    def index(self) -> Index:
        """The index."""
        raise NotImplementedError

    def find(self, query: Query) -> Page:
        """Answer from the index."""
        return self.index.pages((query,))[0]

    def pages(self, queries: Iterable[Query]) -> tuple[Page, ...]:
        """Answer several queries at once, as of the same end of the log."""
        return self.index.pages(tuple(queries))

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form could stand for."""
        return self.index.ids(part)

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """The IDs that tasks had elsewhere."""
        return self.index.aliases()

    def resources_in_use(self) -> dict[str, int]:
        """How many running tasks occupy each resource."""
        return self.index.resources_in_use()

    def attention(self, query: AttentionQuery) -> AttentionPage:
        """What needs a person, most urgent first."""
        return self.index.attention(query)

    def last_seen(self) -> dict[str, str]:
        """When each name was last seen in the log."""
        return self.index.last_seen()

    def run_spans(self, query: SpanQuery) -> SpanPage:
        """A page of runs, the last one first."""
        return self.index.run_spans(query)

    def flow_facts(self, since: str) -> FlowFacts:
        """What moved, was finished and was run."""
        return self.index.flow_facts(since)

    def audited(self, query: AuditQuery) -> tuple[AuditRecord, ...]:
        """The audit records that match."""
        return self.index.audited(query)

    def health(self) -> dict[str, AgentHealth]:
        """What the log says last of each agent's health."""
        return self.index.health()

    def records(self, task_ids: Collection[str]) -> tuple[Task, ...]:
        """These tasks, without their bodies."""
        return self.index.records(task_ids)

    def child_counts(self, task_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """How many tasks below each of these are in which status."""
        return self.index.child_counts(task_ids)

    def locking(self) -> tuple[Task, ...]:
        """The running tasks that hold locks on files."""
        return self.index.locking()


_STORE_TRIES = 20


class FilesystemStore(Parts, IndexReadModel):
    """One data directory, as one process sees it. Safe for several threads."""

    def __init__(
        self,
        root: str,
        clock: Clock,
        *,
        durable: bool = True,
        lock_timeout: float = 10.0,
        disk: Disk | None = None,
        boot_id: Callable[[], str] = locks.boot_id,
        doctor: bool = False,
        shared: bool = False,
        away_ms: int = AWAY_MS,
    ) -> None:
        super().__init__(
            os.path.abspath(root),
            clock,
            durable=durable,
            lock_timeout=lock_timeout,
            disk=disk or Disk(),
            boot=boot_id(),
            modes=shared_with(group=True) if shared else None,
            away_ms=away_ms,
        )
        if not os.path.isdir(f"{self.paths.root}/{'tasks' if doctor else 'events'}"):
            from aof.store.files import creation

            creation.refuse_remains(self.paths)
            raise NoDataDirectory(f"{root} is not a data directory", "make one with 'aof init'")
        self.shared = shared
        self._attributes_kept = False
        self.apart = False  # a commit found several tips, which are merged before it is tried again
        self.repairs = not doctor  # a plain doctor repairs nothing
        self.doubted: set[str] = set()  # tasks whose files and heads are behind the log, as a commit has found
        self.stripes = Stripes(self)
        self._opening = Opening(self, self._boot, durable=durable)
        self.damage: LogDamaged | None = None
        try:
            with clearly("open the data directory"):
                self._open()
        except LogDamaged as damage:
            self.damage = integrity.explain_line_endings(self.paths, damage)
            if not doctor:
                from aof.store.files.doctor import explain_damage

                self.damage = explain_damage(self, self.damage)
                self.close()
                raise self.damage from damage
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        try:
            self._opening.open()
        except LogDamaged:
            if not self.merger.untangle():
                raise
            self._opening.open()

    @cached_property
    def index(self) -> Index:
        """Answers questions about many tasks; one for all threads."""
        from aof.store.files.index.index import Index

        with self._making:
            known: Index | None = self.__dict__.get("index")
            if known is None:
                known = self.__dict__["index"] = Index(self)
            return known

    @cached_property
    def handed(self) -> HandoffRecords:
        """Keeps the records of handoffs, and the files that come with them."""
        from aof.store.files.handoffs import HandoffRecords

        return HandoffRecords(self.paths, self.disk, self.folded)

    @cached_property
    def redo(self) -> Redo:
        """Makes files follow the log again."""
        from aof.store.files.recovery import Redo

        return Redo(self.paths, self.files, self.heads, self.disk, lambda: self.handed)

    @cached_property
    def recovery(self) -> recovery.Recovery:
        """Puts right what a power cut may have undone."""
        return recovery.Recovery(
            self.paths, self.disk, self.log, self.reader, heads=self.heads, redo=self.redo, blockers=self.blockers
        )

    @cached_property
    def merger(self) -> Merger:
        """Brings the histories of several clones together."""
        from aof.store.files.merge import Merger

        return Merger(self)

    def refuse_unsound(self) -> None:
        """Raise LogPoisoned or LogDamaged where the end of the log is not sound: before answering from new events.

        A log that is there, and ends where it was left, costs one look at it.
        """
        if not self.repairs:  # doctor tells what is missing
            return self.log.refuse_poisoned()
        try:
            missing = self.log.missing()
        except LogDamaged:
            if not self.merger.untangle():
                raise
            return None
        if missing is None:
            return None
        from aof.store.files import creation

        return creation.refuse_lost_log(self, missing)

    def refuse_lost_log(self) -> None:
        """The log is empty: raise LogDamaged where anything shows that it was not."""
        from aof.store.files import creation

        creation.refuse_empty_log(self)

    @staticmethod
    def create(root: str, disk: Disk | None = None, *, shared: bool = False) -> bool:
        """Make a data directory; what is there already stays, with its modes. Tells whether it is new."""
        return creation.create_data_directory(root, disk or Disk(), shared=shared)

    @property
    def restarted(self) -> bool:
        """Whether the machine was restarted since anybody put right what a power cut may have undone."""
        return self._opening.restarted

    def recover(self) -> None:
        """Redo what a power cut may have undone, unless somebody has under this boot."""
        self._opening.recover()

    def begin_anew(self, held: list[HeldLock]) -> None:
        """Rebuild what `locks/` holds from the log as it is now. The caller holds every stripe."""
        self._opening.begin_anew(held)

    def checkpoint(self) -> None:
        """Sync everything, so that a power cut costs less afterwards."""
        self._opening.checkpoint()

    def unit(self, scope: Scope) -> FilesystemUnit:
        """Begin a unit of work; now and then a checkpoint comes first."""
        if "log" in self.__dict__ and self.log.file.replaced:
            with clearly("read another log"):
                integrity.start_over(self)
        if self.apart:
            self.apart = False
            with clearly("merge histories"):
                self.merger.before_a_write()
        if "log" in self.__dict__:
            self._opening.checkpoint_if_due(self.log.file.seq)
        return files_unit.FilesystemUnit(self, scope)

    def load(self, task_id: str, *, writable: bool) -> Loaded:
        """A task under lock. Usually one look at the head and one at the file; anything odd is examined."""
        if not is_task_id(task_id):
            return files_unit.Loaded(None)
        if task_id in self.doubted and writable:
            self.doubted.discard(task_id)
            return self._examined(task_id, writable=True)
        head = self.heads.get(task_id)
        if head is None:
            if not self.files.present(task_id) and self.heads.knows_day_of(task_id):
                return files_unit.Loaded(None)
        elif not self.files.elsewhere(task_id, head.folder):
            try:
                found = read_seen(self.paths.task(head.folder, task_id))
            except OSError:
                found = None
            if found is not None and head.matches(found[0]):
                task = markdown.parse(found[0], archived=head.folder == "archive")
                return files_unit.Loaded(task, head.folder, found[1])
        return self._examined(task_id, writable=writable)

    def _examined(self, task_id: str, *, writable: bool) -> Loaded:
        for _ in range(_STORE_TRIES):
            with suppress(FileNotFoundError):  # where somebody deleted locks, two may put the same files right
                return self._examined_once(task_id, writable=writable)
            self.renew()
        return self._examined_once(task_id, writable=writable)

    def _examined_once(self, task_id: str, *, writable: bool) -> Loaded:
        history = self.histories.of(task_id)
        found = changes.examine(self.paths, self.files, history, task_id)
        while found.edit is not None or found.problem is not None:
            later = self.histories.of(task_id)
            if len(later) == len(history):  # else what looks like a person's edit may be a command's, as without locks
                break
            history = later
            found = changes.examine(self.paths, self.files, history, task_id)
        task = found.task
        if found.intact:
            assert task is not None
            folder = folder_of(task)
            return files_unit.Loaded(task, folder, seen(self.paths.task(folder, task_id)))
        if found.problem is not None:
            return files_unit.Loaded(found.folded.task, None, None, found)
        if task is None and found.edit is None:
            return files_unit.Loaded(None)
        if found.elsewhere and found.edit is None and self.working_copy.tips() > 1:
            return files_unit.Loaded(task, None, None, found)  # a merge writes it; until then it is left to git
        if not writable:
            raise port.ScopeTooNarrow(port.Scope(write=frozenset({task_id})))
        if found.edit is None:
            if found.at is None and self.heads.get(task_id) is not None:
                self.working_copy.missed.append(task_id)
            self.redo.task(found.folded)
            return self.load(task_id, writable=True)
        return files_unit.Loaded(task, found.at, found.seen.get(found.at or ""), found)

    def keep_attributes(self) -> None:
        """Older data directories do not tell git to keep line endings: the first change adds that."""
        if not self._attributes_kept:
            self._attributes_kept = True
            with suppress(OSError):  # `doctor` tells what is missing
                git_files.complete(self.paths.root, self.disk)

    def tidy(self, task_id: str, examined: Examined) -> None:
        """Before a person's edit is written back: keep a copy of what did not go in, remove what did."""
        for folder, lost in examined.beside:
            path = self.paths.task(folder, task_id)
            if seen(path) != examined.seen.get(folder):
                continue  # written since: the next command looks at it
            if lost and folder == examined.at:
                copy = self.files.free_name(f"{path}.conflict")
                self.disk.write_durable(copy, read(path) or b"")
                self.disk.sync_dir(os.path.dirname(copy))
            elif lost:
                self.files.keep_beside(path, f"{path}.conflict")
            else:
                self.disk.unlink(path)

    def put_back(self, task_id: str, examined: Examined) -> None:
        """Write what the log has over a file in which a person changed nothing that counts."""
        task = examined.folded.task
        assert task is not None
        self.tidy(task_id, examined)
        data, folder = markdown.render(task), folder_of(task)
        if self.files.place(task_id, data, examined.at, folder, examined.seen.get(examined.at or "")):
            self.files.gather(task_id, folder)
        self.heads.put(task_id, task.rev, folder, digest(data))

    def folded(self, task_id: str) -> fold.Folded:
        """The task as the log alone tells it."""
        return fold.fold(self.histories.of(task_id)).get(task_id) or fold.Folded()

    def reserve_id(self, now: int) -> str:
        """A task ID that nobody else will get."""
        today = kernel_model.day(now)
        try:
            try:
                return self.counter.next(today)
            except FileNotFoundError:
                self.renew()
                return self.counter.next(today)
        except OSError as error:
            raise failed(error, "reserve an ID") from error

    def put_back_id(self, unused: str) -> None:
        """Let an ID that nothing was made under be given again; too late is fine."""
        self.counter.put_back(unused)

    def rows(self, query: Query) -> Rows:
        """A list from the index, with what is odd about the files of those that it shows."""
        by_status, found, end = self.index.shown(query)
        return Rows(by_status, tuple(one.row(self.file_status(one.id, one.folder)) for one in found), end)

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """The IDs that tasks had elsewhere: none where histories were never merged, which costs one look."""
        return super().aliases() if self.lane_names.merged() else {}

    def audit_files(self, project: str) -> FilesystemAudit:
        """The audit records of a project as files."""
        from aof.store.files.audit import FilesystemAudit

        return FilesystemAudit(self, project)

    def heartbeats(self, task_ids: Iterable[str]) -> dict[str, Heartbeat | None]:
        """The last signs of life, read without a lock: each file is replaced whole."""
        with clearly("read the heartbeats"):
            return {task_id: self.clone.last_sign(self.files, task_id) for task_id in task_ids}

    def attempts(self, task_id: str) -> tuple[Run, ...]:
        """Every run, oldest first."""
        task = self._any_version(task_id)
        if task is None or not task.retry.attempts:
            return ()
        if task.gated:
            return tuple(self.folded(task_id).runs)
        folder = self.paths.run(task_id, archived=task.archived)
        count = task.retry.attempts
        found = [
            self.files.run_document(
                f"{folder}/{'' if number == count else f'attempts/{number}/'}run.json", runs_model.Run
            )
            for number in range(1, count + 1)
        ]
        whole = all(run is not None and run.attempt == number for number, run in enumerate(found, 1))
        if whole and not self.files.has_superseded(folder):
            return tuple(run for run in found if run is not None)
        return tuple(self.folded(task_id).runs)

    def _any_version(self, task_id: str) -> Task | None:
        own = frozenset({task_id})
        try:
            with self.unit(port.Scope(read=own)) as unit:
                return unit.task(task_id)
        except port.ScopeTooNarrow:  # a person's edit waits, or can never be imported
            with self.unit(port.Scope(write=own)) as unit:
                return unit.task(task_id)

    def output(self, run: Run, stream: str, offset: int, most: int) -> tuple[bytes, int]:
        """A piece of what a run has printed: the file only grows, so no lock is needed."""
        with clearly("read the output"):
            place = run_place(run.task_id, run.hop)
            return self.files.read_output(place, run.attempt, runs_model.OUTPUT_FILES[stream], offset, most)

    def handoffs(self, tasks: Iterable[Task] | None = None) -> tuple[Handoff, ...]:
        """Every handoff, or those of some tasks; oldest first."""
        with clearly("read the handoffs"):
            return self.handed.all() if tasks is None else self.handed.among(tasks)

    def find_handoffs(self, part: str) -> tuple[Handoff, ...]:
        """The handoffs whose IDs begin like this, as their files are now; nothing is locked."""
        with clearly("read the handoffs"):
            return self.handed.beginning(part)

    def path_of(self, task: Task) -> str:
        """Where the task's file lies, relative to the data directory."""
        return self.paths.name_of(task)

    def file_status(self, task_id: str, folder: str) -> str | None:
        """Whether a task's file is what the log wrote; `folder` is where it should lie."""
        head, path = self.heads.get(task_id), self.paths.task(folder, task_id)
        written = path if head is None else self.paths.task(head.folder, task_id)
        odd = file_status(written, head.matches if head is not None else lambda _data: False)
        if odd is not None and self.lane_names.several():  # a merge may have come with git, file and all
            return file_status(path, lambda data: self.files.lanes.wrote(digest(data)))
        return odd

    @cached_property
    def working_copy(self) -> working_copy.FileWorkingCopy:
        """The tasks' files, as people edit them."""
        return working_copy.FileWorkingCopy(self, self._clock.now)

    def head(self) -> int:
        """The number of the last event."""
        with clearly("read the log"):
            self.log.refresh(sound=True)
            self.log.flush()
            return self.log.seq

    def events(self, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        """Durable events in order; in a log whose last flush has failed nobody can tell which ones are."""
        self.refuse_unsound()
        if task_id is None:
            yield from self.reader.events(after)
        else:
            yield from (event for event in self.reader.of_tasks((task_id,)) if event.seq > after)

    def wait(self, after: int, timeout: float) -> bool:
        """Sleep until an event comes."""
        return reader.wait_for_more(self.reader, self._clock, after, timeout)

    def close(self) -> None:
        """Let go of everything."""
        if "counter" in self.__dict__:
            with suppress(OSError, LockTimeout):  # a gap is fine
                self.counter.give_back()
        if "index" in self.__dict__:
            self.index.close()
        super().close()
