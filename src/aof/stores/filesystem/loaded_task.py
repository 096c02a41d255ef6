"""A task as a unit of work has loaded it, and what a commit makes of it. Must not know how either is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aof.core.model.run import Run, RunResult
from aof.core.model.task import Task
from aof.stores.filesystem.io.read import Seen
from aof.stores.filesystem.working_copy import markdown

if TYPE_CHECKING:
    from aof.stores.filesystem.records.handoffs import Handed
    from aof.stores.filesystem.records.hop_runs import HopChanges
    from aof.stores.filesystem.working_copy.changes import Examined


class Loaded(msgspec.Struct):
    """A task under lock: its record, the folder of its file, and the file as it was read.

    `held` says that the file is a person's for now, who changed it after it was read; it is imported next time.
    There is no `file` after the last write of a unit, for nothing comes after it that could overwrite an edit.
    """

    task: Task | None
    folder: str | None = None
    file: Seen | None = None
    examined: Examined | None = None
    held: bool = False


class Change(msgspec.Struct):
    """What a commit does to one task."""

    before: Loaded
    task: Task
    last: int
    earlier_runs: int = 0
    run: Run | None = None
    ended_run: Run | None = None
    result: RunResult | None = None
    begins: bool = False
    prepared: markdown.Prepared | None = None
    data: bytes = b""
    digest: str = ""
    documents: dict[str, bytes] = {}
    handed: Handed | None = None
    hops: HopChanges | None = None
