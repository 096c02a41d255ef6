"""Compares the log with what its last appender left, and verifies it where that differs. Called under the log's lock.

What was acknowledged is never cut: an end that is missing, or a line that was changed, swapped or removed, is damage. A
log that holds from its first to its last event, yet lacks what was appended here, may be another branch's: whether it
is, its tasks' files show, and that is for others to judge. Must not know what the events mean.
"""

from __future__ import annotations

import os

from aof.stores.filesystem.integrity import verification
from aof.stores.filesystem.integrity.stamp import Stamp, older_days
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.log.line_end import GENESIS
from aof.stores.filesystem.log.reader import Position, log_days
from aof.stores.filesystem.log.state import State
from aof.stores.filesystem.log.tail import last_event


class LogGuard:
    """What one process knows of the older days' files."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._folder = 0
        self._older = ""

    def as_left(self, state: State, folder: int) -> bool:
        """Whether folder and files look as the last appender left them; `folder` is the open folder of the log."""
        stamp = state.stamp
        if stamp is None or stamp.position.day != state.day or stamp.folder != os.fstat(folder).st_ctime_ns:
            return False
        if stamp.older != self._older:  # this process has not looked at them yet
            self._older = older_days(self._paths, self._before(state.day))
            if stamp.older != self._older:
                return False
        try:
            return stamp.describes(os.stat(self._paths.log(state.day)))
        except FileNotFoundError:
            return False

    def verify(self, state: State) -> bool:
        """Whether the log still has what was appended last; raises LogDamaged where it is not a whole history."""
        stamp, days = state.stamp, log_days(self._paths)
        if stamp is None or not state.day or state.day not in days:
            return True  # nobody has said what to expect, or the whole day is gone, which looking for its end tells
        while days[-1] > state.day and not os.stat(self._paths.log(days[-1])).st_size:
            days.pop()
        untouched = days[-1] == state.day and older_days(self._paths, days[:-1]) == stamp.older
        if untouched:
            proof = verification.prove_last(self._paths, state.day, self._last_before(state.day), stamp.position)
        else:
            proof = verification.prove(self._paths, days, stamp.position)
        if not proof.known and proof.rest:
            raise verification.lost(stamp.position)
        return proof.known

    def stamp(self, folder: int, fd: int, position: Position) -> Stamp:
        """What to leave behind."""
        changed = os.fstat(folder).st_ctime_ns
        if changed != self._folder or not self._older:
            self._folder, self._older = changed, older_days(self._paths, self._before(position.day))
        found = os.fstat(fd)
        return Stamp(changed, self._older, found.st_ino, found.st_ctime_ns, position)

    def _before(self, day: str) -> list[str]:
        return [one for one in log_days(self._paths) if one < day]

    def _last_before(self, day: str) -> tuple[int, str]:
        for earlier in reversed(self._before(day)):
            if (last := last_event(self._paths.log(earlier))) is not None:
                return last.seq, last.hash
        return 0, GENESIS
