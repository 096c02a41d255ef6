"""`status.update`: entries in the work log, moves, and moves that become entries."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel.model import STATUSES, TRANSITIONS
from aof.testing import FakeClock
from tests.support.messages import Post, having, rejected, report, update, without
from tests.support.requirements import requirement
from tests.support.room import Room

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
