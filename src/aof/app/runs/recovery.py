"""The end of a run that nobody else ends: by what it has reported, else by the rules for lost runs.

Must not know who noticed it.
"""

from __future__ import annotations

from collections.abc import Callable

from aof.app.commands.context import Environment
from aof.app.commands.unit_of_work import Done
from aof.app.messages.router import record
from aof.core.errors.runs import UnreadableResult
from aof.core.errors.tasks import UnreadableTask
from aof.core.model.commands import OnTask
from aof.core.model.events import Draft
from aof.core.model.task import Task

_REJECTED = "protocol.message.rejected"


def recovered(
    environment: Environment, task: Task, command: OnTask, dispatch: Callable[[OnTask], Done], actor: str
) -> Done | None:
    """Carry out the command; None where a person must look at the task first, so that others can go on."""
    try:
        return dispatch(command)
    except UnreadableTask:
        return None  # until somebody has corrected its file
    except UnreadableResult as problem:
        _reject_result(environment, task, problem, actor)
        return None


def _reject_result(environment: Environment, task: Task, problem: UnreadableResult, actor: str) -> None:
    """Said once for each run and problem, however often somebody looks."""
    store = environment.store
    run = task.lease.run_id if task.lease is not None else None
    payload = {"reason": problem.code, "detail": problem.message}
    said = (event for event in store.events(task_id=task.id) if event.type == _REJECTED and event.run_id == run)
    if not any(event.payload == payload for event in said):
        draft = Draft(type=_REJECTED, task_id=task.id, run_id=run, payload=payload)
        record(store, environment.clock, draft, actor)
