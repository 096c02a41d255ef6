"""Out of the archive and open again: on every store, with runs, files and dependents as they were."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.errors import CancelRequested, TaskNotFound
from aof.store.port import Store
from tests.support.room import in_status


def _done(fabric: Fabric, title: str = "Finish it") -> str:
    task = fabric.create(title, review=False).task_id
    fabric.claim(task, agent="ada")
    fabric.complete(task, agent="ada", summary="all of it")
    return task


def test_an_archived_task_comes_back_in_its_status_with_its_runs(fabric: Fabric, store: Store) -> None:
    task = _done(fabric)
    runs = store.attempts(task)
    fabric.archive(task)
    assert fabric.list().total == 0
    assert fabric.unarchive(task).status == "done"
    assert fabric.unarchive(task).status == "done", "a second time changes nothing"
    assert [row.id for row in fabric.list(status="done").tasks] == [task]
    assert store.attempts(task) == runs
    assert store.path_of(fabric.get(task)) == f"tasks/done/{task}.md"
    assert [event.type for event in store.events(task_id=task)].count("task.unarchived") == 1


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("backlog", [False, True])
def test_a_finished_task_is_reopened(fabric: Fabric, store: Store, *, archived: bool, backlog: bool) -> None:
    task = _done(fabric)
    if archived:
        fabric.archive(task)
    wanted = "backlog" if backlog else "ready"
    assert fabric.reopen(task, reason="the bug is back", backlog=backlog).status == wanted
    assert not fabric.get(task).archived
    assert "the bug is back" in [event.payload.get("reason") for event in store.events(task_id=task)]
    if backlog:
        fabric.update(task, status="ready")
    fabric.claim(task, agent="bob")
    assert [run.attempt for run in store.attempts(task)] == [1, 2]


@pytest.mark.parametrize("status", ["ready", "backlog", "in-progress", "blocked", "review"])
def test_what_is_open_stays_as_it_is(fabric: Fabric, store: Store, status: str) -> None:
    task = in_status(fabric, status)
    head = store.head()
    assert fabric.reopen(task).status == status
    assert store.head() == head


def test_a_reopened_task_frees_what_waited_for_it(fabric: Fabric) -> None:
    first = fabric.create("First").task_id
    second = fabric.create("Second", depends_on=[first]).task_id
    fabric.cancel(first)
    fabric.archive(first)
    assert fabric.get(second).status == "blocked"
    fabric.reopen(first)
    assert (fabric.get(first).status, fabric.get(second).status) == ("ready", "ready")


def test_nothing_is_reopened_below_a_cancelled_parent(fabric: Fabric) -> None:
    parent = fabric.create("Whole").task_id
    child = fabric.create("Part", parent_id=parent).task_id
    fabric.cancel(parent)
    fabric.archive(child)
    with pytest.raises(CancelRequested):
        fabric.reopen(child)
    assert fabric.get(child).archived, "refused as a whole"


def test_a_task_that_does_not_exist_cannot_be_reopened(fabric: Fabric) -> None:
    with pytest.raises(TaskNotFound):
        fabric.reopen("TASK-2026-03-02-404")
    with pytest.raises(TaskNotFound):
        fabric.unarchive("TASK-2026-03-02-404")
