"""What the log says of messages."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from aof.testing import FakeClock
from tests.messages.test_examples import examples
from tests.support.command_line import Aof
from tests.support.messages import Post, accepted, having, prefixed, rejected, report, request, update, without
from tests.support.requirements import requirement
from tests.support.room import MONDAY, Room

NAMES = {
    "protocol.message.received",
    "protocol.message.rejected",
    "protocol.message.unknown",
    "task.completed",
    "task.transitioned",
    "delegation.requested",
    "delegation.accepted",
    "delegation.rejected",
}


def play(post: Post, clock: FakeClock) -> None:
    """Everything that can happen to a message."""
    task_id, child = post.pair()
    further = post.room.task()
    for fields in (
        update(task_id, progress="p"),
        request(child, task_id),
        request(child, task_id),
        accepted(child),
        request(further, child, "bob", "cem"),
        request(further, "TASK-2026-03-02-404"),
        report("TASK-2026-03-02-404"),
        request("TASK-2026-03-02-404", task_id),
        rejected(child),
        having(report(task_id), "type", "task.explode"),
        without(report(task_id), "sentAt"),
        having(report(task_id), "taskId", "57"),
        report(task_id, "bob"),
        having(accepted(child), "taskId", further),
        "AOF/1 {",
        prefixed([]),
        report(task_id, outcome="partial"),
    ):
        post.send(fields)
    post.fabric.session_end()
    lost = post.running("cem")
    clock.sleep(300)
    post.fabric.recover()
    post.send(update(lost, "cem", status="blocked", notes="no luck"))
    post.send(update(lost, "pm", status="ready"))


@requirement("aof1.events.names")
def test_the_events_have_exactly_these_names(post: Post, clock: FakeClock) -> None:
    examples(post, clock)
    clock.set(MONDAY)
    play(post, clock)
    kinds = set(post.types())
    assert kinds >= NAMES
    assert {kind for kind in kinds if kind.startswith(("protocol.", "delegation."))} <= NAMES


@requirement("aof1.events.received")
def test_every_valid_message_is_noted_once_each_time(post: Post) -> None:
    task_id, child = post.pair()
    for sound in (
        update(task_id, notes="n"),
        request(child, task_id),
        accepted(child),
        rejected(child),
        report(task_id),
    ):
        for _ in range(2):
            seen = post.fabric.store.head()
            assert post.send(sound).outcome in ("accepted", "noop")
            (event,) = [one for one in post.fabric.store.events(seen) if one.type == "protocol.message.received"]
            assert (event.actor, event.payload["type"]) == (sound["fromAgent"], sound["type"])
            assert event.task_id == sound["taskId"]
        post.refuses("invalid_envelope", without(sound, "sentAt"))


@requirement("aof1.events.one-per-transition")
def test_the_moves_of_each_task_form_a_chain_to_where_it_lies(post: Post, clock: FakeClock) -> None:
    play(post, clock)
    for row in post.fabric.list().tasks:
        moves = post.room.moves(row.id)
        place = "ready"
        for origin, target in moves:
            assert origin == place
            place = target
        assert post.status(row.id) == place
        assert all(post.reasons(row.id))


@requirement("aof1.events.location", "aof1.events.fields")
def test_every_event_is_a_line_of_its_day_with_time_actor_task_and_payload(
    room: Room, post: Post, clock: FakeClock, aof: Aof
) -> None:
    play(post, clock)
    lines = [json.loads(line) for line in (room.root / "events/2026-03-02.jsonl").read_text().splitlines()]
    shown = aof("log").data["events"]
    assert [line["seq"] for line in lines] == [event["seq"] for event in shown]
    for line, event in zip(lines, shown, strict=True):
        assert line["timestamp"].startswith("2026-03-02T")
        assert line["actor"]
        assert (line["type"], line.get("payload", {})) == (event["type"], event.get("payload", {}))
    refused = [line for line in lines if line["type"] in ("protocol.message.rejected", "delegation.rejected")]
    assert all(line["payload"]["reason"] for line in refused)
    assert len(refused) == 12
    assert sum(1 for line in refused if not line["taskId"]) == 3, "two are not a message, and one names no task"


@requirement("aof1.events.rejections-monitorable")
def test_refusals_can_be_counted_by_reason_and_by_agent(post: Post, aof: Aof) -> None:
    task_id = post.running("ada")
    for fields in (
        report(task_id, "bob"),
        update(task_id, "bob", notes="n"),
        without(report(task_id, "bob"), "sentAt"),
        report(task_id, "cem"),
        report("TASK-2026-03-02-404", "cem"),
    ):
        post.send(fields)
    events = aof("log", "--type", "protocol.message.rejected").data["events"]
    assert Counter(event["actor"] for event in events) == {"bob": 3, "cem": 2}
    reasons = Counter(event["payload"]["reason"] for event in events)
    assert reasons == {"not_lease_holder": 3, "invalid_envelope": 1, "task_not_found": 1}
    assert {event["taskId"] for event in events} == {task_id, "TASK-2026-03-02-404"}


def test_what_was_received_and_what_it_caused_are_one_commit(post: Post) -> None:
    task_id, child = post.pair()
    for fields in (request(child, task_id), rejected(child), report(task_id)):
        seen = post.fabric.store.head()
        post.takes(fields)
        events = list(post.fabric.store.events(seen))
        assert [event.commit for event in events] == [(place, len(events)) for place in range(1, len(events) + 1)]


@pytest.mark.parametrize("number", [0, 1, 5, 20])
def test_a_directory_is_the_same_to_every_reader_after_messages(
    room: Room, post: Post, clock: FakeClock, number: int
) -> None:
    """Remarks about tasks, also about ones that never were, disturb neither replay nor index nor doctor."""
    play(post, clock)
    assert len(room.fabric.replay(number)["tasks"]) <= 4
    room.fabric.store.index.rebuild()  # type: ignore[attr-defined]
    assert room.fabric.list().total == 4
    assert room.fabric.doctor().ok
    for row in room.fabric.list().tasks:
        assert room.fabric.show(row.id, at=room.fabric.store.head())["status"] == row.status
    room.fabric.close()
    for path in (room.root / "locks").rglob("*"):
        if path.is_file():
            path.unlink()
    room.reopen()
    assert room.fabric.doctor().ok
    assert room.fabric.create("Next").task_id not in {row.id for row in room.fabric.list(limit=4).tasks}
    assert room.fabric.list().total == 5
