"""Tasks that are held, paused, cancelled; and the one status that each is said to have."""

from __future__ import annotations

import shutil
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.kernel import commands
from aof.kernel.model import BLOCKED_KINDS, CAUSES, STATUSES, iso
from aof.runs.brief import brief
from aof.runs.model import Heartbeat
from aof.scheduler.host import earlier_runs
from aof.tasks.graph import Normalized, normalized_status
from aof.tasks.model import Blocked, Cancel, Failure, Lease, Retry
from aof.testing import FakeClock
from tests.support.disks import DyingDisk, Killed
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.world import MINUTE, MONDAY, World

# --- the commands that steer a task: edit, progress, pause, retry, complete, fail, get


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


# --- cancelling: intent first, down the whole tree, settled from the leaves up, and it sticks


def test_a_cancelled_pulling_agent_can_no_longer_write() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.CancelTask, task)
    assert world.runs[task][run].status == "cancelled"
    for kind, more in (
        (commands.RecordHeartbeat, {}),
        (commands.ReportProgress, {"text": "x"}),
        (commands.Release, {}),
        (commands.Complete, {}),
        (commands.Fail, {}),
    ):
        assert world.refuse(kind, task, "ada", run=run, **more).code == "stale_lease"


def test_a_hosted_run_is_cancelling_until_its_host_has_stopped_it() -> None:
    world = World()
    task = world.create()
    run = world.claim(task, worker="process")
    world.act(commands.CancelTask, task, reason="not wanted")
    assert world.normalized(task) == "cancelling"
    assert world.act(commands.CancelTask, task).drafts == ()
    refusal = world.refuse(commands.RecordHeartbeat, task, "ada", run=run)
    assert refusal.code == "stale_lease"
    assert refusal.message.endswith("it is being cancelled")
    world.act(commands.Settle, task, "host")
    assert (world.status(task), world.runs[task][run].status) == ("cancelled", "cancelled")
    assert world.act(commands.Settle, task, "host").drafts == ()


def test_settling_a_task_that_is_not_being_cancelled_changes_nothing() -> None:
    world = World()
    assert world.act(commands.Settle, world.into("in-progress")).drafts == ()


def test_a_cancellation_spreads_over_three_generations_children_first() -> None:
    world = World()
    root = world.create()
    child = world.create(parent_id=root)
    grandchild = world.create(parent_id=child)
    outside = world.create(depends_on=[grandchild])
    world.act(commands.CancelTask, root, reason="stop")
    moved = [event.task_id for event in world.events if event.payload.get("to") == "cancelled"]
    assert moved == [grandchild, child, root]
    assert world.status(outside) == "blocked"
    spread = world.log(grandchild, "task.cancel_requested")[0].payload
    assert (spread["spreadFrom"], spread["reason"]) == (root, "stop")
    first = min(event.seq for event in world.events if event.type == "task.transitioned")
    assert all(event.seq < first for event in world.events if event.type == "task.cancel_requested")


def test_a_cancellation_reaches_unfinished_tasks_below_a_finished_one() -> None:
    world = World()
    root = world.create()
    child = world.create(parent_id=root)
    grandchild = world.create(parent_id=child)
    world.claim(grandchild, worker="process")
    world.act(commands.Complete, child, "ada", allow_open_children=True)
    world.act(commands.Approve, child, allow_open_children=True)
    world.act(commands.CancelTask, root)
    assert (world.status(root), world.normalized(grandchild)) == ("ready", "cancelling")
    world.act(commands.Settle, grandchild, "host")
    assert [world.status(task) for task in (root, child, grandchild)] == ["cancelled", "done", "cancelled"]


@pytest.mark.parametrize("status", ["backlog", "ready", "review", "blocked", "in-progress"])
def test_a_parent_is_cancelled_only_after_its_hosted_child_has_stopped(status: str) -> None:
    world = World()
    parent = world.into(status)
    child, idle = world.create(parent_id=parent), world.create(parent_id=parent)
    world.claim(child, "bob", worker="process")
    world.act(commands.CancelTask, parent)
    assert [world.status(task) for task in (parent, child, idle)] == [status, "in-progress", "cancelled"]
    world.act(commands.Settle, child, "host")
    assert [world.status(task) for task in (parent, child)] == ["cancelled", "cancelled"]
    assert all(run.ended_at for run in world.runs[parent].values())


def test_a_hosted_parent_that_stops_before_its_hosted_child_is_cancelled_with_it() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    run = world.claim(parent, worker="process")
    world.claim(child, "bob", worker="process")
    world.act(commands.CancelTask, parent)
    world.act(commands.Settle, parent, "host")
    assert (world.normalized(parent), world.runs[parent][run].status) == ("cancelling", "cancelled")
    world.later(60 * MINUTE)
    assert world.normalized(parent) == "cancelling"
    assert world.act(commands.Expire, parent, "aof").drafts == ()
    world.act(commands.Settle, child, "host")
    assert [world.status(task) for task in (parent, child)] == ["cancelled", "cancelled"]
    assert len(world.log(parent, "task.attempt.failed")) == 1


def test_a_host_that_vanished_while_it_cancelled_is_recovered_to_cancelled() -> None:
    world = World()
    parent = world.create()
    child = world.create(parent_id=parent)
    run = world.claim(child, worker="process")
    world.act(commands.CancelTask, parent)
    world.expire(child)
    assert [world.status(task) for task in (parent, child)] == ["cancelled", "cancelled"]
    assert world.runs[child][run].status == "expired"
    assert len(world.log(child, "task.lost")) == 1


def test_a_result_does_not_undo_a_cancellation() -> None:
    world = World()
    task = world.create(metadata={"reviewRequired": False})
    world.claim(task, worker="process")
    world.report(task, "done")
    world.act(commands.CancelTask, task)
    world.expire(task)
    assert world.status(task) == "cancelled"


@pytest.mark.parametrize(
    ("status", "kind", "given"),
    [
        ("review", commands.Approve, {}),
        ("review", commands.Reject, {"blockers": ("no",)}),
        ("review", commands.Complete, {}),
        ("ready", commands.Claim, {}),
        ("ready", commands.Complete, {}),
        ("ready", commands.Block, {"reason": "wait"}),
        ("ready", commands.Pause, {}),
        ("ready", commands.RetryTask, {"reason": "again"}),
        ("ready", commands.Update, {"status": "backlog"}),
        ("ready", commands.ImportEdit, {"status": "backlog"}),
        ("backlog", commands.Update, {"status": "ready"}),
        ("blocked", commands.Unblock, {}),
        ("blocked", commands.Resume, {}),
    ],
)
def test_a_task_that_waits_to_be_cancelled_goes_nowhere_else(
    status: str, kind: type[commands.OnTask], given: dict[str, Any]
) -> None:
    world = World()
    parent = world.into(status)
    child = world.create(parent_id=parent)
    world.claim(child, "bob", worker="process")
    world.act(commands.CancelTask, parent)
    agent = "pm" if kind is commands.Complete else "ada"  # from who ran it, it is a repeated report
    assert world.refuse(kind, parent, agent, **given).code == "cancel_requested"


def test_a_child_is_not_retried_before_the_task_above_that_was_cancelled() -> None:
    world = World()
    root = world.create()
    middle = world.create(parent_id=root)
    leaf = world.create(parent_id=middle)
    world.act(commands.CancelTask, root)
    for task in (leaf, middle):
        refusal = world.refuse(commands.RetryTask, task, reason="again")
        assert refusal.code == "cancel_requested"
        assert world.refuse(commands.ImportEdit, task, status="ready").code == "cancel_requested"
    for task in (root, middle, leaf):
        world.act(commands.RetryTask, task, reason="again")
        assert (world.status(task), world.tasks[task].cancel) == ("ready", None)


def test_a_very_deep_tree_is_cancelled_too() -> None:
    world = World()
    tasks = [world.create()]
    for _ in range(60):
        tasks.append(world.create(parent_id=tasks[-1]))
    world.act(commands.CancelTask, tasks[0])
    assert {world.status(task) for task in tasks} == {"cancelled"}


# --- block, unblock, pause and resume


@pytest.mark.parametrize("kind", BLOCKED_KINDS)
def test_a_blocked_task_says_of_what_kind_why_and_by_whom(kind: str) -> None:
    world = World()
    task = world.create()
    world.act(commands.Block, task, reason="waiting for the key", kind=kind)
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert (blocked.kind, blocked.reason, blocked.by, blocked.since) == (
        kind,
        "waiting for the key",
        "pm",
        "2026-03-02T09:00:00.000Z",
    )
    assert world.normalized(task) == kind


@pytest.mark.parametrize("status", ["done", "cancelled", "deadletter"])
@pytest.mark.parametrize(("kind", "given"), [(commands.Block, {"reason": "wait"}), (commands.Pause, {})])
def test_what_is_finished_cannot_be_held(status: str, kind: type[commands.OnTask], given: dict[str, Any]) -> None:
    world = World()
    assert world.refuse(kind, world.into(status), **given).code == "invalid_transition"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"reason": " "}, "invalid"),
        ({"reason": "x" * 513}, "payload_too_large"),
        ({"reason": "x", "kind": "asleep"}, "invalid"),
    ],
)
def test_a_bad_reason_or_kind_is_refused_with_a_full_call(given: dict[str, Any], code: str) -> None:
    world = World()
    refusal = world.refuse(commands.Block, world.create(), **given)
    assert refusal.code == code
    assert refusal.call is not None
    assert refusal.call.arguments["reason"]


@pytest.mark.parametrize(
    ("kind", "given", "status"), [(commands.Block, {"reason": "wait"}, "blocked"), (commands.Pause, {}, "paused")]
)
def test_holding_a_running_task_ends_its_run_and_fences_it_off(
    kind: type[commands.OnTask], given: dict[str, Any], status: str
) -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(kind, task, **given)
    assert world.normalized(task) == status
    assert world.runs[task][run].status == "cancelled"
    assert world.tasks[task].retry.failures == 0
    assert world.refuse(commands.RecordHeartbeat, task, "ada", run=run).code == "stale_lease"


def test_an_unblocked_draft_is_a_draft_again() -> None:
    world = World()
    task = world.create(metadata={"draft": True})
    world.act(commands.Block, task, reason="wait")
    world.act(commands.Unblock, task)
    assert world.normalized(task) == "draft"


@pytest.mark.parametrize(
    ("before", "after"), [("ready", "ready"), ("backlog", "backlog"), ("in-progress", "ready"), ("review", "ready")]
)
def test_resume_leads_back_to_where_the_task_was(before: str, after: str) -> None:
    world = World()
    task = world.into(before)
    attempts = world.tasks[task].retry.attempts
    world.act(commands.Pause, task)
    assert world.act(commands.Pause, task).drafts == ()
    world.act(commands.Resume, task)
    assert (world.status(task), world.tasks[task].retry.attempts) == (after, attempts)


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "review", "blocked", "done"])
def test_resume_changes_nothing_on_a_task_that_is_not_paused(status: str) -> None:
    world = World()
    assert world.act(commands.Resume, world.into(status)).drafts == ()


def test_a_pause_does_not_shorten_the_wait_of_a_retry() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.Fail, task, "ada")
    world.act(commands.Pause, task)
    world.act(commands.Resume, task)
    assert world.normalized(task) == "retrying"


# --- the normalized status: one of twenty for every combination; `tests.portable.test_tasks` reaches each of them


TWENTY = frozenset(typing.get_args(Normalized))
MOMENTS = st.integers(MONDAY - 5, MONDAY + 5).map(iso)
BLANK = World()
TASK = BLANK.tasks[BLANK.create()]
FIELDS = st.fixed_dictionaries(
    {
        "status": st.sampled_from(STATUSES),
        "lease": st.none()
        | st.builds(
            Lease, agent=st.just("a"), run_id=st.just("R1"), epoch=st.just(1), acquired_at=MOMENTS, expires_at=MOMENTS
        ),
        "blocked": st.none()
        | st.builds(Blocked, kind=st.sampled_from(BLOCKED_KINDS), reason=st.just("r"), by=st.just("b"), since=MOMENTS),
        "cancel": st.none() | st.builds(Cancel, by=st.just("b"), at=MOMENTS, stopped=st.booleans()),
        "retry": st.builds(Retry, not_before=st.none() | MOMENTS),
        "last_error": st.none()
        | st.builds(Failure, code=st.just("c"), message=st.just("m"), at=MOMENTS, cause=st.sampled_from(CAUSES)),
        "progress": st.sampled_from([{}, {"percent": 1}]),
        "metadata": st.sampled_from([{}, {"draft": True}, {"draft": False}, {"draft": "yes"}]),
        "archived": st.booleans(),
    }
)
HEARTBEATS = st.none() | st.builds(
    Heartbeat,
    task_id=st.just("t"),
    agent_id=st.just("a"),
    run_id=st.sampled_from(["R1", "R0"]),
    last_heartbeat=MOMENTS,
    beat_count=st.integers(0, 2),
    expires_at=MOMENTS,
)


@requirement("task.status.mapping-total")
@given(fields=FIELDS, heartbeat=HEARTBEATS, stale=st.booleans())
def test_every_combination_has_exactly_one_status(
    fields: dict[str, Any], heartbeat: Heartbeat | None, *, stale: bool
) -> None:
    task = msgspec.structs.replace(TASK, **fields)
    found = normalized_status(task, heartbeat, MONDAY, stale=stale)
    assert found in TWENTY
    assert found == normalized_status(task, heartbeat, MONDAY, stale=stale)


def test_the_heartbeat_of_an_earlier_run_says_nothing_of_this_one() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.RecordHeartbeat, task, "ada")
    old = world.heartbeats[task]
    world.act(commands.Release, task, "ada")
    world.claim(task, "bob")
    assert normalized_status(world.tasks[task], old, world.now) == "preparing"


def test_a_dead_task_that_has_lost_its_error_is_failed() -> None:
    task = msgspec.structs.replace(TASK, status="deadletter")
    assert normalized_status(task, None, MONDAY) == "failed"
