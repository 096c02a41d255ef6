"""Ends what a run that is over, or whose lease has ended, has left running, before somebody else gets its task.

Must not know what becomes of the task.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

from aof._support.confined_folder import ConfinedFolder
from aof.adapters.runners import attempt_folder, cgroups, processes, worker_note
from aof.adapters.runners.worker_note import Note
from aof.ports.clock import Clock

_BOUND = 10.0  # seconds that a tree may take to end


class ProcessOrphans:
    """Keeps the contract of `ports.runner.Orphans` for one data directory."""

    def __init__(self, root: str, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._files = ConfinedFolder(root)

    def end(self, place: str, attempt: int, run_id: str) -> str | None:
        """End every process of the run; None when none is left, else why that is not so."""
        if not os.path.isdir(attempt_folder.folder(self._root, place)):
            return self._swept(None, run_id)
        try:
            self._files.begin()
            lock = attempt_folder.take(self._files, place)
            note = worker_note.read(self._root, place, attempt)
            if lock is None:
                if why := self._supervised(note, run_id):
                    return why
                lock = attempt_folder.take(self._files, place)
                if lock is None:
                    return "its earlier worker has not ended yet"
        except OSError as error:
            return f"whether its worker still runs cannot be told: {error}"
        try:
            return self._swept(note, run_id)
        finally:
            attempt_folder.free(lock)

    def _supervised(self, note: Note | None, run_id: str) -> str | None:
        """Have the supervisor end the tree; why that cannot be done, if so."""
        if note is None or note.run_id != run_id or note.supervisor_pid is None:
            return "another service is starting a worker for it, or another run of it is still ending"
        if not note.is_known(self._clock):
            return f"its worker still runs in another container (process {note.pid} there); end it there"
        fd = _opened(note.supervisor_pid, note.supervisor_born)
        if fd is None:
            return None
        try:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, signal.SIGTERM)
                signal.pidfd_send_signal(fd, signal.SIGCONT)  # one that somebody has stopped would not hear it
            return None if select.select([fd], [], [], _BOUND)[0] else f"its worker (process {note.pid}) does not end"
        except PermissionError:
            return f"its worker (process {note.pid}) belongs to another user"
        finally:
            os.close(fd)

    def _swept(self, note: Note | None, run_id: str) -> str | None:
        """Nobody supervises it any more: kill what is in its group or carries the run in its environment."""
        if note is not None and note.run_id == run_id and note.cgroup is not None and note.is_known(self._clock):
            if not cgroups.kill(note.cgroup):
                return f"the processes in {note.cgroup} do not end"
            cgroups.remove(note.cgroup)
        while left := [(pid, born) for pid in processes.of_run(self._root, run_id) if (born := processes.born(pid))]:
            for pid, born in left:
                if why := _killed(pid, born):
                    return why
        return None


def _killed(pid: int, born: str) -> str | None:
    fd = _opened(pid, born)
    if fd is None:
        return None
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        return None if select.select([fd], [], [], _BOUND)[0] else f"process {pid} of its worker does not end"
    except PermissionError:
        return f"process {pid} of its worker belongs to another user"
    finally:
        os.close(fd)


def _opened(pid: int, born: str | None) -> int | None:
    """A descriptor of exactly this process; None when it has gone, whoever has its number now."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if processes.born(pid) == born:
        return fd
    os.close(fd)
    return None
