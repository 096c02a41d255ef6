"""What a handoff's events make of its task: the link to the record, and the short list of those that are open.

Must not know the records themselves.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.evolve.handoff import state_after
from aof.core.model.events import Event
from aof.core.model.handoffs.ids import is_format_1
from aof.core.model.handoffs.record import OPEN
from aof.core.model.task import Link, OpenHandoff, Task


def begun(task: Task, event: Event) -> dict[str, Any]:
    """The task names the handoff among its links, and lists it as open; earlier versions only did the former."""
    name = event.payload["handoffId"]
    known = any((link.kind, link.target_id) == ("handoff", name) for link in task.links)
    links = task.links if known else (*task.links, Link(kind="handoff", target_id=name, created_at=event.timestamp))
    if is_format_1(name):
        return {"links": links}
    told = event.payload["handoff"]
    one = OpenHandoff(
        id=name,
        type=told["type"],
        state=told["state"],
        from_agent=told["from_agent"],
        to_agent=told["to_agent"],
        by_message="request" in event.payload,
    )
    return {"links": links, "handoffs": (*(other for other in task.handoffs if other.id != name), one)}


def changed(task: Task, event: Event) -> dict[str, Any]:
    """The list after an answer or an end: what is over is not on it any more."""
    state = state_after(event)
    name = event.payload["handoffId"]
    if state is None or all(one.id != name for one in task.handoffs):
        return {}
    kept = (msgspec.structs.replace(one, state=state) if one.id == name else one for one in task.handoffs)
    return {"handoffs": tuple(one for one in kept if one.state in OPEN)}
