"""Events alone rebuild a task, at any point, and applying one twice changes nothing."""

from __future__ import annotations

import pytest

from aof.kernel import commands
from aof.kernel.events import Event
from aof.kernel.evolve import evolve
from aof.tasks.model import Task
from tests.support.world import MINUTE, World


def _story() -> tuple[World, str]:
    world = World()
    task = world.create(body="Do it")
    world.claim(task)
    world.act(commands.ReportProgress, task, "ada", text="half", percent=50)
    world.act(commands.Fail, task, "ada", code="boom", message="it broke")
    world.later(MINUTE)
    run = world.claim(task)
    world.act(commands.Complete, task, "ada", run=run, summary="done it")
    world.act(commands.Reject, task, blockers=("no tests",))
    world.act(commands.Edit, task, changes={"title": "New", "metadata": {"a": 1}})
    return world, task


def test_the_log_alone_rebuilds_the_task() -> None:
    world, _ = _story()
    world.assert_replay_is_the_same()


def test_an_event_that_is_applied_again_changes_nothing() -> None:
    world, task = _story()
    for event in world.events:
        assert evolve(world.tasks[task], event) is world.tasks[task]


def test_rev_is_the_number_of_the_last_event() -> None:
    world, task = _story()
    state: Task | None = None
    for event in world.events:
        state = evolve(state, event)
        assert (state.rev, state.updated_at) == (event.seq, event.timestamp)
    assert world.tasks[task].rev == world.events[-1].seq


def test_an_event_of_an_unknown_kind_changes_only_rev_and_time() -> None:
    world, task = _story()
    event = Event(
        seq=99, type="task.invented", timestamp="2026-03-03T00:00:00.000Z", actor="x", task_id=task, commit=(1, 1)
    )
    before, after = world.tasks[task], evolve(world.tasks[task], event)
    changed = {name for name in Task.__struct_fields__ if getattr(before, name) != getattr(after, name)}
    assert changed == {"rev", "updated_at"}


def test_an_event_before_the_creation_is_an_error_that_names_it() -> None:
    event = Event(seq=7, type="task.updated", timestamp="", actor="x", task_id="TASK-2026-03-02-001", commit=(1, 1))
    with pytest.raises(ValueError, match="event 7"):
        evolve(None, event)


def test_times_tell_the_first_start_and_the_end_only_while_finished() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    started = world.tasks[task].started_at
    world.later(MINUTE)
    world.act(commands.Complete, task, "ada")
    world.act(commands.Approve, task)
    assert world.tasks[task].ended_at == "2026-03-02T09:01:00.000Z"
    world.act(commands.RetryTask, task, reason="again")
    world.claim(task, "bob")
    assert (world.tasks[task].started_at, world.tasks[task].ended_at) == (started, None)


def test_a_layout_stays_until_another_comes() -> None:
    world = World()
    task = world.tasks[world.create()]
    event = Event(
        seq=50,
        type="task.updated",
        timestamp="",
        actor="x",
        task_id=task.id,
        payload={"changes": {}},
        commit=(1, 1),
        layout="mine",
    )
    laid = evolve(task, event)
    later = Event(seq=51, type="task.accepted", timestamp="", actor="x", task_id=task.id, commit=(1, 1))
    assert (laid.layout, evolve(laid, later).layout) == ("mine", "mine")
