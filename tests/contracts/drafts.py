"""Drafts and scopes as the tests of a store need them, without any rule in between."""

from __future__ import annotations

from typing import Any

from aof.kernel.events import Draft, Event
from aof.store.port import Scope, Store
from aof.tasks.model import Task
from aof.testing import FakeClock

NO_SUCH = "TASK-2026-03-02-999"


def created(task_id: str, **fields: Any) -> Draft:
    task = {"schemaVersion": 1, "title": "By hand", "status": "ready", "priority": "normal", "createdBy": "pm"} | fields
    return Draft(type="task.created", task_id=task_id, payload={"task": task})


def moved(task_id: str, origin: str, target: str) -> Draft:
    return Draft(type="task.transitioned", task_id=task_id, payload={"from": origin, "to": target, "reason": "so"})


def writing(*task_ids: str) -> Scope:
    return Scope(write=frozenset(task_ids))


def reading(*task_ids: str) -> Scope:
    return Scope(read=frozenset(task_ids))


def commit(store: Store, clock: FakeClock, *drafts: Draft) -> tuple[Event, ...]:
    with store.unit(writing(*(draft.task_id for draft in drafts))) as unit:
        return unit.commit(drafts, actor="pm", agent=None, now=clock.now())


def loaded(store: Store, task_id: str) -> Task | None:
    with store.unit(reading(task_id)) as unit:
        return unit.task(task_id)
