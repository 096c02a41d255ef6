"""`completion.report` and the end of a session."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from typing import Any

import pytest

from aof.service.bootstrap import open_fabric
from aof.testing import FakeClock
from tests.support.messages import Post, having, report, update, without
from tests.support.processes import Worker
from tests.support.requirements import requirement
from tests.support.room import Room

OUTCOMES = ("done", "blocked", "needs_review", "partial")


def result(post: Post, task_id: str) -> dict[str, Any]:
    return post.room.run_file(task_id, "run_result")


def has_no_result(post: Post, task_id: str) -> bool:
    return not (post.room.root / "runs" / task_id / "run_result.json").exists()


@requirement("aof1.completion.outcome-enum", "aof1.completion.writes-run-result", "aof1.completion.logs-task-completed")
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_is_taken_written_and_logged(post: Post, outcome: str) -> None:
    task_id = post.running()
    for odd in (
        without(report(task_id), "payload.outcome"),
        report(task_id, outcome="failed"),
        report(task_id, outcome="Done"),
    ):
        post.refuses("invalid_envelope", odd)
    assert has_no_result(post, task_id)
    assert not post.room.events(task_id, "task.completed")

    post.takes(report(task_id, outcome=outcome, blockers=["b"]))
    assert result(post, task_id)["outcome"] == outcome
    (event,) = post.room.events(task_id, "task.completed")
    assert (event.actor, event.task_id, event.payload["outcome"]) == ("ada", task_id, outcome)

    path = post.room.root / "runs" / task_id / "run_result.json"
    written = path.read_bytes()
    path.unlink()
    assert not post.fabric.doctor().ok
    assert post.fabric.doctor(fix=True).ok
    assert path.read_bytes() == written


@requirement("aof1.completion.summary-ref", "aof1.completion.notes")
def test_summary_and_notes_are_kept_as_they_are(post: Post) -> None:
    task_id = post.running()
    post.refuses("invalid_envelope", without(report(task_id), "payload.summaryRef"))
    post.refuses("invalid_envelope", report(task_id, summaryRef=7))
    post.takes(report(task_id))
    assert result(post, task_id)["summaryRef"] == "outputs/summary.md"
    assert "notes" not in result(post, task_id)
    post.takes(report(task_id, notes="All is well.\nReally."))
    assert result(post, task_id)["notes"] == "All is well.\nReally."


@requirement("aof1.completion.deliverables", "aof1.completion.blockers")
@pytest.mark.parametrize("name", ["deliverables", "blockers"])
def test_lists_are_empty_when_they_are_left_out_and_keep_their_order(post: Post, name: str) -> None:
    task_id = post.running()
    for odd in ("src/foo.ts", [1]):
        post.refuses("invalid_envelope", having(report(task_id), f"payload.{name}", odd))
    post.takes(report(task_id))
    assert result(post, task_id)[name] == []
    post.takes(having(report(task_id), f"payload.{name}", ["src/foo.ts", "a.ts"]))
    assert result(post, task_id)[name] == ["src/foo.ts", "a.ts"]


@requirement("aof1.completion.tests", "aof1.completion.tests-sum")
def test_counts_of_tests_are_optional_and_must_fit(post: Post) -> None:
    task_id = post.running()
    for odd in (
        {"total": 10, "failed": 2},
        {"total": 10, "passed": "eight", "failed": 2},
        {"total": 10, "passed": 8, "failed": 3},
    ):
        post.refuses("invalid_envelope", report(task_id, tests=odd))
    post.takes(report(task_id))
    for counts in ({"total": 10, "passed": 8, "failed": 2}, {"total": 10, "passed": 8, "failed": 1}):
        post.takes(report(task_id, tests=counts))
        assert result(post, task_id)["tests"] == counts


@requirement("aof1.completion.blockers-for-blocked")
def test_who_is_blocked_says_by_what(post: Post) -> None:
    task_id = post.running()
    post.refuses("invalid_envelope", report(task_id, outcome="blocked"))
    post.refuses("invalid_envelope", report(task_id, outcome="blocked", blockers=[]))
    assert has_no_result(post, task_id)
    post.takes(report(task_id, outcome="blocked", blockers=["no key"]))


@requirement("aof1.completion.run-result-fields", "aof1.artifacts.paths")
def test_the_result_has_every_field_of_the_report(post: Post, clock: FakeClock) -> None:
    task_id = post.running("swe-backend")
    run = post.fabric.get(task_id).lease
    assert run is not None
    post.fabric.heartbeat(task_id, run=run.run_id)
    clock.set("2026-03-02T10:10:00.000Z")
    given: dict[str, Any] = {
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
        "deliverables": ["src/foo.ts", "src/bar.ts"],
        "tests": {"total": 120, "passed": 120, "failed": 0},
        "blockers": [],
        "notes": "All acceptance criteria met. Tests passing.",
    }
    post.takes(report(task_id, "swe-backend", **given))
    assert result(post, task_id) == given | {
        "taskId": task_id,
        "agentId": "swe-backend",
        "completedAt": "2026-03-02T10:10:00.000Z",
        "handoffRef": "outputs/handoff.md",
        "runId": run.run_id,
    }
    names = sorted(path.name for path in (post.room.root / "runs" / task_id).iterdir())
    assert names == ["run.json", "run_heartbeat.json", "run_result.json"]
    assert post.room.run_file(task_id)["status"] == "running"


@requirement("aof1.completion.survives-crash", "aof1.session-end.agent-died-after-report")
def test_a_report_that_was_answered_survives_the_death_of_its_sender(room: Room, post: Post) -> None:
    task_id = post.running()

    def work(pipe: Connection) -> None:
        with open_fabric(room.root, clock=room.clock) as mine:
            (sent,) = mine.send(report(task_id, outcome="partial"))
            pipe.send(sent.outcome)
            pipe.recv()
        os._exit(0)

    agent = Worker(work)
    assert agent.hear() == "accepted"
    agent.kill()
    room.reopen()
    assert result(post, task_id)["outcome"] == "partial"
    (applied,) = room.fabric.session_end(agent="ada")
    assert (applied.from_status, applied.to_status, applied.outcome) == ("in-progress", "review", "partial")
    assert post.status(task_id) == "review"


@requirement("aof1.completion.no-transition-yet")
def test_a_report_moves_nothing_until_the_session_ends(post: Post) -> None:
    task_id = post.running()
    before = post.room.moves(task_id)
    post.takes(report(task_id))
    assert post.status(task_id) == "in-progress"
    assert post.room.moves(task_id) == before
    post.fabric.session_end()
    assert post.status(task_id) == "review"


@requirement("aof1.completion.done-review-required")
@pytest.mark.parametrize("metadata", [{}, {"other": 1}, *({"reviewRequired": odd} for odd in (True, "false", 0, None))])
def test_what_is_done_is_reviewed_unless_the_task_says_exactly_that_it_need_not(
    post: Post, metadata: dict[str, Any]
) -> None:
    task_id = post.running(metadata=metadata)
    post.takes(report(task_id))
    post.fabric.session_end()
    assert post.status(task_id) == "review"
    assert post.room.moves(task_id)[1:] == [("in-progress", "review")]


@requirement("aof1.completion.done-no-review")
def test_without_review_done_takes_two_steps(post: Post) -> None:
    task_id = post.running(review=False)
    post.takes(report(task_id))
    (applied,) = post.fabric.session_end()
    assert (applied.from_status, applied.to_status) == ("in-progress", "done")
    assert post.status(task_id) == "done"
    assert post.room.moves(task_id)[1:] == [("in-progress", "review"), ("review", "done")]


@requirement("aof1.completion.blocked-transition", "aof1.session-end.actor-and-details")
def test_the_blockers_of_a_report_stay_visible_and_the_move_is_its_agents(room: Room, post: Post) -> None:
    task_id = post.running("swe-backend")
    post.takes(report(task_id, "swe-backend", outcome="blocked", blockers=["no key", "no host"], notes="asked ops"))
    with room.opened(actor="pat") as person:
        person.session_end()
    assert post.status(task_id) == "blocked"
    assert room.moves(task_id)[1:] == [("in-progress", "blocked")]
    assert room.front(task_id)["blocked"]["reason"] == "no key; no host"
    event = room.events(task_id, "task.transitioned")[-1]
    assert (event.actor, event.payload["blockers"]) == ("swe-backend", ["no key", "no host"])
    assert (event.payload["notes"], event.payload["calledBy"]) == ("asked ops", "pat")


@requirement("aof1.completion.review-outcomes")
@pytest.mark.parametrize("outcome", ["needs_review", "partial"])
@pytest.mark.parametrize("review", [True, False])
def test_what_is_not_done_is_reviewed_in_any_case(post: Post, outcome: str, *, review: bool) -> None:
    task_id = post.running(review=review)
    post.takes(report(task_id, outcome=outcome))
    post.fabric.session_end()
    assert post.status(task_id) == "review"
    assert post.room.moves(task_id)[1:] == [("in-progress", "review")]


@requirement("aof1.completion.missing-files-warn")
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("how", ["session end", "recovery"])
def test_files_that_a_result_points_to_and_that_are_not_there_are_warned_of(
    post: Post, clock: FakeClock, how: str, *, there: bool
) -> None:
    task_id = post.running()
    if there:
        outputs = post.room.root / "tasks/in-progress" / task_id / "outputs"
        outputs.mkdir(parents=True)
        for name in ("summary.md", "handoff.md"):
            (outputs / name).write_text("x")
    post.takes(report(task_id))
    if how == "recovery":
        clock.sleep(301)
        post.fabric.recover()
    else:
        post.fabric.session_end()
    assert post.status(task_id) == "review"
    warned = [event.payload["path"] for event in post.room.events(task_id, "task.warning")]
    assert warned == ([] if there else ["outputs/summary.md", "outputs/handoff.md"])


@requirement("aof1.completion.legacy-tools")
@pytest.mark.parametrize("first", ["tool", "report"])
def test_both_ways_to_complete_lead_to_one_end(post: Post, first: str) -> None:
    task_id = post.running()
    for step in ("tool", "report") if first == "tool" else ("report", "tool"):
        if step == "tool":
            post.fabric.complete(task_id, agent="ada")
        else:
            assert post.send(report(task_id)).outcome in ("accepted", "noop")
    post.fabric.session_end()
    assert post.status(task_id) == "review"
    assert post.room.moves(task_id)[1:] == [("in-progress", "review")]


@requirement("aof1.artifacts.stable-over-moves")
def test_the_files_of_a_run_stay_where_they_are(post: Post) -> None:
    task_id = post.running()
    post.takes(report(task_id))
    path = post.room.root / "runs" / task_id / "run_result.json"
    written = path.read_bytes()
    post.fabric.session_end()
    assert path.read_bytes() == written
    post.fabric.approve(task_id)
    assert path.read_bytes() == written
    assert not list((post.room.root / "tasks").rglob("run*.json"))


@requirement("aof1.session-end.leaves-others-alone")
def test_the_end_of_a_session_concerns_only_runs_that_have_reported(room: Room, post: Post) -> None:
    silent = post.running()
    run = room.fabric.get(silent).lease
    assert run is not None
    others = [room.task("ready"), room.task("review")]
    for task_id in others:
        folder = room.root / "runs" / task_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run_result.json").write_text(
            f'{{"taskId":"{task_id}","agentId":"ada","runId":"{task_id.replace("TASK", "RUN")}-1",'
            '"completedAt":"2026-03-02T09:00:00.000Z","outcome":"done"}'
        )
    assert room.idle(room.fabric.session_end) == ()
    assert room.idle(room.fabric.session_end, agent="ada") == ()
    assert room.idle(room.fabric.session_end, agent="nobody") == ()
    before = [room.file(task_id).read_bytes() for task_id in others]

    (failed,) = room.fabric.session_end(run=run.run_id)
    assert (failed.task_id, failed.to_status, failed.outcome) == (silent, "ready", "no_completion_report")
    assert room.attempts(silent)[0]["status"] == "failed"
    assert room.attempts(silent)[0]["error"]["code"] == "no_completion_report"
    assert [room.file(task_id).read_bytes() for task_id in others] == before


def test_the_end_of_a_session_applies_to_all_to_one_agent_or_to_one_run(room: Room, post: Post) -> None:
    by_ada, by_bob, by_cem = (post.running(agent) for agent in ("ada", "bob", "cem"))
    silent = post.running("ada")
    for task_id, agent in ((by_ada, "ada"), (by_bob, "bob"), (by_cem, "cem")):
        post.takes(report(task_id, agent, outcome="blocked", blockers=["b"]))
    run = room.fabric.get(by_bob).lease
    assert run is not None
    assert [one.task_id for one in room.fabric.session_end(run=run.run_id)] == [by_bob]
    assert [one.task_id for one in room.fabric.session_end(agent="ada")] == [by_ada]
    assert [one.task_id for one in room.fabric.session_end()] == [by_cem]
    assert post.status(silent) == "in-progress"
    assert room.fabric.session_end(run=run.run_id) == ()
    room.refused("invalid", room.fabric.session_end, run="nonsense")
    room.refused("task_not_found", room.fabric.session_end, run="RUN-2026-03-02-404-1")


def test_a_run_that_ends_while_it_is_being_cancelled_settles_that(room: Room, post: Post) -> None:
    task_id = room.task()
    run = room.fabric.claim(task_id, agent="ada", worker="process").run_id
    room.fabric.cancel(task_id, reason="no longer wanted")
    assert post.status(task_id) == "in-progress"
    (applied,) = room.fabric.session_end(run=run)
    assert (applied.to_status, applied.outcome) == ("cancelled", "cancelled")


@requirement("aof1.idempotency.completion-resent", "aof1.idempotency.session-end-repeated")
def test_the_same_report_again_causes_nothing_more(post: Post) -> None:
    task_id = post.running()
    post.takes(report(task_id))
    post.idles(report(task_id))
    post.fabric.session_end()
    post.idles(report(task_id))
    before = post.files()
    assert post.fabric.session_end() == ()
    assert post.fabric.recover() == ()
    assert post.files() == before
    assert post.room.moves(task_id)[1:] == [("in-progress", "review")]
    assert len(post.room.events(task_id, "task.completed")) == 1


def test_a_second_report_of_the_same_run_replaces_the_first(post: Post) -> None:
    task_id = post.running()
    post.takes(report(task_id, outcome="partial"))
    post.takes(report(task_id, outcome="done"))
    assert result(post, task_id)["outcome"] == "done"
    (applied,) = post.fabric.session_end()
    assert applied.outcome == "done"


@requirement("aof1.conflict.report-while-done")
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_report_on_what_is_done_changes_nothing(post: Post, outcome: str) -> None:
    task_id = post.room.task("done")
    before = result(post, task_id)
    post.idles(report(task_id, outcome=outcome, blockers=["b"]))
    assert post.fabric.session_end() == ()
    assert (post.status(task_id), result(post, task_id)) == ("done", before)


@pytest.mark.parametrize("status", ["backlog", "ready", "blocked", "cancelled", "deadletter"])
def test_a_report_on_what_nobody_runs_comes_too_late(post: Post, status: str) -> None:
    task_id = post.room.task(status)
    if status == "deadletter":  # ada has run it
        assert post.comes_late(report(task_id)).reason == "stale_lease"
    else:
        assert post.refuses("stale_lease", report(task_id)).detail


@requirement("aof1.conflict.replaced-worker")
def test_a_worker_that_was_replaced_cannot_write_any_more(post: Post, clock: FakeClock) -> None:
    task_id = post.room.task(max_attempts=9)
    first = post.fabric.claim(task_id, agent="ada").run_id
    clock.sleep(301)
    post.fabric.recover()
    clock.sleep(61)
    post.fabric.claim(task_id, agent="bob")
    post.comes_late(report(task_id, "ada"), run=first)
    post.comes_late_again(report(task_id, "ada") | {"runId": first})
    post.comes_late(report(task_id, "ada"))
    assert [(one.agent, one.run_id) for one in post.fabric.get(task_id).late_results] == [("ada", first), ("ada", None)]
    assert has_no_result(post, task_id)

    clock.sleep(301)
    post.fabric.recover()
    clock.sleep(1000)
    third = post.fabric.claim(task_id, agent="ada").run_id
    for late in (report(task_id, "ada"), update(task_id, "ada", notes="n")):
        post.refuses("stale_lease", late, run=first)
        post.refuses("run_required", late)
        post.refuses("stale_lease", late | {"runId": third}, run=first)
    assert has_no_result(post, task_id)
    post.takes(report(task_id, "ada"), run=third)


def test_a_fabric_that_knows_its_run_speaks_for_it(room: Room, post: Post) -> None:
    task_id = room.task()
    first = room.fabric.claim(task_id, agent="ada").run_id
    room.fabric.release(task_id, run=first)
    second = room.fabric.claim(task_id, agent="ada").run_id
    with open_fabric(room.root, clock=room.clock, actor="runner", run=second) as hosted:
        (sent,) = hosted.send(having(report(task_id), "sentAt", "2026-03-02T09:00:00Z"))
    assert sent.outcome == "accepted"
    with open_fabric(room.root, clock=room.clock, actor="runner", run=first) as hosted:
        (sent,) = hosted.send(report(task_id))
    assert (sent.outcome, sent.reason) == ("rejected", "stale_lease")
