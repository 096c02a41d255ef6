"""Audit records without handoffs: events that carry one, on any task."""

from __future__ import annotations

from typing import Any

from aof.api.fabric import Fabric
from aof.handoffs import audit
from aof.handoffs.model import Handoff, HandoffContext, HandoffType, Rationale, ReturnProtocol, Validation
from aof.kernel.events import Draft, Event
from aof.store.port import Scope, Store


def handoff_between(  # noqa: PLR0917 - what an audit record tells
    from_agent: str = "ada",
    to_agent: str = "bob",
    kind: HandoffType = "delegation",
    variables: dict[str, Any] | None = None,
    artifacts: int = 0,
    why: Rationale = Rationale(),  # noqa: B008 - frozen
) -> Handoff:
    """A handoff that only its audit records are made of."""
    return Handoff(
        id="h-1",
        timestamp="2026-03-02T09:00:00.000Z",
        from_agent=from_agent,
        to_agent=to_agent,
        type=kind,
        reason="needs review",
        context=HandoffContext(task_id="", context_variables=variables or {}, artifacts=({},) * artifacts),
        validation=Validation(),
        return_protocol=ReturnProtocol(expected=True),
        audit=why,
        state="requested",
        rev=0,
        number=1,
        trigger="explicit_request",
    )


def note(store: Store, now: int, task_id: str, step: audit.AuditStep = "initiated", **given: Any) -> Event:
    """Commit an event that is an audit record: a remark, which changes nothing else."""
    handoff_id = given.pop("handoff", "h-1")
    named = {name: given.pop(name) for name in ("from_agent", "to_agent", "variables") if name in given}
    handoff = handoff_between(**named, kind=given.pop("handoff_type", "delegation"))
    with store.unit(Scope(write=frozenset({task_id}))) as unit:
        task = unit.task(task_id)
        assert task is not None
        payload = {"handoffId": handoff_id, "audit": audit.audited(step, task, handoff, **given)}
        draft = Draft(type="task.warning", task_id=task_id, payload=payload)
        (event,) = unit.commit((draft,), actor="ada", agent=None, now=now)
    return event


def finished(fabric: Fabric, task_id: str, *, done: bool = True) -> None:
    """Close a task: completed, or cancelled."""
    if done:
        fabric.complete(task_id, agent="bob")
    else:
        fabric.cancel(task_id)
