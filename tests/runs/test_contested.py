"""A lease that a merge of histories made contested: only the run that stands writes, and it must show its secret."""

from __future__ import annotations

import msgspec
import pytest

from aof.kernel import commands
from tests.support.world import World

_SECRET = "1" * 64
_WRITES: tuple[tuple[type[commands.OnTask], dict[str, object]], ...] = (
    (commands.RecordHeartbeat, {}),
    (commands.ReportProgress, {"text": "half"}),
    (commands.Release, {}),
    (commands.Complete, {}),
    (commands.Fail, {"code": "x", "message": "y"}),
)


def _contested(world: World, **given: object) -> tuple[str, str]:
    """A task whose lease was claimed in two clones, of which this world's stands."""
    task = world.create()
    run = world.claim(task, "ada", secret_digest=_SECRET, **given)
    now = world.tasks[task]
    assert now.lease is not None
    world.tasks[task] = msgspec.structs.replace(now, lease=msgspec.structs.replace(now.lease, contested=True))
    return task, run


@pytest.mark.parametrize(("kind", "given"), _WRITES)
def test_neither_a_superseded_run_nor_the_same_name_nor_a_known_run_id_writes(
    kind: type[commands.OnTask], given: dict[str, object]
) -> None:
    world = World()
    task, run = _contested(world)
    superseded = f"{run[:-8]}deadbeef"
    assert world.refuse(kind, task, "ada", **given).code == "stale_lease", "the name alone"
    assert world.refuse(kind, task, "ada", run=superseded, **given).code == "stale_lease", "the run that ended"
    assert world.refuse(kind, task, "ada", run=superseded, proof="2" * 64, **given).code == "stale_lease", "its secret"
    assert world.refuse(kind, task, "ada", run=run, **given).code == "stale_lease", "the ID of the run that stands"
    assert "AOF_RUN_SECRET" in world.refuse(kind, task, "ada", **given).hint


@pytest.mark.parametrize(("kind", "given"), _WRITES)
def test_the_secret_of_the_run_that_stands_writes(kind: type[commands.OnTask], given: dict[str, object]) -> None:
    world = World()
    task, run = _contested(world)
    assert world.act(kind, task, "ada", run=run, proof=_SECRET, **given).refusal is None


def test_the_host_of_a_worker_goes_on_with_the_run_that_it_started() -> None:
    world = World()
    task, run = _contested(world, worker="process")
    world.act(commands.RecordHeartbeat, task, "ada", run=run)
    assert world.refuse(commands.RecordHeartbeat, task, "ada").code == "stale_lease"


def test_a_new_claim_is_not_contested_any_more() -> None:
    world = World()
    task, run = _contested(world)
    world.act(commands.Release, task, "ada", run=run, proof=_SECRET)
    world.claim(task, "bob")
    assert world.act(commands.ReportProgress, task, "bob", text="x").refusal is None
