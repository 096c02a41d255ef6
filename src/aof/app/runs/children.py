"""What became of the tasks below one, for the run that goes on with them and for whoever looks at the parent.

Must not know how it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aof.core.model.ids import run_place
from aof.core.model.run import RunResult
from aof.core.model.task import Task
from aof.ports.store import Scope, Store

_MOST = 30  # children that are named
_LONGEST = 1_000  # characters of what one of them came to


class Child(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One task below another: how it stands, and what came of it in the words of its last worker."""

    task_id: str
    title: str
    status: str
    agent: str | None = None
    summary: str | None = None

    def __str__(self) -> str:
        whose = f"; {self.agent}" if self.agent else ""  # who is to do it did neither cancel nor block it
        told = f": {self.summary}" if self.summary else ""
        return f"{self.task_id} ({self.title}{whose}) is {self.status}{told}"


def children_of(store: Store, task_id: str) -> tuple[Child, ...]:
    """The first of the tasks directly below; a task that nothing stands below is not looked for in the index."""
    with store.unit(Scope(read=frozenset({task_id}))) as unit:
        below = unit.children(task_id)
    return told(store, store.records(below[:_MOST])) if below else ()


def told(store: Store, tasks: Sequence[Task]) -> tuple[Child, ...]:
    """How these tasks stand."""
    shown = tasks[:_MOST]
    with store.unit(Scope(read=frozenset(task.id for task in shown))) as unit:
        results = [next(filter(None, (_result(unit.result(place)) for place in _places(task))), None) for task in shown]
    return tuple(_child(task, result) for task, result in zip(shown, results, strict=True))


def _places(task: Task) -> list[str]:
    """Where its last result is: its own, or that of its last hop."""
    return [run_place(task.id, hop["id"]) for hop in reversed(task.workflow["hops"])] if task.gated else [task.id]


def _result(found: object) -> RunResult | None:
    return found if isinstance(found, RunResult) else None


def _child(task: Task, result: RunResult | None) -> Child:
    agent = (
        result.agent_id if result is not None else task.lease.agent if task.lease is not None else task.routing.agent
    )
    return Child(task_id=task.id, title=task.title, status=task.status, agent=agent, summary=_summary(task, result))


def _summary(task: Task, result: RunResult | None) -> str | None:
    if task.status == "deadletter" and task.last_error is not None:
        said: str | None = f"{task.last_error.code}: {task.last_error.message}"
    elif task.status == "blocked" and task.blocked is not None:
        said = task.blocked.reason
    elif task.status == "cancelled" and task.cancel is not None:
        said = task.cancel.reason
    else:
        said = result.notes if result is not None else None
    return said if said is None or len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
