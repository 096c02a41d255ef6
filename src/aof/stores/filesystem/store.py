"""The filesystem store: plain files as the truth for people, the log as the commit point, an index as a cache.

Puts the parts together and keeps the contract of `ports.store.Store`. Must not know any rule about tasks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from aof.core.errors import LogDamaged, NoDataDirectory, UnreadableTask
from aof.core.events import Event
from aof.core.ids import is_task_id
from aof.core.runs.run import Run
from aof.core.tasks.task import Task
from aof.core.times import day
from aof.lazily import Lazily
from aof.ports.clock import Clock
from aof.ports.store import Checkup, Page, Query, Scope, ScopeTooNarrow
from aof.stores.filesystem import checkpoint
from aof.stores.filesystem.disk import Disk
from aof.stores.filesystem.failures import clearly
from aof.stores.filesystem.files import TaskFiles, digest, read, seen
from aof.stores.filesystem.heads import Heads
from aof.stores.filesystem.index import Index
from aof.stores.filesystem.intents import Intents
from aof.stores.filesystem.locks import STRIPES, Held, Locks, stripe
from aof.stores.filesystem.log import Log
from aof.stores.filesystem.paths import DIRECTORIES, IGNORED, UNMERGED, Paths, folder_of
from aof.stores.filesystem.reader import Position, Reader

if TYPE_CHECKING:
    from aof.stores.filesystem import foreign, markdown, upkeep
    from aof.stores.filesystem import unit as units
    from aof.stores.filesystem.counter import Counter
    from aof.stores.filesystem.foreign import Examined
    from aof.stores.filesystem.histories import Histories
    from aof.stores.filesystem.recovery import Recovery
    from aof.stores.filesystem.redo import Redo
    from aof.stores.filesystem.unit import FilesystemUnit, Loaded
    from aof.stores.fold import Folded
else:  # lists and counts need none of these
    foreign = Lazily("aof.stores.filesystem.foreign")
    markdown = Lazily("aof.stores.filesystem.markdown")
    units = Lazily("aof.stores.filesystem.unit")
    upkeep = Lazily("aof.stores.filesystem.upkeep")

_CHECKPOINT_EVERY = 50_000  # events; bounds the work after a power cut to a few seconds
_SHORTEST_WAIT, _LONGEST_WAIT = 0.005, 0.25
_EVERY_STRIPE = tuple((f"stripe-{number:02d}", True) for number in range(STRIPES))


class FilesystemStore:
    """One data directory, as one process sees it. Safe for several threads."""

    def __init__(
        self,
        root: str,
        clock: Clock,
        *,
        durable: bool = True,
        lock_timeout: float = 10.0,
        disk: Disk | None = None,
        boot_id: Callable[[], str] = checkpoint.boot_id,
        doctor: bool = False,
    ) -> None:
        self.paths = Paths(os.path.abspath(root))
        if not os.path.isdir(f"{self.paths.root}/{'tasks' if doctor else 'events'}"):
            raise NoDataDirectory(f"{root} is no data directory", "make one with 'aof init'")
        self.disk = disk or Disk()
        self._clock = clock
        self._boot = boot_id()
        self.locks = Locks(self.paths.locks, clock, lock_timeout)
        self.log = Log(self.paths, self.locks, self.disk, durable=durable)
        self.reader = Reader(self.paths, durable=durable, flush=self.log.flush)
        self.heads = Heads(self.paths.heads, self.disk)
        self.files = TaskFiles(self.paths, self.disk)
        self.intents = Intents(self.disk)
        self.index = Index(self)
        self._checkpointed = 0
        self.damage: LogDamaged | None = None
        try:
            with clearly("open the data directory"):
                self._open()
        except LogDamaged as damage:
            self.damage = damage
            if not doctor:
                self.close()
                raise
        except BaseException:
            self.close()
            raise

    @cached_property
    def histories(self) -> Histories:
        """What the log tells of single tasks."""
        from aof.stores.filesystem.histories import Histories

        return Histories(self.reader)

    @cached_property
    def redo(self) -> Redo:
        """Makes files follow the log again."""
        from aof.stores.filesystem.redo import Redo

        return Redo(self.paths, self.files, self.heads, self.disk)

    @cached_property
    def recovery(self) -> Recovery:
        """Puts right what a power cut may have undone."""
        from aof.stores.filesystem.recovery import Recovery

        return Recovery(self.paths, self.disk, self.log, self.reader, heads=self.heads, redo=self.redo)

    @cached_property
    def counter(self) -> Counter:
        """Gives out the numbers of new tasks."""
        from aof.stores.filesystem.counter import Counter

        return Counter(self.paths, self.locks, self.disk, self.reader, lambda: self._boot)

    @staticmethod
    def create(root: str, disk: Disk | None = None) -> bool:
        """Make a data directory; what is there already stays. Tells whether it is new."""
        disk = disk or Disk()
        fresh = not os.path.isdir(f"{root}/events")
        for name in ("", *DIRECTORIES):
            with suppress(FileExistsError):
                disk.make_dir(f"{root}/{name}" if name else root)
        for name, lines in ((".gitignore", IGNORED), (".gitattributes", UNMERGED)):
            if not os.path.lexists(f"{root}/{name}"):
                disk.write_durable(f"{root}/{name}", "".join(f"{line}\n" for line in lines).encode())
        for name in DIRECTORIES:
            keep = f"{root}/{name}/.gitkeep"
            if f"{name.split('/')[0]}/" not in IGNORED and name != "events/torn" and not os.path.lexists(keep):
                os.close(disk.create(keep))  # git removes a folder with its last file, also below those who use it
        if fresh:
            checkpoint.save(Paths(root), disk, checkpoint.boot_id(), Position())
        return fresh

    def _open(self) -> None:
        """The first opener under a new boot redoes what a power cut may have undone."""
        for name in DIRECTORIES:
            if not os.path.isdir(f"{self.paths.root}/{name}"):
                with suppress(FileExistsError):
                    self.disk.make_dir(f"{self.paths.root}/{name}")
        known = checkpoint.load(self.paths)
        if known is not None and known.boot == self._boot:
            if not self.reader.holds(known.position):
                raise LogDamaged(
                    f"the log lacks event {known.position.seq}, which was durable",
                    "restore events/ from a backup or from version control, or run 'aof doctor'; nothing was changed",
                    seq=known.position.seq,
                )
            self._checkpointed = known.position.seq
            return
        held = self.locks.acquire_all((("recovery", True), *_EVERY_STRIPE))
        try:
            known = checkpoint.load(self.paths)
            if known is None:
                self.recovery.new_here()
            elif known.boot != self._boot:
                self.recovery.after_power_cut(known.position)
            for lock in held[1:]:
                self.intents.clear(lock)
            self._save_checkpoint()
        finally:
            self.locks.release(held)

    def _start_over(self) -> None:
        """The log is another one than before: heads and index follow it, unless the files know more than it does."""
        held = self.locks.acquire_all(_EVERY_STRIPE)
        try:
            self.log.refresh(sound=True)
            newest = self.recovery.highest_rev()
            if newest > self.log.seq:
                raise LogDamaged(
                    f"the log was replaced by one that lacks event {newest}, which the file of a task was written by",
                    "put the log and the tasks of one branch back, or run 'aof doctor'; nothing was changed",
                    seq=newest,
                )
            self.begin_anew()
            for lock in held:
                self.intents.clear(lock)
        finally:
            self.locks.release(held)

    def begin_anew(self) -> None:
        """Rebuild what `locks/` holds from the log as it is now. The caller holds every stripe."""
        self.recovery.new_here()
        self._save_checkpoint()
        self.damage, self.log.replaced = None, False

    def _save_checkpoint(self) -> None:
        """The caller holds every stripe, so that nothing is half written."""
        self.log.refresh(sound=True)
        position = Position(self.log.day, self.log.end, self.log.seq, self.log.digest)
        checkpoint.save(self.paths, self.disk, self._boot, position)
        self._checkpointed = position.seq

    def checkpoint(self) -> None:
        """Sync everything, so that a power cut costs less afterwards."""
        with clearly("sync the data directory"):
            held = self.lock_everything()
            try:
                self._save_checkpoint()
            finally:
                self.locks.release(held)

    def lock_everything(self) -> list[Held]:
        """Every stripe, after redoing what dead writers left."""
        held = self.locks.acquire_all(_EVERY_STRIPE)
        try:
            for lock in held:
                self._finish(lock)
        except BaseException:
            self.locks.release(held)
            raise
        return held

    def unit(self, scope: Scope) -> FilesystemUnit:
        """Begin a unit of work; now and then a checkpoint comes first."""
        if self.log.replaced:
            with clearly("take in another log"):
                self._start_over()
        if self.log.seq - self._checkpointed > _CHECKPOINT_EVERY:
            self._checkpointed = self.log.seq
            self.checkpoint()
        return units.FilesystemUnit(self, scope)

    def lock(self, scope: Scope) -> list[Held]:
        """Take the locks of a scope; nobody begins work on what a dead writer left half done."""
        wanted = dict.fromkeys(scope.names, True)
        for task_id in scope.read:
            wanted[stripe(task_id)] = False
        for task_id in scope.write:
            wanted[stripe(task_id)] = True
        while True:
            held = self.locks.acquire_all(wanted.items())
            try:
                shared = [lock.name for lock in held if not self._settled(lock)]
            except BaseException:
                self.locks.release(held)
                raise
            if not shared:
                return held
            self.locks.release(held)
            for name in shared:
                lock = self.locks.acquire(name)
                assert lock is not None
                try:
                    self._finish(lock)
                finally:
                    self.locks.release((lock,))

    def _settled(self, lock: Held) -> bool:
        """False when something is left to redo and this lock is too weak for it."""
        if not lock.name.startswith("stripe-") or not self.intents.left(lock):
            return True
        if not lock.exclusive:
            return False
        self._finish(lock)
        return True

    def _finish(self, lock: Held) -> None:
        """Redo what a dead writer left under this stripe."""
        left = self.intents.left(lock)
        if left:
            self.log.refresh(sound=True)  # files only ever follow from what is durable
            self.recovery.redo_tasks(left)
            self.intents.clear(lock)

    def load(self, task_id: str, *, writable: bool) -> Loaded:
        """A task under lock. Usually one look at the head and one at the file; anything odd is examined."""
        if not is_task_id(task_id):
            return units.Loaded(None)
        head = self.heads.get(task_id)
        present = self.files.present(task_id)
        if head is None and not present and self.heads.knows_day_of(task_id):
            return units.Loaded(None)
        if head is not None and present == [head.folder]:
            path = self.paths.task(head.folder, task_id)
            file = seen(path)
            with suppress(OSError):
                data = read(path)
                if data is not None and head.matches(data):
                    return units.Loaded(markdown.parse(data, archived=head.folder == "archive"), head.folder, file)
        return self._examined(task_id, writable=writable)

    def _examined(self, task_id: str, *, writable: bool) -> Loaded:
        found = foreign.examine(self.paths, self.files, self.histories.of(task_id), task_id)
        task = found.task
        if found.intact:
            assert task is not None
            folder = folder_of(task)
            self.heads.put(task_id, task.rev, folder, next(iter(found.folded.last_files.values())))
            return units.Loaded(task, folder, seen(self.paths.task(folder, task_id)))
        if found.problem is not None:
            return units.Loaded(found.folded.task, None, None, found)
        if task is None and found.edit is None:
            return units.Loaded(None)
        if not writable:
            raise ScopeTooNarrow(Scope(write=frozenset({task_id})))
        if found.edit is None:
            self.redo.task(found.folded)
            return self.load(task_id, writable=True)
        return units.Loaded(task, found.at, found.seen.get(found.at or ""), found)

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

    def folded(self, task_id: str) -> Folded:
        """The task as the log alone tells it."""
        from aof.stores.fold import Folded, fold

        return fold(self.reader.of_tasks((task_id,))).get(task_id) or Folded()

    def reserve_id(self, now: int) -> str:
        """A task ID that nobody else will get."""
        with clearly("reserve an ID"):
            return self.counter.next(day(now))

    def find(self, query: Query) -> Page:
        """Answer from the index."""
        with clearly("read the index"):
            return self.index.find(query)

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form could stand for."""
        with clearly("read the index"):
            return self.index.ids(part)

    def resources_in_use(self) -> dict[str, int]:
        """How many running tasks occupy each resource."""
        with clearly("read the index"):
            return self.index.resources_in_use()

    def attempts(self, task_id: str) -> tuple[Run, ...]:
        """Every run, oldest first."""
        task = self._any_version(task_id)
        if task is None or not task.retry.attempts:
            return ()
        folder = self.paths.run(task_id, archived=task.archived)
        count = task.retry.attempts
        found = [
            self.files.run_document(f"{folder}/{'' if number == count else f'attempts/{number}/'}run.json", Run)
            for number in range(1, count + 1)
        ]
        if all(run is not None and run.attempt == number for number, run in enumerate(found, 1)):
            return tuple(run for run in found if run is not None)
        return tuple(self.folded(task_id).runs)

    def _any_version(self, task_id: str) -> Task | None:
        with self.unit(Scope(read=frozenset({task_id}))) as unit:
            return unit.task(task_id)

    def path_of(self, task: Task) -> str:
        """Where the task's file lies, relative to the data directory."""
        return self.paths.relative(self.paths.task(folder_of(task), task.id))

    def odd(self, task: Task) -> str | None:
        """Whether somebody changed the task's file and nobody has taken that in yet, or it cannot be read."""
        head = self.heads.get(task.id)
        folder = head.folder if head is not None else folder_of(task)
        try:
            data = read(self.paths.task(folder, task.id))
            if data is not None and head is not None and head.matches(data):
                return None
            if data is not None:
                markdown.parse(data)
        except (OSError, UnreadableTask):
            return "unknown"
        return "stale"

    def unsettled(self) -> Iterator[str]:
        """The tasks whose files are not what the log wrote, or are new."""
        return upkeep.unsettled(self)

    def nameless(self) -> tuple[str, ...]:
        """Files that people added without a task's ID as name."""
        return upkeep.nameless(self)

    def name(self, path: str, now: int) -> str:
        """Give such a file an ID, under which it is new."""
        return upkeep.name(self, path, now)

    def put_aside(self, task_id: str) -> tuple[str, ...]:
        """Keep a file that cannot be taken in under another name, and restore the log's version."""
        return upkeep.put_aside(self, task_id)

    def checkup(self) -> Checkup:
        """Compare log, files, runs, heads, index and counter with each other."""
        from aof.stores.filesystem import doctor

        return doctor.checkup(self)

    def heal(self) -> None:
        """Put right what a checkup finds, as far as that needs no person."""
        from aof.stores.filesystem import doctor

        doctor.heal(self, self._clock.now())

    def head(self) -> int:
        """The number of the last event."""
        with clearly("read the log"):
            self.log.refresh()
            self.log.flush()
            return self.log.seq

    def events(self, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        """Durable events in order."""
        if task_id is None:
            yield from self.reader.events(after)
        else:
            yield from (event for event in self.reader.of_tasks((task_id,)) if event.seq > after)

    def wait(self, after: int, timeout: float) -> bool:
        """Look at the size of one file, less and less often, until it grows."""
        deadline = self._clock.monotonic() + timeout
        pause = _SHORTEST_WAIT
        known = None
        while True:
            end = self.reader.end()
            if end != known:
                known = end
                if next(self.reader.events(after), None) is not None:
                    return True
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            self._clock.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_WAIT)

    def close(self) -> None:
        """Let go of everything."""
        self.index.close()
        self.log.close()
        self.heads.close()
        self.locks.close()
