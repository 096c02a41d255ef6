"""Undo: on every store, new events bring back exactly what was, or the refusal says why they cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import InvalidInput, NotFound, NotUndoable, RevisionConflict
from aof.store.port import Store
from aof.testing import memory_fabric

Act = Callable[[Fabric, str], Any]
# What passes while something is done and taken back, and nobody would call a change.
PASSING = ("rev", "updatedAt", "lastTransitionAt", "endedAt", "cancel", "retry", "createdAt")


def _state(fabric: Fabric, task_id: str) -> dict[str, Any]:
    task = fabric.get(task_id)
    shown: dict[str, Any] = msgspec.to_builtins(task)
    shown = {name: value for name, value in shown.items() if name not in PASSING and value not in (None, [], (), {})}
    shown["body"], shown["archived"] = task.body, task.archived
    if "blocked" in shown:
        shown["blocked"] = {name: one for name, one in shown["blocked"].items() if name not in ("since", "by")}
    shown["dependsOn"] = sorted(shown.get("dependsOn", ()))
    shown["links"] = sorted((link.kind, link.target_id) for link in task.links)
    return shown


def _other(fabric: Fabric) -> str:
    return next(row.id for row in fabric.list(search="Other").tasks)


CHANGES: dict[str, tuple[Act | None, Act]] = {
    "title": (None, lambda f, t: f.edit(t, title="New")),
    "several fields": (None, lambda f, t: f.edit(t, priority="high", metadata={"a": 1, "b": None}, owner="bob")),
    "cleared fields": (None, lambda f, t: f.edit(t, metadata={"b": None}, routing={"agent": None, "tags": ["x"]})),
    "description": (None, lambda f, t: f.edit(t, description="Else.\n")),
    "body": (None, lambda f, t: f.update(t, body="All new.\n")),
    "to the backlog": (None, lambda f, t: f.update(t, status="backlog")),
    "to ready": (lambda f, t: f.update(t, status="backlog"), lambda f, t: f.update(t, status="ready")),
    "block": (None, lambda f, t: f.block(t, reason="no key", kind="waiting_input")),
    "block in the backlog": (lambda f, t: f.update(t, status="backlog"), lambda f, t: f.block(t, reason="x")),
    "unblock": (lambda f, t: f.block(t, reason="x", kind="waiting_input"), lambda f, t: f.unblock(t)),
    "pause": (None, lambda f, t: f.pause(t, reason="later")),
    "resume": (lambda f, t: f.pause(t, reason="later"), lambda f, t: f.resume(t)),
    "cancel": (None, lambda f, t: f.cancel(t, reason="no")),
    "cancel in the backlog": (lambda f, t: f.update(t, status="backlog"), lambda f, t: f.cancel(t)),
    "cancel while blocked": (lambda f, t: f.block(t, reason="no key"), lambda f, t: f.cancel(t)),
    "reopen": (lambda f, t: f.cancel(t, reason="no"), lambda f, t: f.reopen(t)),
    "archive": (lambda f, t: f.cancel(t), lambda f, t: f.archive(t)),
    "unarchive": (lambda f, t: (f.cancel(t), f.archive(t)), lambda f, t: f.unarchive(t)),
    "reopen from the archive": (lambda f, t: (f.cancel(t), f.archive(t)), lambda f, t: f.reopen(t)),
    "add a dependency": (None, lambda f, t: f.dep_add(t, _other(f))),
    "remove a dependency": (lambda f, t: f.dep_add(t, _other(f)), lambda f, t: f.dep_remove(t, _other(f))),
    "link": (None, lambda f, t: f.link(t, "evidence", "logs/a.txt", reason="seen")),
    "unlink": (lambda f, t: f.link(t, "evidence", "logs/a.txt"), lambda f, t: f.unlink(t, "evidence", "logs/a.txt")),
    "new parent": (None, lambda f, t: f.link(t, "parent", _other(f))),
    "no parent": (lambda f, t: f.link(t, "parent", _other(f)), lambda f, t: f.unlink(t, "parent", _other(f))),
}


def _task(fabric: Fabric) -> str:
    fabric.create("Other")
    return fabric.create("Old", brief="Text.\n", agent="ada", tags=["t"], metadata={"b": {"c": [1]}}).task_id


@pytest.mark.parametrize("name", CHANGES)
def test_an_undo_brings_back_what_was_by_new_events(fabric: Fabric, store: Store, name: str) -> None:
    prepare, act = CHANGES[name]
    task = _task(fabric)
    if prepare is not None:
        prepare(fabric, task)
    before = _state(fabric, task)
    act(fabric, task)
    changed, log = _state(fabric, task), [event.hash for event in store.events()]
    assert changed != before
    shown = fabric.undo(dry_run=True)
    assert shown.dry_run
    assert [event.hash for event in store.events()] == log, "a dry run changes nothing"
    done = fabric.undo()
    assert [(one.task_id, one.change) for one in done.steps] == [(one.task_id, one.change) for one in shown.steps]
    assert _state(fabric, task) == before
    assert [event.hash for event in store.events()][: len(log)] == log, "the log is never rewritten"


def test_undo_again_goes_further_back_and_an_undo_can_be_undone_by_its_number(fabric: Fabric, store: Store) -> None:
    task = _task(fabric)
    fabric.edit(task, title="Second")
    fabric.edit(task, priority="high")
    fabric.undo()
    assert (fabric.get(task).title, fabric.get(task).priority) == ("Second", "normal")
    fabric.undo()
    assert fabric.get(task).title == "Old"
    fabric.undo(seq=store.head())
    assert fabric.get(task).title == "Second"


def test_the_undo_of_a_creation_cancels_the_task(fabric: Fabric) -> None:
    task = fabric.create("By mistake").task_id
    assert [step.status for step in fabric.undo().steps] == ["cancelled"]
    assert fabric.get(task).status == "cancelled"


def test_a_cancelled_tree_comes_back_with_what_waits_for_it(fabric: Fabric) -> None:
    top = fabric.create("Top").task_id
    below = [fabric.create(f"Below {n}", parent_id=top, backlog=n == 0).task_id for n in range(2)]
    waiting = fabric.create("Waiting", depends_on=[below[1]]).task_id
    before = {task: _state(fabric, task) for task in (top, *below, waiting)}
    fabric.cancel(top)
    assert fabric.get(waiting).status == "blocked"
    done = fabric.undo()
    assert {one.task_id for one in done.steps} == {top, *below}
    assert {task: _state(fabric, task) for task in (top, *below, waiting)} == before


def test_one_undo_reverses_a_whole_bulk_change(fabric: Fabric) -> None:
    first = fabric.create("First", tags=["old"]).task_id
    chain = [first, fabric.create("Second", depends_on=[first], tags=["old"]).task_id]
    chain.append(fabric.create("Third", parent_id=first, tags=["old"]).task_id)
    fabric.edit(first, priority="high")
    before = {task: _state(fabric, task) for task in chain}
    assert fabric.bulk("cancel", tag="old").changed == 2, "the third one went with its parent"
    fabric.comment(first, text="Sure?", actor="bob")
    shown = fabric.undo(dry_run=True)
    done = fabric.undo()
    assert {one.task_id for one in shown.steps} == {one.task_id for one in done.steps} == set(chain)
    assert {one.status for one in done.steps} == {"ready"}
    after = {task: _state(fabric, task) for task in chain}
    assert after == before | {first: before[first] | {"body": fabric.get(first).body}}
    fabric.undo()
    assert fabric.get(first).priority == "normal", "again: the change before the bulk change"


def test_the_undo_of_a_bulk_change_is_whole_or_refused_and_its_parts_can_be_undone_alone(fabric: Fabric) -> None:
    tasks = [fabric.create(f"Task {number}").task_id for number in range(4)]
    fabric.bulk("edit", task_ids=tasks, changes={"priority": "high"})
    assert [one.task_id for one in fabric.undo(tasks[0]).steps] == [tasks[0]]
    fabric.edit(tasks[1], priority="low", actor="bob")
    with pytest.raises(RevisionConflict, match=rf"{tasks[1]} has changed since"):
        fabric.undo()
    assert [fabric.get(task).priority for task in tasks] == ["normal", "low", "high", "high"]
    fabric.undo(actor="bob")
    assert {one.task_id for one in fabric.undo().steps} == set(tasks[1:])
    assert {fabric.get(task).priority for task in tasks} == {"normal"}


def test_only_ones_own_last_change_is_meant(fabric: Fabric) -> None:
    task = _task(fabric)
    fabric.edit(task, title="Mine")
    fabric.as_actor("bob").edit(_other(fabric), title="Other, his")
    fabric.undo()
    assert fabric.get(task).title == "Old"
    with pytest.raises(NotFound, match="no change"):
        fabric.as_actor("cem").undo()


def test_what_has_changed_since_is_not_undone(fabric: Fabric, store: Store) -> None:
    task = _task(fabric)
    fabric.edit(task, title="Mine")
    fabric.as_actor("bob").edit(task, title="His")
    head = store.head()
    with pytest.raises(RevisionConflict, match=r"has changed since event \d+: task\.updated by bob"):
        fabric.undo()
    assert (store.head(), fabric.get(task).title) == (head, "His")


def test_a_change_of_a_task_that_somebody_holds_by_now_is_not_undone(fabric: Fabric) -> None:
    task = _task(fabric)
    fabric.edit(task, title="Mine")
    fabric.claim(task, agent="ada", actor="ada")
    with pytest.raises(RevisionConflict, match="has changed since"):
        fabric.undo()


FINAL: dict[str, tuple[Act, str]] = {
    "claim": (lambda f, t: f.claim(t, agent="ada"), "began a run"),
    "complete": (lambda f, t: (f.claim(t, agent="ada"), f.complete(t, agent="ada")), "run does not come back"),
    "cancel while running": (lambda f, t: (f.claim(t, agent="ada"), f.cancel(t)), "run does not come back"),
    "progress": (lambda f, t: (f.claim(t, agent="ada"), f.progress(t, text="x", agent="ada")), "cannot be taken back"),
    "approve": (
        lambda f, t: (f.claim(t, agent="ada"), f.complete(t, agent="ada"), f.approve(t)),
        "does not go back from done to review",
    ),
}


@pytest.mark.parametrize("name", FINAL)
def test_what_others_may_have_acted_upon_stands_and_says_why(fabric: Fabric, store: Store, name: str) -> None:
    task = _task(fabric)
    act, why = FINAL[name]
    act(fabric, task)
    head = store.head()
    with pytest.raises(NotUndoable, match=why) as refused:
        fabric.undo()
    assert store.head() == head
    assert refused.value.call is not None


def test_an_event_that_is_no_change_of_a_task_is_refused(fabric: Fabric, store: Store) -> None:
    task = _task(fabric)
    for wrong in (0, store.head() + 1, -5):
        with pytest.raises(InvalidInput):
            fabric.undo(seq=wrong)
    with pytest.raises(InvalidInput, match="is not a change of"):
        fabric.undo(_other(fabric), seq=fabric.get(task).rev)


ACTS = [act for _, act in CHANGES.values()]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(ACTS) - 1), min_size=1, max_size=8))
def test_any_history_can_be_undone_to_its_beginning_or_to_a_refusal(numbers: list[int]) -> None:
    """Every undo leads back to the state before the change that it names."""
    fabric = memory_fabric(actor="pm")
    task = _task(fabric)
    states: dict[int, dict[str, Any]] = {}
    for number in numbers:
        before = _state(fabric, task)
        head = fabric.store.head()
        try:
            ACTS[number](fabric, task)
        except Exception as error:  # noqa: BLE001 - what the rules refuse is no change
            assert hasattr(error, "code"), error  # noqa: PT017 - any refusal of ours
        if fabric.store.head() > head:
            states[head + 1] = before
    while True:
        try:
            done = fabric.undo(task)
        except (NotUndoable, RevisionConflict):
            break
        if done.type == "task.created":
            break
        first = done.seq
        if first in states:
            assert _state(fabric, task) == states[first], (numbers, done)


def test_an_end_of_the_pause_before_a_retry_is_not_undone_and_the_refusal_says_what_helps(fabric: Fabric) -> None:
    task = _task(fabric)
    fabric.fail(task, run=fabric.claim(task, agent="ada").run_id, agent="ada")
    fabric.retry(task, reason="again")
    with pytest.raises(NotUndoable, match="the pause before the next run") as refused:
        fabric.undo(dry_run=True)
    assert refused.value.call is not None
    assert (refused.value.call.operation, refused.value.call.arguments) == ("pause", {"task_id": task})
    with pytest.raises(NotUndoable):
        fabric.undo()
