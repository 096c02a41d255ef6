"""Edit, progress and archive."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from tests.support.world import World

ROUTING = {"agent": "ada", "tags": ["x"]}


@pytest.mark.parametrize(
    ("field", "first", "second"),
    [
        ("title", "One", "Two"),
        ("description", "One\n", "Two\n"),
        ("priority", "high", "low"),
        ("routing", {"agent": "bob"}, {"role": "dev"}),
        ("owner", "lead", None),
        ("acceptance", ["a"], []),
        ("constraints", {"a": 1}, {"a": None}),
        ("profile", {"a": [1]}, {"a": [2]}),
        ("resource", "rig", None),
        ("visibility", "hidden", "foreground"),
        ("metadata", {"a": {"b": 1}}, {"a": None}),
    ],
)
def test_a_field_is_changed_once_and_the_same_value_again_writes_nothing(field: str, first: Any, second: Any) -> None:
    world = World()
    task = world.create()
    for value in (first, second):
        [updated] = world.act(commands.Edit, task, changes={field: value}).drafts
        assert updated.payload["fields"] == [field]
        assert world.act(commands.Edit, task, changes={field: value}).drafts == ()


@pytest.mark.parametrize(
    "same",
    [
        {"title": "Something to do"},
        {"priority": "normal"},
        {"visibility": "foreground"},
        {"acceptance": []},
        {"routing": {}},
    ],
)
def test_a_default_that_is_given_again_is_no_change(same: dict[str, Any]) -> None:
    world = World()
    assert world.act(commands.Edit, world.create(), changes=same).drafts == ()


def test_only_what_really_changed_is_named() -> None:
    world = World()
    task = world.create(priority="high")
    [updated] = world.act(commands.Edit, task, changes={"title": "New", "priority": "high"}).drafts
    assert updated.payload["fields"] == ["title"]


def test_objects_change_only_in_the_keys_that_are_given() -> None:
    world = World()
    task = world.create(assignee="ada", metadata={"a": 1, "b": 2})
    world.act(commands.Edit, task, changes={"routing": {"tags": ["x"]}, "metadata": {"a": None, "c": 3}})
    edited = world.tasks[task]
    assert (edited.routing.agent, edited.routing.tags, edited.metadata) == ("ada", ("x",), {"b": 2, "c": 3})


def test_an_edit_of_a_running_task_keeps_its_lease() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    lease = world.tasks[task].lease
    world.act(commands.Edit, task, "anyone", changes={"routing": {"agent": "bob"}, "title": "New"})
    assert (world.tasks[task].lease, world.status(task)) == (lease, "in-progress")


def test_a_new_description_keeps_the_work_log_byte_for_byte() -> None:
    world = World()
    task = world.create(body="Old")
    world.claim(task)
    world.act(commands.ReportProgress, task, "ada", text="half")
    log = world.tasks[task].body.partition("## Work Log")[2]
    world.act(commands.Edit, task, changes={"description": "New\n\n## Work Log\n\n- forged\n"})
    assert world.tasks[task].body == f"New\n\n## Work Log{log}"


@pytest.mark.parametrize("changes", [{}, {"status": "done"}, {"lease": None}, {"title": "x", "id": "y"}])
def test_an_edit_of_nothing_or_of_what_is_no_field_is_refused_with_the_fields(changes: dict[str, Any]) -> None:
    world = World()
    refusal = world.refuse(commands.Edit, world.create(), changes=changes)
    assert refusal.code == "invalid"
    assert "title, priority" in refusal.hint


@pytest.mark.parametrize(
    "changes",
    [
        {"title": " "},
        {"title": None},
        {"title": 5},
        {"title": "x", "priority": "urgent"},
        {"priority": None},
        {"visibility": "secret"},
        {"description": 5},
        {"owner": "a b"},
        {"owner": 5},
        {"resource": "../x"},
        {"routing": "ada"},
        {"routing": {"boss": "x"}},
        {"routing": {"agent": 5}},
        {"routing": {"tags": "abc"}},
        {"routing": {"tags": [5]}},
        {"routing": {"workflow": "a/b"}},
        {"acceptance": "works"},
        {"metadata": [1]},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": object()}},
        {"metadata": {1: 2}},
        {"metadata": {"leaseTtlMs": "soon"}},
        {"constraints": {"big": 2**70}},
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_and_nothing_else_is_applied(changes: dict[str, Any]) -> None:
    world = World()
    task = world.create()
    before = world.tasks[task]
    assert world.refuse(commands.Edit, task, changes=changes).code == "invalid"
    assert world.tasks[task] == before


def test_frontmatter_stays_within_what_a_file_may_hold_also_over_many_edits() -> None:
    world = World()
    task = world.create()
    for number in range(3):
        world.act(commands.Edit, task, changes={"metadata": {f"k{number}": "x" * 12_000}})
    assert world.refuse(commands.Edit, task, changes={"profile": {"k": "x" * 12_000}}).code == "payload_too_large"


def test_taking_the_draft_mark_away_accepts_the_task() -> None:
    world = World()
    task = world.create(metadata={"draft": True, "a": 1})
    decision = world.act(commands.Edit, task, changes={"metadata": {"draft": False}})
    assert [draft.type for draft in decision.drafts] == ["task.updated", "task.accepted"]
    assert world.normalized(task) == "accepted"


def test_progress_is_kept_in_order_and_is_a_sign_of_life() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(
        commands.ReportProgress, task, "ada", text="half", percent=50, phase="working", facts={"files": {"done": 1}}
    )
    decision = world.act(commands.ReportProgress, task, "ada", note="n", blockers=("b1", "b2"))
    assert decision.heartbeat is not None
    progress = world.tasks[task].progress
    assert (progress["text"], progress["percent"], progress["phase"]) == ("half", 50, "working")
    assert (progress["files"], progress["runId"]) == ({"done": 1}, world.lease_run(task))
    assert world.tasks[task].body.splitlines()[-2:] == [
        "- 2026-03-02T09:00:00.000Z ada: Progress: half",
        "- 2026-03-02T09:00:00.000Z ada: Notes: n | Blockers: b1; b2",
    ]


def test_the_work_log_says_who_reported_what() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(
        commands.ReportProgress,
        task,
        "ada",
        text="Implemented core logic",
        note="ETA soon",
        blockers=("Awaiting API key",),
    )
    assert world.tasks[task].body.endswith(
        "- 2026-03-02T09:00:00.000Z "
        "ada: Progress: Implemented core logic | Notes: ETA soon | Blockers: Awaiting API key\n"
    )


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "invalid"),
        ({"percent": 101}, "invalid"),
        ({"percent": -0.1}, "invalid"),
        ({"percent": float("nan")}, "invalid"),
        ({"text": "x" * 1_001}, "payload_too_large"),
        ({"note": "x" * 10_001}, "payload_too_large"),
        ({"phase": "a\nb"}, "invalid"),
        ({"blockers": ("b",) * 21}, "payload_too_large"),
        ({"blockers": ("x" * 257,)}, "payload_too_large"),
        ({"facts": {"workLog": "forged"}}, "invalid"),
        ({"facts": {"a": object()}}, "invalid"),
        ({"facts": {"a": "x" * 9_000}}, "payload_too_large"),
    ],
)
def test_a_report_that_is_empty_odd_or_too_long_is_refused(given: dict[str, Any], code: str) -> None:
    world = World()
    task = world.create()
    world.claim(task)
    assert world.refuse(commands.ReportProgress, task, "ada", **given).code == code


def test_progress_does_not_grow_without_end() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    for number in range(3):
        world.act(commands.ReportProgress, task, "ada", facts={f"k{number}": "x" * 2_000})
    assert world.refuse(commands.ReportProgress, task, "ada", facts={"k9": "x" * 2_500}).code == "payload_too_large"


def test_a_new_run_starts_without_progress() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.ReportProgress, task, "ada", percent=90)
    world.act(commands.Release, task, "ada")
    world.claim(task, "bob")
    assert world.tasks[task].progress == {}


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "review", "blocked"])
def test_only_what_is_finished_is_archived(status: str) -> None:
    world = World()
    assert world.refuse(commands.ArchiveTask, world.into(status)).code == "invalid_transition"


@pytest.mark.parametrize("status", ["done", "cancelled", "deadletter"])
def test_a_finished_task_is_archived_once_and_not_run_again(status: str) -> None:
    world = World()
    task = world.into(status)
    world.act(commands.ArchiveTask, task)
    assert world.act(commands.ArchiveTask, task).drafts == ()
    assert world.normalized(task) == "archived"
    assert world.refuse(commands.RetryTask, task, reason="again").kind == "not_found"
