"""Edits of fields: taking values away, moving a task below another one, and requests that are repeated."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput
from aof.tasks.fields import CLEARABLE
from aof.testing import FakeClock
from tests.support.command_line import Aof
from tests.support.room import Room

FULL: dict[str, Any] = {
    "brief": "What to do.\n",
    "owner": "eve",
    "resource": "gpu",
    "due": "2026-03-09",
    "estimate": 90,
    "acceptance": ["it works"],
    "constraints": {"files": 3},
    "profile": {"risk": "low"},
    "agent": "ada",
    "role": "developer",
    "team": "eng",
    "tags": ["api"],
}
DEFAULTS: dict[str, Any] = {"acceptance": (), "constraints": {}, "profile": {}, "tags": (), "description": ""}


def value(fabric: Fabric, task_id: str, name: str) -> Any:
    """What a task has under the name that `clear` has for it."""
    task = fabric.get(task_id)
    if name in ("agent", "role", "team", "tags"):
        return getattr(task.routing, name)
    return getattr(task, {"description": "body", "parent": "parent_id"}.get(name, name))


@pytest.mark.parametrize("name", CLEARABLE)
def test_every_field_that_can_be_cleared_is_taken_away_and_nothing_else(fabric: Fabric, name: str) -> None:
    parent = fabric.create("Parent").task_id
    task_id = fabric.create("Full", **FULL, parent_id=parent).task_id
    before = {one: value(fabric, task_id, one) for one in CLEARABLE}
    assert all(before.values())
    fabric.edit(task_id, clear=[name])
    after = {one: value(fabric, task_id, one) for one in CLEARABLE}
    assert after == before | {name: DEFAULTS.get(name)}
    assert fabric.edit(task_id, clear=[name]).updated_fields == (), "it is not there any more"


def test_what_cannot_be_cleared_or_is_set_as_well_is_refused(fabric: Fabric, aof: Aof) -> None:
    task_id = fabric.create("Plain", agent="ada", owner="eve").task_id
    rev = fabric.get(task_id).rev
    for clear in (["title"], ["id"], []):
        with pytest.raises(InvalidInput):
            fabric.edit(task_id, clear=clear)
    with pytest.raises(InvalidInput):
        fabric.edit(task_id, clear=["owner"], owner="bob")
    with pytest.raises(InvalidInput, match="both"):
        fabric.edit(task_id, clear=["agent"], routing={"agent": "bob"})
    assert aof("edit", task_id, "--clear", "title").code == 2
    assert fabric.get(task_id).rev == rev
    fabric.edit(task_id, clear=["agent"], routing={"role": "developer"})
    assert (fabric.get(task_id).routing.agent, fabric.get(task_id).routing.role) == (None, "developer")
    assert aof("edit", task_id, "--clear", "owner", "--clear", "role").data["updatedFields"] == ["owner", "routing"]


def test_a_task_is_put_below_another_one_and_never_below_itself(room: Room, fabric: Fabric) -> None:
    top, middle, low = room.task(), room.task(), room.task()
    fabric.edit(middle, parent_id=top)
    fabric.edit(low, parent_id=middle, title="Moved in the same step")
    assert (fabric.get(low).parent_id, fabric.get(low).title) == (middle, "Moved in the same step")
    for child, parent in ((top, low), (top, top), (middle, low)):
        with pytest.raises(AofError) as refusal:
            fabric.edit(child, parent_id=parent, title="Not changed")
        assert refusal.value.code == "dependency_cycle"
        assert fabric.get(child).title != "Not changed"
    with pytest.raises(AofError) as missing:
        fabric.edit(low, parent_id="TASK-2026-03-02-999")
    assert missing.value.code == "task_not_found"
    fabric.edit(low, parent_id=top)
    assert {row.id for row in fabric.list(parent_id=top).tasks} == {middle, low}
    fabric.edit(low, clear=["parent"])
    assert fabric.get(low).parent_id is None


def test_nothing_is_moved_below_a_cancelled_task(room: Room, fabric: Fabric) -> None:
    task_id, cancelled = room.task(), room.task("cancelled")
    with pytest.raises(AofError) as refusal:
        fabric.edit(task_id, parent_id=cancelled)
    assert refusal.value.code == "cancel_requested"


def test_a_key_that_was_used_before_there_were_due_dates_still_stands_for_its_task(
    fabric: Fabric, clock: FakeClock
) -> None:
    task_id = fabric.create("Once", key="k-1", priority="high").task_id
    key = fabric.get(task_id).key
    assert key is not None
    assert key.digest == "f19fec044e4a6f2c27f5a885557a9b03"
    assert fabric.create("Once", key="k-1", priority="high").task_id == task_id
    clock.sleep(60)
    again = [fabric.create("Once", key="k-1", priority="high", due="+1d").task_id for _ in range(2)]
    assert again == [task_id] * 2, (
        "when it is due may be said relative to now, and is not what makes it another request"
    )
