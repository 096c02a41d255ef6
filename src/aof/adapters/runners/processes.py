"""Other processes of this machine: which one it is, whether it lives, which belong to a run. Knows Linux only."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

_STARTED = 19  # the field of /proc/<pid>/stat that tells when the process began, counted after its name
_PLACE = b"AOF_DATA_DIR="


def born(pid: int) -> str | None:
    """What tells this process from a later one with the same number; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[:1] == [b"Z"] else fields[_STARTED].decode("ascii")


def space() -> str:
    """Which numbering of processes this is: a container has one of its own, in which our numbers mean nothing."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def of_run(root: str, run_id: str) -> Iterator[int]:
    """The processes that were started for a run of this data directory, by what stands in their environment.

    The run alone would not do: every data directory has a first task of the day.
    """
    mark = f"AOF_RUN_ID={run_id}".encode()
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
                    if mark in variables and _is_in(root, variables):
                        yield int(name)


def below(pid: int) -> Iterator[int]:
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


def _is_in(root: str, variables: list[bytes]) -> bool:
    """Whether the environment names this data directory, by whatever path."""
    named = next((one.removeprefix(_PLACE) for one in variables if one.startswith(_PLACE)), b"")
    return os.path.samefile(named, root)


def end(pids: Iterator[int]) -> int:
    """Kill them; tells how many there were."""
    count = 0
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            count += 1
    return count
