"""Processes that die at a step of the disk: where they can, and what they leave behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from aof.api.fabric import Fabric
from aof.errors import CommitUnknown
from aof.kernel.model import Policy
from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from aof.testing import FakeClock
from tests.support.disks import DyingDisk, Killed, Moment, Step, SteppingDisk, writes_data
from tests.support.same_place import adopt


def opened(root: Path, clock: FakeClock, disk: Disk | None = None, boot: str = "one") -> Fabric:
    """A fabric of the maintainer, on a disk that takes each step by itself."""
    store = FilesystemStore(str(root), clock, disk=disk or SteppingDisk(), boot_id=lambda: boot)
    return Fabric(store, clock, Policy(maintainers=("pm",), project="pilot"), "pm")


def deaths(steps: list[Step]) -> Iterator[tuple[int, Moment]]:
    for number, step in enumerate(steps):
        yield number, Moment.BEFORE
        if writes_data(step):
            yield number, Moment.HALF
            yield number, Moment.ALMOST


def died(before: Path, root: Path, clock: FakeClock, act: Callable[[Fabric], object], disk: DyingDisk) -> list[Step]:
    """Act on a copy of a data directory until the disk kills; the steps that were taken."""
    shutil.copytree(before, root)
    adopt(root)
    fabric: Fabric | None = None
    try:
        fabric = opened(root, clock, disk)
        act(fabric)
    except (Killed, CommitUnknown):
        pass
    finally:
        if fabric is not None:
            try:
                fabric.close()
            except Killed:
                fabric.store.locks.close()  # type: ignore[attr-defined]
    return disk.taken
