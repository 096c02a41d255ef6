"""Jobs beside the service: a batch becomes ordinary work, also when every process is killed in between."""

from __future__ import annotations

import random
import signal
from collections import Counter
from functools import partial
from pathlib import Path

from aof.api.fabric import Fabric
from aof.service.bootstrap import open_fabric
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


@requirement("task.anti-pattern.nothing-only-in-memory")
def test_killing_every_process_under_load_loses_no_task_timer_retry_or_handoff(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("report=done"), "bob": {}, "pia": {}})
    (root / "aof.toml").write_text((root / "aof.toml").read_text().replace("base = 0.05", "base = 3600"))
    with open_fabric(root, actor="pm") as fabric:  # what fails under these settings is tried again in an hour
        failing = fabric.create("Fails", agent="bob").task_id
        fabric.fail(failing, run=fabric.claim(failing, agent="bob").run_id)
        waiting = fabric.get(failing).retry
    # A service that dies between a claim and the start of its worker leaves a lease that has to run out.
    settings = (root / "aof.toml").read_text().replace("base = 3600", "base = 0.05").replace("ttl = 60", "ttl = 15")
    (root / "aof.toml").write_text(settings)
    accepted: list[str] = []
    draw = random.Random(11)
    with open_fabric(root, actor="pm") as fabric:
        held = fabric.create("Handed over", agent="bob").task_id
        fabric.claim(held, agent="bob", ttl=3_600)
        handoff = fabric.handoff_new(
            type="delegation", task_id=held, from_agent="bob", to=["pia"], reason="needs it", timeout="1h"
        ).handoff_id
        fabric.job_add("later", title="Scheduled", cron="@yearly", agent="ada")
        due = fabric.job_show("later").next_due
        for number in range(3):
            items = [{"title": f"Item {number}-{item}", "agent": "ada", "review": False} for item in range(3)]
            fabric.job_add(f"batch-{number}", items=items)
            accepted += [fabric.create(f"Task {number}-{one}", agent="ada", review=False).task_id for one in range(4)]
            goal = len(accepted) - draw.randrange(1, 4)
            with Up(root) as one, Up(root) as two:
                eventually(partial(_are_done, fabric, accepted, goal))
                one.end(signal.SIGKILL)
                two.end(signal.SIGKILL)
        with Up(root) as up:
            up.wait("up")
            eventually(lambda: all(fabric.job_show(f"batch-{number}").state == "ended" for number in range(3)))
            made = [row.id for row in fabric.list(limit=500).tasks if row.title.startswith("Item")]
            eventually(partial(_are_done, fabric, [*accepted, *made], len(accepted) + 9))
        assert set(_titles(fabric).values()) == {1}, "nothing twice"
        assert (waiting.attempts, waiting.not_before is not None) == (1, True)
        assert fabric.get(failing).retry == waiting, "its retry still waits for the same moment"
        assert fabric.handoff_show(handoff).is_open
        assert fabric.job_show("later").next_due == due
        assert fabric.doctor().ok


def _are_done(fabric: Fabric, tasks: list[str], least: int) -> bool:
    return sum(fabric.get(task_id).status == "done" for task_id in tasks) >= least
