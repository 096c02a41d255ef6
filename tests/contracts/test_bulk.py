"""One change of many tasks: on every store, each by its own commit, with one report and an honest preview."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AmbiguousId, InvalidInput, TaskNotFound
from aof.store.port import Store


def _three(fabric: Fabric) -> list[str]:
    return [fabric.create(f"Task {number}", tags=["old"], priority="low").task_id for number in range(3)]


def _outcomes(report: Any) -> dict[str, str]:
    return {item.task_id: item.outcome for item in report.items}


def test_a_preview_tells_what_the_change_then_does(fabric: Fabric, store: Store) -> None:
    first, second, third = _three(fabric)
    below = fabric.create("Below", parent_id=first).task_id
    fabric.claim(second, agent="ada")
    fabric.complete(second, agent="ada")
    fabric.approve(second)
    head = store.head()
    shown = fabric.bulk("cancel", tag="old", reason="no", dry_run=True)
    assert store.head() == head
    assert _outcomes(shown) == {first: "changed", second: "refused", third: "changed"}
    done = fabric.bulk("cancel", tag="old", reason="no")
    assert _outcomes(done) == _outcomes(shown)
    assert [item.also for item in done.items] == [item.also for item in shown.items] == [(below,), (), ()]
    assert [item.status for item in done.items] == [item.status for item in shown.items]
    assert (done.total, done.changed, done.unchanged, done.refused) == (3, 2, 0, 1)
    assert done.items[1].error is not None
    assert done.items[1].error.code == "invalid_transition"
    assert fabric.get(below).status == "cancelled"


def test_an_edit_of_many_changes_only_what_it_names(fabric: Fabric) -> None:
    tasks = _three(fabric)
    fabric.edit(tasks[0], priority="high", metadata={"a": 1})
    report = fabric.bulk("edit", task_ids=tasks, changes={"priority": "high", "agent": "bob", "owner": None})
    assert report.changed == 3
    assert {fabric.get(task).priority for task in tasks} == {"high"}
    assert {fabric.get(task).routing.agent for task in tasks} == {"bob"}
    assert fabric.get(tasks[0]).routing.tags == ("old",)
    assert fabric.get(tasks[0]).metadata == {"a": 1}
    assert fabric.bulk("edit", task_ids=tasks, changes={"priority": "high"}).unchanged == 3


def test_retry_and_archive_of_many(fabric: Fabric) -> None:
    tasks = _three(fabric)
    fabric.bulk("cancel", task_ids=tasks)
    assert fabric.bulk("retry", task_ids=tasks[:1], reason="again").items[0].status == "ready"
    assert _outcomes(fabric.bulk("archive", task_ids=tasks)) == {
        tasks[0]: "refused",
        tasks[1]: "changed",
        tasks[2]: "changed",
    }
    assert fabric.get(tasks[1]).archived


def test_the_same_request_with_a_key_has_one_effect(fabric: Fabric, store: Store) -> None:
    tasks = _three(fabric)
    fabric.bulk("cancel", task_ids=tasks, reason="no", key="k")
    head = store.head()
    fabric.bulk("cancel", task_ids=tasks, reason="no", key="k")
    assert store.head() == head


def test_what_has_changed_since_the_preview_is_left_alone(fabric: Fabric) -> None:
    tasks = _three(fabric)
    shown = fabric.bulk("cancel", tag="old", dry_run=True)
    fabric.edit(tasks[1], title="Wanted after all")
    done = fabric.bulk("cancel", tag="old", expect_revs={item.task_id: item.rev for item in shown.items})
    assert [item.outcome for item in done.items] == ["changed", "refused", "changed"]
    assert done.items[1].error is not None
    assert done.items[1].error.code == "revision_conflict"
    assert fabric.get(tasks[1]).status == "ready"


WRONG: list[dict[str, Any]] = [
    {"command": "cancel"},
    {"command": "cancel", "limit": 5},
    {"command": "cancel", "archived": True},
    {"command": "cancel", "tag": ""},
    {"command": "cancel", "status": []},
    {"command": "delete", "tag": "old"},
    {"command": "retry", "tag": "old"},
    {"command": "edit", "tag": "old"},
    {"command": "edit", "tag": "old", "changes": {}},
    {"command": "cancel", "tag": "old", "changes": {"priority": "high"}},
    {"command": "cancel", "task_ids": ["001"], "tag": "old"},
    {"command": "cancel", "task_ids": ["001"] * 1001},
    {"command": "cancel", "status": "open"},
]


def test_a_call_that_does_not_say_what_and_which_changes_nothing(fabric: Fabric, store: Store) -> None:
    _three(fabric)
    head = store.head()
    for given in WRONG:
        with pytest.raises(InvalidInput) as refused:
            fabric.bulk(**given)
        assert refused.value.hint, given
        assert store.head() == head, given


def test_one_wrong_id_among_many_stops_all(fabric: Fabric, store: Store) -> None:
    tasks = _three(fabric)
    head = store.head()
    for wrong, kind in (("TASK-2026-03-02-404", TaskNotFound), ("2026", AmbiguousId)):
        with pytest.raises(kind):
            fabric.bulk("cancel", task_ids=[*tasks, wrong])
    assert store.head() == head


def test_a_field_that_cannot_be_edited_is_refused_for_each_task(fabric: Fabric, store: Store) -> None:
    tasks = _three(fabric)
    head = store.head()
    report = fabric.bulk("edit", task_ids=tasks, changes={"status": "done"})
    assert {item.error.code for item in report.items if item.error is not None} == {"invalid"}
    assert (report.refused, store.head()) == (3, head)
