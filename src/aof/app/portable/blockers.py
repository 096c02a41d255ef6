"""Why a task does not go on, what holds it, and which action would free it. Pure."""

from __future__ import annotations

from typing import Any

from aof.app.portable.view_source import Scene
from aof.app.portable.vocabulary import short
from aof.core.errors.base import AofError, Call
from aof.core.model.task import Task
from aof.core.org.capacity import full

WAITING = frozenset({"waiting_input", "waiting_permission", "waiting_resource", "blocked", "paused"})
_ODD = {
    "stale": "its file was changed by hand and not yet imported",
    "unknown": "its file cannot be read; see 'aof doctor'",
}

_HELD_BY = (("not_before", "time"), ("handoff_id", "handoff"))  # what the ready rule names, and what kind that is


def reason(scene: Scene, task: Task) -> str | None:
    """Why the task is in its status, where the status calls for a reason."""
    status = scene.status(task)
    if status in _ODD:
        return _ODD[status]
    if task.archived or status in ("accepted", "draft", "preparing", "running", "completed"):
        return None
    if task.status == "cancelled" or status == "cancelling":
        return short(_of_cancel(task))
    return short(_REASONS[task.status](scene, task))


def _queued(scene: Scene, task: Task) -> str:
    held = scene.refusal(task)
    if held is not None:
        return held.message
    return (busy(scene, task.routing.agent) if task.routing.agent else None) or "it waits for its turn"


def busy(scene: Scene, name: str) -> str | None:
    """Why an agent cannot take a task now that is meant for it."""
    agent = scene.chart.by_id.get(name) if scene.chart is not None else None
    why = full(scene.chart, agent, scene.load) if scene.chart is not None and agent is not None else None
    return f"{name} cannot take another task now: {why}" if why is not None else None


def _of_cancel(task: Task) -> str:
    return (task.cancel.reason if task.cancel is not None else None) or "it was cancelled"


def _of_failure(_scene: Scene, task: Task) -> str:
    error = task.last_error
    return f"{error.code}: {error.message}" if error is not None else "it was given up"


def _lost(_scene: Scene, task: Task) -> str:
    return f"the lease of {task.lease.agent} ran out" if task.lease is not None else "its lease ran out"


_REASONS = {
    "ready": _queued,
    "in-progress": _lost,
    "review": lambda _scene, _task: "it waits for an approval",
    "blocked": lambda _scene, task: task.blocked.reason if task.blocked is not None else "it is blocked",
    "deadletter": _of_failure,
}


def blocked(scene: Scene, task: Task) -> dict[str, Any] | None:
    """What holds a task that cannot go on by itself, and what would free it; None for one that can."""
    status = scene.status(task)
    if task.cancel is not None:
        return None
    if status in WAITING:
        blockers, actions = _by_itself(scene, task)
    elif status in ("queued", "retrying"):
        refusal = scene.refusal(task)
        if refusal is None:
            return None
        blockers, actions = _by_rule(scene, task, refusal)
    else:
        return None
    said = {"taskId": task.id, "status": status, "reason": reason(scene, task) or ""}
    since = {"since": task.blocked.since if task.blocked is not None else task.last_transition_at}
    return {**said, **since, "blockers": blockers, "actions": actions}


def _by_itself(scene: Scene, task: Task) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Of what is blocked or in review: somebody's decision frees it, or the end of what it waits for."""
    if task.status == "review":
        return [_blocker("review", task.id)], [_action(Call("approve", {"task_id": task.id}))]
    if task.blocked is not None and task.blocked.dependency is not None:
        dead = task.blocked.dependency
        again = Call("retry", {"task_id": dead, "reason": "…"})
        apart = Call("dep_remove", {"task_id": task.id, "blocker_id": dead})
        return [_blocker("task", dead, scene.task(dead))], [_action(apart), _action(again)]
    paused = task.blocked is not None and task.blocked.kind == "paused"
    freed = Call("resume" if paused else "unblock", {"task_id": task.id})
    by = task.blocked.by if task.blocked is not None else task.id
    return [_blocker("paused" if paused else "hold", by)], [_action(freed)]


def _by_rule(scene: Scene, task: Task, refusal: AofError) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Of what is in `ready` and may not run yet: all dependencies that are not done, or what the ready rule names."""
    unmet = [one for one in task.depends_on if (found := scene.task(one)) is None or found.status != "done"]
    if unmet:
        blockers = [_blocker("task", one, scene.task(one)) for one in unmet]
        return blockers, [_action(Call("complete", {"task_id": one})) for one in unmet]
    other = refusal.details.get("waits_for")
    if isinstance(other, str):
        kind = "resource" if refusal.code == "resource_busy" else "task"
        return [_blocker(kind, other, scene.task(other))], [_action(Call("complete", {"task_id": other}))]
    kind = next((kind for name, kind in _HELD_BY if name in refusal.details), "hold")
    subject = refusal.details.get("handoff_id", task.id)
    return [_blocker(kind, subject)], [_action(refusal.call)] if refusal.call is not None else []


def _blocker(kind: str, name: str, task: Task | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": kind, "id": name}
    return found | {"status": task.status} if task is not None else found


def _action(call: Call) -> dict[str, Any]:
    """An action has an ID of its own: what is to be done, and with which task or handoff."""
    subject = call.arguments.get("task_id") or call.arguments.get("handoff_id")
    return {
        "actionId": f"{call.operation}:{subject}",
        "operation": call.operation,
        "arguments": {_camel(name): value for name, value in call.arguments.items()},
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
