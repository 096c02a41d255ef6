"""What the parts of the doctor hand to each other."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from aof.ports.working_copy import Problem
from aof.stores.base.fold import Folded
from aof.stores.filesystem.store import FilesystemStore
from aof.stores.filesystem.working_copy.scan import Scan


class DoctorFinding(msgspec.Struct, frozen=True):
    """A problem, and what heals it (at a moment), if anything does; of which tasks that asks the log once more.

    Lower stages are healed first.
    """

    problem: Problem
    stage: int = 0
    heal: Callable[[int], None] | None = None
    tasks: tuple[str, ...] = ()


class Case:
    """A data directory as it was read: what the log says of every task, and what lies in the folders."""

    __slots__ = ("folded", "scan", "store")

    def __init__(self, store: FilesystemStore, folded: dict[str, Folded], found: Scan) -> None:
        self.store = store
        self.folded = folded
        self.scan = found
