"""The note beside a run: which process is its worker, who supervises it, who hosts it. Written before the worker acts.

A process is named by its number, when it began, the start of the machine and the numbering (PID namespace), so that a
later process with the same number is never mistaken for it. Must not know tasks.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from aof._support import nesting
from aof._support.confined_folder import ConfinedFolder
from aof.adapters.runners import processes
from aof.ports.clock import Clock
from aof.ports.runner import Work


class Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What whoever comes after a dead host needs to know."""

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
        return boot is not None and (self.boot_id, self.pid_space) == (boot.id, processes.space())


def path(root: str, place: str, attempt: int) -> str:
    """Where the note of a run is."""
    return f"{root}/runs/{place}/attempts/{attempt}/process.json"


def read(root: str, place: str, attempt: int) -> Note | None:
    """The note of a run, if there is a usable one."""
    try:
        fd = os.open(path(root, place, attempt), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            return nesting.decode(file.read(1_000_000), Note)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write(files: ConfinedFolder, clock: Clock, work: Work, worker: dict[str, Any]) -> None:
    """Put the note on the disk, all of it or nothing, and wait until it is there; raises OSError."""
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
        host_born=processes.born(os.getpid()),
        pid_space=processes.space(),
        boot_id=boot.id if boot is not None else None,
    )
    target = path(files.root, work.place, work.attempt)
    folder, name = files.at(target)
    part = f"{name}.part"
    with os.fdopen(files.open(f"{target}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    _sync(folder.fd)


def _sync(folder: int) -> None:
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
