"""Control groups (cgroup v2): one per worker, so that everything in it can be killed at once. Standard library only.

Where no group can be made (no cgroup v2, not writable, not Linux) every function does nothing, and the caller relies
on being the subreaper of its worker. Must not know runs or tasks.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

_PREFIX = "aof-"
_BOUND = 5.0  # seconds that killed processes may take to leave the group
_PAUSE = 0.005


def own() -> str | None:
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


def make(name: str) -> str | None:
    """A new group below our own that processes can be put into; None where that is not possible."""
    parent = own()
    if parent is None:
        return None
    group = f"{parent}/{_PREFIX}{name}"
    try:
        os.mkdir(group, 0o755)
    except OSError:
        return None
    if os.access(f"{group}/cgroup.procs", os.W_OK) and os.access(f"{group}/cgroup.kill", os.W_OK):
        return group
    remove(group)
    return None


def join(group: str) -> None:
    """Put this process into the group; raises OSError."""
    with open(f"{group}/cgroup.procs", "wb", buffering=0) as file:
        file.write(b"0")


def kill(group: str) -> bool:
    """Kill everything in the group and wait until it is empty; tells whether it is. A group that is gone is empty."""
    if not _is_ours(group):
        return True
    try:
        with open(f"{group}/cgroup.kill", "wb", buffering=0) as file:
            file.write(b"1")
        ends = time.monotonic() + _BOUND
        while _populated(group):
            if time.monotonic() >= ends:
                return False
            time.sleep(_PAUSE)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def remove(group: str) -> None:
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


def _populated(group: str) -> bool:
    with open(f"{group}/cgroup.events", encoding="ascii") as file:
        return "populated 1" in file.read()
