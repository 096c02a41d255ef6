"""The drafts of status changes, and the refusal that lists the allowed ones. Must not know rights."""

from __future__ import annotations

from typing import Any

from aof.core.errors.base import Call
from aof.core.errors.tasks import InvalidTransition
from aof.core.model.events import Draft
from aof.core.model.ids import OURSELVES
from aof.core.model.lifecycle import TRANSITIONS
from aof.core.model.task import Task
from aof.core.model.times import iso


def transition(task: Task, target: str, *, origin: str | None = None, reason: str | None = None, **more: Any) -> Draft:
    """The event of a status change; `origin` where the task is not in its stored status any more."""
    payload: dict[str, Any] = {"from": origin or task.status, "to": target}
    if reason:
        payload["reason"] = reason
    return Draft(type="task.transitioned", task_id=task.id, payload=payload | more)


def to_blocked(
    task: Task,
    now: int,
    *,
    kind: str,
    reason: str,
    by: str,
    origin: str | None = None,
    dependency: str | None = None,
    **more: Any,
) -> Draft:
    """The event of becoming blocked. Only from `backlog` a task returns there; from elsewhere it returns to `ready`."""
    return transition(
        task, "blocked", origin=origin, **_why(now, kind, reason, by, origin or task.status, dependency), **more
    )


def born_blocked(task_id: str, now: int, *, reason: str, origin: str, dependency: str) -> Draft:
    """The event by which a task that is created in this very commit becomes blocked."""
    payload = {"from": origin, "to": "blocked", **_why(now, "blocked", reason, OURSELVES, origin, dependency)}
    return Draft(type="task.transitioned", task_id=task_id, payload=payload)


def _why(  # noqa: PLR0917 - the facts that `blocked` holds
    now: int, kind: str, reason: str, by: str, origin: str, dependency: str | None
) -> dict[str, Any]:
    blocked: dict[str, Any] = {"kind": kind, "reason": reason, "by": by, "since": iso(now)}
    if origin == "backlog":
        blocked["was"] = origin
    if dependency is not None:
        blocked["dependency"] = dependency
    return {"reason": reason, "blocked": blocked}


def no_edge(task: Task, target: str, hint: str = "", call: Call | None = None, *, only: str = "") -> InvalidTransition:
    """The refusal that names both statuses and lists where the task may go, or says what `only` the verb is for."""
    allowed = ", ".join(TRANSITIONS[task.status]) or "nowhere but by retry"
    return InvalidTransition(
        f"{task.id} is {task.status}; {only}"
        if only
        else f"{task.id} is {task.status} and cannot go to {target}; from {task.status} it may go to: {allowed}",
        hint or "choose one of these, or retry a finished task",
        call or Call("show", {"task_id": task.id}),
        status=task.status,
        allowed=list(TRANSITIONS[task.status]),
    )
