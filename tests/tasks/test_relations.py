"""The task graph: dependencies, sources, parents, and how a cancellation goes through it."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.testing import FakeClock
from tests.support.requirements import requirement
from tests.support.room import Room


@requirement("task.graph.source-task")
def test_a_source_task_is_an_edge_that_holds_nothing(room: Room, fabric: Fabric) -> None:
    source, task_id = room.task("in-progress"), room.task()
    fabric.link(task_id, "source_task", source)
    assert ("source_task", source) in room.edges(task_id)
    assert fabric.claim(task_id, agent="bob").task_id == task_id
    assert fabric.get(source).status == "in-progress"


@requirement("task.graph.source-attempt")
def test_a_source_attempt_stays_the_run_that_it_was(room: Room, fabric: Fabric) -> None:
    source, task_id = room.task("done"), room.task()
    first = room.attempts(source)[0]["runId"]
    fabric.link(task_id, "source_attempt", first)
    fabric.retry(source, reason="better output")
    assert fabric.claim(source, agent="bob").run_id != first
    assert room.edges(task_id) == {("source_attempt", first)}


@requirement("task.graph.cancel-sticks")
def test_nothing_starts_below_a_cancelled_task_and_the_child_settles_first(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    slow, idle, other = room.task(parent_id=parent), room.task(parent_id=parent), room.task()
    fabric.claim(slow, agent="ada", worker="process")
    fabric.cancel(parent, reason="superseded")
    assert fabric.get(idle).status == "cancelled"

    fabric = room.reopen()
    assert fabric.get(parent).status != "cancelled", "a child has not settled yet"
    assert room.normalized(slow) == "cancelling"
    for below in (parent, slow):
        room.refused("cancel_requested", fabric.create, "New", parent_id=below)
        room.refused("cancel_requested", fabric.link, other, "parent", below)
    room.refused("cancel_requested", fabric.claim, parent, agent="bob")
    room.refused("not_ready", fabric.claim, idle, agent="bob")
    room.refused("cancel_requested", fabric.retry, idle, reason="again")

    fabric.settle(slow)
    moved = [event.task_id for event in room.events() if event.payload.get("to") == "cancelled"]
    assert moved == [idle, slow, parent]
    room.refused("cancel_requested", fabric.create, "New", parent_id=parent)


@requirement("tools.cancel.spreads")
def test_cancelling_spreads_down_and_blocks_who_waits(room: Room, fabric: Fabric) -> None:
    top = room.task()
    child = room.task(parent_id=top)
    grandchild = room.task("in-progress", parent_id=child)
    finished = room.task("done", parent_id=child)
    outside = room.task(depends_on=[grandchild])
    fabric.cancel(top, reason="superseded")

    assert {fabric.get(one).status for one in (top, child, grandchild)} == {"cancelled"}
    assert fabric.get(finished).status == "done"
    room.refused("cancel_requested", fabric.create, "New", parent_id=top)
    assert fabric.get(outside).status == "blocked"
    assert grandchild in room.front(outside)["blocked"]["reason"]


@requirement("task.control.link")
@pytest.mark.parametrize(
    ("kind", "other_end"),
    [
        ("parent", "child"),
        ("child", "parent"),
        ("blocks", "blocked_by"),
        ("blocked_by", "blocks"),
        ("source_task", None),
        ("source_attempt", None),
        ("produced_artifact", None),
        ("consumed_artifact", None),
        ("evidence", None),
    ],
)
def test_an_edge_is_added_and_removed_once_and_seen_from_both_ends(
    room: Room, fabric: Fabric, kind: str, other_end: str | None
) -> None:
    one, two, source = room.task(), room.task(), room.task("in-progress")
    loose = {"source_attempt": room.attempts(source)[0]["runId"]}
    target = two if kind == "source_task" or other_end else loose.get(kind, "outputs/report.md")
    before = len(room.events())

    fabric.link(one, kind, target)
    assert room.edges(one) == {(kind, target)}
    assert room.edges(two) == ({(other_end, one)} if other_end else set())
    added = room.events()[before:]
    assert len(added) == 1
    room.idle(fabric.link, one, kind, target)

    fabric.unlink(one, kind, target)
    assert room.edges(one) == room.edges(two) == set()
    assert len(room.events()) == before + 2
    assert room.events()[-1].task_id == added[0].task_id
    room.idle(fabric.unlink, one, kind, target)


@requirement("task.control.link")
def test_edges_that_make_a_circle_or_lead_nowhere_are_refused(room: Room, fabric: Fabric) -> None:
    one, two = room.task(), room.task()
    fabric.link(one, "parent", two)
    fabric.link(one, "blocked_by", two)
    room.refused("dependency_cycle", fabric.link, two, "parent", one)
    room.refused("dependency_cycle", fabric.link, one, "child", two)
    room.refused("dependency_cycle", fabric.link, two, "blocked_by", one)
    room.refused("dependency_cycle", fabric.link, one, "blocks", two)
    for kind in ("parent", "child", "blocks", "blocked_by", "source_task"):
        error = room.refused("task_not_found", fabric.link, one, kind, "TASK-1999-01-01-001")
        assert "TASK-1999-01-01-001" in error.message
    error = room.refused("task_not_found", fabric.link, one, "source_attempt", "RUN-1999-01-01-001-1-0badc0de")
    assert "TASK-1999-01-01-001" in error.message
    assert room.refused("invalid", fabric.link, one, "source_attempt", f"RUN-{two[5:]}-1").hint
    for outside in ("../../aof.toml", "/etc/hostname"):
        room.refused("invalid", fabric.link, one, "evidence", outside)
    assert not room.edges(one) & {("evidence", outside)}


@requirement("tools.dep-add.holds")
def test_a_dependency_holds_the_task_where_it_is_until_it_is_done(room: Room, fabric: Fabric) -> None:
    task_id, first, second = room.task(), room.task(review=False), room.task(review=False)
    fabric.dep_add(task_id, first)
    fabric.dep_add(task_id, second)
    for blocker in (first, second):
        assert blocker in room.refused("not_ready", fabric.claim, task_id, agent="bob").message
        assert room.file(task_id).parent.name == "ready"
        assert room.normalized(task_id) == "queued"
        assert task_id not in {row.id for row in fabric.ready().tasks}
        fabric.complete(blocker, actor="ada")
    assert task_id in {row.id for row in fabric.ready().tasks}
    assert fabric.claim(task_id, agent="bob").task_id == task_id


@requirement("tools.dep-add.unknown-or-dead")
def test_a_dead_dependency_blocks_and_a_finished_one_holds_nothing(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    room.refused("task_not_found", fabric.dep_add, task_id, "TASK-1999-01-01-001")
    fabric.dep_add(task_id, room.task("done"))
    assert fabric.claim(task_id, agent="bob").task_id == task_id

    for status in ("cancelled", "deadletter"):
        task_id, dead = room.task(), room.task(status)
        fabric.dep_add(task_id, dead)
        assert fabric.get(task_id).status == "blocked"
        assert dead in room.front(task_id)["blocked"]["reason"]
        assert dead in room.refused("not_ready", fabric.claim, task_id, agent="bob").message

        task_id, dying = room.task(), room.task("in-progress")
        fabric.dep_add(task_id, dying)
        assert fabric.get(task_id).status == "ready"
        fabric.update(dying, agent="ada", status=status)
        assert fabric.get(task_id).status == "blocked"
        assert dying in room.front(task_id)["blocked"]["reason"]


@requirement("tools.dep-add.repeat", "tools.dep-remove.absent")
def test_adding_what_is_there_and_removing_what_is_not_change_nothing(room: Room, fabric: Fabric) -> None:
    task_id, blocker, unrelated = room.task(), room.task(), room.task()
    fabric.dep_add(task_id, blocker)
    assert room.idle(fabric.dep_add, task_id, blocker).depends_on == (blocker,)
    assert room.idle(fabric.dep_remove, task_id, unrelated).depends_on == (blocker,)
    assert room.front(task_id)["dependsOn"] == [blocker]


@requirement("tools.dep-remove.frees")
def test_removing_the_last_dependency_makes_the_task_claimable(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    blocker = room.task()
    task_id = room.task(depends_on=[blocker])
    room.refused("not_ready", fabric.claim, task_id, agent="bob")
    assert fabric.dep_remove(task_id, blocker, actor="lead").depends_on == ()
    event = room.events()[-1]
    assert (event.actor, event.task_id, event.payload["removed"]) == ("lead", task_id, blocker)
    assert fabric.claim(task_id, agent="bob").task_id == task_id
