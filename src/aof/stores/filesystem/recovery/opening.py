"""Opening a data directory: the first opener under a new boot redoes what a power cut may have undone.

Also the checkpoint, which bounds that work. Must not know any rule about tasks.
"""

from __future__ import annotations

from contextlib import suppress

from aof.stores.filesystem.integrity import takeover
from aof.stores.filesystem.io.lock_set import EVERY_STRIPE
from aof.stores.filesystem.io.os_errors import clearly
from aof.stores.filesystem.recovery import checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.io.locks import HeldLock
    from aof.stores.filesystem.store import FilesystemStore

_CHECKPOINT_EVERY = 50_000  # events; bounds the work after a power cut to a few seconds


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
        known = checkpoint.load(store.paths)
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
        known = checkpoint.load(self._store.paths)
        return known is not None and known.boot != self._boot

    def recover(self) -> None:
        """Redo what a power cut may have undone, unless somebody has under this boot."""
        store = self._store
        held = store.locks.acquire_all((("recovery", True), *EVERY_STRIPE))
        try:
            known = checkpoint.load(store.paths)
            if known is None:
                takeover.refuse_cut(store)
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
        checkpoint.save(store.paths, store.disk, self._boot, position)
        self._checkpointed = position.seq
