"""Lists, outlines, and the other names of tasks."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aof
from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.api.fabric import Fabric
from aof.errors import AmbiguousId, AofError, InvalidInput
from aof.kernel.events import Draft
from aof.queries import read_models
from aof.runs.brief import prime
from aof.store.port import Scope
from aof.testing import FakeClock, memory_fabric
from aof.workflows.model import leases
from tests.support.room import Room
from tests.support.workflows import REVIEW

# --- lists of tasks as callers ask for them: moments, orders, cursors, and what is overdue


DAY = 86_400


def numbers(fabric: Fabric, **filters: Any) -> list[str]:
    """The last parts of the IDs that a list has."""
    return [row.id[-3:] for row in fabric.list(**filters).tasks]


def test_what_is_ready_is_listed_apart_from_what_waits_for_something(fabric: Fabric, clock: FakeClock) -> None:
    first = fabric.create("First").task_id
    after = fabric.create("After it", depends_on=[first]).task_id
    above = fabric.create("Above it", metadata={"waitForChildren": True}).task_id
    fabric.create("Below it", parent_id=above, backlog=True)
    failed = fabric.create("Failed once").task_id
    fabric.fail(failed, run=fabric.claim(failed, agent="ada").run_id, agent="ada", message="no wind")
    locked = [fabric.create(f"Use the lab {number}", resource="lab").task_id for number in range(2)]
    fabric.claim(locked[0], agent="ada")
    waiting = fabric.list(waits=True)
    assert [row.id for row in waiting.tasks] == [after, above, failed, locked[1]]
    assert all(row.waits for row in waiting.tasks)
    assert waiting.total == 4
    claimable = fabric.list(waits=False)
    assert [row.id for row in claimable.tasks] == [first]
    assert claimable.total == 1
    clock.sleep(3600)
    assert failed in [row.id for row in fabric.list(waits=False).tasks]


def test_a_full_list_has_what_a_card_of_a_board_says(fabric: Fabric) -> None:
    parent = fabric.create("Parent", tags=["sea"], role="developer").task_id
    children = [fabric.create(f"Child {number}", parent_id=parent).task_id for number in range(3)]
    fabric.cancel(children[0])
    run = fabric.claim(children[1], agent="ada").run_id
    fabric.progress(children[1], run=run, agent="ada", text="half", percent=50)
    rows = {row.id: row for row in fabric.list(full=True).tasks}
    assert rows[parent]["tags"] == ("sea",)
    assert rows[parent]["role"] == "developer"
    assert rows[parent]["children"] == {"total": 3, "done": 0, "finished": 1}
    assert rows[children[1]]["progress"] == {"percent": 50, "text": "half"}
    assert (rows[children[1]]["parentId"], rows[children[1]]["parentTitle"]) == (parent, "Parent")
    fabric.complete(children[1], run=run, agent="ada")
    (row,) = fabric.list(status="review", full=True).tasks
    assert row["authors"] == ("ada",)
    assert row["since"] == fabric.get(children[1]).last_transition_at
    assert "progress" not in row
    assert "tags" not in fabric.list().tasks[0]


def test_a_day_is_due_until_it_is_over_and_a_moment_until_it_has_come(fabric: Fabric, clock: FakeClock) -> None:
    fabric.create("By Tuesday", due="2026-03-03")
    fabric.create("By ten", due="2026-03-03T10:00+01:00")
    fabric.create("Some day")
    assert numbers(fabric, overdue=True) == []
    clock.sleep(DAY)  # Tuesday, nine o'clock
    assert numbers(fabric, overdue=True) == []
    clock.sleep(1)
    assert numbers(fabric, overdue=True) == ["002"]
    clock.sleep(15 * 3600)
    assert numbers(fabric, overdue=True) == ["001", "002"]
    assert [row.overdue for row in fabric.list().tasks] == [True, True, False]
    assert [row.overdue for row in fabric.ready().tasks] == [True, True, False]


def test_what_is_finished_is_not_overdue(room: Room, clock: FakeClock) -> None:
    task_id = room.task("done", due="2026-03-02")
    room.task("cancelled", due="2026-03-02")
    clock.sleep(DAY)
    assert numbers(room.fabric, overdue=True) == []
    (row, _) = room.fabric.list().tasks
    assert (row.id, row.due, row.overdue) == (task_id, "2026-03-02", False)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("2026-03-09", "2026-03-09"),
        ("2026-03-09T12:00:00+02:00", "2026-03-09T10:00:00.000Z"),
        ("today", "2026-03-02"),
        ("Tomorrow", "2026-03-03"),
        ("+3d", "2026-03-05T09:00:00.000Z"),
        ("+1h30m", "2026-03-02T10:30:00.000Z"),
    ],
)
def test_a_due_date_may_be_said_as_people_say_it(fabric: Fabric, said: str, kept: str) -> None:
    assert fabric.get(fabric.create("Due", due=said).task_id).due == kept
    fabric.create("Not due")
    fabric.edit("002", due=said)
    assert fabric.get("002").due == kept
    assert fabric.edit("002", clear=["due"]).updated_fields == ("due",)
    assert fabric.get("002").due is None


@pytest.mark.parametrize("said", ["", "soon", "2026-02-30", "+3", "3d", "+400d", "9" * 500, "2026-03-01T25:00"])
def test_a_due_date_that_is_none_is_refused_and_nothing_is_changed(fabric: Fabric, said: str) -> None:
    for call in (lambda: fabric.create("Due", due=said), lambda: fabric.list(due_before=said)):
        with pytest.raises(InvalidInput, match="due") as refusal:
            call()
        assert "2026-03-01" in refusal.value.hint
    assert fabric.list().total == 0


def test_a_due_date_in_a_file_is_taken_as_a_person_writes_it(room: Room, clock: FakeClock) -> None:
    task_id = room.task()
    path = room.file(task_id)
    text = path.read_text()
    path.write_text(text.replace('status: "ready"', 'status: "ready"\ndue: 2026-03-01'))
    assert room.fabric.show(task_id)["due"] == "2026-03-01"
    assert numbers(room.fabric, overdue=True) == ["001"]
    path.write_text(path.read_text().replace("2026-03-01", "next week"))
    assert room.fabric.list().tasks[0].state == "stale"
    assert room.fabric.list().tasks[0].due == "2026-03-01"


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"created_after": "-1d"}, ["Wednesday"]),
        ({"created_before": "-1d"}, ["Monday", "Tuesday"]),
        ({"created_after": "2026-03-03", "created_before": "2026-03-04"}, ["Tuesday"]),
        ({"updated_after": "today"}, ["Monday", "Wednesday"]),
        ({"updated_before": "today"}, ["Tuesday"]),
        ({"sort": "updated"}, ["Tuesday", "Monday", "Wednesday"]),
        ({"sort": "created", "reverse": True}, ["Wednesday", "Tuesday", "Monday"]),
        ({"sort": "priority", "reverse": True}, ["Wednesday", "Tuesday", "Monday"]),
        ({"priority": "high"}, ["Monday"]),
        ({"parent_id": "03-03-001"}, ["Wednesday"]),
    ],
    ids=str,
)
def test_filters_keep_what_lies_between_their_moments(
    fabric: Fabric, clock: FakeClock, filters: dict[str, Any], expected: list[str]
) -> None:
    monday = fabric.create("Monday", priority="high").task_id
    clock.sleep(DAY)
    tuesday = fabric.create("Tuesday").task_id
    clock.sleep(DAY + 1)
    fabric.edit(monday, owner="ada")
    fabric.create("Wednesday", parent_id=tuesday, priority="low")
    assert [row.title for row in fabric.list(**filters).tasks] == expected


@pytest.mark.parametrize(
    "filters",
    [
        {"sort": "colour"},
        {"priority": "urgent"},
        {"status": "open"},
        {"created_after": "long ago"},
        {"cursor": ""},
        {"cursor": "§"},
        {"cursor": "AAAA"},
        {"cursor": "x" * 100_000},
        {"limit": -1},
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_filter_that_means_nothing_is_refused_with_what_would(fabric: Fabric, filters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        fabric.list(**filters)
    assert refusal.value.hint


def test_a_cursor_goes_on_only_in_the_order_that_it_was_made_for(fabric: Fabric) -> None:
    for number in range(3):
        fabric.create(f"Number {number}")
    cursor = fabric.list(limit=1, sort="title").next_cursor
    assert cursor is not None
    assert numbers(fabric, limit=1, sort="title", cursor=cursor) == ["002"]
    for other in ({}, {"sort": "title", "reverse": True}, {"sort": "priority"}):
        with pytest.raises(InvalidInput, match="another order"):
            fabric.list(cursor=cursor, **other)


@given(st.text() | st.binary().map(lambda data: urlsafe_b64encode(data).decode()))
def test_no_text_that_poses_as_a_cursor_breaks_a_list(text: str) -> None:
    try:
        place = read_models.open_cursor(text, "id", reverse=False)
    except InvalidInput:
        return
    assert read_models.open_cursor(read_models.make_cursor(place, "id", reverse=False), "id", reverse=False) == place


def test_a_title_in_any_script_is_a_place_to_go_on_from(fabric: Fabric) -> None:
    titles = ["Ärger", "zebra", "Éclair", "日本", "😀 smile", "a" * 500]
    for title in titles:
        fabric.create(title)
    shown: list[str] = []
    cursor = None
    for _ in titles:
        page = fabric.list(sort="title", limit=1, cursor=cursor)
        shown += [row.title for row in page.tasks]
        cursor = page.next_cursor
    assert cursor is None
    assert shown == sorted(titles, key=str.casefold)


def test_an_id_that_means_several_tasks_names_the_open_and_todays_first(room: Room, clock: FakeClock) -> None:
    old = room.task("done")
    clock.sleep(DAY)
    yesterday = room.task()
    clock.sleep(DAY)
    today, finished = room.task(), room.task("cancelled")
    with pytest.raises(AmbiguousId) as refusal:
        room.fabric.get("2026-03")
    assert refusal.value.details["matches"] == [today, yesterday, finished, old]
    assert today.removeprefix("TASK-") in refusal.value.hint
    with pytest.raises(AmbiguousId):
        room.fabric.comment("001", "Which one?")


@pytest.mark.parametrize("name", ["status", "priority", "sort"])
def test_a_word_that_a_list_does_not_know_is_refused_with_those_that_it_knows(fabric: Fabric, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{name}' cannot be 'urgent'") as refused:
        numbers(fabric, **{name: "urgent"})
    assert refused.value.hint.startswith(f"{name}: one of ")


# --- one task in short, as agents read it: small, and nothing that they need is missing


SMALL = 1_500  # characters


def test_a_small_gated_task_is_short_as_a_tool_and_whole_when_asked_or_anywhere_else() -> None:
    fabric = memory_fabric(workflows=(REVIEW,))
    brief = "Add a refresh endpoint.\n\n- keep the old one\n- document both\n"
    task = fabric.create("Add refresh endpoint", brief=brief, workflow="review", acceptance=["tests pass"]).task_id
    fabric.complete(task, hop="implement", outcome="complete", agent="ada", summary="Built it, 12 tests.")
    run = fabric.claim(task, agent="rita").run_id

    show = BY_NAME["show"]
    short = perform(fabric, show, parameters(show, {"taskId": task}, tool=True), Caller("rita"))
    assert len(json.dumps(short)) < SMALL
    assert brief.strip() in short["body"]
    assert "Built it, 12 tests." in short["body"]
    assert (short["acceptance"], short["status"]) == (("tests pass",), "in-progress")
    assert [(hop["id"], hop["status"]) for hop in short["workflow"]["hops"]] == [
        ("implement", "done"),
        ("code-review", "running"),
        ("ship", "waiting"),
    ]
    assert short["workflow"]["hops"][1]["runId"] == run

    whole = fabric.show(task)
    assert perform(fabric, show, parameters(show, {"taskId": task, "full": True}, tool=True), Caller("rita")) == whole
    assert perform(fabric, show, parameters(show, {"taskId": task}), Caller("rita")) == whole
    assert "template" in whole["workflow"]


def test_a_rejection_is_in_the_short_view_until_whoever_rejected_has_accepted() -> None:
    fabric = memory_fabric(workflows=(REVIEW,))
    task = fabric.create("Gated", workflow="review").task_id

    def done(
        agent: str, outcome: Literal["complete", "needs_review"] = "complete", blockers: tuple[str, ...] = ()
    ) -> dict[str, object]:
        run = fabric.claim(task, agent=agent).run_id
        fabric.complete(task, outcome=outcome, blockers=blockers, run=run)
        return dict(fabric.show(task, full=False)["workflow"])

    assert "feedback" not in done("ada")
    assert "feedback" in done("rita", "needs_review", ("no test",))
    assert "feedback" in done("ada")
    assert "feedback" not in done("rita")
    assert "feedback" in fabric.show(task)["workflow"], "the whole record keeps it"


def test_what_is_cut_is_named() -> None:
    fabric = memory_fabric()
    task = fabric.create("Long", brief="x" * 10_000).task_id
    for _ in range(5):
        fabric.release(task, run=fabric.claim(task, agent="ada").run_id)
    short = fabric.show(task, full=False)
    assert short["cut"] == ["attempts", "body"]
    assert [run["attempt"] for run in short["attempts"]] == [3, 4, 5]
    assert len(short["body"]) < 5_000
    assert "cut" not in fabric.show(fabric.create("Short").task_id, full=False)


@pytest.mark.parametrize("gated", [False, True])
def test_the_end_of_a_lease_is_shown_as_its_last_sign_of_life_set_it(*, gated: bool) -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock, workflows=(REVIEW,))
    task = fabric.create("Renewed", workflow="review" if gated else None).task_id
    run = fabric.claim(task, agent="ada").run_id
    clock.sleep(60)
    renewed = fabric.heartbeat(task, run=run).expires_at
    shown = fabric.show(task)
    lease = shown["workflow"]["hops"][0]["lease"] if gated else shown["lease"]
    assert lease["expiresAt"] == renewed
    assert renewed > leases(fabric.get(task))[0].expires_at


def test_the_primer_lists_the_hops_that_an_agent_holds() -> None:
    fabric = memory_fabric(workflows=(REVIEW,))
    task = fabric.create("Gated work", workflow="review").task_id
    fabric.claim(task, agent="ada")
    held = prime(fabric, "ada").partition("You hold")[2].partition("Ready for you")[0]
    assert task in held
    assert task not in prime(fabric, "rita").partition("You hold")[2].partition("Ready for you")[0]


# --- A task that a merge of histories renumbered answers under its old ID too, together with the task that has that ID


_NEW = "TASK-2026-03-02-4000001"


@pytest.fixture(params=["memory", "filesystem"])
def aliased(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fabric]:
    """A store with two tasks, of which the second was the first one's namesake in another clone."""
    if request.param == "memory":
        yield memory_fabric(actor="ada")
        return
    aof.init(tmp_path / ".aof")
    with aof.open(tmp_path / ".aof", actor="ada") as opened:
        monkeypatch.setattr(type(opened.store.lane_names), "merged", lambda _self: True)  # type: ignore[attr-defined]
        yield opened


def _renumbered(aliased: Fabric) -> tuple[str, str]:
    """The task that kept the ID, and the one that had it elsewhere."""
    kept, other = aliased.create("kept it").task_id, aliased.create("had it in another clone").task_id
    with aliased.store.unit(Scope(write=frozenset({other}))) as unit:
        draft = Draft(type="task.merged", task_id=other, payload={"aliases": [kept]})
        unit.commit((draft,), actor="aof", agent=None, now=aliased.services.environment.clock.now())
    return kept, other


@pytest.mark.parametrize("part", [slice(None), slice(5, None), slice(16, None)])
def test_the_old_id_answers_with_both_tasks_in_full_and_in_short(aliased: Fabric, part: slice) -> None:
    kept, other = _renumbered(aliased)
    for call in (aliased.show, aliased.cancel, lambda one: aliased.claim(one, agent="bob")):
        with pytest.raises(AmbiguousId) as caught:
            call(kept[part])
        assert caught.value.details["matches"] == [kept, other]
        assert f"={kept}" in caught.value.hint


def test_both_tasks_are_reached_by_what_the_refusal_says(aliased: Fabric) -> None:
    kept, other = _renumbered(aliased)
    assert aliased.show(f"={kept}")["id"] == kept
    assert aliased.show(f"={kept[5:]}")["id"] == kept
    assert aliased.show(other)["id"] == other
    assert aliased.cancel(f"={kept}").task_id == kept


def test_a_worker_goes_on_with_its_own_run_whatever_the_id_means_to_others(aliased: Fabric) -> None:
    kept, _ = _renumbered(aliased)
    run = aliased.claim(f"={kept}", agent="bob").run_id
    assert aliased.heartbeat(kept, run=run).task_id == kept
    assert aliased.complete(kept, run=run, summary="done").task_id == kept


def test_an_old_id_that_no_other_task_has_leads_to_the_task(aliased: Fabric) -> None:
    made = aliased.create("alone").task_id
    old = f"{made[:16]}777"
    with aliased.store.unit(Scope(write=frozenset({made}))) as unit:
        draft = Draft(type="task.merged", task_id=made, payload={"aliases": [old]})
        unit.commit((draft,), actor="aof", agent=None, now=aliased.services.environment.clock.now())
    assert aliased.show(old)["id"] == made
    assert aliased.show("777")["id"] == made


def test_nothing_else_is_ambiguous_or_found(aliased: Fabric) -> None:
    _renumbered(aliased)
    with pytest.raises(AofError) as caught:
        aliased.show("TASK-2020-01-01-001")
    assert caught.value.code == "task_not_found"
    assert msgspec.to_builtins(aliased.list().total) == 2
