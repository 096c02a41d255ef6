"""Delivery: whether the output of a task has reached its receiver. A fact of its own, apart from the task's status.

Inside one fabric a parent has the output of its children once they are done, so that is recorded with their end. What
goes to a channel or a peer is recorded by whoever delivers it. Must not know how anything is delivered.
"""

from __future__ import annotations

from typing import Any, Final

from aof.core.errors.base import AofError
from aof.core.model.commands import RecordDelivery
from aof.core.model.events import Draft
from aof.core.model.lifecycle import FAILED
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.runs.lease import authorize
from aof.core.validation import limits

STATES: Final = ("pending", "queued", "delivered", "failed")
EVENT: Final = "task.delivery.updated"


def record(records: Records, command: RecordDelivery, _now: int) -> Verdict:
    """Put the state on record; of a running task only its holder may. The same again changes nothing."""
    task = records.task(command.task_id)
    problem = (
        limits.choice("state", command.state, STATES)
        or limits.line("target", command.target, limits.ITEM)
        or limits.text("reason", command.reason, limits.REASON)
    )
    if problem:
        return problem
    holder = authorize(task, command) if task.lease is not None else None
    if isinstance(holder, AofError):
        return holder
    draft = _draft(task, command.state, command.target or task.delivery.get("targetId"), command.reason)
    return Decision(drafts=(draft,) if draft is not None else (), agent=holder)


def _draft(task: Task, state: str, target: str | None, reason: str | None) -> Draft | None:
    said: dict[str, Any] = {"state": state, "targetId": target, "reason": reason}
    payload = {name: value for name, value in said.items() if value}
    known = {name: value for name, value in task.delivery.items() if name != "at"}
    return None if payload == known else Draft(type=EVENT, task_id=task.id, payload=payload)


def to_parent(records: Records, drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
    """The drafts, and for each child that is done now, whether its parent has the output."""
    found: list[Draft] = []
    for draft in drafts:
        found.append(draft)
        task = records.tasks.get(draft.task_id) if draft.type == "task.transitioned" else None
        if task is not None and task.parent_id is not None and draft.payload["to"] == "done":
            told = _told(records, task, task.parent_id)
            found += [told] if told is not None else []
    return tuple(found)


def _told(records: Records, task: Task, parent_id: str) -> Draft | None:
    if task.delivery.get("targetId", parent_id) != parent_id or parent_id not in records.tasks:
        return None  # it goes elsewhere, or nobody has looked
    parent = records.tasks[parent_id]
    if parent is None:
        return _draft(task, "parent_missing", parent_id, None)
    if parent.status in FAILED:
        return _draft(task, "failed", parent_id, f"{parent_id} is {parent.status}")
    return _draft(task, "delivered", parent_id, None)
