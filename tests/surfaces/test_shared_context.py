"""What agents share comes back equal through every surface, and what JSON cannot express is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.requirements import requirement
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import refusal_of

VALUES: dict[str, Any] = {
    "nested": {"list": [1, -2.5, True, None, {"deep": ["x"]}], "empty": {}, "none": []},
    "unicode": "Grüße, 世界 🌍",
    "large": 2**53,
    "text": '{"looks": "like JSON"}',
}


@requirement("handoff.context.custom-json")
def test_values_come_back_equal_through_every_surface(doors: Doors) -> None:
    for name, door in doors.items():
        task_id = door.elsewhere.create("Shared").task_id
        written = door.ask("context_set", task_id=task_id, variables=VALUES)
        read = door.ask("context_show", task_id=task_id)
        assert isinstance(written, dict), (name, written)
        assert isinstance(read, dict), (name, read)
        assert written["contextVariables"]["custom"] == read["contextVariables"]["custom"] == VALUES, name
        assert door.elsewhere.context_show(task_id).context_variables.custom == VALUES, name


@requirement("handoff.context.custom-json")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"\x00\xff", {1: "a"}, {"a": {2}}, 2**70, "\ud800"])
def test_what_json_cannot_express_is_refused(doors: Doors, value: object) -> None:
    door = doors["python"]
    task_id = door.elsewhere.create("Shared").task_id
    refusal_of(door.ask("context_set", task_id=task_id, variables={"x": value}), "invalid")
    assert door.elsewhere.context_show(task_id).context_variables.custom == {}
