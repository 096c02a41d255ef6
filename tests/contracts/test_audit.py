"""Audit records are found by each of their keys, in every store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.handoffs.audit import AuditRecord
from aof.store.directory import AuditQuery
from aof.store.port import Store
from tests.support.audits import note

NOW = 1_772_442_000_000
AGENTS = ("ada", "bob", "eve")


@pytest.fixture
def records(store: Store, fabric: Fabric) -> tuple[AuditRecord, ...]:
    """A mixed set: two tasks, six handoffs, each agent as sender and as receiver."""
    tasks = [fabric.create("One").task_id, fabric.create("Another").task_id]
    pairs = [(a, b) for a in AGENTS for b in AGENTS if a != b]
    for number, (sender, receiver) in enumerate(pairs):
        given: dict[str, Any] = {"handoff": f"h-{number}", "from_agent": sender, "to_agent": receiver}
        note(store, NOW + number, tasks[number % 2], "initiated", **given)
        note(store, NOW + number, tasks[number % 2], "accepted", **given)
    return store.audited(AuditQuery())


def test_each_key_gives_all_matching_records_and_no_others(
    store: Store, fabric: Fabric, records: tuple[AuditRecord, ...]
) -> None:
    assert [one.seq for one in records] == sorted(one.seq for one in records)
    assert len(records) == 12
    keys: dict[str, Callable[[AuditRecord], str]] = {
        "handoff": lambda one: one.handoff_id,
        "task": lambda one: one.context_snapshot.task_id,
        "from_agent": lambda one: one.from_agent,
        "to_agent": lambda one: one.to_agent,
    }
    for name, key in keys.items():
        for value in map(key, records):
            given: dict[str, Any] = {name: value}
            assert fabric.audit(**given).records == tuple(one for one in records if key(one) == value)
    both = fabric.audit(from_agent="ada", to_agent="bob").records
    assert both == tuple(one for one in records if (one.from_agent, one.to_agent) == ("ada", "bob"))
    assert fabric.audit(handoff="h-9").records == ()


def test_records_come_in_pages(fabric: Fabric, records: tuple[AuditRecord, ...]) -> None:
    first = fabric.audit(limit=5)
    assert (first.records, first.more) == (records[:5], True)
    rest = fabric.audit(after=first.records[-1].seq, limit=7)
    assert (rest.records, rest.more) == (records[5:], False)


def test_tasks_are_found_by_their_ids(store: Store, fabric: Fabric) -> None:
    one, two = fabric.create("One").task_id, fabric.create("Another", brief="long").task_id
    found = store.records([one, two, "TASK-2020-01-01-001"])
    assert [(task.id, task.body) for task in found] == [(one, ""), (two, "")]
