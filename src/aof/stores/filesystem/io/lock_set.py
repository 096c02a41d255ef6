"""Taking the stripes of tasks: nobody begins work on what a dead writer left half done, or on what another log left.

Must not know any rule about tasks.
"""

from __future__ import annotations

from contextlib import suppress

from aof.core.errors.base import AofError
from aof.stores.filesystem.integrity import takeover
from aof.stores.filesystem.integrity.log_identity import LogReplaced
from aof.stores.filesystem.io.locks import STRIPES, HeldLock, stripe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.ports.store import Scope
    from aof.stores.filesystem.store import FilesystemStore

EVERY_STRIPE = tuple((f"stripe-{number:02d}", True) for number in range(STRIPES))


class Stripes:
    """The stripes of one data directory, as one process sees them."""

    def __init__(self, store: FilesystemStore) -> None:
        self._store = store
        self._proven: set[str] = set()

    def take(self, scope: Scope) -> list[HeldLock]:
        """Take the locks of a scope."""
        locks = self._store.locks
        wanted = dict.fromkeys(scope.names, True)
        for task_id in scope.read:
            wanted[stripe(task_id)] = False
        for task_id in scope.write:
            wanted[stripe(task_id)] = True
        self.finish_left()
        while True:
            held = locks.acquire_all(wanted.items())
            try:
                shared = [lock.name for lock in held if not self._settled(lock)]
            except LogReplaced:
                locks.release(held)
                takeover.start_over(self._store)
                continue
            except BaseException:
                locks.release(held)
                raise
            if not shared:
                return held
            locks.release(held)
            for name in shared:
                lock = locks.take(name)
                try:
                    self._finish(lock)
                finally:
                    locks.release((lock,))

    def finish_left(self) -> None:
        """Redo what dead writers left, whatever task it is of; a stripe that somebody holds is not waited for."""
        store = self._store
        for name in store.intents.unfinished() if store.repairs else ():
            lock = store.locks.acquire(name, wait=False)
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
            lock = store.locks.acquire(name, exclusive=False, wait=False)
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

    def _settled(self, lock: HeldLock) -> bool:
        """False when something is left to redo and this lock is too weak for it."""
        if not lock.name.startswith("stripe-"):
            return True
        if lock.name not in self._proven:  # from then on, who appends looks whether the log is still the same
            if not self.of_this_log(lock):
                raise LogReplaced
            self._proven.add(lock.name)
        if not self._store.repairs or not self._store.intents.left(lock):
            return True
        if not lock.exclusive:
            return False
        self._finish(lock)
        return True

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
