"""Locks between processes and threads, and the stripes (shared locks of tasks) that a unit of work takes.

Beside them lies what a recovery needs: the journal of unfinished writes for each stripe, and the checkpoint.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache

from aof.errors import AofError, LockTimeout
from aof.kernel.model import is_task_id
from aof.store.files import disk as files_disk
from aof.store.files import integrity
from aof.store.files.disk import Disk, clearly, read
from aof.store.files.paths import PROCESS, LogReplaced, Paths, Position
from aof.support.hashing import hexdigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.files.store import FilesystemStore
    from aof.store.port import Clock, Scope


STRIPES = 64
STRIPE_NAMES = tuple(f"stripe-{number:02d}" for number in range(STRIPES))
_READABLE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-")
_TAKEN = b"\n"  # says nothing to who keeps a state in a lock file
_TRIES = 50
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0001, 0.002
_OPEN_LOCKS: weakref.WeakSet[Locks] = weakref.WeakSet()
EVERY_STRIPE = tuple((f"stripe-{number:02d}", True) for number in range(STRIPES))


class HeldLock:
    """One lock: the open file and where it lies.

    While it is held: whether exclusively, whether it was ever written to, and when it was changed before. Of a file
    that was opened a moment ago nobody has looked which one it is: then its inode is 0.
    """

    __slots__ = ("blank", "changed", "device", "exclusive", "fd", "inode", "name", "path")

    def __init__(self, name: str, path: str, fd: int) -> None:
        self.name = name
        self.path = path
        self.fd = fd
        self.inode = self.device = self.changed = 0
        self.exclusive = self.blank = False


class Locks:
    """The lock files of one data directory."""

    def __init__(
        self,
        folder: str,
        clock: Clock,
        timeout: float,
        deleted: Callable[[], None] | None = None,
        disk: Disk | None = None,
    ) -> None:
        self._folder = folder
        self._disk = disk or Disk()
        self._deleted = deleted
        self._clock = clock
        self._timeout = timeout
        self._idle: dict[str, list[HeldLock]] = {}
        self._all: set[HeldLock] = set()
        _OPEN_LOCKS.add(self)

    def take(self, name: str, *, exclusive: bool = True, wait: bool = True) -> HeldLock:
        """Take a lock, waiting for it; one that is taken raises BlockingIOError where `wait` is off."""
        mode = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
        deadline = 0.0
        pause = _FIRST_PAUSE
        while True:
            try:
                lock = self._idle[name].pop()  # another thread may take the last one meanwhile
            except (KeyError, IndexError):
                lock = self._open(name)
            try:
                fcntl.flock(lock.fd, mode)
            except BlockingIOError:
                self._idle.setdefault(name, []).append(lock)
                if not wait:
                    raise
                now = self._clock.monotonic()
                deadline = deadline or now + self._timeout
                if now >= deadline:
                    raise self._given_up(name, lock.fd) from None
                self._clock.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            if not lock.inode:
                opened = os.fstat(lock.fd)
                lock.inode, lock.device = opened.st_ino, opened.st_dev
            try:
                found = os.stat(lock.path)
            except (FileNotFoundError, NotADirectoryError):
                found = None
            if found is not None and (lock.inode, lock.device) == (found.st_ino, found.st_dev):
                lock.changed = found.st_ctime_ns
                lock.exclusive, lock.blank = exclusive, not found.st_size
                return lock
            self._forget(lock)
            if self._deleted is not None:
                self._deleted()

    def take_free(self, name: str, *, exclusive: bool = True) -> HeldLock | None:
        """Take a lock unless it is taken."""
        try:
            return self.take(name, exclusive=exclusive, wait=False)
        except BlockingIOError:
            return None

    def acquire_all(self, wanted: Iterable[tuple[str, bool]]) -> list[HeldLock]:
        """Take several locks in the one order that all use, so that nobody waits in a circle."""
        held: list[HeldLock] = []
        try:
            for name, exclusive in sorted(wanted):
                held.append(self.take(name, exclusive=exclusive))
        except BaseException:
            self.release(held)
            raise
        return held

    def is_lost(self, held: HeldLock) -> bool:
        """Whether somebody has deleted a held lock or moved it away: then another one may be held in its place."""
        if held not in self._all:
            return True
        try:
            found = os.stat(held.path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        return found.st_ino != held.inode or found.st_dev != held.device

    def release(self, held: Iterable[HeldLock]) -> None:
        """Let go; the open files are kept for next time."""
        for lock in held:
            if lock in self._all:
                fcntl.flock(lock.fd, fcntl.LOCK_UN)
                idle = self._idle.get(lock.name)
                if idle is None:
                    idle = self._idle.setdefault(lock.name, [])
                idle.append(lock)

    def close(self) -> None:
        """Close every file, which lets go of every lock."""
        for lock in list(self._all):
            self._forget(lock)
        self._idle.clear()

    def _open(self, name: str) -> HeldLock:
        """Open a lock's file, even if somebody deletes the folder meanwhile.

        A name with a slash in front is that folder itself, for what must not end when somebody deletes locks.
        """
        is_folder = name.startswith("/")
        path = name if is_folder else f"{self._folder}/{lock_file_name(name)}"
        tries = 0
        while True:
            try:
                fd = (
                    os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    if is_folder
                    else self._disk.open_state(path)
                )
                break
            except FileNotFoundError:
                tries += 1
                if self._deleted is None or tries > _TRIES:
                    raise
                self._deleted()
        lock = HeldLock(name, path, fd)
        self._all.add(lock)
        return lock

    def _forget(self, lock: HeldLock) -> None:
        self._all.discard(lock)
        with suppress(OSError):
            os.close(lock.fd)

    def _given_up(self, name: str, fd: int) -> LockTimeout:
        pids = holders(os.fstat(fd).st_ino)
        of = {pid: files_disk.runs_as(pid) for pid in pids}
        named = ", ".join(f"{pid} of {user}" if (user := of[pid]) else f"{pid}" for pid in pids)
        who = f"process {named}" if pids else "another process"
        name = "log" if name.startswith("/") else name  # the folder of the log stands for it
        return LockTimeout(
            f"waited {self._timeout:g} s for the lock '{name}', which {who} holds",
            f"look at what {who} does; end it if it hangs, then try again",
            pids=pids,
            owners=[of[pid] for pid in pids],
            lock=name,
        )


@lru_cache(maxsize=1024)
def stripe(task_id: str) -> str:
    """The name of the lock that a task shares with about one in 64 others: neighbours get different ones."""
    return STRIPE_NAMES[int(task_id[16:]) % STRIPES]


def lock_file_name(name: str) -> str:
    """A lock's file: readable where the name allows it, a digest where it would be too long."""
    if _READABLE.issuperset(name):
        readable = name
    else:
        readable = "".join(
            one if one in _READABLE else "".join(f"%{byte:02X}" for byte in one.encode()) for one in name
        )
    return readable if len(readable) <= 100 else hexdigest(name.encode())  # noqa: PLR2004 - a file name


def holders(inode: int) -> list[int]:
    """The processes that hold a `flock` on the file, where the system tells (Linux)."""
    try:
        with open("/proc/locks", encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return []
    pids = (int(row[4]) for row in rows if "FLOCK" in row and "->" not in row and row[5].endswith(f":{inode}"))
    return list(dict.fromkeys(pids))  # the table may tell a lock twice when it changes while it is read


def _after_fork() -> None:
    """A child must not keep its parent's locks alive: it closes the inherited files and opens its own."""
    for locks in list(_OPEN_LOCKS):
        locks.close()


os.register_at_fork(after_in_child=_after_fork)


class Stripes:
    """The stripes of one data directory, as one process sees them."""

    def __init__(self, store: FilesystemStore) -> None:
        self._store = store
        self._proven: set[str] = set()
        self._marked: dict[str, int] | None = None  # the stripes that somebody was writing under at the last look

    def take(self, scope: Scope) -> list[HeldLock]:
        """Take the locks of a scope."""
        locks = self._store.locks
        wanted = dict.fromkeys(scope.names, True)
        for task_id in scope.read:
            wanted[stripe(task_id)] = False
        for task_id in scope.write:
            wanted[stripe(task_id)] = True
        if self._store.repairs:
            marked, before = self._store.intents.unfinished(), self._marked
            self._marked = marked
            if marked:  # who has made a mark since the last look is most likely at work
                self._finish_each(name for name, mark in marked.items() if before is None or before.get(name) == mark)
        while True:
            held = locks.acquire_all(wanted.items())
            try:
                shared = self._unsettled(held)
                if not shared:
                    return held
            except LogReplaced:
                locks.release(held)
                integrity.start_over(self._store)
                continue
            except BaseException:
                locks.release(held)
                raise
            locks.release(held)
            for name in shared:
                lock = locks.take(name)
                try:
                    self._finish(lock)
                finally:
                    locks.release((lock,))

    def _unsettled(self, held: list[HeldLock]) -> list[str]:
        """Redo what is left under these locks; answers with the stripes that need a stronger one for it."""
        shared: list[str] = []
        new: list[HeldLock] = []
        for lock in held:
            if not lock.name.startswith("stripe-"):
                if lock.blank:
                    new.append(lock)
                continue
            if lock.name not in self._proven:  # from then on, who appends looks whether the log is still the same
                if not self.of_this_log(lock):
                    raise LogReplaced
                self._proven.add(lock.name)
            if self._store.intents.left(lock) and self._store.repairs:
                if lock.exclusive:
                    self._finish(lock)
                else:
                    shared.append(lock.name)
        if new and not shared:
            self._await_others(new)
        return shared

    def _await_others(self, new: list[HeldLock]) -> None:
        """A named lock may be new because somebody has deleted it: wait for who still appends under the one before.

        From then on nobody else does, for an appender looks first whether its locks are lost.
        """
        with self._store.log.exclusively():
            pass
        for lock in new:
            with suppress(OSError):  # then the next holder waits as well
                self._store.disk.overwrite(lock.fd, _TAKEN, 0)

    def finish_left(self) -> None:
        """Redo what dead writers left, whatever task it is of; a stripe that somebody holds is not waited for."""
        if self._store.repairs:
            self._finish_each(self._store.intents.unfinished())

    def _finish_each(self, names: Iterable[str]) -> None:
        store = self._store
        for name in names:
            lock = store.locks.take_free(name)
            if lock is not None:
                try:
                    with suppress(AofError, OSError):  # it stops nobody but those who need that very task
                        self._finish(lock)
                finally:
                    store.locks.release((lock,))

    def redo(self, unsure: dict[str, list[str]]) -> None:
        """Make the files of these tasks follow the log once more, under their locks; stops nobody."""
        store = self._store
        for name, task_ids in unsure.items():
            with suppress(AofError, OSError):  # then the next commit on the task finds that its files are behind
                lock = store.locks.take(name)
                try:
                    store.recovery.redo_tasks(task_ids)
                finally:
                    store.locks.release((lock,))

    def left(self) -> list[str]:
        """The tasks whose files a dead writer has not finished."""
        store = self._store
        found: list[str] = []
        for name in store.intents.unfinished():
            lock = store.locks.take_free(name, exclusive=False)
            if lock is not None:
                found += store.intents.left(lock)
                store.locks.release((lock,))
        return found

    def take_all(self) -> list[HeldLock]:
        """Every stripe, after redoing what dead writers left."""
        locks = self._store.locks
        held = locks.acquire_all(EVERY_STRIPE)
        try:
            for lock in held:
                self._finish(lock)
        except BaseException:
            locks.release(held)
            raise
        return held

    def of_this_log(self, lock: HeldLock) -> bool:
        """Whether the log has what was last written under a stripe; if not, the stripe's heads are of another one."""
        last = self._store.intents.last(lock)
        return last is None or self._store.reader.holds(last)

    def _finish(self, lock: HeldLock) -> None:
        """Redo what a dead writer left under this stripe."""
        store = self._store
        left = store.intents.left(lock)
        if left:
            store.log.refresh(sound=True)  # files only ever follow from what is durable
            store.recovery.redo_tasks(left)
            with suppress(OSError):  # they harm nobody
                store.files.sweep(left)
            store.intents.clear(lock, store.log.position if self.of_this_log(lock) else None)
        elif lock.name in store.intents.unfinished():
            store.intents.clear(lock)


STATE_AT = 128  # behind the position, which a writer leaves as it is until it is done
_IDLE = b"idle\n"
_WRITING, _DONE = b"abcdefghijklmnopqrstuvwxyz", b"."  # each write has another letter than the one before
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CHECKPOINT_EVERY = 50_000  # events; bounds the work after a power cut to a few seconds


class Journal:
    """Reads and writes the notes of held stripes."""

    def __init__(self, disk: Disk, journal: str) -> None:
        self._disk = disk
        self._journal = journal
        self._fd = -1
        self._writes = PROCESS.id

    def left(self, held: HeldLock) -> tuple[str, ...]:
        """The tasks that a dead writer was about to write; empty in all but the rarest cases."""
        note = os.pread(held.fd, 65_536, STATE_AT)
        if not note or note.startswith(_IDLE):
            return ()
        words = note.split(b"\n", 1)[0].decode("ascii", "replace").split()
        return tuple(word for word in words[1:] if is_task_id(word))

    def last(self, held: HeldLock) -> Position | None:
        """Where the log stood after the last write under this stripe; None where nobody has said."""
        return Position.parse(os.pread(held.fd, STATE_AT, 0).decode("ascii", "replace").split())

    def note(self, held: HeldLock, task_ids: Iterable[str]) -> None:
        """Say what is about to be written under a stripe."""
        self._writes = (self._writes + 1) % len(_WRITING)
        mark = _WRITING[self._writes : self._writes + 1]
        self._disk.overwrite(self._fd if self._fd >= 0 else self._open(), mark, int(held.name[7:]))
        self._disk.overwrite(held.fd, f"writing {' '.join(task_ids)}\n".encode("ascii"), STATE_AT)

    def clear(self, held: HeldLock, behind: Position | None = None) -> None:
        """Say that everything is written, up to a position in the log; without one, that nothing was."""
        if behind is None:
            self._disk.overwrite(held.fd, _IDLE, STATE_AT)
        else:
            self._disk.overwrite(held.fd, behind.text().ljust(STATE_AT).encode("ascii") + _IDLE, 0)
        self._disk.overwrite(self._fd if self._fd >= 0 else self._open(), _DONE, int(held.name[7:]))

    def unfinished(self) -> dict[str, int]:
        """The stripes that somebody is writing under, or was when it died; each with the mark of that write."""
        try:
            marks = os.pread(self._fd if self._fd >= 0 else self._open(), STRIPES, 0)
        except OSError:  # only the stripes' own notes are left to tell
            return {}
        if not marks.strip(b"\0."):
            return {}
        return {name: mark for name, mark in zip(STRIPE_NAMES, marks, strict=False) if mark in _WRITING}

    def reopen(self) -> None:
        """Somebody may have deleted the journal: go on with a new one."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _open(self) -> int:
        self._fd = self._disk.open_cache(self._journal)
        return self._fd


class Checkpoint:
    """A position in the log and a boot."""

    __slots__ = ("boot", "position")

    def __init__(self, boot: str, position: Position) -> None:
        self.boot = boot
        self.position = position


def boot_id() -> str:
    """What tells one boot from the next; a clean restart of the machine looks like a power cut, which is safe."""
    try:
        with open(_BOOT_ID, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return f"no-boot-id-{os.uname().nodename}"


def load_checkpoint(paths: Paths) -> Checkpoint | None:
    """None where there is none, or none that makes sense."""
    data = read(paths.checkpoint)
    boot, *words = (data or b"-").decode("ascii", "replace").split() or [""]
    position = Position.parse(words)
    return Checkpoint(boot, position) if position is not None else None


def save_checkpoint(paths: Paths, disk: Disk, boot: str, position: Position) -> None:
    """Make everything durable, then say so."""
    disk.sync_all(paths.root)
    text = f"{boot} {position.text()}\n"
    temporary = paths.temporary_file("checkpoint")
    disk.write_durable(temporary, text.encode())
    disk.rename(temporary, paths.checkpoint)
    disk.sync_dir(paths.locks)


class Opening:
    """Opens a store: recovers what a power cut may have undone, and makes checkpoints from time to time."""

    def __init__(self, store: FilesystemStore, boot: str, *, durable: bool) -> None:
        self._store = store
        self._boot = boot
        self._durable = durable
        self._checkpointed = 0

    def open(self) -> None:
        """Make what is missing, refuse a log that was replaced, and recover where the machine was restarted."""
        store = self._store
        store.make_folders()
        known = load_checkpoint(store.paths)
        if known is not None:
            if not store.reader.holds(known.position):
                integrity.refuse_or_take_over(store, known.position)
            elif known.boot != self._boot and self._durable:  # what was flushed has survived any power cut
                flushed = store.log.flushed()
                if flushed is not None and not store.reader.holds(flushed):
                    integrity.refuse_or_take_over(store, flushed)
            if known.boot == self._boot or not store.repairs:
                self._checkpointed = known.position.seq
                return
        self.recover()

    @property
    def restarted(self) -> bool:
        """Whether the machine was restarted since anybody put right what a power cut may have undone."""
        known = load_checkpoint(self._store.paths)
        return known is not None and known.boot != self._boot

    def recover(self) -> None:
        """Redo what a power cut may have undone, unless somebody has under this boot."""
        store = self._store
        held = store.locks.acquire_all((("recovery", True), *EVERY_STRIPE))
        try:
            known = load_checkpoint(store.paths)
            if known is None:
                integrity.refuse_cut(store)
                if not store.reader.newest():
                    store.refuse_lost_log()
                store.recovery.new_here()
            elif known.boot != self._boot:
                store.recovery.after_power_cut(known.position)
            else:
                return
            self._settle(held[1:])
        finally:
            store.locks.release(held)

    def begin_anew(self, held: list[HeldLock]) -> None:
        """Rebuild what `locks/` holds from the log as it is now. The caller holds every stripe."""
        self._store.recovery.new_here()
        self._settle(held)
        self._store.damage, self._store.log.replaced = None, False

    def checkpoint_if_due(self, seq: int) -> None:
        """A checkpoint after so many events."""
        if seq - self._checkpointed > _CHECKPOINT_EVERY:
            self._checkpointed = seq
            self.checkpoint()

    def checkpoint(self) -> None:
        """Sync everything, so that a power cut costs less afterwards."""
        store = self._store
        with clearly("sync the data directory"):
            store.make_folders()
            held = store.stripes.take_all()
            try:
                self._save_checkpoint()
            finally:
                store.locks.release(held)

    def _settle(self, held: list[HeldLock]) -> None:
        """Every stripe is held, and what it notes is done: the heads follow from the log up to its end."""
        log = self._store.log
        log.refresh(sound=True)
        for lock in held:
            self._store.intents.clear(lock, log.position)
        self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        """The caller holds every stripe, so that nothing is half written."""
        store = self._store
        with suppress(OSError):  # what dead writers left harms nobody
            store.files.sweep()
        store.log.refresh(sound=True)
        store.log.flush()  # syncing everything would not tell this process of what a flush of the log has lost
        position = store.log.position
        save_checkpoint(store.paths, store.disk, self._boot, position)
        self._checkpointed = position.seq
