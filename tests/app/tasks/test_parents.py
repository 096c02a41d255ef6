"""Parents: they show how far their children are, and are not called complete before them."""

from __future__ import annotations

import pytest

from aof.app.fabric import Fabric
from aof.core.errors.base import AofError
from aof.stores.filesystem.io.paths import Paths
from tests.support.command_line import Aof
from tests.support.room import Room


def refused(call: object, **given: object) -> AofError:
    """The refusal of a call."""
    with pytest.raises(AofError) as refusal:
        call(**given)  # type: ignore[operator]
    return refusal.value


def test_a_parent_is_not_complete_before_its_children_unless_the_caller_says_so(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    first, second = room.task(parent_id=parent), room.task(parent_id=parent)
    run = fabric.claim(parent, agent="ada").run_id
    refusal = refused(fabric.complete, task_id=parent, run=run)
    assert (refusal.code, refusal.details["children"]) == ("children_open", [first, second])
    assert refusal.call is not None
    assert refusal.call.arguments == {"task_id": parent, "allow_open_children": True}
    assert fabric.get(parent).status == "in-progress"

    fabric.cancel(first)
    assert refused(fabric.complete, task_id=parent, run=run).details["children"] == [second]
    fabric.claim(second, agent="bob")
    fabric.complete(second, agent="bob")
    fabric.approve(second)
    assert fabric.complete(parent, run=run).status == "review"
    assert fabric.approve(parent).status == "done"


def test_the_approval_waits_for_children_that_came_after_the_report(room: Room, fabric: Fabric) -> None:
    parent = room.task("review")
    child = room.task(parent_id=parent)
    assert refused(fabric.approve, task_id=parent).code == "children_open"
    assert refused(fabric.update, task_id=parent, status="done").code == "children_open"
    assert refused(fabric.complete, task_id=parent).code == "children_open"
    assert fabric.reject(parent, blockers=["not yet"]).status == "ready"
    other = room.task("review")
    fabric.edit(child, parent_id=other)
    assert fabric.approve(other, allow_open_children=True).status == "done"
    assert fabric.complete(parent, allow_open_children=False).status == "review", "it has no child any more"


def test_what_does_not_call_it_complete_is_free(room: Room, fabric: Fabric) -> None:
    for outcome in ("needs_review", "partial", "blocked"):
        parent = room.task()
        room.task(parent_id=parent)
        run = fabric.claim(parent, agent="ada").run_id
        moved = fabric.complete(parent, run=run, outcome=outcome, blockers=["one"])
        assert moved.status == ("blocked" if outcome == "blocked" else "review")


def test_a_parent_shows_how_far_its_children_are(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    for status in ("done", "done", "cancelled", "in-progress", "ready"):
        room.task(status, parent_id=parent)
    assert fabric.show(parent)["children"] == {
        "total": 5,
        "done": 2,
        "finished": 3,
        "byStatus": {"done": 2, "cancelled": 1, "in-progress": 1, "ready": 1},
    }
    assert "children" not in fabric.show(fabric.list(parent_id=parent).tasks[0].id)


def test_a_directory_of_an_earlier_version_knows_its_children(room: Room) -> None:
    parent = room.task(review=False)
    room.task(parent_id=parent)
    room.fabric.close()
    table = room.root / Paths(str(room.root)).waited
    table.rename(table.with_name("waited"))
    fabric = room.reopen()
    assert refused(fabric.complete, task_id=parent, agent="ada").code == "children_open"


def test_the_command_line_says_it_in_its_own_words(aof: Aof, fabric: Fabric) -> None:
    parent = fabric.create("Parent", review=False).task_id
    fabric.create("Child", parent_id=parent)
    said = aof("complete", parent, "--agent", "ada")
    assert (said.code, said.error["code"]) == (1, "children_open")
    assert "--allow-open-children" in said.error["hint"]
    assert aof("complete", parent, "--agent", "ada", "--allow-open-children").data["status"] == "done"
