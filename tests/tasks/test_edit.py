"""Changes of a task: by operations, by hand in its file, and by two at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput
from aof.kernel import commands
from aof.kernel.model import STATUSES, status_allows
from aof.tasks.fields import CLEARABLE
from aof.tasks.manual_edits import merge_fields, merge_text
from aof.testing import FakeClock
from tests.support.command_line import Aof
from tests.support.room import Room
from tests.support.world import World

# --- edits of fields: taking values away, moving a task below another one, and requests that are repeated


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


# --- edit, progress and archive


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


def test_objects_change_only_in_the_keys_that_are_given() -> None:
    world = World()
    task = world.create(assignee="ada", metadata={"a": 1, "b": 2})
    world.act(commands.Edit, task, changes={"routing": {"tags": ["x"]}, "metadata": {"a": None, "c": 3}})
    edited = world.tasks[task]
    assert (edited.routing.agent, edited.routing.tags, edited.metadata) == ("ada", ("x",), {"b": 2, "c": 3})


def test_an_edit_of_one_metadata_key_keeps_others_that_hold_nothing() -> None:
    world = World()
    task = world.create(metadata={"a": [], "b": None, "c": 1})
    world.act(commands.Edit, task, changes={"metadata": {"c": 2}})
    assert world.tasks[task].metadata == {"a": [], "b": None, "c": 2}
    world.act(commands.Edit, task, changes={"metadata": {"a": None, "d": []}})
    assert world.tasks[task].metadata == {"b": None, "c": 2, "d": []}


def test_no_tags_are_the_same_as_an_empty_list_of_them() -> None:
    world = World()
    task = world.create(assignee="ada")
    assert world.act(commands.Edit, task, changes={"routing": {"tags": []}}).drafts == ()
    world.act(commands.Edit, task, changes={"routing": {"tags": ["x"]}})
    world.act(commands.Edit, task, changes={"routing": {"tags": []}})
    assert world.tasks[task].routing.tags == ()


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


# --- `update`: body, status and sign of life in one decision


def test_a_move_to_in_progress_is_refused_while_a_dependency_is_open() -> None:
    world = World()
    task = world.create(depends_on=[world.create()])
    assert world.refuse(commands.Update, task, "ada", status="in-progress").code == "not_ready"


def test_going_back_from_review_to_work_needs_the_resource_as_well() -> None:
    world = World()
    reviewed = world.into("review", resource="rig")
    world.claim(world.create(resource="rig"), "bob")
    assert world.refuse(commands.Update, reviewed, "ada", status="in-progress").code == "resource_busy"


def test_going_back_from_review_to_work_starts_a_new_run() -> None:
    world = World()
    task = world.into("review")
    world.act(commands.Update, task, "bob", status="in-progress")
    lease = world.tasks[task].lease
    assert lease is not None
    assert (lease.agent, lease.epoch) == ("bob", 2)


def test_the_same_body_again_writes_nothing() -> None:
    world = World()
    task = world.create(body="text")
    assert world.act(commands.Update, task, body="text").drafts == ()


def test_a_bare_update_by_somebody_else_renews_nothing() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    decision = world.act(commands.Update, task, "bob")
    assert (decision.drafts, decision.heartbeat) == ((), None)


@pytest.mark.parametrize(
    "given", [{"body": "mine"}, {"status": "ready"}, {"status": "blocked"}, {"status": "cancelled"}]
)
def test_only_the_holder_updates_a_running_task(given: dict[str, str]) -> None:
    world = World()
    task = world.create()
    world.claim(task)
    assert world.refuse(commands.Update, task, "bob", **given).code == "not_lease_holder"


@pytest.mark.parametrize("given", [{}, {"body": "late"}, {"status": "review"}, {"status": "blocked"}])
def test_a_replaced_run_updates_nothing_while_another_runs(given: dict[str, str]) -> None:
    world = World()
    task = world.create()
    old = world.claim(task)
    world.act(commands.Release, task, "ada")
    world.claim(task, "bob")
    assert world.refuse(commands.Update, task, "ada", run=old, **given).code == "stale_lease"


@pytest.mark.parametrize("given", [{"body": "late"}, {"status": "in-progress"}, {"status": "blocked"}])
def test_an_ended_run_updates_nothing_when_nobody_runs_the_task(given: dict[str, str]) -> None:
    world = World()
    task = world.create()
    old = world.claim(task)
    world.act(commands.Release, task, "ada")
    assert world.refuse(commands.Update, task, "ada", run=old, **given).code == "stale_lease"


def test_a_run_of_another_task_is_no_hindrance() -> None:
    world = World()
    elsewhere = world.claim(world.create())
    task = world.create()
    world.act(commands.Update, task, "ada", run=elsewhere, body="noted")
    assert world.tasks[task].body == "noted\n"


def test_a_draft_is_not_promoted_before_its_mark_is_gone() -> None:
    world = World()
    task = world.create(metadata={"draft": True})
    assert world.refuse(commands.Update, task, status="ready").code == "not_ready"
    world.act(commands.Edit, task, changes={"metadata": {"draft": None}})
    world.act(commands.Update, task, status="ready")
    assert world.status(task) == "ready"


def test_a_blocked_task_can_be_shelved_while_its_dependency_is_dead() -> None:
    world = World()
    task = world.create(depends_on=[world.into("cancelled")])
    world.act(commands.Update, task, status="backlog")
    assert world.status(task) == "backlog"
    assert world.tasks[task].blocked is None


def test_giving_a_task_up_puts_the_reason_on_it() -> None:
    world = World()
    task = world.into("blocked")
    world.act(commands.Update, task, status="deadletter", reason="nobody wants it")
    error = world.tasks[task].last_error
    assert error is not None
    assert (error.code, error.message) == ("given_up", "nobody wants it")


# --- three-way merges: both sides' changes where they do not meet, the log where they do


FIELDS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2))
LINES = st.lists(st.sampled_from(["one\n", "two\n", "three\n", "four\n"]), max_size=8).map("".join)


@given(base=FIELDS, ours=FIELDS, theirs=FIELDS)
def test_a_field_is_theirs_ours_or_in_conflict(
    base: dict[str, int], ours: dict[str, int], theirs: dict[str, int]
) -> None:
    changes, conflicts = merge_fields(base, ours, theirs)
    assert not set(changes) & set(conflicts)
    for name in base.keys() | ours.keys() | theirs.keys():
        result = changes.get(name, ours.get(name)) if name in changes else ours.get(name)
        if base.get(name) == ours.get(name):
            assert result == theirs.get(name)
        else:
            assert result == ours.get(name)
            assert (name in conflicts) == (theirs.get(name) not in (base.get(name), ours.get(name)))


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n", "A\nb\nC\n"),
        ("a\nb\nc\n", "a\nb\nc\nlog\n", "A\nb\nc\n", "A\nb\nc\nlog\n"),
        ("a\nb\nc\n", "a\nb\nc\nlog\n", "b\nc\n", "b\nc\nlog\n"),
        ("a\nb\nc\nd\n", "X\nb\nc\nlog\n", "X\nb\nc\nd\n", "X\nb\nc\nlog\n"),
        ("a\nb\nc\nd\n", "X\nb\nc\nlog\n", "X\nb2\nc\nd\n", None),
        ("a\n", "b\n", "c\n", None),
        ("a\nb\n", "A\nb\n", "a\nB\n", None),
        ("", "ours\n", "theirs\n", None),
    ],
)
def test_texts_merge_by_lines(base: str, ours: str, theirs: str, merged: str | None) -> None:
    assert merge_text(base, ours, theirs) == merged


@given(base=LINES, theirs=LINES)
def test_a_text_that_one_side_left_alone_is_the_other_sides(base: str, theirs: str) -> None:
    assert merge_text(base, base, theirs) == theirs
    assert merge_text(base, theirs, base) == theirs
    assert merge_text(base, theirs, theirs) == theirs


@given(base=LINES, ours=LINES, theirs=LINES)
def test_a_merge_does_not_depend_on_the_side(base: str, ours: str, theirs: str) -> None:
    assert merge_text(base, ours, theirs) == merge_text(base, theirs, ours)


@given(head=LINES, tail=LINES, first=LINES, last=LINES)
def test_changes_that_lie_apart_are_both_kept(head: str, tail: str, first: str, last: str) -> None:
    middle = "fixed 1\nfixed 2\nfixed 3\n"
    merged = merge_text(head + middle + tail, first + middle + tail, head + middle + last)
    assert merged == first + middle + last


def test_large_texts_are_merged_in_time() -> None:
    base = "same\n" * 20_000
    assert merge_text(base, base + "log\n", "mine\n" + base) == "mine\n" + base + "log\n"
    assert merge_text(base, ("same\n" * 9_000 + "x\n" * 9_000) + "log\n", "y\n" * 15_000) is None


# --- A person's edit of a file is judged by the same rules, and never touches what AOF keeps account with


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
