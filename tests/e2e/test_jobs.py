"""Jobs beside the service: a batch becomes ordinary work, also when every process is killed in between."""

from __future__ import annotations

import random
import signal
from collections import Counter
from pathlib import Path

from aof.app.fabric import Fabric
from aof.entrypoints.bootstrap import open_fabric
from tests.support.requirements import requirement
from tests.support.service import Up, directory, scripted
from tests.support.waiting import eventually


@requirement("task.model.job")
def test_under_the_service_a_batch_becomes_tasks_that_are_done_like_any_other(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("report=done")})
    with open_fabric(root, actor="pm") as fabric:
        by_hand = fabric.create("Do it", brief="All.\n", agent="ada", review=False).task_id
        item = {"title": "Do it", "brief": "All.\n", "agent": "ada", "review": False}
        fabric.job_add("import", items=[item])
        fabric.job_add("yearly", title="Never now", cron="@yearly")
        with Up(root) as up:
            up.wait("up")
            eventually(lambda: fabric.job_show("import").state == "ended")
            (outcome,) = fabric.job_show("import").outcomes
            eventually(lambda: {fabric.get(one).status for one in (by_hand, outcome.task_id or "")} == {"done"})
        assert len(fabric.list(archived=True).tasks) == 2  # none stands for a job or the scheduler
        ours, made = fabric.get(by_hand), fabric.get(outcome.task_id or "")
        assert (made.title, made.body.partition("##")[0], made.routing, made.metadata, made.created_by) == (
            ours.title,
            ours.body.partition("##")[0],
            ours.routing,
            ours.metadata,
            ours.created_by,
        )
        assert [one.type for one in fabric.events(task_id=made.id)] == [
            one.type for one in fabric.events(task_id=by_hand)
        ]


def test_a_batch_that_was_accepted_survives_the_death_of_every_process(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    items = [{"title": f"Item {number}"} for number in range(150)]
    with open_fabric(root, actor="pm") as fabric:
        fabric.job_add("import", items=items)
        for stop in sorted(random.Random(7).sample(range(1, 140), 3)):
            with Up(root) as one, Up(root) as two:
                eventually(lambda least=stop: fabric.job_show("import").done >= least)  # type: ignore[misc]
                one.end(signal.SIGKILL)
                two.end(signal.SIGKILL)
        with Up(root) as up:
            up.wait("up")
            eventually(lambda: fabric.job_show("import").state == "ended")
        assert _titles(fabric) == Counter(item["title"] for item in items)
        assert fabric.doctor().ok


def _titles(fabric: Fabric) -> Counter[str]:
    return Counter(row.title for row in fabric.list(limit=500).tasks)
