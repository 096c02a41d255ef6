"""What a crash may have left: the journal of each stripe, the checkpoint, and what the first opener does about both.

The journal notes, in the lock file of each stripe, what is being written while it is being written. The checkpoint says
up to which event every file is written and synced, and under which boot. The first opener under a new boot redoes what
a power cut may have undone. Must not know how files are redone; see `redo` and `power_cut`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from aof.core.model.ids import is_task_id
from aof.stores.filesystem.integrity import takeover
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.locks import EVERY_STRIPE, STRIPE_NAMES, STRIPES, HeldLock
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.io.system import clearly
from aof.stores.filesystem.log.position import Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore

STATE_AT = 128  # behind the position, which a writer leaves as it is until it is done
_IDLE = b"idle\n"
_WRITING, _DONE = b"w", b"."
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CHECKPOINT_EVERY = 50_000  # events; bounds the work after a power cut to a few seconds


class Journal:
    """Reads and writes the notes of held stripes."""

    def __init__(self, disk: Disk, journal: str) -> None:
        self._disk = disk
        self._journal = journal
        self._fd = -1

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
        """Say what is about to be written."""
        self._mark(held, _WRITING)
        self._disk.overwrite(held.fd, f"writing {' '.join(task_ids)}\n".encode("ascii"), STATE_AT)

    def clear(self, held: HeldLock, behind: Position | None = None) -> None:
        """Say that everything is written, up to a position in the log; without one, that nothing was."""
        if behind is None:
            self._disk.overwrite(held.fd, _IDLE, STATE_AT)
        else:
            self._disk.overwrite(held.fd, behind.text().ljust(STATE_AT).encode("ascii") + _IDLE, 0)
        self._mark(held, _DONE)

    def unfinished(self) -> list[str]:
        """The stripes that somebody is writing under, or was when it died."""
        try:
            marks = os.pread(self._open(), STRIPES, 0)
        except OSError:  # only the stripes' own notes are left to tell
            return []
        return (
            []
            if _WRITING not in marks
            else [name for name, mark in zip(STRIPE_NAMES, marks, strict=False) if mark == _WRITING[0]]
        )

    def reopen(self) -> None:
        """Somebody may have deleted the journal: go on with a new one."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _mark(self, held: HeldLock, mark: bytes) -> None:
        if held.name.startswith("stripe-"):
            self._disk.overwrite(self._open(), mark, int(held.name[7:]))

    def _open(self) -> int:
        if self._fd < 0:
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
    """What a store has to do before anybody works with it, and now and then."""

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
                takeover.refuse_or_take_over(store, known.position)
            elif known.boot != self._boot and self._durable:  # what was flushed has survived any power cut
                flushed = store.log.flushed()
                if flushed is not None and not store.reader.holds(flushed):
                    takeover.refuse_or_take_over(store, flushed)
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
                takeover.refuse_cut(store)
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
