"""Expected revisions: on every store, a write counts only while the task is what its caller has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aof.api.catalogue import OPERATIONS
from aof.api.fabric import Fabric
from aof.errors import InvalidInput, RevisionConflict
from aof.store.port import Store

Call = Callable[[Fabric, str, int], Any]
# Signs of life and checks that record nothing about the task itself.
NOT_A_CHANGE = {"heartbeat", "preflight", "undo"}  # an undo finds out by itself whether something has changed
READY: dict[str, Call] = {
    "claim": lambda fabric, task, rev: fabric.claim(task, agent="ada", expect_rev=rev),
    "edit": lambda fabric, task, rev: fabric.edit(task, title="New title", expect_rev=rev),
    "update": lambda fabric, task, rev: fabric.update(task, body="New body", expect_rev=rev),
    "cancel": lambda fabric, task, rev: fabric.cancel(task, expect_rev=rev),
    "block": lambda fabric, task, rev: fabric.block(task, reason="no key", expect_rev=rev),
    "pause": lambda fabric, task, rev: fabric.pause(task, expect_rev=rev),
    "link": lambda fabric, task, rev: fabric.link(task, "evidence", "logs/a.txt", expect_rev=rev),
    "dep_add": lambda fabric, task, rev: fabric.dep_add(task, _other(fabric), expect_rev=rev),
    "complete": lambda fabric, task, rev: fabric.complete(task, summary="done", expect_rev=rev),
    "handoff_new": lambda fabric, task, rev: fabric.handoff_new(
        type="sequential", from_agent="pm", to=["bob"], task_id=task, reason="yours", timeout=60, expect_rev=rev
    ),
}
HELD: dict[str, Call] = {
    "progress": lambda fabric, task, rev: fabric.progress(task, text="half", agent="ada", expect_rev=rev),
    "release": lambda fabric, task, rev: fabric.release(task, agent="ada", expect_rev=rev),
    "complete": lambda fabric, task, rev: fabric.complete(task, agent="ada", expect_rev=rev),
    "fail": lambda fabric, task, rev: fabric.fail(task, message="no disk", agent="ada", expect_rev=rev),
    "deliver": lambda fabric, task, rev: fabric.deliver(task, state="queued", agent="ada", expect_rev=rev),
}


def _other(fabric: Fabric) -> str:
    return fabric.create("Other").task_id


@pytest.mark.parametrize("name", [*READY, *(f"{name} while running" for name in HELD)])
def test_a_write_on_an_outdated_revision_changes_nothing(fabric: Fabric, store: Store, name: str) -> None:
    task = fabric.create("Old title").task_id
    call = READY.get(name) or HELD[name.removesuffix(" while running")]
    if name not in READY:
        fabric.claim(task, agent="ada")
    seen = fabric.get(task).rev
    fabric.link(task, "evidence", "logs/z.txt")
    head = [event.seq for event in store.events(task_id=task)]
    with pytest.raises(RevisionConflict):
        call(fabric, task, seen)
    assert [event.seq for event in store.events(task_id=task)] == head
    call(fabric, task, fabric.get(task).rev)
    assert fabric.get(task).rev > head[-1]


def test_every_operation_that_changes_one_task_takes_an_expected_revision() -> None:
    writes = [one for one in OPERATIONS if one.effect != "read" and "task_id" in one.parameters.__struct_fields__]
    without = {one.name for one in writes if "expect_rev" not in one.parameters.__struct_fields__}
    assert without == NOT_A_CHANGE


def test_the_refusal_shows_both_versions(fabric: Fabric) -> None:
    task = fabric.create("Old title", brief="Old text").task_id
    seen = fabric.get(task).rev
    fabric.edit(task, title="New title", description="x" * 5000)
    with pytest.raises(RevisionConflict) as refused:
        fabric.cancel(task, expect_rev=seen)
    expected, current = refused.value.details["expected"], refused.value.details["current"]
    assert (expected["rev"], expected["title"], expected["body"]) == (seen, "Old title", "Old text\n")
    assert (current["rev"], current["title"]) == (fabric.get(task).rev, "New title")
    assert len(current["body"]) < 600, "what an error repeats is bounded"
    assert f"is at revision {current['rev']}, not {seen}" in refused.value.message
    assert "title was Old title, is New title" in refused.value.message


def test_a_revision_that_never_was_is_said_to_be_unknown(fabric: Fabric) -> None:
    task = fabric.create("Here").task_id
    fabric.create("Elsewhere")
    for wrong in (fabric.get(task).rev + 1, 10_000):
        with pytest.raises(RevisionConflict, match="never was a revision") as refused:
            fabric.block(task, reason="x", expect_rev=wrong)
        assert refused.value.details["expected"] == {"rev": wrong, "state": "unknown"}


def test_a_repeated_request_is_answered_whatever_revision_it_expected(fabric: Fabric, store: Store) -> None:
    task = fabric.create("Once").task_id
    rev = fabric.get(task).rev
    first = fabric.edit(task, title="Renamed", key="k", expect_rev=rev)
    events = len(list(store.events(task_id=task)))
    assert fabric.edit(task, title="Renamed", key="k", expect_rev=rev) == first
    assert len(list(store.events(task_id=task))) == events


def test_the_next_task_cannot_be_claimed_by_a_revision(fabric: Fabric) -> None:
    fabric.create("Somewhere")
    with pytest.raises(InvalidInput, match="no task is named"):
        fabric.claim(agent="ada", expect_rev=1)


def test_the_refusal_shows_of_long_texts_where_they_differ(fabric: Fabric) -> None:
    long = "A sentence that says nothing new. " * 40
    task = fabric.create("Title", brief=f"{long}The end.", tags=["a"]).task_id
    seen = fabric.get(task).rev
    fabric.edit(task, description=f"{long}Another end.", routing={"tags": ["b"]})
    with pytest.raises(RevisionConflict) as refused:
        fabric.edit(task, title="Mine", expect_rev=seen)
    message = refused.value.message
    assert "The end." in message
    assert "Another end." in message
    assert 'routing was {"tags":["a"]}, is {"tags":["b"]}' in message
    assert len(message) < 400


def test_the_refusal_shows_a_text_that_was_only_added_to(fabric: Fabric) -> None:
    long = "A sentence that says nothing new. " * 40
    task = fabric.create("Title", brief=long.strip()).task_id
    seen = fabric.get(task).rev
    fabric.edit(task, description=f"{long}And more.")
    with pytest.raises(RevisionConflict, match="And more"):
        fabric.edit(task, title="Mine", expect_rev=seen)
