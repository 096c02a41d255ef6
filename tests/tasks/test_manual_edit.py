"""A person's edit of a file is judged by the same rules, and never touches what AOF keeps account with."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from aof.kernel.model import STATUSES, status_allows
from tests.support.world import World


def test_an_edit_by_hand_is_recorded_with_what_changed() -> None:
    world = World()
    task = world.create()
    world.act(
        commands.ImportEdit,
        task,
        "hand",
        changes={"title": "Mine", "priority": "high", "extra": {"color": "red"}, "body": "B\n"},
    )
    edited = world.tasks[task]
    assert (edited.title, edited.priority, edited.extra, edited.body) == ("Mine", "high", {"color": "red"}, "B\n")
    [updated] = world.log(task, "task.updated")
    assert (updated.payload["fields"], updated.payload["reason"]) == (
        ["body", "extra", "priority", "title"],
        "edited by hand",
    )


@pytest.mark.parametrize(
    "forged",
    [
        {"id": "TASK-2026-03-02-099"},
        {"rev": 99},
        {"lease": None},
        {"lease": {"agent": "me", "runId": "RUN-x", "epoch": 9, "acquiredAt": "", "expiresAt": ""}},
        {"status": "done"},
        {"retry": {"attempts": 0}},
        {"cancel": None},
        {"key": {"value": "k", "digest": ""}},
        {"lastError": None},
        {"startedAt": None},
        {"createdBy": "me"},
        {"archived": True},
    ],
)
def test_what_aof_keeps_account_with_never_comes_from_people(forged: dict[str, Any]) -> None:
    world = World()
    task = world.create()
    world.claim(task)
    before = world.tasks[task]
    assert world.act(commands.ImportEdit, task, "hand", changes=forged).drafts == ()
    assert world.tasks[task] == before


def test_a_line_that_was_taken_out_means_the_default() -> None:
    world = World()
    task = world.create(priority="high", visibility="hidden", owner="lead", resource="rig", metadata={"a": 1})
    gone = dict.fromkeys(("priority", "visibility", "owner", "resource", "metadata", "body", "dependsOn"))
    world.act(commands.ImportEdit, task, changes=gone)
    edited = world.tasks[task]
    assert (edited.priority, edited.visibility, edited.owner, edited.resource) == ("normal", "foreground", None, None)
    assert edited.metadata == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"title": None},
        {"title": ""},
        {"title": ["x"]},
        {"title": "a\nb"},
        {"priority": "urgent"},
        {"priority": {}},
        {"visibility": 3},
        {"owner": "a b"},
        {"routing": {"agent": ["x"]}},
        {"routing": []},
        {"dependsOn": "TASK-2026-03-02-001"},
        {"dependsOn": [{}]},
        {"dependsOn": ["../x"]},
        {"dependsOn": 5},
        {"parentId": "../x"},
        {"parentId": 5},
        {"metadata": "x"},
        {"acceptance": {}},
        {"extra": []},
        {"body": 5},
    ],
)
def test_a_value_that_cannot_be_accepted_is_refused_whole(changes: dict[str, Any]) -> None:
    world = World()
    task = world.create()
    before = world.tasks[task]
    assert world.refuse(commands.ImportEdit, task, "hand", changes={"resource": "rig"} | changes).code == "invalid"
    assert world.tasks[task] == before


@pytest.mark.parametrize("target", STATUSES)
@pytest.mark.parametrize("status", STATUSES)
def test_a_move_by_hand_follows_the_table(status: str, target: str) -> None:
    world = World()
    task = world.into(status)
    if status == target:
        assert world.act(commands.ImportEdit, task, "hand", status=target).drafts == ()
    elif target == "in-progress":
        refusal = world.refuse(commands.ImportEdit, task, "hand", status=target)
        assert refusal.code == "invalid_transition"
        assert refusal.call is not None
        assert refusal.call.operation == "claim"
    elif status_allows(status, target) or (status in ("done", "cancelled") and target == "ready"):
        world.act(commands.ImportEdit, task, "hand", status=target)
        assert world.status(task) == target
    else:
        assert world.refuse(commands.ImportEdit, task, "hand", status=target).code == "invalid_transition"


def test_moving_a_running_task_ends_its_run() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.ImportEdit, task, "hand", status="ready")
    assert world.runs[task][run].status == "cancelled"
    assert world.refuse(commands.Complete, task, "ada", run=run).code == "stale_lease"


def test_moving_to_deadletter_tells_dependents_and_leaves_an_error() -> None:
    world = World()
    task = world.create()
    dependent = world.create(depends_on=[task])
    world.act(commands.ImportEdit, task, "hand", status="deadletter")
    assert (world.status(dependent), world.normalized(task)) == ("blocked", "failed")
    error = world.tasks[task].last_error
    assert error is not None
    assert error.code == "moved_by_hand"


def test_moving_to_cancelled_spreads_like_the_command() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    world.act(commands.ImportEdit, parent, "hand", status="cancelled")
    assert world.status(child) == "cancelled"


def test_moving_a_finished_task_to_ready_is_a_retry() -> None:
    world = World()
    task = world.into("deadletter")
    dependent = world.create(depends_on=[task])
    world.act(commands.ImportEdit, task, "hand", status="ready")
    assert (world.status(dependent), world.tasks[task].retry.failures) == ("ready", 0)


def test_dependencies_written_by_hand_are_checked_like_any_other() -> None:
    world = World()
    first = world.create()
    second = world.create(depends_on=[first])
    assert world.refuse(commands.ImportEdit, first, changes={"dependsOn": [second]}).code == "dependency_cycle"
    assert world.refuse(commands.ImportEdit, first, changes={"dependsOn": [first]}).code == "dependency_cycle"
    assert (
        world.refuse(commands.ImportEdit, first, changes={"dependsOn": ["TASK-2026-03-02-099"]}).code
        == "task_not_found"
    )
    third = world.create()
    world.act(commands.ImportEdit, first, changes={"dependsOn": [third, third]})
    assert world.tasks[first].depends_on == (third,)


def test_a_dead_dependency_written_by_hand_blocks_and_taking_it_out_frees() -> None:
    world = World()
    dead, task = world.into("cancelled"), world.create()
    world.act(commands.ImportEdit, task, changes={"dependsOn": [dead]})
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert blocked.dependency == dead
    world.act(commands.ImportEdit, task, changes={"dependsOn": None})
    assert world.status(task) == "ready"


def test_a_parent_written_by_hand_exists_is_not_cancelled_and_makes_no_circle() -> None:
    world = World()
    top = world.create()
    task = world.create(parent_id=top)
    gone = world.into("cancelled")
    assert world.refuse(commands.ImportEdit, task, changes={"parentId": "TASK-2026-03-02-099"}).code == "task_not_found"
    assert world.refuse(commands.ImportEdit, task, changes={"parentId": gone}).code == "cancel_requested"
    assert world.refuse(commands.ImportEdit, task, changes={"parentId": task}).code == "invalid"
    assert world.refuse(commands.ImportEdit, top, changes={"parentId": task}).code == "invalid"
    world.act(commands.ImportEdit, task, changes={"parentId": None})
    assert world.tasks[task].parent_id is None


def test_conflicts_and_a_new_layout_are_recorded_even_without_changes() -> None:
    world = World()
    task = world.create()
    world.act(commands.ImportEdit, task, conflicts=("title",))
    world.act(commands.ImportEdit, task, layout="title: x # mine")
    first, second = world.log(task, "task.updated")
    assert (first.payload["conflicts"], second.payload["changes"]) == (["title"], {})


def test_taking_the_draft_mark_out_of_the_file_accepts_the_task() -> None:
    world = World()
    task = world.create(metadata={"draft": True})
    world.act(commands.ImportEdit, task, changes={"metadata": None})
    assert len(world.log(task, "task.accepted")) == 1


@pytest.mark.parametrize("folder", ["backlog", "ready"])
def test_a_new_file_becomes_a_task(folder: str) -> None:
    world = World()
    blocker = world.create()
    task = world.next_id()
    created = {"title": "By hand", "dependsOn": [blocker, blocker], "extra": {"mine": 1}, "body": "B\n", "owner": None}
    forged = {"rev": 9, "lease": {}, "status": "done", "retry": {"attempts": 9}, "key": {}, "createdAt": "x"}
    world.act(commands.ImportEdit, task, "hand", status=folder, created=created | forged)
    adopted = world.tasks[task]
    assert (adopted.title, adopted.status, adopted.priority, adopted.created_by) == (
        "By hand",
        folder,
        "normal",
        "hand",
    )
    assert (adopted.depends_on, adopted.extra, adopted.body) == ((blocker,), {"mine": 1}, "B\n")
    assert (adopted.lease, adopted.retry.attempts, adopted.created_at) == (None, 0, "2026-03-02T09:00:00.000Z")


def test_a_new_file_with_a_dead_dependency_is_blocked_from_the_start() -> None:
    world = World()
    dead, task = world.into("cancelled"), world.next_id()
    world.act(commands.ImportEdit, task, status="ready", created={"title": "x", "dependsOn": [dead]})
    assert world.status(task) == "blocked"


@pytest.mark.parametrize(
    ("status", "created"),
    [
        ("done", {"title": "x"}),
        ("in-progress", {"title": "x"}),
        ("ready", {}),
        ("ready", {"title": " "}),
        ("ready", {"title": "x", "priority": 5}),
        ("ready", {"title": "x", "dependsOn": ["TASK-2026-03-02-099"]}),
        ("ready", {"title": "x", "dependsOn": "x"}),
        ("ready", {"title": "x", "parentId": "TASK-2026-03-02-099"}),
        ("ready", {"title": "x", "parentId": []}),
        ("ready", {"title": "x", "metadata": []}),
    ],
)
def test_a_new_file_that_cannot_be_accepted_creates_nothing(status: Any, created: dict[str, Any]) -> None:
    world = World()
    world.refuse(commands.ImportEdit, world.next_id(), status=status, created=created)
    assert world.tasks == {}


@pytest.mark.parametrize("name", ["TASK-2026-03-02-001\n", "../x", "TASK-\u0662\u0660\u0662\u0666-03-02-001"])
def test_a_new_file_under_a_name_that_is_no_id_creates_nothing(name: str) -> None:
    assert World().refuse(commands.ImportEdit, name, created={"title": "x"}).code == "invalid"


def test_a_file_of_a_task_that_exists_is_no_new_one_and_a_missing_one_no_edit() -> None:
    world = World()
    task = world.create()
    assert world.refuse(commands.ImportEdit, task, created={"title": "x"}).code == "invalid"
    assert world.refuse(commands.ImportEdit, world.next_id(), changes={"title": "x"}).code == "task_not_found"
