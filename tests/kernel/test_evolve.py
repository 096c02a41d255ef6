"""Events alone rebuild a task and its runs, at any point, and applying one twice changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from aof.kernel.events import Event
from aof.kernel.evolve import evolve
from aof.runs.model import Run, RunResult, evolve_result, evolve_run
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


def _event(seq: int, task_id: str, **given: Any) -> Event:
    plain: dict[str, Any] = {"type": "task.updated", "timestamp": "", "actor": "x", "commit": (1, 1)}
    return Event(seq=seq, task_id=task_id, **(plain | given))


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
    event = _event(99, task, type="task.invented", timestamp="2026-03-03T00:00:00.000Z")
    before, after = world.tasks[task], evolve(world.tasks[task], event)
    changed = {name for name in Task.__struct_fields__ if getattr(before, name) != getattr(after, name)}
    assert changed == {"rev", "updated_at"}


def test_an_event_before_the_creation_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="event 7"):
        evolve(None, _event(7, "TASK-2026-03-02-001"))


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
    laid = evolve(task, _event(50, task.id, payload={"changes": {}}, layout="mine"))
    later = _event(51, task.id, type="task.accepted")
    assert (laid.layout, evolve(laid, later).layout) == ("mine", "mine")


def test_a_run_is_rebuilt_from_its_events_and_keeps_its_end() -> None:
    world = World()
    task = world.create()
    first = world.claim(task)
    world.act(commands.Fail, task, "ada", code="boom")
    world.later(MINUTE)
    second = world.claim(task, "bob", worker="process")
    run: Run | None = None
    result: RunResult | None = None
    for event in world.events:
        run, result = evolve_run(run, event), evolve_result(result, event)
    assert run is not None
    assert (run.run_id, run.agent_id, run.worker, run.attempt, run.epoch) == (second, "bob", "process", 2, 2)
    assert (run.status, run.ended_at, run.error, run.cause, result) == ("running", None, None, "retry", None)
    failed = world.runs[task][first]
    assert failed.error is not None
    assert (failed.status, failed.error.code, failed.ended_at) == ("failed", "boom", "2026-03-02T09:00:00.000Z")


def test_an_event_of_another_run_leaves_a_run_alone() -> None:
    world = World()
    task = world.create()
    first = world.claim(task)
    world.act(commands.Release, task, "ada")
    world.claim(task, "bob")
    world.act(commands.Complete, task, "bob")
    released = world.runs[task][first]
    assert evolve_run(released, world.log(task, "task.attempt.completed")[0]) == released


def test_a_result_belongs_to_the_run_that_reported_it() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.Complete, task, "ada", notes="n")
    result = world.results[task]
    assert result is not None
    assert (result.run_id, result.task_id, result.completed_at) == (run, task, "2026-03-02T09:00:00.000Z")


def test_the_record_of_a_run_has_the_protocols_paths() -> None:
    world = World()
    task = world.create()
    run = world.runs[task][world.claim(task)]
    assert run.artifact_paths == {"inputs": "inputs/", "work": "work/", "output": "outputs/"}
