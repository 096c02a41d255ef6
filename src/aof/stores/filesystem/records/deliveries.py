"""How far each notification channel has come, in a small file beside the locks; it may be lost at any time.

Without it, what happens from then on is news. Must not know what a channel is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from aof._support import nesting
from aof.ports.clock import Clock
from aof.ports.notifier import Delivery
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.locks import Locks, file_name
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.io.system import clearly

_MOST = 1_000_000  # bytes


class DeliveryFiles:
    """Keeps the contract of `ports.notifier.Deliveries` for one data directory."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float = 10.0, disk: Disk | None = None) -> None:
        self._paths = Paths(root)
        self._disk = disk or Disk()
        self._disk.bind(root)
        self._locks = Locks(self._paths.locks, clock, lock_timeout, disk=self._disk)

    @contextmanager
    def alone(self, channel: str) -> Iterator[bool]:
        """Whether nobody else sends to the channel; a process that ends lets go."""
        with clearly("lock a notification channel"):
            held = self._locks.acquire(f"delivery:{channel}", wait=False)
        try:
            yield held is not None
        finally:
            if held is not None:
                self._locks.release([held])

    def load(self, channel: str) -> Delivery | None:
        """How far it has come; None also where the file cannot be read."""
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            found = read(self._path(channel), limit=_MOST)
            return nesting.decode(found, Delivery) if found is not None else None
        return None

    def save(self, channel: str, delivery: Delivery) -> None:
        """Keep it, in one step."""
        path = self._path(channel)
        new = f"{self._paths.temporary}/delivery-{channel}-{os.getpid()}"
        with clearly("keep how far a notification channel has come"):
            self._disk.begin()
            self._disk.refuse_link(path)
            self._disk.write_new(new, msgspec.json.encode(delivery) + b"\n")
            self._disk.rename(new, path)

    def _path(self, channel: str) -> str:
        return f"{self._paths.locks}/{file_name(f'delivery:{channel}')}.json"
