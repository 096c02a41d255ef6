"""Audit records without handoffs: events that carry one, on any task."""

from __future__ import annotations

from typing import Any

from aof.api.fabric import Fabric
from aof.handoffs import audit
from aof.kernel.model import Draft, Event
from aof.store.port import Scope, Store


def note(store: Store, now: int, task_id: str, step: audit.AuditStep = "initiated", **given: Any) -> Event:
    """Commit an event that is an audit record: a remark, which changes nothing else."""
    handoff = given.pop("handoff", "h-1")
    whole: dict[str, Any] = {
        "from_agent": "ada",
        "to_agent": "bob",
        "handoff_type": "delegation",
        "reason": "needs review",
        "variables": {},
        "artifact_count": 0,
    } | given
    with store.unit(Scope(write=frozenset({task_id}))) as unit:
        task = unit.task(task_id)
        assert task is not None
        payload = {"handoffId": handoff, "audit": audit.audit_payload(step, task=task, **whole)}
        draft = Draft(type="task.warning", task_id=task_id, payload=payload)
        (event,) = unit.commit((draft,), actor="ada", agent=None, now=now)
    return event


def finished(fabric: Fabric, task_id: str, *, done: bool = True) -> None:
    """Close a task: completed, or cancelled."""
    if done:
        fabric.complete(task_id, agent="bob")
    else:
        fabric.cancel(task_id)
