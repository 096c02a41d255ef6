"""Parents: they show how far their children are, and are not called complete before them."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, Call
from aof.store.files.paths import Paths
from aof.surfaces.cli.main import main
from tests.support.command_line import Aof
from tests.support.room import Room


def refused(call: object, **given: object) -> AofError:
    """The refusal of a call."""
    with pytest.raises(AofError) as refusal:
        call(**given)  # type: ignore[operator]
    return refusal.value


def test_a_parent_is_not_complete_before_its_children_unless_the_caller_says_so(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    first, second = room.task(parent_id=parent), room.task(parent_id=parent)
    run = fabric.claim(parent, agent="ada").run_id
    refusal = refused(fabric.complete, task_id=parent, run=run)
    assert (refusal.code, refusal.details["children"]) == ("children_open", [first, second])
    assert refusal.call is not None
    assert refusal.call == Call("release", {"task_id": parent, "wait_for_children": True, "run": run})
    assert refusal.otherwise is not None
    assert refusal.otherwise[1] == Call("complete", {"task_id": parent, "allow_open_children": True, "run": run})
    assert fabric.get(parent).status == "in-progress"

    fabric.cancel(first)
    assert refused(fabric.complete, task_id=parent, run=run).details["children"] == [second]
    fabric.claim(second, agent="bob")
    fabric.complete(second, agent="bob")
    fabric.approve(second)
    assert fabric.complete(parent, run=run).status == "review"
    assert fabric.approve(parent).status == "done"


def test_a_claim_of_what_waits_for_children_leads_to_the_one_that_needs_a_verdict(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    working, finished = room.task(parent_id=parent), room.task(parent_id=parent)
    run = fabric.claim(parent, agent="ada").run_id
    fabric.release(parent, run=run, wait_for_children=True)
    assert refused(fabric.claim, task_id=parent, agent="ada").call == Call("retry", {"task_id": parent, "reason": "…"})
    fabric.claim(finished, agent="bob").complete("it works")
    refusal = refused(fabric.claim, task_id=parent, agent="ada")
    assert refusal.hint == f"have {finished} approved or sent back"
    assert refusal.call == Call("show", {"task_id": finished})
    assert refusal.details["children"] == [working, finished]


def test_the_approval_waits_for_children_that_came_after_the_report(room: Room, fabric: Fabric) -> None:
    parent = room.task("review")
    child = room.task(parent_id=parent)
    refusal = refused(fabric.approve, task_id=parent)
    assert (refusal.code, refusal.otherwise) == ("children_open", None), "nobody has a run to give back"
    assert refusal.call == Call("approve", {"task_id": parent, "allow_open_children": True})
    assert refused(fabric.update, task_id=parent, status="done").code == "children_open"
    assert refused(fabric.complete, task_id=parent).code == "children_open"
    assert fabric.reject(parent, blockers=["not yet"]).status == "ready"
    other = room.task("review")
    fabric.edit(child, parent_id=other)
    assert fabric.approve(other, allow_open_children=True).status == "done"
    assert fabric.complete(parent, allow_open_children=False).status == "review", "it has no child any more"


def test_what_does_not_call_it_complete_is_free(room: Room, fabric: Fabric) -> None:
    for outcome in ("needs_review", "partial", "blocked"):
        parent = room.task()
        room.task(parent_id=parent)
        run = fabric.claim(parent, agent="ada").run_id
        moved = fabric.complete(parent, run=run, outcome=outcome, blockers=["one"])  # type: ignore[arg-type] # other words are understood, too
        assert moved.status == ("blocked" if outcome == "blocked" else "review")


def test_a_parent_shows_how_far_its_children_are(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    for status in ("done", "done", "cancelled", "in-progress", "ready"):
        room.task(status, parent_id=parent)
    children = fabric.show(parent)["children"]
    told = [(one["title"], one["status"], one.get("agent")) for one in children.pop("tasks")]
    assert sorted(told) == [
        ("One that is cancelled", "cancelled", None),
        ("One that is done", "done", "ada"),
        ("One that is done", "done", "ada"),
        ("One that is in-progress", "in-progress", "ada"),
        ("One that is ready", "ready", None),
    ]
    assert children == {
        "total": 5,
        "done": 2,
        "finished": 3,
        "byStatus": {"done": 2, "cancelled": 1, "in-progress": 1, "ready": 1},
    }
    assert "children" not in fabric.show(fabric.list(parent_id=parent).tasks[0].id)


def test_a_directory_of_an_earlier_version_knows_its_children(room: Room) -> None:
    parent = room.task(review=False)
    room.task(parent_id=parent)
    room.fabric.close()
    table = room.root / Paths(str(room.root)).waited
    table.rename(table.with_name("waited"))
    fabric = room.reopen()
    assert refused(fabric.complete, task_id=parent, agent="ada").code == "children_open"


def test_the_command_line_says_it_in_its_own_words(aof: Aof, fabric: Fabric) -> None:
    parent = fabric.create("Parent", review=False).task_id
    fabric.create("Child", parent_id=parent)
    fabric.claim(parent, agent="ada")
    said = aof("complete", parent, "--agent", "ada")
    assert (said.code, said.error["code"]) == (1, "children_open")
    assert f"aof release {parent} --wait-for-children --agent ada; or " in said.error["hint"]
    assert said.error["hint"].endswith(f"aof complete {parent} --allow-open-children --agent ada")
    assert aof("complete", parent, "--agent", "ada", "--allow-open-children").data["status"] == "done"


def delegated(room: Room, fabric: Fabric, children: int = 2) -> tuple[str, list[str]]:
    """A parent whose worker has delegated and ended its run, and its children."""
    parent = room.task(review=False)
    run = fabric.claim(parent, agent="lead").run_id
    below = [room.task(parent_id=parent, review=False) for _ in range(children)]
    released = fabric.release(parent, run=run, wait_for_children=True)
    assert (released.status, released.waits_for) == ("ready", tuple(below))
    return parent, below


def test_a_parent_that_was_released_to_wait_is_claimed_after_its_last_child(room: Room, fabric: Fabric) -> None:
    parent, (first, second) = delegated(room, fabric)
    refusal = refused(fabric.claim, task_id=parent, agent="lead")
    assert (refusal.code, refusal.details["children"]) == ("not_ready", [first, second])
    assert first in refusal.message
    assert second in refusal.message
    held = {row.id: str(row.reason) for row in fabric.held_back()}
    assert second in held[parent]
    assert parent not in [row.id for row in fabric.ready().tasks]
    assert first in str(fabric.list(status="ready").tasks[0].waits)

    fabric.complete(first, agent="ada")
    assert refused(fabric.claim, task_id=parent, agent="lead").details["children"] == [second]
    fabric.complete(second, agent="bob")
    assert [row.id for row in fabric.ready().tasks] == [parent]
    again = fabric.claim(agent="lead")
    assert (again.task_id, fabric.get(parent).retry.failures) == (parent, 0)
    assert fabric.complete(parent, run=again.run_id).status == "done"


@pytest.mark.parametrize("end", ["done", "cancelled", "deadletter", "archived"])
def test_a_child_that_has_ended_in_whatever_way_lets_its_parent_go_on(room: Room, fabric: Fabric, end: str) -> None:
    parent, (child,) = delegated(room, fabric, 1)
    if end == "cancelled":
        fabric.cancel(child, reason="not needed")
    elif end == "deadletter":
        fabric.fail(child, run=fabric.claim(child, agent="ada").run_id, retryable=False, message="it does not build")
    else:
        fabric.complete(child, agent="ada", summary="all is tested")
    if end == "archived":
        fabric.archive(child)
    assert fabric.claim(agent="lead").task_id == parent
    (told,) = fabric.show(parent)["children"]["tasks"]
    assert told["status"] == ("done" if end == "archived" else end)
    said = {"cancelled": "not needed", "deadletter": "failed: it does not build"}.get(end, "all is tested")
    assert told["summary"] == said


def test_a_delegation_uses_up_no_attempt_however_often_it_happens(room: Room, fabric: Fabric) -> None:
    parent = room.task(review=False, max_attempts=1)
    for _ in range(4):
        run = fabric.claim(parent, agent="lead").run_id
        child = room.task(parent_id=parent, review=False)
        fabric.release(parent, run=run, wait_for_children=True)
        fabric.complete(child, agent="ada")
    task = fabric.get(parent)
    assert (task.status, task.retry.failures, task.last_error) == ("ready", 0, None)
    assert {run.status for run in fabric.store.attempts(parent)} == {"released"}
    assert {run.error.code for run in fabric.store.attempts(parent) if run.error} == {"waits_for_children"}


def test_without_open_children_it_is_an_ordinary_release(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    run = fabric.claim(parent, agent="lead").run_id
    released = fabric.release(parent, run=run, wait_for_children=True)
    assert (released.status, released.waits_for) == ("ready", ())
    later = room.task(parent_id=parent)
    assert fabric.claim(parent, agent="lead").task_id == parent, f"{later} was made after the release"


def test_only_the_next_run_waits(room: Room, fabric: Fabric) -> None:
    parent, (child,) = delegated(room, fabric, 1)
    fabric.complete(child, agent="ada")
    run = fabric.claim(parent, agent="lead").run_id
    room.task(parent_id=parent)
    fabric.release(parent, run=run)
    assert fabric.claim(parent, agent="bob").task_id == parent


def test_a_retry_by_hand_ends_the_wait(room: Room, fabric: Fabric) -> None:
    parent, (child,) = delegated(room, fabric, 1)
    refusal = refused(fabric.claim, task_id=parent, agent="lead")
    assert refusal.call is not None
    assert refusal.call.operation == "retry"
    fabric.retry(parent, reason="go on without it")
    assert fabric.claim(parent, agent="lead").task_id == parent
    assert fabric.get(child).status == "ready"


def test_an_update_to_ready_can_say_it_too(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    run = fabric.claim(parent, agent="lead").run_id
    child = room.task(parent_id=parent)
    assert refused(fabric.update, task_id=parent, run=run, note="x", wait_for_children=True).code == "invalid"
    fabric.update(parent, run=run, status="ready", wait_for_children=True)
    assert refused(fabric.claim, task_id=parent, agent="lead").details["children"] == [child]


def test_log_and_files_agree_about_the_wait_and_the_index_can_be_rebuilt(room: Room, fabric: Fabric) -> None:
    parent, _ = delegated(room, fabric)
    assert fabric.doctor().ok
    (room.root / "index.sqlite").unlink()
    again = room.reopen()
    assert parent not in [row.id for row in again.ready().tasks]
    assert again.get(parent).waits_for_children


def test_the_next_worker_is_primed_with_what_came_of_the_children(room: Room, fabric: Fabric, aof: Aof) -> None:
    parent, (child,) = delegated(room, fabric, 1)
    fabric.complete(child, agent="ada", summary="12 cases pass\n## not a heading")
    fabric.claim(parent, agent="lead")
    lines = aof("prime", "--agent", "lead").data["text"].splitlines()
    (told,) = [line for line in lines if line.startswith(f"- of {parent}: {child} ")]
    assert "12 cases pass ## not a heading" in told


def test_a_child_is_not_told_to_be_ended_by_whom_it_was_meant_for(room: Room, fabric: Fabric, aof: Aof) -> None:
    parent = room.task()
    child = fabric.create("Test it", agent="qa", parent_id=parent).task_id
    fabric.claim(parent, agent="lead")
    fabric.cancel(child, actor="mia", reason="not needed")
    assert f"{child} (Test it; qa) is cancelled: not needed" in aof("prime", "--agent", "lead").data["text"]


def test_the_terminal_says_for_which_children_it_waits(
    room: Room, fabric: Fabric, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*words: str) -> str:
        assert main(["--data-dir", str(room.root), *words]) == 0
        return capsys.readouterr().out

    parent = fabric.create("Parent").task_id
    fabric.claim(parent, agent="lead")
    child = fabric.create("Child", parent_id=parent).task_id
    assert said("release", parent, "--agent", "lead", "--wait-for-children") == f"{parent}  waits for {child}\n"
    assert "02-001 for 02-002: Parent" in said("board", "--once")
    for words in (("ready", "--explain"), ("show", parent), ("list",)):
        assert f"waits for its child {child}, which is ready" in " ".join(said(*words).split()), words
