"""A run's ID is unique for ever: over restored backups, branches and copies that never heard of each other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import StaleLease
from aof.kernel.model import attempt_of, run_id, task_of_run
from aof.runs.model import RunResult
from aof.store.files.task_files import document
from aof.testing import FakeClock
from tests.support.indexes import open_fabric
from tests.support.messages import update
from tests.support.present import present

Begin = Callable[[Fabric, str], str]


def _claimed(fabric: Fabric, task_id: str) -> str:
    return fabric.claim(task_id, agent="ada", ttl=30).run_id


def _updated(fabric: Fabric, task_id: str) -> str:
    fabric.update(task_id, status="in-progress", agent="ada")
    return str(fabric.get(task_id).last_run)


def _sent(fabric: Fabric, task_id: str) -> str:
    fabric.send(json.dumps(update(task_id, status="in-progress")))
    return str(fabric.get(task_id).last_run)


def _completed(fabric: Fabric, task_id: str) -> str:
    fabric.complete(task_id, agent="ada")
    return str(fabric.get(task_id).last_run)


@pytest.mark.parametrize("begin", [_claimed, _updated, _sent, _completed])
def test_the_same_attempt_in_two_histories_has_two_ids(root: Path, tmp_path: Path, begin: Begin) -> None:
    clock = FakeClock("2026-03-02T09:00:00Z")
    with open_fabric(root, clock) as fabric:
        task_id = fabric.create("Work").task_id
    other = tmp_path / "copy" / ".aof"
    shutil.copytree(root, other)
    runs = []
    for place in (root, other):
        with open_fabric(place, clock) as fabric:
            runs.append(begin(fabric, task_id))
            assert {event.run_id for event in fabric.events(task_id=task_id)} - {None} == {runs[-1]}
    assert runs[0] != runs[1]
    assert {task_of_run(run) for run in runs} == {task_id}
    assert {attempt_of(run) for run in runs} == {1}


@pytest.mark.parametrize("attempts", [0, 1])
def test_a_result_of_another_history_does_not_complete_a_run_that_reported_nothing(root: Path, attempts: int) -> None:
    clock = FakeClock("2026-03-02T09:00:00Z")
    with open_fabric(root, clock) as fabric:
        task_id = fabric.create("Work").task_id
        for _ in range(attempts):
            fabric.release(task_id, run=_claimed(fabric, task_id))
        result = RunResult(
            task_id=task_id,
            agent_id="ada",
            run_id=run_id(task_id, attempts + 1, ""),
            completed_at="2026-03-01T09:00:00.000Z",
            outcome="done",
        )
        place = root / "runs" / task_id
        place.mkdir(parents=True, exist_ok=True)
        (place / "run_result.json").write_bytes(document(result))
        if attempts:
            (place / "attempts/1").mkdir(parents=True)
            (place / "attempts/1/run_result.json").write_bytes(b"{}")
        _claimed(fabric, task_id)
        assert not (place / "run_result.json").exists()
        clock.sleep(31)
        fabric.recover()
        assert fabric.get(task_id).status == "ready"
        kept = [path for path in root.rglob("*run_result.json*") if path.read_bytes() == document(result)]
        assert len(kept) == 1, "what another history left is kept beside"


def test_a_late_report_of_another_history_does_not_close_a_strangers_run(root: Path, tmp_path: Path) -> None:
    clock = FakeClock("2026-03-02T09:00:00Z")
    with open_fabric(root, clock) as fabric:
        task_id = fabric.create("Work").task_id
    backup = tmp_path / "backup" / ".aof"
    shutil.copytree(root, backup)
    with open_fabric(root, clock) as fabric:
        late = _claimed(fabric, task_id)
    with open_fabric(backup, clock) as fabric:
        mine = fabric.claim(task_id, agent="bob").run_id
        for write in (fabric.complete, fabric.heartbeat, fabric.release, fabric.fail):
            with pytest.raises(StaleLease):
                write(task_id, run=late)
        assert present(fabric.get(task_id).lease).run_id == mine
        fabric.complete(task_id, run=mine, outcome="needs_review")
        with pytest.raises(StaleLease):
            fabric.complete(task_id, run=late, outcome="needs_review")
        assert fabric.complete(task_id, run=mine, outcome="needs_review").status == "review", "the own one is"
