"""Many gated tasks, workers and services killed at random, work sent back at random: every task comes to an end."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.kernel.events import Event
from aof.service.bootstrap import open_fabric
from aof.service.runners.processes import processes_of_run
from aof.workflows.model import ENDED, workflow_of
from tests.support.service import SETTINGS, Up, directory, having, workflow

FLOW: dict[str, Any] = {
    "name": "flow",
    "hops": [
        {"id": "build", "role": "developer"},
        {"id": "test", "role": "tester", "dependsOn": ["build"]},
        {"id": "audit", "role": "auditor", "dependsOn": ["build"]},
        {"id": "ship", "role": "releaser", "dependsOn": ["test", "audit"], "canReject": True},
    ],
}
BEFORE: dict[str, set[str]] = {hop["id"]: set(hop.get("dependsOn", ())) for hop in FLOW["hops"]}
# Killed in three places: at once, in the middle, and after the report.
WORDS = ("maybe=4", "update=on", "maybe=4", "report=done", "maybe=3")
JUDGES = ("maybe=4", "either=30|report=needs_review,once more|report=done", "maybe=3")
LIMIT = 4


def stress(folder: Path, tasks: int, kills: int) -> Counter[str]:
    """So many tasks, and the service is killed so often; tells where the tasks ended."""
    agents = {
        f"{role}-{number}": having(role, *(JUDGES if role == "releaser" else WORDS), concurrency=2)
        for role in ("developer", "tester", "auditor", "releaser")
        for number in range(2)
    }
    root = directory(folder, agents, SETTINGS + f"[scheduler]\nmaxConcurrent = {LIMIT}\n")
    workflow(root, FLOW)
    with open_fabric(root, actor="pm") as fabric:
        ids = [fabric.create(f"Number {number}", workflow="flow", max_attempts=5).task_id for number in range(tasks)]
        for _ in range(kills):
            with Up(root) as up:
                up.wait("exit", times=4)
                up.end(signal.SIGKILL)
        with Up(root, "--once") as up:
            assert up.process.wait(900) == 0
        found: Counter[str] = Counter(fabric.get(task_id).status for task_id in ids)
        check_histories(fabric)
        for task_id in ids:
            flow = workflow_of(fabric.get(task_id))
            assert all(hop.status in ENDED and hop.lease is None for hop in flow.hops) or flow.state == "failed"
        runs = [event.run_id for event in fabric.events() if event.type == "task.attempt.started"]
        assert not any(list(processes_of_run(str(root), run or "")) for run in runs[-20:]), "a worker was left behind"
        assert fabric.doctor().ok
    return found


def check_histories(fabric: Fabric) -> None:
    """Each run of a hop began once and ended once, after what it depends on, and never beside another of the hop."""
    running: dict[tuple[str, str], str] = {}
    done: dict[tuple[str, str], bool] = {}
    seen: set[str] = set()
    for event in fabric.events():
        key = (event.task_id, str(event.payload.get("hop")))
        match event.type:
            case "task.attempt.started":
                assert key not in running, f"{key} runs twice at the same time"
                assert event.run_id not in seen
                assert all(done.get((event.task_id, name)) for name in BEFORE[key[1]]), f"{key} began too early"
                running[key] = str(event.run_id)
                seen.add(str(event.run_id))
                assert len(running) <= LIMIT
            case "task.attempt.completed" | "task.attempt.failed":
                assert running.pop(key) == event.run_id, "a run that did not hold the hop has ended"
            case _:
                _step(event, key, done)
    assert not running


def _step(event: Event, key: tuple[str, str], done: dict[tuple[str, str], bool]) -> None:
    if event.type.startswith("task.hop."):
        done[key] = event.payload["status"] == "done"


def test_services_and_workers_are_killed_and_every_task_comes_to_an_end(tmp_path: Path) -> None:
    found = stress(tmp_path, tasks=4, kills=1)
    assert found.keys() <= {"done", "deadletter"}
    assert found.total() == 4


@pytest.mark.full
def test_sixty_gated_tasks_and_ten_killed_services(tmp_path: Path) -> None:
    found = stress(tmp_path, tasks=60, kills=10)
    assert found.keys() <= {"done", "deadletter"}
    assert found["done"] > 40
    assert found.total() == 60


pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
