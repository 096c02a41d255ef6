"""The states of Agent2Agent beside ours: what a peer sees of a task, and what a peer's own word means. Pure."""

from __future__ import annotations

from typing import Final

from a2a.types import TaskState

from aof.core.model.task import Task

FINAL: Final = frozenset({
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
})  # fmt: skip
WAITING: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
_ENDED: Final = {
    "done": TaskState.TASK_STATE_COMPLETED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
    "deadletter": TaskState.TASK_STATE_FAILED,
}
_PREFIX: Final = "TASK_STATE_"
UNKNOWN: Final = "unknown"


def state_of(task: Task) -> TaskState:
    """What a peer is told. A task that waits for one of us is being worked on, as far as a peer is concerned."""
    if task.status in _ENDED:
        return _ENDED[task.status]
    if task.open_questions or (task.blocked is not None and task.blocked.kind == "waiting_input"):
        return TaskState.TASK_STATE_INPUT_REQUIRED
    begun = task.retry.attempts > 0 or task.status in ("in-progress", "review")
    return TaskState.TASK_STATE_WORKING if begun else TaskState.TASK_STATE_SUBMITTED


def word_of(state: int) -> str:
    """The peer's own word for a state, as its JSON has it; `unknown` for one that the protocol does not have."""
    if state == TaskState.TASK_STATE_UNSPECIFIED or state not in TaskState.values():
        return UNKNOWN
    name: str = TaskState.Name(state)
    return name.removeprefix(_PREFIX).lower().replace("_", "-")
