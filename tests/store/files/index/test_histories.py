"""The index says what the log says, over random histories."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings

from aof.api.fabric import Fabric
from aof.kernel import commands
from aof.kernel.model import iso
from aof.kernel.unit_of_work import _load
from aof.store.files.store import FilesystemStore
from aof.store.lists import Query
from aof.store.port import Scope
from aof.tasks.graph import readiness
from aof.testing import FakeClock
from tests.support.histories import Player, Step, steps
from tests.support.indexes import caught_up, from_the_log, open_fabric, store_of


def play(history: list[Step], fabric: Fabric, clock: FakeClock, *, ask_every: int = 3) -> Player:
    player = Player(fabric, clock)
    for number, step in enumerate(history):
        player.play(step)
        if number % ask_every == 0:
            caught_up(fabric)
    return player


_REMOVED = [("create", 4, 2), ("create", 4, 2), ("depend", 1, 0), ("create", 4, 2), ("undepend", 1, 0)]
_CANCELLING = [("create", 4, 2), ("create", 3, 4), ("claim", 1, 0), ("cancel", 0, 0)]
_SMALL = [("create", 1, 1), ("create", 0, 0), ("claim", 0, 1), ("edit", 0, 8), ("fail", 0, 0), ("later", 0, 2)]


@settings(max_examples=40, deadline=None)
@given(history=steps(most=50))
@example(history=_SMALL)
@example(history=_REMOVED)
def test_catching_up_rebuilding_and_folding_the_log_give_the_same(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        FilesystemStore.create(folder + "/.aof")
        clock = FakeClock()
        with open_fabric(Path(folder, ".aof"), clock) as fabric:
            play(history, fabric, clock)
            step_by_step = caught_up(fabric)
            store_of(fabric).checkpoint()
            store_of(fabric).index.rebuild()
            rebuilt = caught_up(fabric)

            assert step_by_step == from_the_log(fabric)
            assert rebuilt == step_by_step


def runnable(fabric: Fabric, clock: FakeClock) -> tuple[set[str], set[str]]:
    """What could be started now: as the index has it, and as the core says of each task."""
    offered = {
        task.id
        for task in fabric.store.find(fabric.services.environment.read_models.runnable(Query(archived=True))).tasks
    }
    every = frozenset(task.id for task in fabric.store.find(Query(archived=True)).tasks)
    allowed: set[str] = set()
    scope = Scope(write=every, names=frozenset(f"resource:{name}" for name in ("gpu", "lab", "vault")))
    with fabric.store.unit(scope) as unit:
        for task_id in every:
            records = _load(
                unit, scope, fabric.services.environment.policy, commands.Claim(actor="anyone", task_id=task_id)
            )
            if readiness(records, records.task(task_id), clock.now()) is None:
                allowed.add(task_id)
    return offered, allowed


@settings(max_examples=60, deadline=None)
@given(history=steps(most=50))
@example(history=[("create", 2, 2), ("create", 2, 2), ("create", 2, 2), ("claim", 0, 1), ("claim", 1, 1)])
@example(history=[("create", 5, 1), ("edit", 0, 1)])
@example(history=_CANCELLING)
def test_the_index_offers_exactly_what_the_core_would_let_start(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        FilesystemStore.create(folder + "/.aof")
        clock = FakeClock()
        with open_fabric(Path(folder, ".aof"), clock) as fabric:
            player = play(history, fabric, clock, ask_every=100)
            for _ in range(3):
                offered, allowed = runnable(fabric, clock)
                assert offered == allowed
                clock.sleep(301)
            assert player.ids or not offered
            assert iso(clock.now())
