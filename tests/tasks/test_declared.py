"""What a task declares must be there before it is done: criteria, artifacts, evidence, delivery."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import NotReconciled
from aof.testing import memory_fabric
from tests.support.messages import report
from tests.support.portable import Camera
from tests.support.requirements import requirement
from tests.support.room import Room

GATED = {
    "name": "two",
    "hops": [{"id": "build", "role": "dev"}, {"id": "check", "role": "dev", "dependsOn": ["build"]}],
}


def put(room: Room, task_id: str, path: str, text: str = "the work") -> None:
    """Write a file of the task."""
    place = room.file(task_id).with_suffix("") / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def points(room: Room, task_id: str, **given: Any) -> list[str]:
    """What a refused completion names as open."""
    refusal = room.refused("not_reconciled", room.fabric.complete, task_id, **given)
    found = refusal.details["open"]
    assert all(point.split("'")[0] in refusal.message for point in found)
    return list(found)


@requirement("task.control.complete", "task.record.acceptance")
def test_a_task_is_not_complete_while_a_criterion_is_unreported_or_unmet(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False, acceptance=["it works", {"id": "fast", "text": "under 1 s"}])
    assert points(room, task_id, agent="ada") == ["acceptance 'it works' is unknown", "acceptance 'fast' is unknown"]
    fabric.progress(task_id, facts={"acceptance": ["it works"]}, agent="ada")
    assert points(room, task_id, agent="ada") == ["acceptance 'fast' is unknown"]
    unmet = [{"criterion": "fast", "met": False}]
    assert points(room, task_id, agent="ada", acceptance=unmet) == ["acceptance 'fast' is unmet"]
    assert fabric.complete(task_id, agent="ada", acceptance=["fast"]).status == "done"


@requirement("task.status.completed")
def test_required_artifacts_evidence_and_delivery_are_named_until_they_are_there(room: Room, fabric: Fabric) -> None:
    output = {"artifacts": ["outputs/report.md"], "evidence": ["tests", "https://ci.example/7"]}
    task_id = room.task("in-progress", review=False, constraints={"output": output})
    assert points(room, task_id, agent="ada") == [
        "artifact outputs/report.md is missing",
        "evidence 'tests' is missing",
        "evidence 'https://ci.example/7' is missing",
    ]
    put(room, task_id, "outputs/report.md")
    fabric.link(task_id, "evidence", "https://ci.example/7")
    failed = {"total": 2, "passed": 1, "failed": 1}
    assert points(room, task_id, agent="ada", tests=failed) == ["evidence 'tests' is missing"]
    assert fabric.complete(task_id, agent="ada", tests={"total": 2, "passed": 2}).status == "done"


def test_what_nobody_declared_holds_up_nothing(room: Room, fabric: Fabric) -> None:
    assert fabric.complete(room.task("in-progress", review=False), agent="ada").status == "done"
    assert fabric.complete(room.task(review=False), actor="ada").status == "done"


def test_work_with_open_points_can_be_handed_over_and_the_approval_vouches_for_the_unreported(
    room: Room, fabric: Fabric
) -> None:
    task_id = room.task("in-progress", acceptance=["it works", "it is fast", "it is told"])
    fabric.complete(task_id, outcome="needs_review", acceptance=["it works", {"it is fast": "unmet"}], agent="ada")
    refusal = room.refused("not_reconciled", fabric.approve, task_id, actor="bob")
    assert refusal.details["open"] == ["acceptance 'it is fast' is unmet"]
    fabric.edit(task_id, acceptance=["it works", "it is told"])
    fabric.approve(task_id, actor="bob")
    shown = Camera(room).task(task_id)
    assert [one["status"] for one in shown["acceptance"]] == ["met", "met"]
    (moved,) = [event for event in room.events(task_id, "task.transitioned") if event.payload["to"] == "done"]
    assert (moved.payload["by"], moved.payload["acceptance"]) == ("bob", ["it is told"])


@pytest.mark.parametrize("again", ["reject", "retry"])
def test_work_that_is_sent_back_is_reported_on_anew(room: Room, fabric: Fabric, again: str) -> None:
    task_id = room.task("in-progress", acceptance=["it works"])
    fabric.complete(task_id, acceptance=["it works"], agent="ada")
    if again == "reject":
        fabric.reject(task_id, blockers=["it does not"], actor="bob")
    else:
        fabric.approve(task_id, actor="bob")
        fabric.retry(task_id, reason="once more")
    run = fabric.claim(task_id, agent="eve").run_id
    assert points(room, task_id, run=run) == ["acceptance 'it works' is unknown"]


def test_a_reported_result_goes_no_further_than_to_review_while_something_is_open(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False, acceptance=["it works"])
    run = fabric.get(task_id).last_run
    assert fabric.send(report(task_id))[0].outcome == "accepted"
    fabric.session_end(agent="ada", run=run)
    assert fabric.get(task_id).status == "review"
    assert room.events(task_id, "task.transitioned")[-1].payload["open"] == ["acceptance 'it works' is unknown"]


def test_only_the_last_hop_of_a_workflow_must_leave_nothing_open() -> None:
    fabric = memory_fabric(workflows=[GATED])
    task_id = fabric.create("Gated", workflow="two", acceptance=["built", "checked"]).task_id
    run = fabric.claim(task_id, agent="ada", hop="build").run_id
    fabric.complete(task_id, run=run, outcome="complete", acceptance=["built"])
    last = fabric.claim(task_id, agent="bob", hop="check").run_id
    with pytest.raises(NotReconciled) as caught:
        fabric.complete(task_id, run=last, outcome="complete")
    assert caught.value.details["open"] == ["acceptance 'checked' is unknown"]
    assert fabric.complete(task_id, run=last, outcome="complete", acceptance=["checked"]).status == "done"


@pytest.mark.parametrize(
    "output",
    [
        {"artifacts": "x"},
        {"artifacts": ["../secret"]},
        {"artifacts": ["/etc/passwd"]},
        {"evidence": [1]},
        {"delivery": 1},
    ],
)
def test_demands_that_make_no_sense_are_refused(room: Room, fabric: Fabric, output: object) -> None:
    assert room.refused("invalid", fabric.create, "T", constraints={"output": output}).hint


def test_long_and_many_criteria_stay_within_the_limits_of_a_task_file(room: Room, fabric: Fabric) -> None:
    criteria = [f"{number} " + "ü" * 150 for number in range(100)]
    task_id = room.task("in-progress", review=False, acceptance=criteria)
    assert fabric.complete(task_id, agent="ada", acceptance=criteria).status == "done"
    assert len(str(room.front(task_id)["validation"])) < 6_000
    room.reopen()
    assert {one["status"] for one in Camera(room).task(task_id)["acceptance"]} == {"met"}
    room.refused("invalid", room.fabric.create, "T", acceptance=["one"] * 101)
