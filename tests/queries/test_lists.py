"""Lists of tasks as callers ask for them: moments, orders, cursors, and what is overdue."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AmbiguousId, InvalidInput
from aof.queries import read_models
from aof.testing import FakeClock
from tests.support.room import Room

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
