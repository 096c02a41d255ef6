"""Creating a task with all its parts, on every surface."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.desk import contents
from tests.support.requirements import requirement
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import Door, Refusal, answer_of, refusal_of

PARTS: dict[str, Any] = {
    "title": "Add a refresh endpoint",
    "brief": "POST /refresh renews a token.",
    "priority": "high",
    "acceptance": ["it works", "it is fast"],
    "constraints": {"network": "none", "output": {"artifacts": ["outputs/report.md"]}},
    "profile": {"latency": "low"},
    "metadata": {"scope": {"environment": "staging"}, "taskKind": "feature"},
}


@requirement("task.control.create")
def test_every_part_that_a_task_is_created_with_comes_back_and_a_bad_part_leaves_nothing(door: Door) -> None:
    before = door.elsewhere.store.head()
    made = answer_of(door.ask("create", **PARTS))
    task = door.elsewhere.get(made["taskId"])
    for name in ("title", "priority", "constraints", "profile"):
        assert getattr(task, name) == PARTS[name]
    assert list(task.acceptance) == PARTS["acceptance"]
    assert PARTS["metadata"].items() <= task.metadata.items()
    assert PARTS["brief"] in task.body
    first, *rest = list(door.elsewhere.events(after=before, task_id=task.id))
    assert first.type == "task.created"
    assert [event.commit[1] for event in (first, *rest)] == [len(rest) + 1] * (len(rest) + 1), "one commit"
    (portable,) = [one for one in door.elsewhere.snapshot()["tasks"] if one["taskId"] == task.id]
    assert portable["scope"]["environment"] == "staging"
    assert (portable["taskKind"], portable["taskProfile"]) == ("feature", PARTS["profile"])

    kept = contents(door.root)
    for wrong in ({"constraints": {"output": {"artifacts": ["../x"]}}}, {"parent_id": "TASK-2020-01-01-999"}):
        refused = door.ask("create", **PARTS | wrong)
        assert isinstance(refused, Refusal)
        assert refused.hint
    assert contents(door.root) == kept


@requirement("task.events.created")
@pytest.mark.parametrize("surface", ["python", "cli", "mcp", "http", "file"])
def test_a_new_task_is_announced_once_and_first_however_it_comes_in(doors: Doors, surface: str) -> None:
    if surface == "file":
        door, task_id = doors["python"], "TASK-2026-03-02-901"
        path = door.root / f"tasks/ready/{task_id}.md"
        path.write_text('---\ntitle: "By hand"\n---\n\nWritten in an editor.\n', encoding="utf-8")
        door.elsewhere.sync()
    else:
        door = doors[surface]
        made = answer_of(door.ask("create", title="New", brief="Do it.", key="only once"))
        task_id = made["taskId"]
        assert door.ask("create", title="New", brief="Do it.", key="only once") == made
    first, *others = door.elsewhere.portable_log(task_id)["events"]
    assert (first["type"], first["taskId"]) == ("task.created", task_id)
    assert first["payload"]["title"] in ("New", "By hand")
    assert "task.created" not in [line["type"] for line in others]


def test_the_hint_of_an_incomplete_completion_works_on_every_surface(door: Door) -> None:
    task_id = door.elsewhere.create("Work", acceptance=["it works"], review=False).task_id
    door.elsewhere.claim(task_id, agent="tester")
    refused = refusal_of(door.ask("complete", task_id=task_id), "not_reconciled")
    assert "it works" in refused.message + refused.hint
    done = answer_of(door.ask("complete", task_id=task_id, acceptance=["it works"]))
    assert done["status"] == "done"
