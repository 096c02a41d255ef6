"""Jobs under crashes and races: every due time and every item of a batch has its task once, whoever dies and when."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import open_fabric
from aof.store.files.store import FilesystemStore
from aof.testing import FakeClock
from tests.support.deaths import die_at_every_step, opened
from tests.support.disks import SteppingDisk
from tests.support.processes import SharedClock, together

MONDAY, LATER = "2026-03-02T09:00:00Z", "2026-03-02T11:00:00Z"
EXPECTED = Counter({"Check": 2, "One": 1, "Two": 1})


def _prepared(root: Path) -> None:
    FilesystemStore.create(str(root), SteppingDisk())
    fabric = opened(root, FakeClock(MONDAY))
    fabric.job_add("hourly", title="Check", cron="@hourly", missed="all")
    fabric.job_add("import", items=[{"title": "One"}, {"title": "Two"}])
    fabric.close()


def _checked(root: Path, boot: str) -> None:
    fabric = opened(root, FakeClock(LATER), boot=boot)
    try:
        fabric.tick()
        tasks = [fabric.get(row.id) for row in fabric.list().tasks]
        assert Counter(task.title for task in tasks) == EXPECTED
        assert all([link.kind for link in task.links] == ["job"] for task in tasks)
        told = [one.payload["taskId"] for one in fabric.store.events() if one.type == "document.job.dispatched"]
        assert Counter(told) == Counter(task.id for task in tasks)
        shown = fabric.job_show("import")
        assert [one.task_id for one in shown.outcomes] == [task.id for task in tasks if task.title in ("One", "Two")]
        assert fabric.job_show("hourly").created == 2
        assert fabric.doctor().ok
    finally:
        fabric.close()


def test_whatever_step_a_scheduler_dies_at_everything_due_comes_once_and_with_its_edge(shm_path: Path) -> None:
    before = shm_path / "before"
    _prepared(before)
    assert die_at_every_step(before, lambda: FakeClock(LATER), Fabric.tick, _checked) > 8


@pytest.mark.parametrize("processes", [2, 5])
def test_several_schedulers_at_once_create_each_task_once(root: Path, processes: int) -> None:
    clock, items = SharedClock(), [{"title": f"Item {number}"} for number in range(40)]
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        fabric.job_add("minutely", title="Check", cron="* * * * *", missed="all")
        fabric.job_add("import", items=items)
    clock.put_forward(10 * 60)

    def work(number: int) -> int:
        with open_fabric(root, actor=f"scheduler-{number}", clock=clock) as fabric:
            for _ in range(20):
                fabric.tick()
            return 1

    assert sum(together(processes, work)) == processes
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        fabric.tick()
        titles = Counter(fabric.get(row.id).title for row in fabric.list(limit=500).tasks)
        assert titles.pop("Check") == fabric.job_show("minutely").created >= 10
        assert titles == Counter(item["title"] for item in items)
        told = [one.payload for one in fabric.store.events() if one.payload.get("job") == "minutely"]
        dues = [one["due"] for one in told if "due" in one]
        assert len(set(dues)) == len(dues)
