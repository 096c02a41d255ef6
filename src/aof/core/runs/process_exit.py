"""What the host of a run records when its worker has ended. Must not know what becomes of the task."""

from __future__ import annotations

from typing import Any

from aof.core.errors.base import InvalidInput
from aof.core.model.commands import Exited
from aof.core.model.events import Draft
from aof.core.model.ids import task_of_run
from aof.core.model.records import Decision, Records, Verdict
from aof.core.validation import limits


def exited(records: Records, command: Exited, _now: int) -> Verdict:
    """How the worker ended, and where its output lies; also for a run that has ended already."""
    task = records.task(command.task_id)
    if command.run is None or task_of_run(command.run) != task.id:
        return InvalidInput(f"a worker's end needs the run of {task.id} that it was", "give the run")
    if problem := limits.line("stopped", command.stopped, limits.ITEM) or limits.data("output", command.output):
        return problem
    payload: dict[str, Any] = {"exitCode": command.exit_code, "signal": command.signal, "stopped": command.stopped}
    payload = {name: value for name, value in payload.items() if value is not None} | {"output": command.output}
    return Decision(drafts=(Draft(type="run.exited", task_id=task.id, run_id=command.run, payload=payload),))
