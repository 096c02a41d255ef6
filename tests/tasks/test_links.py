"""Edges that order nothing: added and removed once, never in a circle, never to what is not there."""

from __future__ import annotations

import pytest

from aof.kernel import commands
from tests.support.world import World


@pytest.mark.parametrize("kind", ["source_task", "evidence", "produced_artifact", "spawned_subagent"])
def test_an_edge_is_added_once_and_removed_once(kind: str) -> None:
    world = World()
    task, other = world.create(), world.create()
    assert len(world.act(commands.AddLink, task, kind=kind, target_id=other, reason="because").drafts) == 1
    assert world.act(commands.AddLink, task, kind=kind, target_id=other).drafts == ()
    assert [(link.kind, link.target_id, link.reason) for link in world.tasks[task].links] == [(kind, other, "because")]
    assert len(world.act(commands.RemoveLink, task, kind=kind, target_id=other).drafts) == 1
    assert world.act(commands.RemoveLink, task, kind=kind, target_id=other).drafts == ()
    assert world.tasks[task].links == ()


def test_a_source_does_not_hold_execution() -> None:
    world = World()
    task, source = world.create(), world.create()
    world.act(commands.AddLink, task, kind="source_task", target_id=source)
    assert world.why_not(task) is None


def test_a_parent_is_set_and_taken_away() -> None:
    world = World()
    task, parent = world.create(), world.create()
    world.act(commands.AddLink, task, kind="parent", target_id=parent)
    assert world.tasks[task].parent_id == parent
    assert world.act(commands.AddLink, task, kind="parent", target_id=parent).drafts == ()
    world.act(commands.RemoveLink, task, kind="parent", target_id=parent)
    assert world.tasks[task].parent_id is None


def test_a_task_cannot_stand_below_itself_or_its_own_child() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    grandchild = world.create(parent_id=child)
    for below in (parent, child, grandchild):
        assert world.refuse(commands.AddLink, parent, kind="parent", target_id=below).code == "dependency_cycle"


def test_nothing_is_put_below_a_cancelled_parent() -> None:
    world = World()
    task, parent = world.create(), world.into("cancelled")
    assert world.refuse(commands.AddLink, task, kind="parent", target_id=parent).code == "cancel_requested"


@pytest.mark.parametrize(
    ("kind", "target", "code"),
    [
        ("friend", "TASK-2026-03-02-001", "invalid"),
        ("source_task", "TASK-1999-01-01-001", "task_not_found"),
        ("parent", "TASK-1999-01-01-001", "task_not_found"),
        ("source_task", "../x", "invalid"),
        ("source_attempt", "RUN-1999-01-01-001-1", "task_not_found"),
        ("source_attempt", "RUN-2026-03-02-001-1", "invalid"),
        ("source_attempt", "TASK-2026-03-02-001", "invalid"),
        ("evidence", "../../elsewhere", "invalid"),
        ("produced_artifact", "/etc/hostname", "invalid"),
        ("consumed_artifact", "outputs\\..\\..\\x", "invalid"),
        ("evidence", "", "invalid"),
        ("evidence", "a\nb", "invalid"),
        ("evidence", "x" * 600, "payload_too_large"),
    ],
)
def test_an_edge_to_nothing_or_of_no_kind_is_refused(kind: str, target: str, code: str) -> None:
    world = World()
    assert world.refuse(commands.AddLink, world.create(), kind=kind, target_id=target).code == code
