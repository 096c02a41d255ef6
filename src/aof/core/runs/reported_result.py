"""What becomes of a task whose run has reported and then ended or vanished: session end and recovery alike.

Must not know why the run is over.
"""

from __future__ import annotations

from typing import Any

from aof.core.model.events import Draft
from aof.core.model.records import Records
from aof.core.model.run import RunResult
from aof.core.model.task import Task
from aof.core.runs.completion import apply_result
from aof.core.tasks import declared


def apply_reported(
    records: Records, task: Task, result: RunResult, now: int, reason: str | None, **more: Any
) -> tuple[Draft, ...]:
    """The outcome's transitions; files that the result refers to and that are not there are only warned of."""
    return (*lacking(records, task, result), *apply_result(records, task, result, now, reason, **more))


def lacking(records: Records, task: Task, result: RunResult) -> tuple[Draft, ...]:
    """A warning for each file that the result refers to and that is not there."""
    refs = (ref for ref in (result.summary_ref, result.handoff_ref) if ref and (task.id, ref) in records.missing)
    return tuple(_warning(task, result, ref) for ref in refs)


def _warning(task: Task, result: RunResult, ref: str) -> Draft:
    detail = f"the result of {result.run_id} refers to {ref}, which is not there"
    payload = {"code": "missing_file", "path": ref, "detail": detail}
    return Draft(type="task.warning", task_id=task.id, run_id=result.run_id, payload=payload)


def referred(known: Records, task_id: str) -> frozenset[tuple[str, str]]:
    """The files that the reported results of a task, or of its hops, refer to, and those that the task requires."""
    hops = f"{task_id}/hops/"
    found = (result for place, result in known.results.items() if place == task_id or place.startswith(hops))
    refs = (ref for one in found if isinstance(one, RunResult) for ref in (one.summary_ref, one.handoff_ref))
    return frozenset((task_id, ref) for ref in refs if ref is not None) | declared.required_files(
        known.tasks.get(task_id)
    )
