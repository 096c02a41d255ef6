"""Many agents at once, some of them killed: every task comes to an end, and none runs twice at the same time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import task_of_run
from aof.service.bootstrap import open_fabric
from tests.support.service import SETTINGS, Up, directory, scripted

# Killed in three places: at once, in the middle, and after the report; together about one run in ten.
WORDS = ("maybe=4", "update=on", "maybe=4", "report=done", "maybe=3")
ENDS = {"task.attempt.completed", "task.attempt.failed"}


def stress(folder: Path, agents: int, tasks: int) -> Counter[str]:
    """Let so many agents do so many tasks; tells where the tasks ended."""
    names = [f"agent-{number:02d}" for number in range(agents)]
    chart = {name: {"concurrency": 1, "runner": {"kind": "process", "command": scripted(*WORDS)}} for name in names}
    root = directory(folder, chart, SETTINGS)
    with open_fabric(root, actor="pm") as fabric:
        ids = [
            fabric.create(f"Number {number}", agent=names[number % agents], review=number % 2 == 0).task_id
            for number in range(tasks)
        ]
        with Up(root, "--once") as up:
            assert up.process.wait(900) == 0
        found: Counter[str] = Counter(
            task.status for task in fabric.store.find(fabric.services.environment.read_models.query()).tasks
        )
        most = check_histories(fabric, set(ids))
        assert most <= agents
        assert fabric.doctor().ok
    return found


def check_histories(fabric: Fabric, ids: set[str]) -> int:
    """Each run began once and ended once, one after the other; tells how many ran at the same time."""
    running: dict[str, str] = {}
    runs: set[str] = set()
    most = 0
    for event in fabric.events():
        if event.type == "task.attempt.started":
            assert event.task_id not in running, f"{event.task_id} runs twice at the same time"
            assert event.run_id not in runs
            running[event.task_id] = event.run_id or ""
            runs.add(event.run_id or "")
            most = max(most, len(running))
        elif event.type in ENDS:
            assert running.pop(event.task_id) == event.run_id, "a run that did not hold the task has ended"
    assert not running
    assert {task_of_run(run) for run in runs} == ids, "every task was tried"
    return most


def test_some_agents_are_killed_and_every_task_comes_to_an_end(tmp_path: Path) -> None:
    found = stress(tmp_path, agents=12, tasks=60)
    assert found.keys() <= {"review", "done", "deadletter"}
    assert found.total() == 60


@pytest.mark.full
def test_fifty_agents_and_five_hundred_tasks(tmp_path: Path) -> None:
    found = stress(tmp_path, agents=50, tasks=500)
    assert found.keys() <= {"review", "done", "deadletter"}
    assert found.total() == 500
    assert found["review"] + found["done"] > 450
