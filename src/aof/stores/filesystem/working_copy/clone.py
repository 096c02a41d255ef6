"""The identity of this clone among others of the same history: how it numbers tasks, and which runs are its own.

A clone that did not begin the history has a random token in its lock folder, which git does not carry. The file that it
stands in names its own inode, so that a copied folder is another clone. Heartbeats do not travel either: a run whose
sign of life is not of this clone may be alive elsewhere, and counts as alive for a long while. Must not know any rule
about leases.
"""

from __future__ import annotations

import os

import msgspec

from aof.core.model.numbers import Numbers
from aof.core.model.run import Heartbeat, Run
from aof.core.model.times import iso, millis
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.locks import Locks
from aof.stores.filesystem.log.claims import Claims
from aof.stores.filesystem.log.lane_names import LaneNames
from aof.stores.filesystem.working_copy.files import TaskFiles

LOCK = "clone"
_BYTES = 64
_TOKEN_BYTES = 8


class Clone:
    """One clone, as one process sees it."""

    def __init__(self, locks: Locks, disk: Disk, claims: Claims, lanes: LaneNames, away_ms: int) -> None:
        self._locks = locks
        self._disk = disk
        self._claims = claims
        self._lanes = lanes
        self._away_ms = away_ms
        self._token = ""

    def numbers(self) -> Numbers:
        """How this clone numbers what it makes."""
        if self._is_root():
            return Numbers(alone=not self._lanes.several())
        return Numbers(self.token())

    def _is_root(self) -> bool:
        """Whether it is the one that began the history, or is about to."""
        return self._lanes.none() or self._claims.is_root()

    def token(self) -> str:
        """The clone's own random name; made when it is first needed."""
        if not self._token:
            held = self._locks.take(LOCK)
            try:
                inode = os.fstat(held.fd).st_ino
                match os.pread(held.fd, _BYTES, 0).decode("ascii", "replace").split():
                    case [token, known] if known == f"{inode}":
                        self._token = token
                    case _:
                        self._token = os.urandom(_TOKEN_BYTES).hex()
                        self._disk.overwrite(held.fd, f"{self._token} {inode}".ljust(_BYTES - 1).encode() + b"\n", 0)
            finally:
                self._locks.release((held,))
        return self._token

    def forget(self) -> None:
        """Somebody has deleted the lock files: read the token again."""
        self._token = ""

    def signed(self, heartbeat: Heartbeat) -> Heartbeat:
        """A sign of life as this clone writes it; the clone that began the history signs none."""
        if self._is_root():
            return heartbeat
        return msgspec.structs.replace(heartbeat, clone=self.token())

    def last_sign(self, files: TaskFiles, place: str, *, archived: bool = False) -> Heartbeat | None:
        """The last sign of life of the current run; of a run of another clone, one that lasts for a long while."""
        found = files.read_run(place, "run_heartbeat.json", Heartbeat, archived=archived)
        root = self._is_root()
        if root and not self._lanes.several():
            return found
        run = files.read_run(place, "run.json", Run, archived=archived)
        if run is None or (found is not None and found.run_id == run.run_id and self._is_own(found, root=root)):
            return found
        return self._elsewhere(run)

    def _is_own(self, heartbeat: Heartbeat, *, root: bool) -> bool:
        return heartbeat.clone is None if root else heartbeat.clone == self.token()

    def _elsewhere(self, run: Run) -> Heartbeat:
        until = iso(millis(run.started_at) + self._away_ms)
        return Heartbeat(
            task_id=run.task_id,
            agent_id=run.agent_id,
            run_id=run.run_id,
            last_heartbeat=run.started_at,
            beat_count=0,
            expires_at=until,
            hop=run.hop,
        )
