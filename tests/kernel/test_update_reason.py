"""The reason that a caller gives for an update stands in the log."""

from __future__ import annotations

import pytest

from aof.kernel import commands
from aof.kernel.model import STATUSES, TRANSITIONS
from tests.support.world import World

MOVES = [(origin, target) for origin in STATUSES for target in TRANSITIONS[origin]]


@pytest.mark.parametrize(("origin", "target"), MOVES)
def test_every_status_change_by_update_carries_its_reason(origin: str, target: str) -> None:
    world = World()
    task = world.into(origin)
    actor = "ada" if origin == "in-progress" else "pm"
    world.act(commands.Update, task, actor, status=target, reason="because of the audit")
    (moved, *_) = [one for one in world.log(task, "task.transitioned") if one.payload["to"] == target][-1:]
    assert moved.payload["reason"] == "because of the audit"


def test_a_new_body_carries_its_reason() -> None:
    world = World()
    task = world.create()
    world.act(commands.Update, task, body="other words", reason="clearer")
    assert world.log(task, "task.updated")[-1].payload["reason"] == "clearer"
