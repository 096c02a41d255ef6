"""What the scheduler wants is judged again when it is carried out; what has changed in between is left alone."""

from __future__ import annotations

import msgspec
import pytest

from aof.kernel import commands
from aof.tasks.model import Task
from tests.support.world import World


def cut(world: World, task: str, most: int) -> None:
    """Somebody lowers the number of attempts."""
    before: Task = world.tasks[task]
    world.tasks[task] = msgspec.structs.replace(before, retry=msgspec.structs.replace(before.retry, max_attempts=most))


def test_a_task_whose_attempts_were_cut_is_given_up_with_its_last_error() -> None:
    world = World()
    task = world.into("in-progress")
    dependent = world.create(depends_on=[task])
    world.act(commands.Fail, task, "ada", code="boom")
    assert world.act(commands.DeadLetter, task, "aof", reason="enough").drafts == ()
    cut(world, task, 1)
    world.act(commands.DeadLetter, task, "aof", reason="enough")
    dead = world.tasks[task]
    assert (dead.status, dead.last_error and dead.last_error.code) == ("deadletter", "boom")
    assert world.status(dependent) == "blocked"
    assert world.act(commands.DeadLetter, task, "aof", reason="enough").drafts == ()


@pytest.mark.parametrize("status", ["ready", "in-progress", "review", "blocked", "done", "cancelled", "deadletter"])
def test_only_backlog_is_promoted(status: str) -> None:
    world = World()
    assert world.act(commands.Promote, world.into(status), "aof", reason="x").drafts == ()


def test_what_waits_or_is_a_draft_is_not_promoted() -> None:
    world = World()
    first = world.create()
    waits = world.create(status="backlog", depends_on=[first])
    draft = world.create(status="backlog", metadata={"draft": True})
    for task in (waits, draft):
        assert world.act(commands.Promote, task, "aof", reason="x").drafts == ()
    world.act(commands.Complete, first, "ada")
    world.act(commands.Approve, first)
    world.act(commands.Promote, waits, "aof", reason="its dependencies are done")
    assert world.path(waits) == ["ready"]
    kept = world.create(status="backlog", depends_on=[first])
    world.act(commands.Update, kept, status="ready")
    world.act(commands.Update, kept, status="backlog")
    assert world.act(commands.Promote, kept, "aof", reason="x").drafts == (), "a person has put it there"


def test_a_task_that_was_blocked_in_the_backlog_still_waits_for_its_dependencies_there() -> None:
    world = World()
    first, second = world.create(), world.create()
    waits = world.create(status="backlog", depends_on=[first, second])
    world.act(commands.CancelTask, first)
    assert world.status(waits) == "blocked"
    world.act(commands.RemoveDependency, waits, blocker_id=first)
    assert world.status(waits) == "backlog"
    world.act(commands.Complete, second, "ada")
    world.act(commands.Approve, second)
    world.act(commands.Promote, waits, "aof", reason="its dependencies are done")
    assert world.status(waits) == "ready"
    assert (
        world.refuse(commands.Promote, world.create(status="backlog", depends_on=[second]), "aof", reason="").code
        == "invalid"
    )


def test_an_alert_for_a_status_that_was_left_is_not_recorded() -> None:
    world = World()
    task = world.into("review")
    assert world.act(commands.Alert, task, "aof", status="blocked", reason="x").drafts == ()
    world.act(commands.Alert, task, "aof", status="review", reason="too long")
    assert world.act(commands.Alert, task, "aof", status="review", reason="too long").drafts == ()
    assert world.log(task, "task.sla_alert")[0].payload["reason"] == "too long"


def test_the_end_of_a_worker_is_recorded_under_its_run_and_under_no_other() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.Complete, task, "ada")
    world.act(commands.Exited, task, "aof", run=run, exit_code=0, output={"stdout": {"path": "output.log", "bytes": 3}})
    (event,) = world.log(task, "run.exited")
    assert (event.run_id, event.payload["exitCode"]) == (run, 0)
    assert world.status(task) == "review"
    for other in (None, "RUN-2026-03-02-999-1", "x"):
        assert world.refuse(commands.Exited, task, "aof", run=other, exit_code=0).code == "invalid"
