"""Short IDs mean the same for every parameter that takes a task, on every surface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.desk import contents
from tests.support.requirements import requirement
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import Door, Refusal
from tests.surfaces.scripts import MISSING

# Every parameter of the ten that takes a task: the operation, how to give it, and what else the call needs.
PLACES: dict[str, tuple[str, Any]] = {
    "complete taskId": ("complete", lambda part, other: {"task_id": part}),
    "update taskId": ("update", lambda part, other: {"task_id": part, "status": "backlog"}),
    "edit taskId": ("edit", lambda part, other: {"task_id": part, "title": "Changed"}),
    "cancel taskId": ("cancel", lambda part, other: {"task_id": part}),
    "block taskId": ("block", lambda part, other: {"task_id": part, "reason": "x"}),
    "unblock taskId": ("unblock", lambda part, other: {"task_id": part}),
    "dep_add taskId": ("dep_add", lambda part, other: {"task_id": part, "blocker_id": other}),
    "dep_add blockerId": ("dep_add", lambda part, other: {"task_id": other, "blocker_id": part}),
    "dep_remove taskId": ("dep_remove", lambda part, other: {"task_id": part, "blocker_id": other}),
    "dep_remove blockerId": ("dep_remove", lambda part, other: {"task_id": other, "blocker_id": part}),
    "dispatch parentId": ("create", lambda part, other: {"title": "x", "brief": "x", "parent_id": part}),
    "dispatch dependsOn": ("create", lambda part, other: {"title": "x", "brief": "x", "depends_on": [part]}),
}


@requirement("tools.prefix.every-parameter")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["python", "mcp", "http"])
def test_a_task_is_named_alike_everywhere(doors: Doors, name: str, place: str) -> None:
    assert _named_otherwise(doors[name], place) == []


@pytest.mark.parametrize("place", ["complete taskId", "dep_add blockerId", "dispatch parentId", "dispatch dependsOn"])
def test_a_task_is_named_alike_on_the_command_line(doors: Doors, place: str) -> None:
    assert _named_otherwise(doors["cli"], place) == []


def _named_otherwise(door: Door, place: str) -> list[Any]:
    """What of the rules for short IDs does not hold in this place."""
    operation, values = PLACES[place]
    fabric = door.elsewhere
    other = fabric.create("Other").task_id
    full, twin = (fabric.create(title).task_id for title in ("Meant", "Twin"))
    if operation == "complete":
        door.ask("claim", task_id=full)
    expected = {
        full[:15]: "ambiguous_id",
        MISSING: "task_not_found",
        full[6:]: "task_not_found",
        "SK-2026": "task_not_found",
    }
    before = contents(door.root)
    answers = {part: door.ask(operation, **values(part, other)) for part in expected}
    wrong: list[Any] = [
        answer for part, answer in answers.items() if not isinstance(answer, Refusal) or answer.code != expected[part]
    ]
    if contents(door.root) != before:
        wrong.append("a refused name has changed something")
    answer = door.ask(operation, **values(full[5:], other))
    if isinstance(answer, Refusal):
        return [*wrong, answer]
    said = " ".join(str(one) for one in answer.values())
    if twin in said or not (full in said or full in _text_of(door.root, str(answer["taskId"]))):
        wrong.append(answer)
    return wrong


def _text_of(root: Path, task_id: str) -> str:
    (path,) = root.glob(f"tasks/*/{task_id}.md")
    return path.read_text()
