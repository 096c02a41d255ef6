"""The numbers of new tasks, as a person sees them: no call that makes nothing leaves a gap."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from tests.support.room import Room


@pytest.mark.parametrize(
    "given",
    [{"priority": "urgent"}, {"title": " "}, {"depends_on": ["999"]}, {"workflow": "nowhere"}, {"parent_id": "777"}],
    ids=lambda given: next(iter(given)),
)
def test_a_refused_create_leaves_no_gap(room: Room, given: dict[str, object]) -> None:
    room.fabric.create("One")
    with pytest.raises(AofError):
        room.fabric.create(**({"title": "Refused"} | given))  # type: ignore[arg-type]

    assert room.fabric.create("Two").task_id.endswith("-002")
    assert room.reopen().create("Three").task_id.endswith("-003")


def test_a_process_whose_only_call_was_refused_leaves_no_gap(room: Room) -> None:
    room.fabric.create("One")
    room.reopen()
    with pytest.raises(AofError):
        room.fabric.create("Refused", priority="urgent")  # type: ignore[arg-type] # what a user mistypes

    assert room.reopen().create("Two").task_id.endswith("-002")


def test_a_create_that_is_answered_with_the_task_of_its_key_leaves_no_gap(fabric: Fabric) -> None:
    one = fabric.create("One", key="first")
    assert fabric.create("One", key="first").task_id == one.task_id

    assert fabric.create("Two").task_id.endswith("-002")


def test_a_process_that_goes_on_beside_a_busy_one_is_at_most_three_numbers_ahead(room: Room) -> None:
    for _ in range(20):
        last = room.fabric.create("Busy").task_id
    other = room.opened()

    ahead = int(other.create("Beside").task_id[-3:]) - int(last[-3:])
    other.close()

    assert 1 <= ahead <= 4
