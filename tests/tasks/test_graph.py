"""How tasks are connected: dependencies, parents and children, links."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AofError, Call
from aof.kernel import commands
from aof.kernel.model import FINISHED, Policy
from aof.store.files.paths import Paths
from aof.surfaces.cli.main import main
from aof.tasks.graph import find_path
from aof.testing import FakeClock
from tests.support.command_line import Aof
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.world import MINUTE, World

# --- when a task may run, and each reason why not


def test_a_ready_task_that_waits_for_nothing_can_run() -> None:
    world = World()
    assert world.why_not(world.create()) is None


@pytest.mark.parametrize("status", ["backlog", "in-progress", "review", "blocked", "done", "deadletter", "cancelled"])
def test_a_task_in_another_status_cannot_run_and_says_which(status: str) -> None:
    world = World()
    task = world.into(status)
    reason = world.why_not(task)
    assert reason is not None
    assert reason.code == "not_ready"
    assert status in reason.message
    assert reason.call is not None


def test_a_blocked_task_repeats_why_it_is_blocked() -> None:
    world = World()
    task = world.create()
    world.act(commands.Block, task, reason="no credentials")
    reason = world.why_not(task)
    assert reason is not None
    assert "no credentials" in reason.message


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "review", "blocked"])
def test_an_open_dependency_holds_and_is_named(status: str) -> None:
    world = World()
    blocker = world.into(status)
    task = world.create(depends_on=[blocker])
    refusal = world.refuse(commands.Claim, task, "ada")
    assert (refusal.code, refusal.details["waits_for"]) == ("not_ready", blocker)
    assert world.normalized(task) == "queued"


def test_a_retry_waits_for_its_time() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.Fail, task, "ada")
    world.later(MINUTE - 1)
    refusal = world.refuse(commands.Claim, task, "ada")
    assert (refusal.code, refusal.details["not_before"]) == ("not_ready", "2026-03-02T09:01:00.000Z")
    world.later(1)
    assert world.why_not(task) is None


def test_a_draft_that_was_put_into_ready_by_hand_does_not_run() -> None:
    world = World()
    task = world.create()
    world.act(commands.ImportEdit, task, changes={"metadata": {"draft": True}})
    assert world.refuse(commands.Claim, task, "ada").code == "not_ready"


def test_an_archived_task_does_not_run() -> None:
    world = World()
    task = world.into("done")
    world.act(commands.ArchiveTask, task)
    assert "archived" in world.refuse(commands.Claim, task, "ada").message


def test_a_resource_has_one_slot_unless_the_policy_says_otherwise() -> None:
    world = World(Policy(resource_slots={"gpu": 2}))
    for resource, slots in (("rig", 1), ("gpu", 2)):
        holders = [world.create(resource=resource) for _ in range(slots)]
        for holder in holders:
            world.claim(holder)
        late = world.create(resource=resource)
        refusal = world.refuse(commands.Claim, late, "bob")
        assert refusal.code == "resource_busy"
        assert refusal.details["waits_for"] == holders[0]
        world.act(commands.Release, holders[0], "ada")
        assert world.why_not(late) is None


def test_a_resource_without_slots_is_a_reason_and_no_crash() -> None:
    world = World(Policy(resource_slots={"rig": 0}))
    refusal = world.refuse(commands.Claim, world.create(resource="rig"), "ada")
    assert refusal.code == "resource_busy"


def test_a_parent_waits_for_its_children_only_when_it_says_so() -> None:
    world = World()
    patient, hasty = world.create(metadata={"waitForChildren": True}), world.create()
    child = world.create(parent_id=patient)
    world.create(parent_id=hasty)
    assert world.why_not(hasty) is None
    assert world.refuse(commands.Claim, patient, "ada").details["waits_for"] == child
    world.act(commands.Complete, child, "ada")
    assert world.why_not(patient) is not None
    world.act(commands.Approve, child)
    assert world.why_not(patient) is None


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_a_finished_child_holds_no_parent(status: str) -> None:
    world = World()
    parent = world.create(metadata={"waitForChildren": True})
    child = world.create(parent_id=parent)
    world.act(commands.ImportEdit, child, status="cancelled") if status == "cancelled" else None
    if status != "cancelled":
        world.claim(child)
        world.act(commands.Fail, child, "ada", retryable=False) if status == "deadletter" else world.act(
            commands.Complete, child, "ada"
        )
    if status == "done":
        world.act(commands.Approve, child)
    assert world.status(child) == status
    assert world.why_not(parent) is None


def test_a_child_may_depend_on_its_parent() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    world.act(commands.AddDependency, child, blocker_id=parent)
    assert world.tasks[child].depends_on == (parent,)


def test_a_path_is_found_along_edges_only() -> None:
    edges = {"a": ("b", "c"), "c": ("d",), "d": ("a",)}
    assert find_path(edges, "a", "d") == ("a", "c", "d")
    assert find_path(edges, "b", "a") == ()
    assert find_path(edges, "a", "a") == ("a",)


# --- dependencies: circles and missing ends are refused, a dead one blocks, a revived one frees


def test_a_task_cannot_wait_for_itself() -> None:
    world = World()
    task = world.create()
    refusal = world.refuse(commands.AddDependency, task, blocker_id=task)
    assert (refusal.code, refusal.details["path"]) == ("dependency_cycle", [task])


@pytest.mark.parametrize("length", [2, 3, 10])
def test_a_circle_is_refused_with_the_way_around(length: int) -> None:
    world = World()
    chain = [world.create()]
    for _ in range(length - 1):
        chain.append(world.create(depends_on=[chain[-1]]))
    refusal = world.refuse(commands.AddDependency, chain[0], blocker_id=chain[-1])
    assert refusal.code == "dependency_cycle"
    assert refusal.details["path"] == [chain[0], *reversed(chain)]
    assert refusal.call is not None
    world.act(
        commands.RemoveDependency, refusal.call.arguments["task_id"], blocker_id=refusal.call.arguments["blocker_id"]
    )
    world.act(commands.AddDependency, chain[0], blocker_id=chain[-1])


@given(edges=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=25))
@settings(max_examples=40, deadline=None)
def test_no_order_of_adding_makes_a_circle(edges: list[tuple[int, int]]) -> None:
    world = World()
    tasks = [world.create() for _ in range(6)]
    for before, after in edges:
        command = commands.AddDependency(actor="pm", task_id=tasks[before], blocker_id=tasks[after])
        verdict = world.verdict(command)
        if isinstance(verdict, AofError):
            assert verdict.code == "dependency_cycle"
        else:
            world.commit(command, verdict)


@pytest.mark.parametrize("wrong", ["TASK-2026-03-02-999", "nonsense", "TASK-2026-03-02-001\n", "../../etc/passwd", ""])
def test_a_missing_dependency_is_refused(wrong: str) -> None:
    world = World()
    task = world.create()
    assert world.refuse(commands.AddDependency, task, blocker_id=wrong).code == "task_not_found"


@pytest.mark.parametrize("dead", ["cancelled", "deadletter"])
@pytest.mark.parametrize("status", ["ready", "backlog"])
def test_a_dead_dependency_blocks_at_once_and_is_named(dead: str, status: str) -> None:
    world = World()
    blocker, task = world.into(dead), world.create(status=status)
    world.act(commands.AddDependency, task, blocker_id=blocker)
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert (blocked.dependency, blocked.was, blocked.by) == (blocker, status, "aof")
    assert blocker in blocked.reason
    assert dead in blocked.reason


def test_a_task_created_with_a_dead_dependency_is_blocked_from_the_start() -> None:
    world = World()
    task = world.create(depends_on=[world.into("deadletter")])
    assert (world.status(task), world.path(task)) == ("blocked", ["blocked"])


def test_a_dependency_that_is_cancelled_later_blocks_those_that_wait_and_not_those_behind_them() -> None:
    world = World()
    first = world.create()
    second = world.create(depends_on=[first])
    third = world.create(depends_on=[second])
    world.act(commands.CancelTask, first)
    assert [world.status(task) for task in (first, second, third)] == ["cancelled", "blocked", "ready"]
    reason = world.why_not(third)
    assert reason is not None
    assert second in reason.message


def test_a_dependency_that_dies_later_blocks_those_that_wait() -> None:
    world = World()
    blocker = world.create(max_attempts=1)
    task = world.create(depends_on=[blocker])
    world.claim(blocker)
    world.expire(blocker)
    assert (world.status(blocker), world.status(task)) == ("deadletter", "blocked")


@pytest.mark.parametrize("was", ["ready", "backlog"])
def test_retrying_the_dependency_takes_the_dependent_back_to_where_it_was(was: str) -> None:
    world = World()
    blocker = world.create()
    task = world.create(depends_on=[blocker], status=was)
    world.act(commands.CancelTask, blocker)
    assert world.status(task) == "blocked"
    world.act(commands.RetryTask, blocker, reason="wanted after all")
    assert (world.status(task), world.tasks[task].blocked) == (was, None)


def test_retrying_one_of_two_dead_dependencies_leaves_the_other_in_the_way() -> None:
    world = World()
    first, second = world.create(), world.create()
    task = world.create(depends_on=[first, second])
    world.act(commands.CancelTask, first)
    world.act(commands.CancelTask, second)
    world.act(commands.RetryTask, first, reason="again")
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert blocked.dependency == second


def test_a_task_blocked_by_hand_is_not_freed_by_a_retried_dependency() -> None:
    world = World()
    blocker = world.create()
    task = world.create(depends_on=[blocker])
    world.act(commands.Block, task, reason="my own reason")
    world.act(commands.CancelTask, blocker)
    world.act(commands.RetryTask, blocker, reason="again")
    assert world.status(task) == "blocked"


@pytest.mark.parametrize("way", ["resume", "reject", "release", "fail", "expire", "retry"])
def test_whoever_comes_back_to_wait_for_a_dead_dependency_is_blocked_instead(way: str) -> None:
    world = World()
    blocker = world.into("done")
    task = world.create(depends_on=[blocker])
    match way:
        case "resume":
            world.act(commands.Pause, task)
        case "reject":
            world.act(commands.Complete, task, "ada")
        case "retry":
            world.act(commands.CancelTask, task)
        case _:
            world.claim(task)
    world.act(commands.RetryTask, blocker, reason="not good")
    world.act(commands.CancelTask, blocker)
    match way:
        case "resume":
            world.act(commands.Resume, task)
        case "reject":
            world.act(commands.Reject, task, blockers=("no",))
        case "retry":
            world.act(commands.RetryTask, task, reason="again")
        case "release":
            world.act(commands.Release, task, "ada")
        case "fail":
            world.act(commands.Fail, task, "ada")
        case "expire":
            world.expire(task)
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert blocked.dependency == blocker
    assert world.path(task)[-2:] == ["ready", "blocked"]


def test_removing_the_dead_dependency_leaves_another_dead_one_in_the_way() -> None:
    world = World()
    first, second = world.into("cancelled"), world.into("deadletter")
    task = world.create(depends_on=[first, second])
    world.act(commands.RemoveDependency, task, blocker_id=first)
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert blocked.dependency == second


def test_a_dependent_of_two_cancelled_tasks_of_one_tree_is_blocked_once() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    task = world.create(depends_on=[parent, child])
    world.act(commands.CancelTask, parent)
    assert world.path(task) == ["blocked"]


def test_the_number_of_dependencies_is_bounded() -> None:
    world = World()
    blockers = [world.create() for _ in range(500)]
    task = world.create(depends_on=blockers)
    assert world.refuse(commands.AddDependency, task, blocker_id=world.create()).code == "invalid"


def test_a_task_that_waits_for_a_cancelled_one_is_blocked_again_when_unblocked_and_says_why() -> None:
    world = World()
    blocker = world.create()
    task = world.create(depends_on=[blocker])
    world.act(commands.CancelTask, blocker)
    world.act(commands.Unblock, task)
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert (world.status(task), blocked.reason) == ("blocked", f"dependency {blocker} is cancelled")
    world.act(commands.RemoveDependency, task, blocker_id=blocker)
    assert world.act(commands.Claim, task).drafts


def test_a_running_task_does_not_begin_to_wait() -> None:
    world = World()
    other = world.create()
    task = world.into("in-progress")
    refusal = world.refuse(commands.AddDependency, task, blocker_id=other)
    assert refusal.code == "task_running"
    assert refusal.call is not None
    world.act(commands.Release, task, "ada", run=refusal.call.arguments["run"])
    world.act(commands.AddDependency, task, blocker_id=other)
    assert world.tasks[task].depends_on == (other,)


# --- parents: they show how far their children are, and are not called complete before them


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
        moved = fabric.complete(parent, run=run, outcome=outcome, blockers=["one"])
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
    table = room.root / Paths(str(room.root)).blockers
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


# --- the task graph: dependencies, sources, parents, and how a cancellation goes through it


@requirement("task.graph.source-task")
def test_a_source_task_is_an_edge_that_holds_nothing(room: Room, fabric: Fabric) -> None:
    source, task_id = room.task("in-progress"), room.task()
    fabric.link(task_id, "source_task", source)
    assert ("source_task", source) in room.edges(task_id)
    assert fabric.claim(task_id, agent="bob").task_id == task_id
    assert fabric.get(source).status == "in-progress"


@requirement("task.graph.source-attempt")
def test_a_source_attempt_stays_the_run_that_it_was(room: Room, fabric: Fabric) -> None:
    source, task_id = room.task("done"), room.task()
    first = room.attempts(source)[0]["runId"]
    fabric.link(task_id, "source_attempt", first)
    fabric.retry(source, reason="better output")
    assert fabric.claim(source, agent="bob").run_id != first
    assert room.edges(task_id) == {("source_attempt", first)}


@requirement("task.graph.cancel-sticks")
def test_nothing_starts_below_a_cancelled_task_and_the_child_settles_first(room: Room, fabric: Fabric) -> None:
    parent = room.task()
    slow, idle, other = room.task(parent_id=parent), room.task(parent_id=parent), room.task()
    fabric.claim(slow, agent="ada", worker="process")
    fabric.cancel(parent, reason="superseded")
    assert fabric.get(idle).status == "cancelled"

    fabric = room.reopen()
    assert fabric.get(parent).status != "cancelled", "a child has not settled yet"
    assert room.normalized(slow) == "cancelling"
    for below in (parent, slow):
        room.refused("cancel_requested", fabric.create, "New", parent_id=below)
        room.refused("cancel_requested", fabric.link, other, "parent", below)
    room.refused("cancel_requested", fabric.claim, parent, agent="bob")
    room.refused("not_ready", fabric.claim, idle, agent="bob")
    room.refused("cancel_requested", fabric.retry, idle, reason="again")

    fabric.settle(slow)
    moved = [event.task_id for event in room.events() if event.payload.get("to") == "cancelled"]
    assert moved == [idle, slow, parent]
    room.refused("cancel_requested", fabric.create, "New", parent_id=parent)


@requirement("tools.cancel.spreads")
def test_cancelling_spreads_down_and_blocks_who_waits(room: Room, fabric: Fabric) -> None:
    top = room.task()
    child = room.task(parent_id=top)
    grandchild = room.task("in-progress", parent_id=child)
    finished = room.task("done", parent_id=child)
    outside = room.task(depends_on=[grandchild])
    fabric.cancel(top, reason="superseded")

    assert {fabric.get(one).status for one in (top, child, grandchild)} == {"cancelled"}
    assert fabric.get(finished).status == "done"
    room.refused("cancel_requested", fabric.create, "New", parent_id=top)
    assert fabric.get(outside).status == "blocked"
    assert grandchild in room.front(outside)["blocked"]["reason"]


@requirement("task.control.link")
@pytest.mark.parametrize(
    ("kind", "other_end"),
    [
        ("parent", "child"),
        ("child", "parent"),
        ("blocks", "blocked_by"),
        ("blocked_by", "blocks"),
        ("source_task", None),
        ("source_attempt", None),
        ("produced_artifact", None),
        ("consumed_artifact", None),
        ("evidence", None),
    ],
)
def test_an_edge_is_added_and_removed_once_and_seen_from_both_ends(
    room: Room, fabric: Fabric, kind: str, other_end: str | None
) -> None:
    one, two, source = room.task(), room.task(), room.task("in-progress")
    loose = {"source_attempt": room.attempts(source)[0]["runId"]}
    target = two if kind == "source_task" or other_end else loose.get(kind, "outputs/report.md")
    before = len(room.events())

    fabric.link(one, kind, target)
    assert room.edges(one) == {(kind, target)}
    assert room.edges(two) == ({(other_end, one)} if other_end else set())
    added = room.events()[before:]
    assert len(added) == 1
    room.idle(fabric.link, one, kind, target)

    fabric.unlink(one, kind, target)
    assert room.edges(one) == room.edges(two) == set()
    assert len(room.events()) == before + 2
    assert room.events()[-1].task_id == added[0].task_id
    room.idle(fabric.unlink, one, kind, target)


@requirement("task.control.link")
def test_edges_that_make_a_circle_or_lead_nowhere_are_refused(room: Room, fabric: Fabric) -> None:
    one, two = room.task(), room.task()
    fabric.link(one, "parent", two)
    fabric.link(one, "blocked_by", two)
    room.refused("dependency_cycle", fabric.link, two, "parent", one)
    room.refused("dependency_cycle", fabric.link, one, "child", two)
    room.refused("dependency_cycle", fabric.link, two, "blocked_by", one)
    room.refused("dependency_cycle", fabric.link, one, "blocks", two)
    for kind in ("parent", "child", "blocks", "blocked_by", "source_task"):
        error = room.refused("task_not_found", fabric.link, one, kind, "TASK-1999-01-01-001")
        assert "TASK-1999-01-01-001" in error.message
    error = room.refused("task_not_found", fabric.link, one, "source_attempt", "RUN-1999-01-01-001-1-0badc0de")
    assert "TASK-1999-01-01-001" in error.message
    assert room.refused("invalid", fabric.link, one, "source_attempt", f"RUN-{two[5:]}-1").hint
    for outside in ("../../aof.toml", "/etc/hostname"):
        room.refused("invalid", fabric.link, one, "evidence", outside)
    assert not room.edges(one) & {("evidence", outside)}


@requirement("tools.dep-add.holds")
def test_a_dependency_holds_the_task_where_it_is_until_it_is_done(room: Room, fabric: Fabric) -> None:
    task_id, first, second = room.task(), room.task(review=False), room.task(review=False)
    fabric.dep_add(task_id, first)
    fabric.dep_add(task_id, second)
    for blocker in (first, second):
        assert blocker in room.refused("not_ready", fabric.claim, task_id, agent="bob").message
        assert room.file(task_id).parent.name == "ready"
        assert room.normalized(task_id) == "queued"
        assert task_id not in {row.id for row in fabric.ready().tasks}
        fabric.complete(blocker, actor="ada")
    assert task_id in {row.id for row in fabric.ready().tasks}
    assert fabric.claim(task_id, agent="bob").task_id == task_id


@requirement("tools.dep-add.unknown-or-dead")
def test_a_dead_dependency_blocks_and_a_finished_one_holds_nothing(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    room.refused("task_not_found", fabric.dep_add, task_id, "TASK-1999-01-01-001")
    fabric.dep_add(task_id, room.task("done"))
    assert fabric.claim(task_id, agent="bob").task_id == task_id

    for status in ("cancelled", "deadletter"):
        task_id, dead = room.task(), room.task(status)
        fabric.dep_add(task_id, dead)
        assert fabric.get(task_id).status == "blocked"
        assert dead in room.front(task_id)["blocked"]["reason"]
        assert dead in room.refused("not_ready", fabric.claim, task_id, agent="bob").message

        task_id, dying = room.task(), room.task("in-progress")
        fabric.dep_add(task_id, dying)
        assert fabric.get(task_id).status == "ready"
        fabric.update(dying, agent="ada", status=status)
        assert fabric.get(task_id).status == "blocked"
        assert dying in room.front(task_id)["blocked"]["reason"]


@requirement("tools.dep-add.repeat", "tools.dep-remove.absent")
def test_adding_what_is_there_and_removing_what_is_not_change_nothing(room: Room, fabric: Fabric) -> None:
    task_id, blocker, unrelated = room.task(), room.task(), room.task()
    fabric.dep_add(task_id, blocker)
    assert room.idle(fabric.dep_add, task_id, blocker).depends_on == (blocker,)
    assert room.idle(fabric.dep_remove, task_id, unrelated).depends_on == (blocker,)
    assert room.front(task_id)["dependsOn"] == [blocker]


@requirement("tools.dep-remove.frees")
def test_removing_the_last_dependency_makes_the_task_claimable(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    blocker = room.task()
    task_id = room.task(depends_on=[blocker])
    room.refused("not_ready", fabric.claim, task_id, agent="bob")
    assert fabric.dep_remove(task_id, blocker, actor="lead").depends_on == ()
    event = room.events()[-1]
    assert (event.actor, event.task_id, event.payload["removed"]) == ("lead", task_id, blocker)
    assert fabric.claim(task_id, agent="bob").task_id == task_id


# --- edges that order nothing: added and removed once, never in a circle, never to what is not there


@pytest.mark.parametrize("kind", ["source_task", "evidence", "produced_artifact", "spawned_subagent"])
def test_an_edge_is_added_once_and_removed_once(kind: str) -> None:
    world = World()
    task, other = world.create(), world.create()
    assert len(world.act(commands.AddLink, task, kind=kind, target_id=other, reason="because").drafts) == 1
    assert world.act(commands.AddLink, task, kind=kind, target_id=other).drafts == ()
    assert [(link.kind, link.target_id, link.reason) for link in world.tasks[task].links] == [(kind, other, "because")]
    assert len(world.act(commands.RemoveLink, task, kind=kind, target_id=other).drafts) == 1
    assert world.act(commands.RemoveLink, task, kind=kind, target_id=other).drafts == ()
    assert world.tasks[task].links == ()


def test_a_task_cannot_stand_below_itself_or_its_own_child() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    grandchild = world.create(parent_id=child)
    for below in (parent, child, grandchild):
        assert world.refuse(commands.AddLink, parent, kind="parent", target_id=below).code == "dependency_cycle"


def test_nothing_is_put_below_a_cancelled_parent() -> None:
    world = World()
    task, parent = world.create(), world.into("cancelled")
    assert world.refuse(commands.AddLink, task, kind="parent", target_id=parent).code == "cancel_requested"


@pytest.mark.parametrize(
    ("kind", "target", "code"),
    [
        ("friend", "TASK-2026-03-02-001", "invalid"),
        ("source_task", "TASK-1999-01-01-001", "task_not_found"),
        ("parent", "TASK-1999-01-01-001", "task_not_found"),
        ("source_task", "../x", "invalid"),
        ("source_attempt", "RUN-1999-01-01-001-1", "task_not_found"),
        ("source_attempt", "RUN-2026-03-02-001-1", "invalid"),
        ("source_attempt", "TASK-2026-03-02-001", "invalid"),
        ("evidence", "../../elsewhere", "invalid"),
        ("produced_artifact", "/etc/hostname", "invalid"),
        ("consumed_artifact", "outputs\\..\\..\\x", "invalid"),
        ("evidence", "", "invalid"),
        ("evidence", "a\nb", "invalid"),
        ("evidence", "x" * 600, "payload_too_large"),
    ],
)
def test_an_edge_to_nothing_or_of_no_kind_is_refused(kind: str, target: str, code: str) -> None:
    world = World()
    assert world.refuse(commands.AddLink, world.create(), kind=kind, target_id=target).code == code
