"""The Resume Protocol: what a run that gave no sign of life has reported decides where its task goes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from aof.kernel.model import iso
from aof.testing import FakeClock
from tests.support.messages import Post, report
from tests.support.processes import together
from tests.support.requirements import requirement
from tests.support.room import Room, SameMoment
from tests.support.same_place import adopt

TTL = 300


def expired(post: Post, clock: FakeClock) -> list[tuple[str, str]]:
    """Let every lease run out, and recover."""
    clock.sleep(TTL)
    return [(one.status, one.reason) for one in post.fabric.recover()]


@requirement("aof1.resume.stale-when-expired")
@pytest.mark.parametrize(("lease", "beat"), [(600, 300), (300, 600)])
def test_the_later_of_lease_and_heartbeat_is_the_moment(post: Post, clock: FakeClock, lease: int, beat: int) -> None:
    task_id = post.room.task()
    run = post.fabric.claim(task_id, agent="ada", ttl=lease).run_id
    post.fabric.heartbeat(task_id, run=run, ttl=beat)
    reviewed = post.running()
    post.fabric.complete(reviewed, agent="ada")
    clock.sleep(599.999)
    assert post.fabric.recover() == ()
    clock.sleep(0.001)
    assert [one.task_id for one in post.fabric.recover()] == [task_id]
    clock.sleep(10_000)
    assert post.fabric.recover() == ()


@requirement("aof1.resume.reclaim", "aof1.example.9-resume-without-result")
def test_without_a_result_the_task_is_ready_again_and_the_run_has_expired(post: Post, clock: FakeClock) -> None:
    task_id = post.running()
    assert expired(post, clock) == [("ready", "stale_heartbeat_reclaim")]
    assert post.status(task_id) == "ready"
    assert "lease" not in post.room.front(task_id)
    assert post.reasons(task_id)[1:] == ["stale_heartbeat_reclaim"]
    run = post.room.run_file(task_id)
    assert (run["status"], run["error"]["code"]) == ("expired", "stale_heartbeat")
    assert not (post.room.root / "runs" / task_id / "run_result.json").exists()


@requirement("aof1.resume.reclaim-retry-policy")
def test_a_reclaimed_task_waits_and_is_given_up_after_three_runs(post: Post, clock: FakeClock) -> None:
    task_id = post.running()
    expired(post, clock)
    clock.sleep(59.999)
    assert post.fabric.ready().total == 0
    clock.sleep(0.001)
    assert [row.id for row in post.fabric.ready().tasks] == [task_id]
    for wait in (0, 180):
        clock.sleep(wait)
        post.fabric.claim(task_id, agent="bob")
        expired(post, clock)
    assert post.status(task_id) == "deadletter"
    assert post.room.front(task_id)["lastError"]["code"] == "stale_heartbeat"


@requirement("aof1.resume.result-done")
@pytest.mark.parametrize("review", [True, False])
def test_what_was_reported_as_done_is_carried_out(post: Post, clock: FakeClock, *, review: bool) -> None:
    task_id = post.running(review=review)
    post.takes(report(task_id))
    expired(post, clock)
    steps = [("in-progress", "review")] if review else [("in-progress", "review"), ("review", "done")]
    assert post.room.moves(task_id)[1:] == steps
    assert post.reasons(task_id)[1:] == ["stale_heartbeat_done"] * len(steps)
    assert post.status(task_id) == steps[-1][1]


@requirement("aof1.resume.result-review-outcomes", "aof1.example.8-resume-with-result")
@pytest.mark.parametrize("outcome", ["partial", "needs_review"])
@pytest.mark.parametrize("review", [True, False])
def test_what_was_done_in_part_is_reviewed_with_its_files(
    post: Post, clock: FakeClock, outcome: str, *, review: bool
) -> None:
    task_id = post.running(review=review)
    outputs = post.room.root / "tasks/in-progress" / task_id / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "draft.md").write_text("half of it")
    post.takes(report(task_id, outcome=outcome))
    assert expired(post, clock) == [("review", f"stale_heartbeat_{outcome}")]
    assert post.reasons(task_id)[1:] == [f"stale_heartbeat_{outcome}"]
    assert (post.room.root / "tasks/review" / task_id / "outputs/draft.md").read_text() == "half of it"


@requirement("aof1.resume.result-blocked")
def test_what_was_reported_as_blocked_is_blocked_by_the_same(post: Post, clock: FakeClock) -> None:
    task_id = post.running()
    post.takes(report(task_id, outcome="blocked", blockers=["no key"]))
    assert expired(post, clock) == [("blocked", "stale_heartbeat_blocked")]
    assert post.room.front(task_id)["blocked"]["reason"] == "no key"
    assert post.room.run_file(task_id, "run_result")["blockers"] == ["no key"]


@requirement("aof1.resume.heartbeat-missing")
def test_a_task_that_a_person_put_into_progress_is_left_out(post: Post, clock: FakeClock) -> None:
    task_id = post.room.task()
    path = post.room.file(task_id)
    path.rename(post.room.root / "tasks/in-progress" / path.name)
    (post.room.root / "tasks/in-progress/TASK-2026-03-02-900.md").write_text("---\ntitle: By hand\n---\n")
    seen = post.fabric.store.head()
    assert expired(post, clock) == []
    assert post.types(seen) == []


@requirement("aof1.resume.artifacts-missing")
@pytest.mark.parametrize("gone", ["run.json", "all but the heartbeat", "everything"])
def test_missing_files_of_a_run_are_no_failure(post: Post, clock: FakeClock, gone: str) -> None:
    task_id = post.running()
    folder = post.room.root / "runs" / task_id
    if gone == "everything":
        shutil.rmtree(folder)
    else:
        (folder / "run.json").unlink()
    assert post.fabric.recover() == ()
    assert post.fabric.session_end() == ()
    assert post.fabric.show(task_id)["status"] == "in-progress"
    assert expired(post, clock) == [("ready", "stale_heartbeat_reclaim")]


@requirement("aof1.resume.invalid-run-result")
@pytest.mark.parametrize("text", ["{", '{"outcome":"maybe"}', "", "[]"])
def test_a_result_that_makes_no_sense_changes_nothing_and_is_told_once(post: Post, clock: FakeClock, text: str) -> None:
    task_id, other = post.running(), post.running()
    post.takes(report(task_id))
    path = post.room.root / "runs" / task_id / "run_result.json"
    path.write_text(text)
    moves = post.room.moves(task_id)
    clock.sleep(TTL)
    for look in (post.fabric.session_end, post.fabric.recover, post.fabric.recover):
        look()
    assert (post.status(task_id), post.room.moves(task_id)) == ("in-progress", moves)
    assert post.status(other) == "ready"
    (event,) = post.room.events(task_id, "protocol.message.rejected")
    assert event.payload["reason"] == "invalid_run_result"
    assert "run_result.json" in event.payload["detail"]

    post.fabric.doctor(fix=True)
    assert [one.task_id for one in post.fabric.recover()] == [task_id]
    assert post.status(task_id) == "review"


@requirement("aof1.resume.already-transitioned")
def test_two_who_recover_at_once_do_it_once(room: Room, post: Post, clock: FakeClock) -> None:
    tasks = [post.running() for _ in range(6)]
    for task_id in tasks[:3]:
        post.takes(report(task_id))
    clock.sleep(TTL)

    def recover(_number: int) -> int:
        with room.opened(clock=SameMoment(clock)) as mine:
            return len(mine.recover())

    assert sum(together(2, recover)) == len(tasks)
    for task_id in tasks:
        assert len(room.moves(task_id)) == 2
    ended = post.running()
    post.takes(report(ended))
    post.fabric.session_end()
    clock.sleep(TTL)
    assert post.fabric.recover() == ()
    assert len(room.moves(ended)) == 2


@requirement("aof1.resume.result-belongs-to-run")
def test_a_result_counts_for_its_own_run_only(post: Post, clock: FakeClock) -> None:
    task_id = post.running()
    post.takes(report(task_id, outcome="partial"))
    expired(post, clock)
    post.fabric.reject(task_id, blockers=["finish it"])
    post.fabric.claim(task_id, agent="bob")
    assert post.fabric.session_end() == ()
    assert expired(post, clock) == [("ready", "stale_heartbeat_reclaim")]
    kept = post.room.root / "runs" / task_id / "attempts/1/run_result.json"
    assert json.loads(kept.read_text())["outcome"] == "partial"


@requirement("aof1.resume.deterministic")
def test_the_same_directory_is_recovered_in_the_same_way(
    room: Room, post: Post, clock: FakeClock, tmp_path: Path
) -> None:
    for outcome in ("done", "blocked", "partial", "needs_review", None):
        task_id = post.running()
        if outcome is not None:
            post.takes(report(task_id, outcome=outcome, blockers=["b"]))
    clock.sleep(TTL)
    room.fabric.close()
    twins = []
    for name in ("one", "two"):
        shutil.copytree(room.root, tmp_path / name)
        adopt(tmp_path / name)
        twin = Room(tmp_path / name, clock)
        seen = twin.fabric.store.head()
        twin.fabric.recover()
        told = [(event.type, event.task_id, event.payload) for event in twin.fabric.store.events(seen)]
        twins.append((told, twin.contents()))
        twin.fabric.close()
    assert twins[0] == twins[1]
    assert len(twins[0][0]) > 10
    room.reopen()


@requirement("aof1.artifacts.inspectable")
def test_plain_files_tell_what_happened(room: Room, post: Post, clock: FakeClock) -> None:
    task_id = post.running()
    post.takes(report(task_id, outcome="partial"))
    post.refuses("not_lease_holder", report(task_id, "bob"))
    expired(post, clock)
    room.fabric.close()
    (room.root / "index.sqlite").unlink(missing_ok=True)
    assert (room.root / "tasks/review" / f"{task_id}.md").is_file()
    run = room.root / "runs" / task_id
    assert json.loads((run / "run_heartbeat.json").read_text())["lastHeartbeat"] == "2026-03-02T09:00:00.000Z"
    assert json.loads((run / "run_result.json").read_text())["outcome"] == "partial"
    lines = [json.loads(line) for line in (room.root / "events/2026-03-02.jsonl").read_text().splitlines()]
    refusals = [line["payload"]["reason"] for line in lines if line["type"] == "protocol.message.rejected"]
    assert refusals == ["not_lease_holder"]
    room.reopen()


@pytest.mark.parametrize(
    ("agent", "seconds", "status"),
    [("ada", 0, "review"), ("ada", 60, "review"), ("bob", 60, "ready"), ("ada", -1, "ready")],
)
def test_a_result_without_a_run_is_the_holders_if_it_is_not_older_than_the_claim(
    post: Post, clock: FakeClock, agent: str, seconds: int, status: str
) -> None:
    task_id = post.running()
    result = {
        "taskId": task_id,
        "agentId": agent,
        "completedAt": iso(clock.now() + seconds * 1000),
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
    }
    (post.room.root / "runs" / task_id / "run_result.json").write_text(json.dumps(result))
    expired(post, clock)
    assert post.status(task_id) == status


def test_a_result_without_a_run_and_without_a_moment_is_nobodys(post: Post, clock: FakeClock) -> None:
    task_id = post.running()
    result = {"taskId": task_id, "agentId": "ada", "completedAt": "yesterday", "outcome": "done"}
    (post.room.root / "runs" / task_id / "run_result.json").write_text(json.dumps(result))
    expired(post, clock)
    assert post.status(task_id) == "ready"
