"""Disks that stop, fail or remember: stand-ins for the one class that all writes go through.

Every primitive of `Disk` is one step here, also those that a larger one is made of (`replace` is a swap and an unlink,
`write_durable` a write and a sync). None of them makes anything durable, so they are fast.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from aof.store.files.disk import Disk


class Killed(BaseException):
    """The process is gone. No `except Exception` sees it, as none would see a kill."""


class Step(NamedTuple):
    """One primitive: its name, the files that it is about, its data, and a number (an offset or a size)."""

    name: str
    path: str = ""
    other: str = ""
    data: bytes = b""
    number: int = 0


class SteppingDisk(Disk):
    """Names every step before it is taken. `swaps` lets it exchange names from the first write on."""

    def __init__(self, *, swaps: bool = False) -> None:
        super().__init__()
        if swaps:
            self._replaced = 1000

    def step(self, step: Step, act: Callable[[], int]) -> int:
        """Take the step."""
        return act()

    def append(self, fd: int, data: bytes) -> int:
        return self.step(Step("append", path_of(fd), data=data), lambda: os.write(fd, data))

    def flush(self, fd: int) -> None:
        self.step(Step("flush", path_of(fd)), _nothing)

    def truncate(self, fd: int, size: int) -> None:
        self.step(Step("truncate", path_of(fd), number=size), lambda: _did(os.ftruncate, fd, size))

    def overwrite(self, fd: int, data: bytes, offset: int) -> None:
        step = Step("overwrite", path_of(fd), data=data, number=offset)
        self.step(step, lambda: os.pwrite(fd, data, offset))

    def write_new(self, path: str, data: bytes) -> None:
        self.step(Step("write_new", path, data=data), lambda: _did(super(SteppingDisk, self).write_new, path, data))

    def write_durable(self, path: str, data: bytes) -> None:
        self.write_new(path, data)
        self.step(Step("flush", path), _nothing)

    def rename(self, source: str, target: str) -> None:
        self.step(Step("rename", source, target), lambda: _did(super(SteppingDisk, self).rename, source, target))

    def _swap(self, source: str, target: str) -> bool:
        if not os.path.lexists(target):
            return False
        return bool(self.step(Step("swap", source, target), lambda: super(SteppingDisk, self)._swap(source, target)))

    def unlink(self, path: str) -> None:
        if not os.path.lexists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self.step(Step("unlink", path), lambda: _did(super(SteppingDisk, self).unlink, path))

    def make_dir(self, path: str) -> None:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.step(Step("make_dir", path), lambda: _did(super(SteppingDisk, self).make_dir, path))

    def sync_dir(self, path: str) -> None:
        self.step(Step("sync_dir", path), _nothing)

    def sync_all(self, root: str) -> None:
        self.step(Step("sync_all", root), _nothing)

    def create(self, path: str) -> int:
        if os.path.lexists(path):
            return super().create(path)
        return self.step(Step("create", path), lambda: super(SteppingDisk, self).create(path))


class Moment(Enum):
    """When a process dies: before a step, or in the middle of writing its data."""

    BEFORE = "before"
    HALF = "half of"
    ALMOST = "all but the last byte of"


class DyingDisk(SteppingDisk):
    """Dies at the nth step, and does nothing from then on. Counts the steps where it never dies."""

    def __init__(self, die_at: int = -1, moment: Moment = Moment.BEFORE, *, swaps: bool = False) -> None:
        super().__init__(swaps=swaps)
        self.die_at = die_at
        self.moment = moment
        self.dead = False
        self.taken: list[Step] = []

    def step(self, step: Step, act: Callable[[], int]) -> int:
        """Die here, or take the step."""
        if self.dead or len(self.taken) == self.die_at:
            if not self.dead and self.moment is not Moment.BEFORE:
                _begin(step, 0.5 if self.moment is Moment.HALF else 1.0)
            self.dead = True
            raise Killed(str(step)[:200])
        self.taken.append(step)
        return act()


class FailingDisk(SteppingDisk):
    """Fails the nth step with an error, once or for good; `short` lets an append write a part, without an error."""

    def __init__(
        self,
        fail_at: int = -1,
        number: int = errno.EIO,
        *,
        lasting: bool = False,
        short: bool = False,
        swaps: bool = False,
    ) -> None:
        super().__init__(swaps=swaps)
        self.fail_at = fail_at
        self.number = number
        self.lasting = lasting
        self.short = short
        self.taken: list[Step] = []

    def step(self, step: Step, act: Callable[[], int]) -> int:
        """Fail here, or take the step."""
        here = len(self.taken)
        self.taken.append(step)
        if here == self.fail_at or (self.lasting and here > self.fail_at >= 0):
            if self.short and step.name == "append":
                return _begin(step, 0.5)
            if step.name == "write_new":
                _begin(step, 0.5)
            raise OSError(self.number, os.strerror(self.number), step.path)
        return act()


def path_of(fd: int) -> str:
    """The file that a descriptor stands for."""
    return os.readlink(f"/proc/self/fd/{fd}")


def writes_data(step: Step) -> bool:
    """Whether a process can die in the middle of the step."""
    return step.name in {"append", "write_new"} and len(step.data) > 1


def _begin(step: Step, share: float) -> int:
    """Write only the first part of the step's data."""
    part = step.data[: min(int(len(step.data) * share), len(step.data) - 1)]
    flags = os.O_WRONLY | (os.O_APPEND if step.name == "append" else os.O_CREAT | os.O_TRUNC)
    fd = os.open(step.path, flags, 0o644)
    try:
        return os.write(fd, part)
    finally:
        os.close(fd)


def _did(act: Callable[..., None], *given: object) -> int:
    act(*given)
    return 0


def _nothing() -> int:
    return 0
