"""Dependencies between tasks: adding and removing them, and what giving up or reviving a task does to its dependents.

No task waits in vain: one that depends on a cancelled or dead task is blocked, with the reason. Must not know rights.
"""

from __future__ import annotations

from typing import Any

from aof.core.errors.base import Call, InvalidInput
from aof.core.errors.tasks import DependencyCycle, TaskRunning
from aof.core.model import workflow
from aof.core.model.commands import AddDependency, RemoveDependency
from aof.core.model.events import Draft
from aof.core.model.ids import OURSELVES
from aof.core.model.lifecycle import FAILED, FINISHED
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.tasks.graph import find_path, missing
from aof.core.tasks.transitions import born_blocked, to_blocked, transition
from aof.core.validation.limits import DEPENDENCIES

_HELD = ("backlog", "ready")


def add_dependency(records: Records, command: AddDependency, now: int) -> Verdict:
    """Let a task wait for another, unless that would make it wait for itself."""
    task, blocker_id = records.task(command.task_id), command.blocker_id
    blocker = records.look(blocker_id)
    if blocker is None:
        return missing(blocker_id)
    if blocker_id in task.depends_on:
        return Decision()
    if len(task.depends_on) >= DEPENDENCIES:
        return InvalidInput(f"{task.id} has {DEPENDENCIES} dependencies already", "group some of them under one task")
    if refusal := closed_circle(records, task.id, blocker_id) or _running(task):
        return refusal
    edges = [*task.depends_on, blocker_id]
    added = Draft(type="task.dependency.updated", task_id=task.id, payload={"dependsOn": edges, "added": blocker_id})
    held = (held_by(task, blocker, now),) if blocker.status in FAILED and task.status in _HELD else ()
    return Decision(drafts=(added, *held))


def _running(task: Task) -> TaskRunning | None:
    """The refusal to let work wait that somebody has begun: it would go on, and nobody would notice the edge."""
    held = workflow.leases(task)
    if not held:
        return None
    return TaskRunning(
        f"{held[0].agent} is running {task.id}, so it cannot begin to wait",
        "release it first",
        Call("release", {"task_id": task.id, "run": held[0].run_id}),
        holder=held[0].agent,
        run_id=held[0].run_id,
    )


def closed_circle(records: Records, task_id: str, blocker_id: str) -> DependencyCycle | None:
    """The refusal for an edge by which the task would wait for itself, with the way around."""
    path = find_path(records.reachable[blocker_id], blocker_id, task_id)
    if not path:
        return None
    if task_id == blocker_id:
        return DependencyCycle(
            f"{task_id} cannot wait for itself", "name another task", Call("show", {"task_id": task_id}), path=[task_id]
        )
    return DependencyCycle(
        f"{task_id} cannot wait for {blocker_id}: {' → '.join((task_id, *path))} would be a circle",
        "remove one of these dependencies first",
        Call("dep_remove", {"task_id": path[-2], "blocker_id": path[-1]}),
        path=[task_id, *path],
    )


def remove_dependency(records: Records, command: RemoveDependency, now: int) -> Verdict:
    """Let a task no longer wait for another; what was blocked because of it goes on."""
    task = records.task(command.task_id)
    if command.blocker_id not in task.depends_on:
        return Decision() if records.look(command.blocker_id) is not None else missing(command.blocker_id)
    edges = [edge for edge in task.depends_on if edge != command.blocker_id]
    payload = {"dependsOn": edges, "removed": command.blocker_id}
    removed = Draft(type="task.dependency.updated", task_id=task.id, payload=payload)
    if task.blocked is None or task.blocked.dependency != command.blocker_id:
        return Decision(drafts=(removed,))
    freed = back(records, task, task.blocked.was, now, reason="dependency removed", but=command.blocker_id)
    return Decision(drafts=(removed, *freed))


def dead_dependency(records: Records, edges: tuple[str, ...], but: str | None = None) -> Task | None:
    """The first of the dependencies that was cancelled or died."""
    for edge in edges:
        blocker = records.look(edge) if edge != but else None
        if blocker is not None and blocker.status in FAILED:
            return blocker
    return None


def back(
    records: Records,
    task: Task,
    target: str,
    now: int,
    *,
    reason: str,
    but: str | None = None,
    **more: Any,
) -> tuple[Draft, ...]:
    """Return to `ready` or `backlog`; on to `blocked` where a dependency has died in the meantime."""
    moved = transition(task, target, reason=reason, **more)
    dead = dead_dependency(records, task.depends_on, but)
    return (moved,) if dead is None else (moved, held_by(task, dead, now, origin=target))


def cascade(records: Records, died: tuple[str, ...], status: str, now: int) -> tuple[Draft, ...]:
    """Dependents of tasks that were cancelled or died become blocked, each once, and say why."""
    drafts: list[Draft] = []
    told = set(died)
    for dead_id in died:
        for dependent_id in records.dependents[dead_id]:
            dependent = records.look(dependent_id)
            if (
                dependent is None
                or dependent_id in told
                or dependent.status not in _HELD
                or dependent.cancel is not None
            ):
                continue
            told.add(dependent_id)
            reason = f"dependency {dead_id} is {status}"
            drafts.append(to_blocked(dependent, now, kind="blocked", reason=reason, by=OURSELVES, dependency=dead_id))
    return tuple(drafts)


def edge_status(status: str) -> str:
    """How an edge stands whose deciding end has this status."""
    return "broken" if status in FAILED else "satisfied" if status == "done" else "active"


def told(records: Records, drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
    """The drafts, and one at each unfinished dependent of a task that ends or begins again: its edge has changed."""
    last = {draft.task_id: place for place, draft in enumerate(drafts) if draft.type == "task.transitioned"}
    found: list[Draft] = []
    for place, draft in enumerate(drafts):
        found.append(draft)
        blocker = records.tasks.get(draft.task_id)
        if last.get(draft.task_id) != place or blocker is None:
            continue
        status = edge_status(draft.payload["to"])
        if status != edge_status(blocker.status):
            payload = {"kind": "blocked_by", "targetId": blocker.id, "status": status}
            found += [
                Draft(type="task.dependency.updated", task_id=one, payload=payload)
                for one in records.dependents.get(blocker.id, ())
                if (dependent := records.look(one)) is not None and dependent.status not in FINISHED
            ]
    return tuple(found)


def release_dependents(records: Records, revived: str, now: int) -> tuple[Draft, ...]:
    """What was blocked only because this task was dead goes back to where it was."""
    drafts: list[Draft] = []
    for dependent_id in records.dependents[revived]:
        dependent = records.look(dependent_id)
        if dependent is not None and dependent.blocked is not None and dependent.blocked.dependency == revived:
            reason = f"dependency {revived} is retried"
            drafts += back(records, dependent, dependent.blocked.was, now, reason=reason, but=revived)
    return tuple(drafts)


def hold_at_birth(task_id: str, dead: Task, now: int, origin: str) -> Draft:
    """A new task whose dependency is dead already is blocked from the start."""
    reason = f"dependency {dead.id} is {dead.status}"
    return born_blocked(task_id, now, reason=reason, origin=origin, dependency=dead.id)


def hold(records: Records, task: Task, edges: tuple[str, ...], now: int) -> tuple[Draft, ...]:
    """Block a waiting task at once when one of its new dependencies is dead already."""
    dead = dead_dependency(records, edges)
    return () if dead is None or task.status not in _HELD else (held_by(task, dead, now),)


def held_by(task: Task, dead: Task, now: int, origin: str | None = None) -> Draft:
    """The event by which a dead dependency blocks a task."""
    reason = f"dependency {dead.id} is {dead.status}"
    return to_blocked(task, now, kind="blocked", reason=reason, by=OURSELVES, origin=origin, dependency=dead.id)


def dead_lettered(records: Records, task: Task, now: int, *, reason: str, error: dict[str, str]) -> tuple[Draft, ...]:
    """Give the task up: `deadletter` with the cause on it, its dependents told."""
    dead = transition(task, "deadletter", reason=reason, error=error)
    return (dead, *cascade(records, (task.id,), "deadletter", now))


def revived(records: Records, task: Task, now: int, reason: str) -> tuple[Draft, ...]:
    """A finished task is ready again, and so is what was blocked because of it."""
    freed = release_dependents(records, task.id, now)
    return (by_hand(task, reason), *back(records, task, "ready", now, reason=reason), *freed)


def by_hand(task: Task, reason: str) -> Draft:
    """A retry on request: the count of failures starts over, and there is no wait."""
    payload = {"reason": reason, "attempt": task.retry.attempts + 1, "cause": "rerun", "byHand": True}
    return Draft(type="task.retrying", task_id=task.id, payload=payload)
