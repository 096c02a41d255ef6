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
    """Every place where a process can die."""
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


def die_at_every_step(
    before: Path,
    clock: Callable[[], FakeClock],
    act: Callable[[Fabric], object],
    check: Callable[[Path, str], object],
    *,
    swaps: bool = True,
) -> int:
    """Die at each step of the act on a copy, and look at what is left, under another boot and under the same.

    `counted` beside it is the copy on which nothing died. The answer is how many steps there are.
    """
    dead, rebooted = before.with_name("dead"), before.with_name("rebooted")
    steps = died(before, before.with_name("counted"), clock(), act, DyingDisk(swaps=swaps))
    for number, moment in deaths(steps):
        died(before, dead, clock(), act, DyingDisk(number, moment, swaps=swaps))
        try:
            shutil.copytree(dead, rebooted)
            check(rebooted, "two")
            check(dead, "one")
        except BaseException as error:
            error.add_note(f"died {moment.value} step {number}: {steps[number]}")
            raise
        shutil.rmtree(dead)
        shutil.rmtree(rebooted)
    return len(steps)
