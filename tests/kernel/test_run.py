"""Runs and results from events alone."""

from __future__ import annotations

from aof.kernel import commands
from aof.runs.evolve import evolve_result, evolve_run
from aof.runs.model import Run, RunResult
from tests.support.world import MINUTE, World


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
