"""The run files of hops, in `runs/<ID>/hops/<hop>/`: what a commit does to them. Loaded only for gated tasks.

Must not know what a workflow is, beyond that each hop has runs of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from aof.core.evolve.run import evolve_result, evolve_run
from aof.core.model.events import Event
from aof.core.model.ids import attempt_of
from aof.core.model.run import Run, RunResult
from aof.core.model.task import Task
from aof.stores.filesystem.working_copy.files import TaskFiles, document

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore


class HopChange(msgspec.Struct):
    """What a commit does to one hop's runs; `earlier` is the number of the run that makes room for a new one."""

    begins: bool = False
    earlier: int = 0
    run: Run | None = None
    result: RunResult | None = None


HopChanges = dict[str, HopChange]


def after(store: FilesystemStore, changes: HopChanges | None, event: Event, before: Task | None) -> HopChanges:
    """The changes so far, and what the event adds to them."""
    changes = {} if changes is None else changes
    hop = event.payload["hop"]
    change = changes.setdefault(hop, HopChange())
    if event.type == "task.attempt.started":
        change.begins = True
        change.earlier = _last_run(before, hop)
    elif change.run is None:
        change.run = _current(store, event, hop)
    change.run = evolve_run(change.run, event)
    change.result = evolve_result(change.result, event)
    return changes


def _last_run(task: Task | None, hop: str) -> int:
    for state in task.workflow.get("hops", ()) if task is not None else ():
        if state["id"] == hop and state.get("runId"):
            return attempt_of(state["runId"])
    return 0


def _current(store: FilesystemStore, event: Event, hop: str) -> Run | None:
    """From its file, else from the log."""
    found = store.files.read_run(f"{event.task_id}/hops/{hop}", "run.json", Run)
    if found is not None and found.run_id == event.run_id:
        return found
    return store.folded(event.task_id).last_of(hop)


def documents(changes: HopChanges) -> dict[str, bytes]:
    """The files that are to be written, by their names below the task's folder of runs."""
    written: dict[str, bytes] = {}
    for hop, change in changes.items():
        if change.run is not None:
            written[f"hops/{hop}/run.json"] = document(change.run)
        if change.result is not None:
            written[f"hops/{hop}/run_result.json"] = document(change.result)
    return written


def write(files: TaskFiles, task_id: str, changes: HopChanges, documents: Mapping[str, bytes]) -> None:
    """Make room where a run begins, and write those of these files that are of hops."""
    for hop, change in changes.items():
        if change.begins:
            files.make_way(f"{task_id}/hops")
            files.begin_run(f"{task_id}/hops/{hop}", change.earlier)
    for name, data in documents.items():
        if name.startswith("hops/"):
            _, hop, base = name.split("/")
            files.write_run(f"{task_id}/hops/{hop}", base, data, new=changes[hop].begins or base == "run_result.json")
