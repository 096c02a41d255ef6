"""Every field of a task on every surface: set, shown, listed, changed and taken away; and in two clones that merge."""

from __future__ import annotations

from pathlib import Path

from aof.tasks.fields import LISTED, PLAIN
from tests.support.clones import cloned, origin
from tests.support.fields import first, second
from tests.surfaces.doors import Door, answer_of

BY_NAMES = {row.key: row.name for row in PLAIN}


def test_every_field_is_set_shown_listed_changed_and_taken_away(door: Door) -> None:
    given, other = first(), second()
    task_id = answer_of(door.ask("create", title="Full", brief="All of it.", **given))["taskId"]
    shown = answer_of(door.ask("show", task_id=task_id))
    assert {name: shown[key] for key, name in BY_NAMES.items()} == given
    (row,) = [one for one in answer_of(door.ask("list"))["tasks"] if one["id"] == task_id]
    assert {one.name: row[one.key] for one in LISTED} == {one.name: given[one.name] for one in LISTED}
    changed = answer_of(door.ask("edit", task_id=task_id, **other))
    assert sorted(changed["updatedFields"]) == sorted(BY_NAMES)
    shown = answer_of(door.ask("show", task_id=task_id))
    assert {name: shown[key] for key, name in BY_NAMES.items() if key in shown} == {
        name: value
        for name, value in other.items()
        if name != "visibility"  # which is the default again
    }
    answer_of(door.ask("edit", task_id=task_id, clear=[row.clear for row in PLAIN if row.clear]))
    assert not {row.key for row in PLAIN if row.clear} & answer_of(door.ask("show", task_id=task_id)).keys()
    answer_of(door.ask("undo", task_id=task_id))
    assert answer_of(door.ask("show", task_id=task_id))["estimate"] == other["estimate"]


def test_an_estimate_of_each_clone_comes_to_the_other_and_of_two_the_later_stands(tmp_path: Path) -> None:
    here = origin(tmp_path, "one", "two")
    there = cloned(here, "b")
    made = here.create("three", "--estimate", "90", "--due", "2026-03-09")
    here.aof("edit", "001", "--estimate", "30")
    there.aof("edit", "001", "--owner", "eve")
    here.aof("edit", "002", "--estimate", "10")
    there.aof("edit", "002", "--estimate", "20")
    there.commit()
    report = here.take(there)
    there.take(here)
    for clone in (here, there):
        assert (clone.aof("show", "001")["estimate"], clone.aof("show", "001")["owner"]) == (30, "eve")
        assert clone.aof("show", "002")["estimate"] == 20
        assert clone.show(made)["estimate"] == 90
        clone.healthy()
    (told,) = [one for one in report["tasks"] if one["taskId"].endswith("-002")]
    assert "10" in " ".join(told["notes"])
    lines = (here.data / f"tasks/ready/{made}.md").read_text().splitlines()
    assert "estimate: 90" in lines
    assert here.aof("show", "001", "--at", str(here.log()[-1]["seq"]))["estimate"] == 30, "by the log alone"
