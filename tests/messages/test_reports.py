"""What a worker reports: status updates and completions."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from typing import Any

import pytest

from aof.kernel.model import STATUSES, TRANSITIONS
from aof.service.bootstrap import open_fabric
from aof.testing import FakeClock
from tests.support.messages import Post, having, rejected, report, update, without
from tests.support.processes import Worker
from tests.support.requirements import requirement
from tests.support.room import Room

# --- `completion.report` and the end of a session


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


# --- `status.update`: entries in the work log, moves, and moves that become entries


LEGAL = [(origin, target) for origin, targets in TRANSITIONS.items() for target in targets if target != "in-progress"]
ILLEGAL = [
    (origin, target)
    for origin in STATUSES
    for target in STATUSES
    if target != origin and target not in TRANSITIONS[origin]
]


def entries(room: Room, task_id: str) -> list[str]:
    """The lines of the work log."""
    _, _, section = room.body(task_id).partition("## Work Log\n")
    return [line for line in section.splitlines() if line]


@requirement("aof1.status.ids", "aof1.status.at-least-one")
def test_an_update_names_task_and_agent_and_says_something(post: Post) -> None:
    task_id = post.running()
    sound = update(task_id, notes="n")
    for name in ("taskId", "agentId"):
        post.refuses("invalid_envelope", without(sound, f"payload.{name}"))
        post.refuses("invalid_envelope", having(sound, f"payload.{name}", 57))
    post.refuses("invalid_envelope", having(sound, "payload.taskId", "57"))
    post.refuses("invalid_envelope", update(task_id))
    assert entries(post.room, task_id) == []
    for said in ({"progress": "p"}, {"blockers": ["b"]}, {"notes": "n"}, {"status": "blocked"}):
        post.takes(update(task_id, **said))


@requirement("aof1.status.status-field", "aof1.status.text-fields")
def test_every_status_is_known_and_each_text_may_stand_alone(post: Post) -> None:
    task_id = post.running()
    for odd in ("finished", "in_progress", 7):
        post.refuses("invalid_envelope", update(task_id, status=odd))
    wrong: tuple[dict[str, Any], ...] = ({"progress": ["p"]}, {"blockers": "b"}, {"notes": 7})
    for said in wrong:
        post.refuses("invalid_envelope", update(task_id, **said))
    assert entries(post.room, task_id) == []
    right: tuple[dict[str, Any], ...] = ({"progress": "p"}, {"blockers": ["b"]}, {"notes": "n"})
    for said in right:
        post.takes(update(task_id, **said))
    for status in STATUSES:
        assert post.send(update(post.running(), status=status, notes="n")).outcome == "accepted"


@requirement("aof1.status.valid-transition")
@pytest.mark.parametrize(("origin", "target"), LEGAL)
def test_a_legal_move_is_made_in_the_senders_name(post: Post, origin: str, target: str) -> None:
    task_id = post.room.task(origin)
    before = post.room.moves(task_id)
    sender = "zed" if (origin, target) == ("review", "done") else "ada"  # who ran it does not approve it
    post.takes(update(task_id, sender, status=target, notes="because"))
    assert post.status(task_id) == target
    assert post.room.moves(task_id) == [*before, (origin, target)]
    event = post.room.events(task_id, "task.transitioned")[-1]
    assert (event.actor, event.task_id, event.payload["reason"]) == (sender, task_id, "because")


@requirement("aof1.status.in-progress-needs-claim")
def test_a_move_to_in_progress_is_a_claim(post: Post) -> None:
    first = post.room.task()
    after = post.room.task(depends_on=[first])
    sent = post.takes(update(first, "ada", status="in-progress"))
    lease = post.room.front(first)["lease"]
    assert (post.status(first), lease["agent"], lease["runId"]) == ("in-progress", "ada", sent.run_id)
    assert post.room.run_file(first)["agentId"] == "ada"

    sent = post.takes(update(after, "bob", status="in-progress", notes="may I?"))
    assert sent.reason == "not_ready"
    assert post.status(after) == "ready"
    assert "lease" not in post.room.front(after)
    assert entries(post.room, after)[-1].endswith(" Notes: may I?")
    sent = post.send(update(after, "bob", status="in-progress"))
    assert (sent.outcome, sent.reason) == ("noop", "not_ready")


@requirement("aof1.status.invalid-transition")
def test_a_move_that_is_not_possible_is_noted_instead(post: Post) -> None:
    task_id = post.running()
    before = post.room.moves(task_id)
    sent = post.takes(update(task_id, status="done", progress="x"))
    assert sent.reason == "invalid_transition"
    assert (post.status(task_id), post.room.moves(task_id)) == ("in-progress", before)
    assert entries(post.room, task_id)[-1].endswith(" Progress: x")
    for status in ("done", "cancelled"):
        finished = post.room.task(status)
        post.takes(update(finished, status="ready", notes="again"))
        assert post.status(finished) == status
        assert entries(post.room, finished)[-1].endswith(" Notes: again")
    assert not post.room.events(kind="protocol.message.rejected")


@requirement("aof1.conflict.update-to-invalid-status")
@pytest.mark.parametrize(("origin", "target"), ILLEGAL)
def test_the_table_of_moves_holds_for_messages_too(post: Post, origin: str, target: str) -> None:
    task_id = post.room.task(origin)
    before = post.room.moves(task_id)
    post.takes(update(task_id, "ada", status=target, notes="n"))
    assert (post.status(task_id), post.room.moves(task_id)) == (origin, before)
    assert [line.split(" ", 2)[2] for line in entries(post.room, task_id)] == ["Notes: n"]
    assert not post.room.events(kind="protocol.message.rejected")


@requirement("aof1.status.reason-order")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"blockers": ["the blocker"], "notes": "n", "progress": "p"}, "the blocker"),
        ({"notes": "n", "progress": "p"}, "n"),
        ({"progress": "p"}, "p"),
        ({"blockers": ["one", "two"]}, "one; two"),
    ],
)
def test_blockers_come_before_notes_and_notes_before_progress(post: Post, said: dict[str, Any], reason: str) -> None:
    task_id = post.running()
    post.takes(update(task_id, status="blocked", **said))
    assert post.reasons(task_id)[-1] == reason
    assert post.room.front(task_id)["blocked"]["reason"] == reason
    payload = post.room.events(task_id, "task.transitioned")[-1].payload
    assert {name: payload[name] for name in said} == said


def test_a_reason_that_is_too_long_is_cut_and_all_of_it_is_in_the_log(post: Post) -> None:
    task_id = post.running()
    post.takes(update(task_id, status="blocked", notes="x" * 10_000))
    assert len(post.reasons(task_id)[-1]) == 512
    assert post.room.events(task_id, "task.transitioned")[-1].payload["notes"] == "x" * 10_000


@requirement("aof1.status.work-log-append")
def test_an_entry_changes_nothing_but_the_work_log(post: Post) -> None:
    task_id = post.running(brief="What to do.\n")
    path = post.room.file(task_id)
    path.write_text(path.read_text().replace("priority:", 'myOwn: "key"\npriority:', 1))
    post.fabric.get(task_id)
    before = post.room.moves(task_id)
    post.takes(update(task_id, progress="half way"))
    assert post.room.body(task_id) == "What to do.\n\n## Work Log\n\n- 2026-03-02T09:00:00.000Z Progress: half way\n"
    assert post.room.front(task_id)["myOwn"] == "key"
    assert (post.status(task_id), post.room.moves(task_id)) == ("in-progress", before)


@requirement("aof1.status.unchanged-status")
def test_the_status_that_it_has_already_counts_as_none(post: Post) -> None:
    task_id = post.running()
    before = post.room.moves(task_id)
    post.takes(update(task_id, status="in-progress", notes="n"))
    assert entries(post.room, task_id)[-1].endswith(" Notes: n")
    assert post.room.moves(task_id) == before
    blocked = post.room.task("blocked")
    post.idles(update(blocked, status="blocked"))


@requirement("aof1.status.work-log-format")
@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            {
                "blockers": ["Awaiting API key"],
                "notes": "ETA after credentials arrive",
                "progress": "Implemented core logic",
            },
            "Progress: Implemented core logic | Notes: ETA after credentials arrive | Blockers: Awaiting API key",
        ),
        ({"notes": "n", "progress": "p"}, "Progress: p | Notes: n"),
        ({"notes": "n"}, "Notes: n"),
        ({"blockers": ["b"]}, "Blockers: b"),
    ],
)
@pytest.mark.parametrize("status", ["in-progress", "ready"])
def test_an_entry_is_one_line_in_a_fixed_order(
    post: Post, clock: FakeClock, status: str, said: dict[str, Any], line: str
) -> None:
    clock.set("2026-02-09T21:05:00.000Z")
    task_id = post.room.task(status)
    post.takes(update(task_id, **said))
    assert entries(post.room, task_id) == [f"- 2026-02-09T21:05:00.000Z {line}"]


@requirement("aof1.status.work-log-section")
def test_entries_stand_in_order_under_one_heading(post: Post, clock: FakeClock) -> None:
    task_id = post.running(brief="A person's own text.\n")
    for number in range(10):
        clock.sleep(10)
        post.takes(update(task_id, progress=f"step {number}"))
    for body in (post.room.body(task_id), post.fabric.show(task_id)["body"]):
        assert body.count("## Work Log") == 1
        assert body.startswith("A person's own text.\n")
    lines = entries(post.room, task_id)
    assert [line.split(" ", 2)[2] for line in lines] == [f"Progress: step {number}" for number in range(10)]
    times = [line.split()[1] for line in lines]
    assert times == sorted(set(times))


@requirement("aof1.status.not-a-completion")
def test_an_update_is_no_completion(post: Post) -> None:
    task_id = post.running()
    before = post.fabric.get(task_id).lease
    post.takes(update(task_id, progress="p"))
    post.takes(update(task_id, blockers=["b"]))
    assert post.fabric.get(task_id).lease == before
    post.takes(report(task_id))
    other = post.running()
    post.takes(update(other, status="review", notes="look at it"))
    assert not (post.room.root / "runs" / other / "run_result.json").exists()
    assert not post.room.events(other, "task.completed")
    assert post.reasons(other)[-1] == "look at it"


def test_an_update_is_a_sign_of_life(post: Post, clock: FakeClock) -> None:
    task_id = post.running()
    for said in ({"progress": "p"}, {"status": "in-progress"}):
        clock.sleep(200)
        post.send(update(task_id, **said))
    clock.sleep(200)
    assert post.fabric.recover() == ()


@requirement("aof1.idempotency.same-status")
def test_where_a_task_is_already_it_is_not_moved_again(post: Post, clock: FakeClock) -> None:
    blocked = post.room.task("blocked")
    post.idles(update(blocked, status="blocked"))
    reviewed = post.running()
    post.takes(report(reviewed, outcome="partial"))
    post.fabric.session_end()
    moves = post.room.moves(reviewed)
    post.idles(report(reviewed, outcome="partial"))
    assert post.fabric.session_end() == ()
    clock.sleep(1000)
    assert post.fabric.recover() == ()
    assert post.room.moves(reviewed) == moves
    moves = post.room.moves(blocked)
    assert post.send(rejected(blocked)).outcome == "accepted"
    assert post.room.moves(blocked) == moves
