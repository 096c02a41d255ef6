"""What is being written, noted in the lock file of each stripe while it is being written, and after which event.

The next holder of a stripe sees at once whether a dead writer left something to redo. It also sees where the log stood
when the stripe was last written: if the log has no such event, it is another log, and the heads of this stripe are of
the one before. One more file says of all stripes at once whether somebody is writing, so that a command on any task
finds what a dead writer left. Must not know the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from aof.core.model.ids import is_task_id
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.locks import STRIPE_NAMES, STRIPES, HeldLock
from aof.stores.filesystem.log.reader import Position

STATE_AT = 128  # behind the position, which a writer leaves as it is until it is done
_IDLE = b"idle\n"
_WRITING, _DONE = b"w", b"."


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
