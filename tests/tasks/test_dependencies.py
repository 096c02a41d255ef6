"""Dependencies: circles and missing ends are refused, a dead one blocks, a revived one frees."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from aof.errors import AofError
from aof.kernel import commands
from tests.support.world import World


def test_a_dependency_is_listed_once_and_adding_it_again_writes_nothing() -> None:
    world = World()
    task, blocker = world.create(), world.create()
    world.act(commands.AddDependency, task, blocker_id=blocker)
    assert world.act(commands.AddDependency, task, blocker_id=blocker).drafts == ()
    assert world.tasks[task].depends_on == (blocker,)
    assert world.status(task) == "ready"


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


def test_a_done_dependency_holds_nothing() -> None:
    world = World()
    task = world.create(depends_on=[world.into("done")])
    assert world.why_not(task) is None


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


def test_removing_what_is_not_there_writes_nothing() -> None:
    world = World()
    task = world.create(depends_on=[world.create()])
    assert world.act(commands.RemoveDependency, task, blocker_id=world.create()).drafts == ()


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
