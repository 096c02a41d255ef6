"""Jobs: what comes of them and when, what people may do to their file, and who may have any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput, JobExists, JobNotFound, NotAllowed, PayloadTooLarge, UnreadableJobs
from aof.kernel.model import Policy
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.tasks.model import Task
from aof.testing import FakeClock, memory_fabric
from tests.support.requirements import requirement
from tests.support.team import chart_of

MONDAY = "2026-03-02T09:00:00Z"
HOUR, DAY = 3_600, 86_400


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(MONDAY)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(init_data_dir(tmp_path / ".aof", actor="pm")[0])


@pytest.fixture(params=["filesystem", "memory"])
def fabric(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[Fabric]:
    """A fabric of `pm`, on each store."""
    if request.param == "memory":
        yield memory_fabric("pm", clock)
        return
    with open_fabric(request.getfixturevalue("root"), actor="pm", clock=clock) as made:
        yield made


def made(fabric: Fabric) -> list[str]:
    """The titles of all tasks, oldest first."""
    return [fabric.get(row.id).title for row in sorted(fabric.list().tasks, key=lambda row: row.id)]


def occasions(fabric: Fabric, *, dry_run: bool = False) -> list[str]:
    """What a tick does about jobs, and why."""
    return [one.reason for one in fabric.tick(dry_run=dry_run).actions if one.action == "job_dispatch"]


def test_a_schedule_creates_one_task_at_each_of_its_times(fabric: Fabric, clock: FakeClock) -> None:
    added = fabric.job_add("nightly", title="Check", cron="0 2 * * *", timezone="Europe/Berlin")
    assert (added.state, added.next_due) == ("active", "2026-03-03T01:00:00.000Z")
    assert fabric.tick().next_at == "2026-03-03T01:00:00.000Z"
    assert made(fabric) == []
    clock.set("2026-03-03T01:00:00Z")
    due = ["job nightly: 2026-03-03T01:00:00.000Z"]
    assert occasions(fabric, dry_run=True) == due
    assert made(fabric) == []
    assert occasions(fabric) == due
    assert occasions(fabric) == []
    clock.sleep(DAY)
    fabric.tick()
    assert made(fabric) == ["Check", "Check"]
    shown = fabric.job_show("nightly")
    assert (shown.created, shown.next_due) == (2, "2026-03-05T01:00:00.000Z")
    assert shown.last is not None
    assert shown.last.task_id == "TASK-2026-03-04-001"


@requirement("task.model.job")
def test_a_job_is_no_task_and_what_it_creates_is_like_any_other_task(fabric: Fabric, clock: FakeClock) -> None:
    given: dict[str, Any] = {"title": "Check", "brief": "All.\n", "agent": "ada", "tags": ["ci"], "priority": "high"}
    by_hand = fabric.get(fabric.create(**given).task_id)
    fabric.job_add("hourly", cron="@hourly", **given)
    fabric.job_add("import", items=[given])
    clock.sleep(HOUR)
    fabric.tick()
    assert len(fabric.list(archived=True).tasks) == 3  # no task stands for a job or for the scheduler
    for row in fabric.list().tasks:
        task = fabric.get(row.id)
        assert _alike(task) == _alike(by_hand)
        if task.id != by_hand.id:
            fabric.claim(task.id, agent="ada")
            fabric.complete(task.id, agent="ada")
            fabric.approve(task.id)
            assert fabric.get(task.id).status == "done"


def _alike(task: Task) -> tuple[object, ...]:
    return task.title, task.body, task.status, task.routing, task.priority, task.created_by, task.retry, task.metadata


def test_the_task_of_a_job_has_the_edge_to_it_from_its_first_event(fabric: Fabric, clock: FakeClock) -> None:
    fabric.job_add("hourly", title="Check", cron="@hourly")
    fabric.job_add("import", items=[{"title": "One"}])
    clock.sleep(HOUR)
    fabric.tick()
    events = list(fabric.store.events())
    edges = {}
    for event in (one for one in events if one.type == "task.created"):
        (edge,) = event.payload["task"]["links"]
        assert edge["kind"] == "job"
        whole = [one for one in events if one.seq - one.commit[0] == event.seq - event.commit[0]]
        (told,) = (one for one in whole if one.type == "document.job.dispatched")
        assert (told.payload["job"], told.payload["taskId"]) == (edge["targetId"], event.task_id)
        edges[event.task_id] = edge["targetId"]
    assert sorted(edges.values()) == ["hourly", "import"]
    for task_id, job in edges.items():
        (link,) = fabric.get(task_id).links
        assert (link.kind, link.target_id) == ("job", job)
        shown = next(one for one in fabric.snapshot()["tasks"] if one["taskId"] == task_id)
        assert [one["targetId"] for one in shown["relationships"]] == [f"aof://jobs/{job}"]


@pytest.mark.parametrize(("missed", "expected"), [("skip", 0), ("once", 1), ("all", 3)])
def test_times_at_which_nothing_ran_are_made_up_for_as_the_job_says(
    fabric: Fabric, clock: FakeClock, missed: str, expected: int
) -> None:
    fabric.job_add("hourly", title="Check", cron="@hourly", missed=missed)
    clock.sleep(3 * HOUR + 1_800)
    assert len(occasions(fabric)) == expected
    assert occasions(fabric) == []
    clock.sleep(1_800)
    assert occasions(fabric) == ["job hourly: 2026-03-02T13:00:00.000Z"]


def test_a_job_for_one_time_ends_with_it(fabric: Fabric, clock: FakeClock) -> None:
    assert fabric.job_add("release", title="Release", at="2026-03-02T12:00", timezone="Europe/Berlin").next_due == (
        "2026-03-02T11:00:00.000Z"
    )
    clock.sleep(5 * HOUR)
    assert len(occasions(fabric)) == 1
    assert fabric.job_show("release").state == "ended"
    clock.sleep(DAY)
    assert occasions(fabric) == []


def test_a_paused_job_creates_nothing_and_what_came_due_meanwhile_is_left_out(fabric: Fabric, clock: FakeClock) -> None:
    fabric.job_add("hourly", title="Check", cron="@hourly", missed="all")
    fabric.job_pause("hourly")
    fabric.job_pause("hourly")
    clock.sleep(2 * HOUR)
    assert occasions(fabric) == []
    assert fabric.job_resume("hourly").next_due == "2026-03-02T12:00:00.000Z"
    assert occasions(fabric) == []
    clock.sleep(HOUR)
    assert len(occasions(fabric)) == 1
    fabric.job_rm("hourly")
    clock.sleep(HOUR)
    assert occasions(fabric) == []
    assert made(fabric) == ["Check"]
    with pytest.raises(JobNotFound):
        fabric.job_run("hourly")


def test_a_job_of_a_name_that_was_used_before_begins_anew(fabric: Fabric, clock: FakeClock) -> None:
    for title in ("First", "Second"):
        fabric.job_add("hourly", title=title, cron="@hourly")
        with pytest.raises(JobExists):
            fabric.job_add("hourly", title=title, cron="@hourly")
        fabric.job_run("hourly")
        fabric.job_rm("hourly")
        clock.sleep(1)
    assert made(fabric) == ["First", "Second"]


def test_a_batch_has_an_outcome_for_each_item_and_creates_each_once(fabric: Fabric) -> None:
    items = [{"title": f"Item {number}"} for number in range(120)]
    items[7]["workflow"] = "nowhere"
    fabric.job_add("import", items=items)
    assert len(occasions(fabric)) == 50  # the scheduler has other things to do as well
    assert fabric.job_show("import").done == 50
    assert len(fabric.job_run("import").outcomes) == 70
    assert fabric.job_run("import").outcomes == ()
    shown = fabric.job_show("import")
    assert (shown.state, shown.done, shown.created) == ("ended", 120, 119)
    failed = [one for one in shown.outcomes if one.error is not None]
    assert [(one.occasion, str(one.error)[:18]) for one in failed] == [("item 8", "workflow_not_found")]
    assert made(fabric) == [one["title"] for one in items if "workflow" not in one]
    assert [fabric.get(str(one.task_id)).title for one in shown.outcomes if one.task_id] == made(fabric)


@pytest.mark.parametrize(
    "given",
    [
        {"title": "x"},
        {"cron": "@daily"},
        {"title": "x", "cron": "@daily", "at": "2027-01-01"},
        {"title": "x", "cron": "@daily", "items": [{"title": "y"}]},
        {"title": "x", "cron": "0 0 30 2 *"},
        {"title": "x", "cron": "@daily", "timezone": "Mars/Olympus"},
        {"title": "x", "cron": "@daily", "missed": "maybe"},
        {"title": "x", "at": "2026-03-02T08:59Z"},
        {"title": " ", "cron": "@daily"},
        {"title": "x", "cron": "@daily", "agent": "not a name"},
        {"items": [{"title": "x", "command": "rm"}]},
        {"items": ["x"]},
        {"items": [{"title": "x"}] * 501},
        {"title": "x", "cron": "@daily", "brief": "x" * 500_000},
    ],
)
def test_what_cannot_be_a_job_is_refused(fabric: Fabric, given: dict[str, Any]) -> None:
    with pytest.raises((InvalidInput, PayloadTooLarge)):
        fabric.job_add("odd", **given)
    with pytest.raises(InvalidInput):
        fabric.job_add("../odd", title="x", cron="@daily")
    assert fabric.job_list().jobs == ()


def test_a_task_that_cannot_be_created_is_told_and_not_tried_for_ever(root: Path, clock: FakeClock) -> None:
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        parent = fabric.create("Parent").task_id
        fabric.job_add("hourly", title="Check", cron="@hourly", parent_id=parent)
        fabric.cancel(parent)
        clock.sleep(HOUR)
        (reason,) = occasions(fabric)
        assert "cancel" in reason
        assert occasions(fabric) == []
        assert [one.code for one in fabric.doctor().advice] == ["job_failed"]


def edit(root: Path, old: str, new: str) -> None:
    """Change the file as a person would."""
    text = (root / "jobs.json").read_text()
    assert old in text
    (root / "jobs.json").write_text(text.replace(old, new, 1))


def test_a_person_changes_a_job_in_its_file_and_the_log_restores_one_that_is_lost(root: Path, clock: FakeClock) -> None:
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        fabric.job_add("hourly", title="Check", cron="@hourly")
        edit(root, '"Check"', '"Check it all"')
        clock.sleep(HOUR)
        fabric.tick()
        assert made(fabric) == ["Check it all"]
        fabric.job_pause("hourly")
        assert json.loads((root / "jobs.json").read_text())["jobs"]["hourly"]["task"] == {"title": "Check it all"}
        (root / "jobs.json").unlink()
        shown = fabric.job_show("hourly")
        assert (shown.state, shown.created) == ("paused", 1)
        assert shown.task is not None
        assert shown.task.title == "Check"  # what only the file knew is lost with it


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"handled": "2026', '"handled": "soon'),
        ('"createdAt": "2026', '"createdAt": "x'),
        ('"@hourly"', '"61 * * * *"'),
        ('"id": "hourly"', '"id": "hourly", "done": -1'),
        ('"id": "hourly"', '"id": "hourly", "timezone": "Mars/Olympus"'),
        ('"id": "hourly"', '"id": "hourly", "command": "rm"'),
        ('"title": "Check"', '"title": ""'),
    ],
)
def test_a_change_by_hand_that_makes_no_sense_is_refused_with_the_name_of_the_job(
    root: Path, clock: FakeClock, old: str, new: str
) -> None:
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        fabric.job_add("hourly", title="Check", cron="@hourly")
        edit(root, old, new)
        clock.sleep(HOUR)
        assert occasions(fabric) == []
        with pytest.raises(UnreadableJobs):
            fabric.job_show("hourly")
        assert made(fabric) == []


def test_one_bad_job_is_told_and_left_alone_and_the_others_run(root: Path, clock: FakeClock) -> None:
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        for name in ("bad", "good", "worse"):
            fabric.job_add(name, title=name.title(), cron="@hourly")
        edit(root, '"cron": "@hourly"', '"cron": "61 * * * *", "mine": "keep this"')
        clock.sleep(HOUR)
        assert len(occasions(fabric, dry_run=True)) == 2
        assert occasions(fabric) == ["job good: 2026-03-02T10:00:00.000Z", "job worse: 2026-03-02T10:00:00.000Z"]
        assert sorted(made(fabric)) == ["Good", "Worse"]
        assert "keep this" in (root / "jobs.json").read_text(), "what somebody has written stays"
        (found,) = fabric.doctor().advice
        assert found.code == "jobs_unreadable"
        assert "job 'bad'" in found.detail
        listed = fabric.job_list()
        assert [one.job_id for one in listed.jobs] == ["good", "worse"]
        assert list(listed.unusable) == ["bad"]
        for call in (fabric.job_show, fabric.job_run, fabric.job_pause):
            with pytest.raises(UnreadableJobs, match="bad"):
                call("bad")
        with pytest.raises(JobExists):
            fabric.job_add("bad", title="Again", cron="@hourly")
        fabric.job_rm("bad")
        assert list(json.loads((root / "jobs.json").read_text())["jobs"]) == ["good", "worse"]
        assert fabric.doctor().ok
        assert fabric.doctor().advice == ()


def test_a_bad_job_that_was_corrected_goes_on_where_it_was(root: Path, clock: FakeClock) -> None:
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        fabric.job_add("hourly", title="Check", cron="@hourly")
        edit(root, '"@hourly"', '"never"')
        clock.sleep(HOUR)
        assert occasions(fabric) == []
        edit(root, '"never"', '"@hourly"')
        assert len(occasions(fabric)) == 1
        assert made(fabric) == ["Check"]


def test_turning_a_job_back_in_its_file_creates_no_second_task(root: Path, clock: FakeClock) -> None:
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        fabric.job_add("hourly", title="Check", cron="@hourly")
        clock.sleep(HOUR)
        fabric.tick()
        edit(root, '"handled": "2026-03-02T10:00', '"handled": "2026-03-02T09:00')
        assert len(occasions(fabric)) == 1
        assert made(fabric) == ["Check"]


@pytest.mark.parametrize("damage", ["{", '{"rev": 1, "jobs": []}', "[]", '{"rev": 9, "jobs": {}, "x": 1}'])
def test_a_file_that_cannot_be_read_is_left_alone_and_told_and_everything_else_goes_on(
    root: Path, clock: FakeClock, damage: str
) -> None:
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        fabric.job_add("hourly", title="Check", cron="@hourly")
        whole = (root / "jobs.json").read_text()
        (root / "jobs.json").write_text(damage)
        clock.sleep(HOUR)
        assert occasions(fabric) == []
        for call in (fabric.job_list, lambda: fabric.job_run("hourly"), lambda: fabric.job_rm("hourly")):
            with pytest.raises(UnreadableJobs, match=r"jobs\.json"):
                call()
        assert [one.code for one in fabric.doctor().advice] == ["jobs_unreadable"]
        assert (root / "jobs.json").read_text() == damage
        (root / "jobs.json").write_text(whole)
        clock.sleep(120)
        assert len(occasions(fabric)) == 1
        assert fabric.doctor().ok


def test_with_a_chart_jobs_are_for_leads_and_maintainers(clock: FakeClock) -> None:
    chart = chart_of(
        schemaVersion=1,
        agents=[{"id": "ada", "team": "eng"}, {"id": "lea"}],
        teams=[{"id": "eng", "lead": "lea"}],
    )
    fabric = memory_fabric("pm", clock, policy=Policy(maintainers=("pm",)), org=chart)
    for actor in ("ada", "stranger"):
        with pytest.raises(NotAllowed):
            fabric.job_add("mine", title="Check", cron="@hourly", actor=actor)
    fabric.job_add("lead", title="Check", cron="@hourly", actor="lea")
    fabric.job_add("person", title="Check", cron="@hourly")
    for call in (fabric.job_pause, fabric.job_resume, fabric.job_run, fabric.job_rm):
        with pytest.raises(NotAllowed):
            call("lead", actor="ada")
    clock.sleep(HOUR)
    fabric.tick()
    assert sorted(fabric.get(row.id).created_by for row in fabric.list().tasks) == ["lea", "pm"]
