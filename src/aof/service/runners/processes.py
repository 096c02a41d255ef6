"""Processes of this machine and their control groups: which one it is, whether it lives, which belong to a run.

Standard library only: supervisors load it without site-packages.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

_STARTED = 19  # the field of /proc/<pid>/stat that tells when the process began, counted after its name
_DATA_DIR = b"AOF_DATA_DIR="
_PREFIX = "aof-"  # of the groups that we make
_BOUND = 5.0  # seconds that killed processes may take to leave the group
_PAUSE = 0.005


def born_at(pid: int) -> str | None:
    """What tells this process from a later one with the same number; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[:1] == [b"Z"] else fields[_STARTED].decode("ascii")


def process_space() -> str:
    """Which numbering of processes this is: a container has one of its own, in which our numbers mean nothing."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def processes_of_run(root: str, run_id: str) -> Iterator[int]:
    """The processes that were started for a run of this data directory, by what stands in their environment.

    The run alone would not do: every data directory has a first task of the day.
    """
    mark = f"AOF_RUN_ID={run_id}".encode()
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
                    named = (one.removeprefix(_DATA_DIR) for one in variables if one.startswith(_DATA_DIR))
                    if mark in variables and os.path.samefile(next(named, b""), root):  # by whatever path
                        yield int(name)


def processes_below(pid: int) -> Iterator[int]:
    """Every process that descends from this one, the nearest first. What begins meanwhile may be missing."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                    children.setdefault(parent, []).append(int(name))
    found = [pid]
    for one in found:
        found += children.get(one, ())
    yield from found[1:]


def end_processes(pids: Iterator[int]) -> int:
    """Kill them; tells how many there were."""
    count = 0
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            count += 1
    return count


def own_group() -> str | None:
    """The folder of this process's own group; None where there is no cgroup v2."""
    with suppress(OSError, StopIteration):
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            path = next(line[3:].rstrip("\n") for line in file if line.startswith("0::"))
        inner, point = _mount()
        if not path.startswith("/.."):  # else it is outside of what this container can see
            return f"{point}/{path.removeprefix(inner.rstrip('/')).strip('/')}".rstrip("/")
    return None


def _mount() -> tuple[str, str]:
    """Which group is mounted, and where; raises OSError or StopIteration."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        fields = next(line.split(" ") for line in file if " - cgroup2 " in line)
    return fields[3], fields[4].replace(r"\040", " ")


def make_group(name: str) -> str | None:
    """A new group below our own that processes can be put into; None where that is not possible."""
    parent = own_group()
    if parent is None:
        return None
    group = f"{parent}/{_PREFIX}{name}"
    try:
        os.mkdir(group, 0o755)
    except OSError:
        return None
    if os.access(f"{group}/cgroup.procs", os.W_OK) and os.access(f"{group}/cgroup.kill", os.W_OK):
        return group
    remove_group(group)
    return None


def join_group(group: str) -> None:
    """Put this process into the group; raises OSError."""
    with open(f"{group}/cgroup.procs", "wb", buffering=0) as file:
        file.write(b"0")


def kill_group(group: str) -> bool:
    """Kill everything in the group and wait until it is empty; tells whether it is. A group that is gone is empty."""
    if not _is_ours(group):
        return True
    try:
        with open(f"{group}/cgroup.kill", "wb", buffering=0) as file:
            file.write(b"1")
        ends = time.monotonic() + _BOUND
        while True:
            with open(f"{group}/cgroup.events", encoding="ascii") as file:
                if "populated 1" not in file.read():
                    return True
            if time.monotonic() >= ends:
                return False
            time.sleep(_PAUSE)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def remove_group(group: str) -> None:
    """Remove an empty group."""
    if _is_ours(group):
        with suppress(OSError):
            os.rmdir(group)


def _is_ours(group: str) -> bool:
    """Whether the path can be a group that `make` made: a note on the disk must not have any other one killed."""
    folder, _, name = group.rpartition("/")
    with suppress(OSError, StopIteration):
        point = _mount()[1]
        below = folder == point or folder.startswith(f"{point}/")
        return below and name.startswith(_PREFIX) and os.path.realpath(group) == group
    return False
