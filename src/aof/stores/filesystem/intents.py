"""What is being written, noted in the lock file of each stripe while it is being written.

The next holder of a stripe sees at once whether a dead writer left something to redo, and where in the log to look.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from aof.core.ids import is_task_id
from aof.stores.filesystem.disk import Disk
from aof.stores.filesystem.locks import Held

_IDLE = b"idle\n"


class Intents:
    """Reads and writes the notes of held stripes."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def left(self, held: Held) -> tuple[str, ...]:
        """The tasks that a dead writer was about to write; empty in all but the rarest cases."""
        note = os.pread(held.fd, 65_536, 0)
        if not note or note.startswith(_IDLE):
            return ()
        words = note.split(b"\n", 1)[0].decode("ascii", "replace").split()
        return tuple(word for word in words[1:] if is_task_id(word))

    def note(self, held: Held, task_ids: Iterable[str]) -> None:
        """Say what is about to be written."""
        self._disk.overwrite(held.fd, f"writing {' '.join(task_ids)}\n".encode("ascii"), 0)

    def clear(self, held: Held) -> None:
        """Say that everything is written."""
        self._disk.overwrite(held.fd, _IDLE, 0)
