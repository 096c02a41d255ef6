"""What an attempt of a run leaves on this machine: its locked folder, a note about its worker, and its processes.

The processes of an attempt must have ended before somebody else gets the task.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
from contextlib import suppress
from typing import Any

import msgspec

from aof.kernel.ports import Work
from aof.service.runners import processes
from aof.store.port import Clock
from aof.support import nesting
from aof.support.confined_folder import ConfinedFolder

_BOUND = 10.0  # seconds that a tree may take to end


class ProcessOrphans:
    """Implements `kernel.ports.Orphans` for one data directory."""

    def __init__(self, root: str, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._files = ConfinedFolder(root)

    def end(self, place: str, attempt: int, run_id: str) -> str | None:
        """End every process of the run; None when none is left, else why that is not so."""
        if not os.path.isdir(attempt_folder(self._root, place)):
            return self._kill_all(None, run_id)
        try:
            self._files.begin()
            lock = take_folder(self._files, place)
            note = read_note(self._root, place, attempt)
            if lock is None:
                if why := self._stop_supervisor(note, run_id):
                    return why
                lock = take_folder(self._files, place)
                if lock is None:
                    return "its earlier worker has not ended yet"
        except OSError as error:
            return f"whether its worker still runs cannot be told: {error}"
        try:
            return self._kill_all(note, run_id)
        finally:
            free_folder(lock)

    def _stop_supervisor(self, note: Note | None, run_id: str) -> str | None:
        """Have the supervisor end the tree; why that cannot be done, if so."""
        if note is None or note.run_id != run_id or note.supervisor_pid is None:
            return "another service is starting a worker for it, or another run of it is still ending"
        if not note.is_known(self._clock):
            return f"its worker still runs in another container (process {note.pid} there); end it there"
        # One that somebody has stopped does not get the signal before it goes on.
        return _signal_and_wait(
            note.supervisor_pid,
            note.supervisor_born,
            (signal.SIGTERM, signal.SIGCONT),
            f"its worker (process {note.pid})",
        )

    def _kill_all(self, note: Note | None, run_id: str) -> str | None:
        """Kill what is in the group of a run that nobody supervises, or has the run in its environment."""
        if note is not None and note.run_id == run_id and note.cgroup is not None and note.is_known(self._clock):
            if not processes.kill_group(note.cgroup):
                return f"the processes in {note.cgroup} do not end"
            processes.remove_group(note.cgroup)
        while left := [
            (pid, born) for pid in processes.processes_of_run(self._root, run_id) if (born := processes.born_at(pid))
        ]:
            for pid, born in left:
                if why := _signal_and_wait(pid, born, (signal.SIGKILL,), f"process {pid} of its worker"):
                    return why
        return None


def _signal_and_wait(pid: int, born: str | None, signals: tuple[int, ...], name: str) -> str | None:
    """End exactly this process; why that is not so, if so. Another one may have its number by now."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        if processes.born_at(pid) != born:
            return None
        with suppress(ProcessLookupError):
            for number in signals:
                signal.pidfd_send_signal(fd, number)
        return None if select.select([fd], [], [], _BOUND)[0] else f"{name} does not end"
    except PermissionError:
        return f"{name} belongs to another user"
    finally:
        os.close(fd)


class Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the next host needs to know of a worker whose host has died."""

    run_id: str
    pid: int
    host_pid: int
    host_born: str | None
    pid_space: str
    boot_id: str | None
    command: list[str] = []
    born: str | None = None
    supervisor_pid: int | None = None
    supervisor_born: str | None = None
    cgroup: str | None = None

    def is_known(self, clock: Clock) -> bool:
        """Whether its numbers mean anything here: same start of the machine, same numbering."""
        boot = clock.boot()
        return boot is not None and (self.boot_id, self.pid_space) == (boot.id, processes.process_space())


def note_path(root: str, place: str, attempt: int) -> str:
    """Where the note of a run is."""
    return f"{root}/runs/{place}/attempts/{attempt}/process.json"


def read_note(root: str, place: str, attempt: int) -> Note | None:
    """The note of a run, if there is a usable one."""
    try:
        fd = os.open(note_path(root, place, attempt), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            return nesting.decode_json(file.read(1_000_000), Note)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write_note(files: ConfinedFolder, clock: Clock, work: Work, worker: dict[str, Any]) -> None:
    """Write the note whole or not at all, and wait until it is on the disk; raises OSError."""
    boot = clock.boot()
    note = Note(
        run_id=work.run_id,
        command=list(work.command),
        pid=worker["pid"],
        born=worker["born"],
        supervisor_pid=worker["supervisorPid"],
        supervisor_born=worker["supervisorBorn"],
        cgroup=worker["cgroup"],
        host_pid=os.getpid(),
        host_born=processes.born_at(os.getpid()),
        pid_space=processes.process_space(),
        boot_id=boot.id if boot is not None else None,
    )
    target = note_path(files.root, work.place, work.attempt)
    folder, name = files.at(target)
    part = f"{name}.part"
    with os.fdopen(files.open(f"{target}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder.fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def attempt_folder(root: str, place: str) -> str:
    """The folder that is locked while a worker is there."""
    return f"{root}/runs/{place}/attempts"


def take_folder(files: ConfinedFolder, place: str) -> int | None:
    """A descriptor that holds the lock; None while a worker is there. Raises OSError where there can be none."""
    path = attempt_folder(files.root, place)
    files.make_folders(path)
    fd = files.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError:
        os.close(fd)
        raise
    return fd


def free_folder(fd: int) -> None:
    """Release the lock."""
    fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)
