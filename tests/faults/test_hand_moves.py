"""The folder of a task's file is its status: what a person's `mv` and `cp` mean."""

from __future__ import annotations

import shutil

import pytest

from aof.errors import NothingReady, NotReady, StaleLease
from tests.support.desk import Desk
from tests.support.invariants import check_invariants


@pytest.mark.parametrize("folder", ["backlog", "blocked", "cancelled", "deadletter"])
def test_a_move_that_the_status_table_allows_is_recorded(desk: Desk, folder: str) -> None:
    task_id = desk.create()
    desk.move(task_id, folder)
    assert desk.state(task_id) == "stale"
    assert desk.fabric.get(task_id).status == folder
    moves = [event for event in desk.events(task_id) if event.type == "task.transitioned"]
    assert (moves[-1].actor, moves[-1].payload["to"], moves[-1].payload["reason"]) == ("hand", folder, "moved by hand")
    assert desk.files(task_id) == [desk.file(task_id, folder)]
    check_invariants(desk.root, edited=True)


def test_a_move_ends_the_run_that_was_going_on(desk: Desk) -> None:
    task_id = desk.create()
    run = desk.fabric.claim(task_id, agent="ada").run_id
    desk.move(task_id, "blocked")
    with pytest.raises(StaleLease):
        desk.fabric.progress(task_id, run=run, agent="ada", text="on")
    assert desk.fabric.get(task_id).status == "blocked"
    check_invariants(desk.root, edited=True)


def test_a_claim_of_the_next_task_takes_what_was_moved_to_ready(desk: Desk) -> None:
    task_id = desk.create(backlog=True)
    desk.move(task_id, "ready")
    assert desk.store.working_copy.moved_into("ready") == (task_id,)
    assert desk.fabric.claim(agent="ada").task_id == task_id
    assert desk.store.working_copy.moved_into("ready") == ()
    check_invariants(desk.root, edited=True)


def test_a_move_that_cannot_be_imported_leaves_nothing_to_claim(desk: Desk) -> None:
    task_id = desk.create(backlog=True)
    desk.move(task_id, "ready").write_text("no frontmatter")
    with pytest.raises(NothingReady):
        desk.fabric.claim(agent="ada")
    assert desk.file(task_id, "ready").read_text() == "no frontmatter"


def test_the_tasks_own_files_follow_a_move(desk: Desk) -> None:
    task_id = desk.create()
    own = desk.file(task_id).with_suffix("") / "outputs"
    own.mkdir(parents=True)
    (own / "result.txt").write_text("kept")
    desk.move(task_id, "backlog")
    desk.fabric.get(task_id)
    assert (desk.file(task_id, "backlog").with_suffix("") / "outputs/result.txt").read_text() == "kept"
    assert not own.exists()


def test_own_files_in_two_folders_are_left_to_a_person(desk: Desk) -> None:
    task_id = desk.create()
    for folder in ("ready", "backlog"):
        own = desk.file(task_id, folder).with_suffix("")
        own.mkdir()
        (own / "note.txt").write_text(folder)
    desk.move(task_id, "backlog")
    assert desk.fabric.get(task_id).status == "backlog"
    assert sorted(path.read_text() for path in desk.root.glob("tasks/*/*/note.txt")) == ["backlog", "ready"]


@pytest.mark.parametrize(
    ("start", "folder"),
    [("ready", "in-progress"), ("ready", "done"), ("ready", "review"), ("backlog", "deadletter"), ("ready", "archive")],
)
def test_a_move_that_is_not_allowed_is_refused_and_the_file_stays(desk: Desk, start: str, folder: str) -> None:
    task_id = desk.create(backlog=start == "backlog")
    desk.move(task_id, folder)
    error = desk.refused(task_id)
    assert folder in error.message
    assert desk.files(task_id) == [desk.file(task_id, folder)]
    assert desk.state(task_id) == "stale"
    desk.move(task_id, start)
    assert desk.fabric.get(task_id).status == start, "moved back, everything is as before"
    check_invariants(desk.root)


def test_a_move_out_of_the_archive_is_refused(desk: Desk) -> None:
    task_id = desk.create()
    desk.fabric.cancel(task_id)
    desk.fabric.archive(task_id)
    desk.move(task_id, "ready")
    assert "archive" in desk.refused(task_id).message


def test_a_finished_task_that_is_moved_to_ready_is_run_again(desk: Desk) -> None:
    task_id = desk.create(review=False)
    desk.fabric.complete(task_id, agent="ada", summary="done")
    desk.move(task_id, "ready")
    assert desk.fabric.claim(task_id, agent="bob").attempt == 2
    check_invariants(desk.root, edited=True)


def test_a_file_that_is_moved_and_edited_at_once_is_both(desk: Desk) -> None:
    task_id = desk.create()
    desk.move(task_id, "backlog")
    desk.change(task_id, '"Write it"', "Another name  # better")
    task = desk.fabric.get(task_id)
    assert (task.status, task.title) == ("backlog", "Another name")
    assert "# better" in desk.file(task_id, "backlog").read_text()
    check_invariants(desk.root, edited=True)


def test_the_folder_beats_the_status_line(desk: Desk) -> None:
    task_id = desk.create()
    desk.move(task_id, "backlog")
    desk.change(task_id, 'status: "ready"', 'status: "done"')
    assert desk.fabric.get(task_id).status == "backlog"
    assert 'status: "backlog"' in desk.file(task_id).read_text()
    check_invariants(desk.root, edited=True)


def test_a_status_line_that_is_edited_where_the_file_lies_is_a_move(desk: Desk) -> None:
    task_id = desk.create()
    desk.change(task_id, 'status: "ready"', "status: backlog")
    assert desk.fabric.get(task_id).status == "backlog"
    assert 'status: "backlog"' in desk.file(task_id, "backlog").read_text()
    assert desk.last(task_id).payload["reason"] == "moved by hand"
    check_invariants(desk.root, edited=True)


def test_a_status_line_of_an_older_version_does_not_undo_a_later_move(desk: Desk) -> None:
    task_id = desk.create()
    older = desk.file(task_id).read_text()
    desk.fabric.update(task_id, status="backlog")
    desk.file(task_id).write_text(older.replace('status: "ready"', "status: blocked").replace("A brief.", "Mine."))
    task = desk.fabric.get(task_id)
    assert (task.status, "Mine." in task.body) == ("backlog", True)
    assert "status" in desk.last(task_id).payload["conflicts"]


@pytest.mark.parametrize("by_line", [False, True])
def test_an_impossible_move_is_explained_by_show_with_both_ways_out(desk: Desk, *, by_line: bool) -> None:
    task_id = desk.create()
    if by_line:
        desk.change(task_id, 'status: "ready"', "status: done")
    else:
        desk.move(task_id, "done")
    shown = desk.fabric.show(task_id)
    assert (shown["status"], shown["normalizedStatus"], shown["problem"]["code"]) == (
        "ready",
        "stale",
        "unreadable_task",
    )
    assert "ready and cannot go to done" in shown["problem"]["message"]
    assert "tasks/ready/" in shown["problem"]["hint"]
    assert "aof doctor --fix" in shown["problem"]["hint"]
    assert desk.state(task_id) == "stale"
    desk.fabric.doctor(fix=True)
    assert "problem" not in desk.fabric.show(task_id)


def test_a_copy_in_a_second_folder_is_taken_away(desk: Desk) -> None:
    task_id = desk.create()
    shutil.copy(desk.file(task_id), desk.file(task_id, "blocked"))
    count = len(desk.events(task_id))
    assert desk.fabric.get(task_id).status == "ready"
    assert desk.files(task_id) == [desk.file(task_id, "ready")]
    assert len(desk.events(task_id)) == count
    check_invariants(desk.root)


def test_what_is_edited_in_a_copy_is_taken_in_but_not_where_it_lies(desk: Desk) -> None:
    task_id = desk.create()
    copy = desk.file(task_id, "blocked")
    copy.write_text(desk.file(task_id).read_text().replace("A brief.", "Mine."))
    task = desk.fabric.get(task_id)
    assert (task.status, task.body) == ("ready", "Mine.\n")
    assert desk.files(task_id) == [desk.file(task_id, "ready")]
    check_invariants(desk.root, edited=True)


def test_a_move_beside_an_older_version_that_came_back_is_still_a_move(desk: Desk) -> None:
    task_id = desk.create()
    path, old = desk.file(task_id), desk.file(task_id).read_bytes()
    desk.fabric.edit(task_id, title="Another")
    desk.move(task_id, "backlog")
    path.write_bytes(old)
    assert desk.fabric.get(task_id).status == "backlog"
    assert desk.files(task_id) == [desk.file(task_id, "backlog")]
    check_invariants(desk.root, edited=True)


def test_a_move_that_the_log_has_overtaken_is_a_conflict(desk: Desk) -> None:
    task_id = desk.create()
    data = desk.file(task_id).read_bytes()
    desk.fabric.claim(task_id, agent="ada")
    desk.file(task_id).unlink()
    desk.file(task_id, "backlog").write_bytes(data)
    assert desk.fabric.get(task_id).status == "in-progress"
    assert desk.last(task_id).payload["conflicts"] == ["status"]
    assert desk.files(task_id) == [desk.file(task_id, "in-progress")]
    check_invariants(desk.root, edited=True)


def test_a_dependency_that_is_moved_to_done_by_hand_does_not_free_its_dependents(desk: Desk) -> None:
    blocker = desk.create()
    task_id = desk.create(depends_on=[blocker])
    desk.move(blocker, "done")
    with pytest.raises(NotReady):
        desk.fabric.claim(task_id, agent="ada")


def test_a_cancelled_parent_takes_its_children_along_whatever_their_files_say(desk: Desk) -> None:
    parent = desk.create()
    child = desk.create(parent_id=parent)
    desk.move(child, "done")
    desk.fabric.cancel(parent)
    assert desk.file(child) == desk.file(child, "done"), "what cannot be imported stays where it is"
    desk.file(child).unlink()
    assert desk.fabric.get(child).status == "cancelled"
    check_invariants(desk.root, edited=True)


def test_a_refused_move_of_one_task_does_not_stop_the_claim_of_the_next(desk: Desk) -> None:
    odd, other = desk.create(priority="critical"), desk.create()
    desk.move(odd, "done")
    assert desk.fabric.claim(agent="ada").task_id == other


def test_a_refused_move_does_not_stop_the_recovery_of_others(desk: Desk) -> None:
    odd, other = desk.create(), desk.create()
    for task_id in (odd, other):
        desk.fabric.claim(task_id, agent="ada")
    desk.move(odd, "done")
    desk.clock.time += 3_600_000
    assert [one.task_id for one in desk.fabric.recover()] == [other]
