"""The commands that steer a task: edit, progress, pause, retry, complete, fail, get."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.runs.brief import brief
from aof.scheduler.host import earlier_runs
from aof.testing import FakeClock
from tests.support.disks import DyingDisk, Killed
from tests.support.requirements import requirement
from tests.support.room import Room

CHANGES: dict[str, Any] = {
    "title": "Another title",
    "description": "Another objective.\n",
    "metadata": {"sprint": 7},
    "priority": "high",
    "routing": {"agent": "cem"},
    "acceptance": ["it is fast"],
    "constraints": {"network": "none"},
}


@requirement("task.control.update")
@pytest.mark.parametrize("fields", [*([name] for name in CHANGES), list(CHANGES)])
def test_any_part_of_a_task_is_changed_in_one_commit_without_its_status(
    room: Room, fabric: Fabric, fields: list[str]
) -> None:
    task_id = room.task("in-progress", brief="The objective.\n", acceptance=["it works"])
    before, events = fabric.show(task_id), room.events(task_id)
    edited = fabric.edit(task_id, **{name: CHANGES[name] for name in fields})

    after = fabric.show(task_id)
    for name, value in CHANGES.items():
        stored = "body" if name == "description" else name
        now = after.get(stored, {})
        if name not in fields:
            assert now == before.get(stored, {})
        elif isinstance(now, dict):
            assert now.items() >= value.items()
        else:
            assert (list(now) if name == "acceptance" else now) == value
    assert sorted(edited.updated_fields) == sorted(fields)
    assert {name: after[name] for name in ("status", "attempts", "lease")} == {
        name: before[name] for name in ("status", "attempts", "lease")
    }
    (added,) = room.events(task_id)[len(events) :]
    assert (added.type, sorted(added.payload["fields"])) == ("task.updated", sorted(fields))
    assert room.events(task_id)[: len(events)] == events


@requirement("task.control.append-progress")
def test_progress_is_only_added_and_only_by_the_holder(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task()
    old = fabric.claim(task_id, agent="ada", ttl=60).run_id
    clock.sleep(61)
    fabric.recover()
    clock.sleep(60)
    run = fabric.claim(task_id, agent="bob").run_id

    fabric.progress(task_id, run=run, text="the first", facts={"outputRefs": ["outputs/a.md"]})
    first = room.events(task_id)[-1]
    fabric.progress(task_id, run=run, text="the second", facts={"counters": {"files": 2}, "delivery": "pending"})
    reports = room.events(task_id, "task.progress")
    assert reports[0] == first
    assert [report.payload["text"] for report in reports] == ["the first", "the second"]
    body = room.body(task_id)
    assert 0 < body.index("the first") < body.index("the second")

    room.refused("not_lease_holder", fabric.progress, task_id, agent="cem", text="mine")
    room.refused("stale_lease", fabric.progress, task_id, run=old, text="late")


@requirement("task.control.pause")
def test_pausing_ends_the_lease_and_keeps_everything_else(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", depends_on=[room.task("done")])
    child = room.task(parent_id=task_id)
    run = room.attempts(task_id)[0]["runId"]
    edges = room.edges(task_id)

    fabric.pause(task_id, reason="over the weekend", actor="lead")
    shown = fabric.show(task_id)
    assert (shown["status"], shown["blocked"]["kind"], shown["blocked"]["by"]) == ("blocked", "paused", "lead")
    assert "lease" not in room.front(task_id)
    assert room.edges(task_id) == edges
    assert ("child", child) in edges
    assert [(one["runId"], one["status"]) for one in shown["attempts"]] == [(run, "cancelled")]
    room.refused("stale_lease", fabric.progress, task_id, run=run, text="still here")
    room.idle(fabric.pause, task_id, reason="again")


@requirement("task.control.retry")
@pytest.mark.parametrize("status", ["done", "cancelled", "deadletter", "waiting"])
def test_a_retry_makes_the_task_ready_and_the_next_claim_makes_the_run(room: Room, fabric: Fabric, status: str) -> None:
    given: dict[str, Any] = {"constraints": {"cost": 5}, "acceptance": ["works"], "depends_on": [room.task("done")]}
    if status == "waiting":
        task_id = room.task("in-progress", **given)
        fabric.fail(task_id, agent="ada")
        room.refused("not_ready", fabric.claim, task_id, agent="bob")
    else:
        task_id = room.task(status, **given)
    before, edges = fabric.show(task_id), room.edges(task_id)
    room.refused("invalid", fabric.retry, task_id, reason="")
    room.refused("invalid", fabric.retry, task_id, reason="  ")

    assert fabric.retry(task_id, reason="the service is back", actor="lead").status == "ready"
    after = fabric.show(task_id)
    assert after["attempts"] == before["attempts"]
    assert {name: after[name] for name in ("constraints", "acceptance")} == {
        name: before[name] for name in ("constraints", "acceptance")
    }
    assert room.edges(task_id) == edges
    event = room.events(task_id, "task.retrying")[-1]
    assert (event.payload["reason"], event.actor) == ("the service is back", "lead")
    claimed = fabric.claim(task_id, agent="bob")
    assert claimed.attempt == len(before["attempts"]) + 1
    assert room.attempts(task_id)[:-1] == before["attempts"]


def dying(room: Room, disk: DyingDisk, task_id: str, run: str) -> bool:
    """Complete on a disk that dies; whether it did."""
    mine = room.opened(disk)
    try:
        mine.complete(
            task_id, run=run, deliverables=["outputs/a.md"], acceptance=[{"works": "met"}], summary="with tests"
        )
    except Killed:
        return True
    finally:
        mine.close()
    return False


@requirement("task.control.complete")
@pytest.mark.parametrize("review", [False, True])
def test_a_completion_is_there_as_a_whole_or_not_at_all(tmp_path: Path, clock: FakeClock, *, review: bool) -> None:
    room = Room(tmp_path / "origin", clock)
    task_id = room.task("in-progress", review=review, acceptance=["works"])
    run = room.attempts(task_id)[0]["runId"]
    room.fabric.close()
    ended = "review" if review else "done"

    seen = set()
    for step in range(1000):
        copy = tmp_path / f"copy-{step}"
        shutil.copytree(room.root, copy)
        there = Room(copy, clock)
        there.fabric.close()
        died = dying(there, DyingDisk(step), task_id, run)
        there.fabric = there.opened()
        shown = there.fabric.show(task_id)
        whole = (
            shown["status"] == ended,
            "lease" not in shown,
            shown["attempts"][0]["status"] == "completed",
            list(shown.get("result", {}).get("deliverables", ())) == ["outputs/a.md"],
            list(shown.get("result", {}).get("acceptance", ())) == [{"works": "met"}],
            "with tests" in shown["body"],
            (there.root / "runs" / task_id / "run_result.json").exists(),
            bool(there.events(task_id, "task.completed")),
        )
        assert len(set(whole)) == 1, f"half of it after step {step}: {whole}"
        seen.add(whole[0])
        there.fabric.close()
        if not died:
            break
    assert not died
    assert seen == {True, False}


@requirement("task.control.fail")
def test_a_failure_keeps_error_and_output_and_the_policy_decides(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id, hopeless = room.task(max_attempts=2), room.task(max_attempts=2)
    for attempt, status in ((1, "ready"), (2, "deadletter")):
        clock.sleep(1000)
        run = fabric.claim(task_id, agent="ada").run_id
        outputs = room.file(task_id).with_suffix("") / "outputs"
        outputs.mkdir(parents=True, exist_ok=True)
        (outputs / f"{attempt}.txt").write_text(f"from attempt {attempt}")
        assert fabric.fail(task_id, run=run, code="no_disk", message=f"number {attempt}").status == status
        shown = fabric.show(task_id)
        assert shown["lastError"].items() >= {"code": "no_disk", "message": f"number {attempt}", "runId": run}.items()
        assert shown["attempts"][-1]["error"]["code"] == "no_disk"
        kept = room.file(task_id).with_suffix("") / "outputs"
        assert [path.name for path in sorted(kept.iterdir())] == [f"{one}.txt" for one in range(1, attempt + 1)]
    assert room.normalized(task_id) == "failed"

    run = fabric.claim(hopeless, agent="ada").run_id
    assert fabric.fail(hopeless, run=run, code="impossible", retryable=False).status == "deadletter"
    assert fabric.get(hopeless).retry.not_before is None
    assert fabric.show(hopeless)["lastError"]["code"] == "impossible"


@requirement("task.control.get")
def test_one_task_can_be_read_whole_also_when_it_is_archived(room: Room, fabric: Fabric) -> None:
    source = room.task()
    for task_id, status in ((room.task("in-progress"), "in-progress"), (room.task("done"), "done")):
        fabric.link(task_id, "source_task", source)
        if status == "done":
            fabric.archive(task_id)
        shown = fabric.show(task_id)
        assert (shown["id"], shown["status"]) == (task_id, status)
        assert shown["filePath"] == str(room.file(task_id).relative_to(room.root))
        assert [run["agentId"] for run in shown["attempts"]] == ["ada"]
        assert shown["relationships"] == [{"kind": "source_task", "targetId": source}]
        assert shown.items() >= {"title": f"One that is {status}", "body": shown["body"]}.items()
    room.refused("task_not_found", fabric.show, "TASK-1999-01-01-001")


@requirement("task.control.resume")
def test_a_resumed_task_goes_on_from_its_checkpoints(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    first = fabric.claim(task_id, agent="ada")
    fabric.progress(task_id, percent=40, facts={"partial": "rows 1-400"}, run=first.run_id)
    reached = room.events(task_id, "task.progress")[0].seq
    fabric.pause(task_id, reason="at night")
    assert fabric.resume(task_id).status == "ready"
    second = fabric.claim(task_id, agent="bob")
    earlier = earlier_runs(fabric.store, task_id, second.attempt)
    said = brief(fabric.get(task_id), second.run_id, earlier)
    assert "run 1 by ada cancelled: paused, at night" in said
    assert f"- run 1 by ada: see `aof show {task_id} --at {reached}`" in said
    assert fabric.show(task_id, at=reached)["progress"]["partial"] == "rows 1-400"
    assert [one["runId"] for one in room.attempts(task_id)] == [first.run_id, second.run_id]
    for other in (task_id, room.task(), room.task("blocked"), room.task("done")):
        status = fabric.get(other).status
        assert room.idle(fabric.resume, other).status == status
