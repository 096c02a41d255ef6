"""What a command needs is found step by step; what it writes is locked for writing (`World` checks both always)."""

from __future__ import annotations

from typing import Any

from aof.kernel import commands
from aof.kernel.commands import Records
from aof.kernel.decide import _DECIDERS
from aof.kernel.needs import needs
from tests.kernel.test_decide import filled
from tests.support.world import World


def test_a_heartbeat_needs_one_task_only() -> None:
    wanted = needs(commands.RecordHeartbeat(actor="a", task_id="TASK-2026-03-02-001"), Records())
    assert wanted.write == wanted.heartbeats == {"TASK-2026-03-02-001"}
    assert not wanted.read | wanted.names | wanted.children | wanted.dependents


def test_completing_a_running_task_needs_that_task_only() -> None:
    world = World()
    task = world.create(depends_on=[world.into("done")], resource="rig", metadata={"waitForChildren": True})
    world.claim(task)
    command = commands.Complete(actor="ada", task_id=task)
    wanted = needs(command, world.load(command))
    assert wanted.write == {task}
    assert not wanted.read | wanted.names | wanted.dependents
    assert wanted.children == {task}, "which a store answers without the index where there are none"


def test_a_claim_locks_its_resource_and_an_edge_the_graph() -> None:
    world = World()
    task, other = world.create(resource="rig"), world.create()
    claim = commands.Claim(actor="ada", task_id=task)
    assert needs(claim, world.load(claim)).names == {"resource:rig"}
    edge = commands.AddDependency(actor="pm", task_id=task, blocker_id=other)
    assert needs(edge, world.load(edge)).names == {"graph"}
    hand = commands.ImportEdit(actor="hand", task_id=task, changes={"dependsOn": [other]})
    assert needs(hand, world.load(hand)).names == {"graph"}


def test_creation_locks_its_key_unless_that_could_name_no_lock() -> None:
    world = World()
    for key, names in (("k", {"key:k"}), ("x" * 300, set()), ("a\nb", set()), ("", set())):
        command = commands.Create(actor="pm", task_id=world.next_id(), title="x", key=key)
        assert needs(command, world.load(command)).names == names


def test_nothing_is_read_and_written_at_once() -> None:
    world = World()
    first = world.create()
    second = world.create(depends_on=[first], parent_id=first)
    world.create(depends_on=[first, second], parent_id=second)
    for kind in _DECIDERS:
        edge = {"kind": "parent", "target_id": first} if kind in (commands.AddLink, commands.RemoveLink) else {}
        command = filled(kind, actor="pm", task_id=first, **edge)
        wanted = needs(command, world.load(command))
        assert not wanted.write & wanted.read, kind


def test_what_is_no_id_is_never_asked_for() -> None:
    odd = ("../../etc/passwd", "TASK-2026-03-02-001\n", "TASK-\u0662\u0660\u0662\u0666-03-02-001", "", "x" * 1_000_000)
    sound: dict[str, Any] = {"actor": "a", "task_id": "TASK-2026-03-02-001"}
    for text in odd:
        assert not needs(commands.Claim(actor="a", task_id=text), Records()).write
        for command in (
            commands.Create(**sound, title="x", depends_on=(text,), parent_id=text),
            commands.AddDependency(**sound, blocker_id=text),
            commands.ImportEdit(**sound, changes={"dependsOn": [text], "parentId": text}),
            commands.Edit(**sound, changes={"parentId": text}),
        ):
            wanted = needs(command, Records())
            assert not wanted.read | wanted.reachable | wanted.above, command
