"""The files of a run, as a person or another program finds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.testing import FakeClock
from tests.support.indexes import open_fabric
from tests.support.processes import Worker
from tests.support.requirements import requirement


@pytest.fixture
def clock() -> FakeClock:
    """A known moment."""
    return FakeClock("2026-03-02T09:00:00Z")


@pytest.fixture
def fabric(root: Path, clock: FakeClock) -> Iterator[Fabric]:
    """A fabric on a new data directory."""
    with open_fabric(root, clock) as made:
        yield made


@requirement("aof1.artifacts.earlier-runs-kept")
def test_a_new_run_takes_over_the_paths_and_the_earlier_one_is_kept(
    fabric: Fabric, root: Path, clock: FakeClock
) -> None:
    task_id = fabric.create("Work").task_id
    first = fabric.claim(task_id, agent="ada", ttl=30)
    fabric.heartbeat(task_id, run=first.run_id, ttl=30)
    clock.sleep(31)
    fabric.recover()
    runs = root / "runs" / task_id
    earlier = {path.name: path.read_bytes() for path in runs.iterdir()}
    clock.sleep(60)
    second = fabric.claim(task_id, agent="bob")
    fabric.complete(task_id, run=second.run_id, outcome="needs_review")
    fabric.reject(task_id, blockers=["once more"])
    third = fabric.claim(task_id, agent="cem")

    assert json.loads((runs / "run.json").read_text())["runId"] == third.run_id
    assert {path.name: path.read_bytes() for path in (runs / "attempts/1").iterdir()} == earlier
    assert json.loads(earlier["run.json"])["status"] == "expired"
    assert json.loads((runs / "attempts/2/run.json").read_text())["runId"] == second.run_id
    assert json.loads((runs / "attempts/2/run_result.json").read_text())["runId"] == second.run_id
    assert not (runs / "run_result.json").exists()


@requirement("aof1.artifacts.heartbeat-json")
def test_a_heartbeat_file_has_five_fields_and_moves_on_with_every_beat(
    fabric: Fabric, root: Path, clock: FakeClock
) -> None:
    task_id = fabric.create("Work").task_id
    run = fabric.claim(task_id, agent="ada").run_id
    path = root / "runs" / task_id / "run_heartbeat.json"

    def read_on(pipe: Connection) -> None:
        pipe.send("reading")
        count = 0
        while not pipe.poll():
            assert json.loads(path.read_bytes())["taskId"] == task_id
            count += 1
        pipe.send(count)

    reader = Worker(read_on)
    assert reader.hear() == "reading"
    fabric.heartbeat(task_id, run=run)
    first = json.loads(path.read_text())
    clock.sleep(60)
    fabric.heartbeat(task_id, run=run)
    second = json.loads(path.read_text())
    for _ in range(200):
        fabric.heartbeat(task_id, run=run)
    reader.say("enough")

    assert reader.hear() > 0, "every read gave valid JSON"
    reader.end()
    assert (first.pop("pulse")["at"], second.pop("pulse")["at"]) == (0, 60_000), "beside the wall clock, the machine's"
    assert first == {
        "taskId": task_id, "agentId": "ada", "lastHeartbeat": "2026-03-02T09:00:00.000Z", "beatCount": 1,
        "expiresAt": "2026-03-02T09:05:00.000Z", "runId": run,
    }  # fmt: skip
    assert second == first | {
        "lastHeartbeat": "2026-03-02T09:01:00.000Z", "beatCount": 2, "expiresAt": "2026-03-02T09:06:00.000Z",
    }  # fmt: skip
    assert json.loads(path.read_text())["beatCount"] == 202


@requirement("aof1.artifacts.run-json-paths")
def test_the_artifact_paths_are_folders_beside_the_task_and_move_with_it(fabric: Fabric, root: Path) -> None:
    task_id = fabric.create("Work").task_id
    for name in ("inputs", "work", "outputs"):
        folder = root / "tasks/ready" / task_id / name
        folder.mkdir(parents=True)
        (folder / "file.txt").write_text(name)
    fabric.claim(task_id, agent="ada")

    paths = json.loads((root / "runs" / task_id / "run.json").read_text())["artifactPaths"]
    assert paths == {"inputs": "inputs/", "work": "work/", "output": "outputs/"}
    for path in paths.values():
        assert (root / "tasks/in-progress" / task_id / path / "file.txt").read_text() == path.rstrip("/")
    assert not (root / "tasks/ready" / task_id).exists()
