"""Which messages are taken, refused or left alone, whatever their type."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from aof.api.fabric import Fabric
from aof.messages.protocol import Incoming
from tests.messages.test_fuzz import mutated
from tests.support.messages import (
    Fields,
    Post,
    accepted,
    having,
    message,
    prefixed,
    rejected,
    report,
    request,
    update,
    without,
)
from tests.support.requirements import requirement
from tests.support.room import Room

EIGHT = ("protocol", "version", "type", "taskId", "fromAgent", "toAgent", "sentAt", "payload")


def five(task_id: str, child: str) -> tuple[Fields, ...]:
    """One sound message of each type; in this order all are accepted."""
    return (update(task_id, progress="x"), request(child, task_id), accepted(child), rejected(child), report(task_id))


@requirement("aof1.envelope.common-shape", "aof1.envelope.type")
def test_one_envelope_carries_every_type_and_the_type_chooses_what_happens(post: Post) -> None:
    task_id, child = post.pair()
    effects = ("task.progress", "delegation.requested", "delegation.accepted", "delegation.rejected", "task.completed")
    for sound, effect in zip(five(task_id, child), effects, strict=True):
        assert tuple(sound) == EIGHT
        for name in EIGHT:
            post.refuses("invalid_envelope", prefixed(without(sound, name)))
        seen = post.fabric.store.head()
        post.takes(sound)
        assert post.types(seen)[0] == "protocol.message.received"
        assert effect in post.types(seen)

    task = post.fabric.get(task_id)
    assert task.lease is not None
    post.takes(update(task_id, notes="with a run") | {"runId": task.lease.run_id})
    for odd in (None, 7):
        post.refuses("invalid_envelope", having(report(task_id), "type", odd))
    for unknown in ("task.explode", "Completion.Report"):
        assert post.send(having(report(task_id), "type", unknown)).outcome == "unknown"
    post.refuses("invalid_envelope", having(report(task_id), "type", "status.update"))


@requirement("aof1.envelope.protocol-field", "aof1.envelope.version-field", "aof1.envelope.version-unsupported")
def test_protocol_and_version_have_one_value_each(post: Post) -> None:
    task_id = post.running()
    post.refuses("invalid_envelope", prefixed(without(report(task_id), "protocol")))
    for odd in ("AOF", "mcp"):
        post.refuses("invalid_envelope", prefixed(having(report(task_id), "protocol", odd)))
    post.refuses("invalid_envelope", without(report(task_id), "version"))
    for version in (None, "1"):
        post.refuses("invalid_envelope", having(report(task_id), "version", version))
    for number in (2, 0):
        sent = post.refuses("invalid_envelope", having(report(task_id), "version", number))
        assert str(number) in str(sent.detail)
        assert post.room.events(task_id)[-1].payload["version"] == number


@requirement("aof1.envelope.task-id-field")
@pytest.mark.parametrize(
    "odd",
    [
        None,
        "001",
        "2026-02-09-057",
        "task-2026-02-09-057",
        "TASK-2026-2-9-57",
        " TASK-2026-02-09-057",
        "TASK-2026-02-09-057 ",
    ],
)
def test_a_task_is_named_in_full(post: Post, odd: str | None) -> None:
    sound = report(post.running())
    sent = post.refuses("invalid_envelope", without(sound, "taskId") if odd is None else having(sound, "taskId", odd))
    assert "taskId" in str(sent.detail)


@requirement("aof1.envelope.task-id-more-digits")
def test_a_task_past_number_999_gets_messages_too(post: Post) -> None:
    day = post.room.task()[:16]
    while post.fabric.store.reserve_id(post.fabric.now()) != f"{day}999":
        pass
    task_id = post.running()
    assert task_id == f"{day}1000"
    post.takes(update(task_id, notes="n"))
    post.refuses("invalid_envelope", update(f"{day}57", notes="n"))


@requirement("aof1.envelope.from-agent-field", "aof1.envelope.to-agent-field")
def test_sender_and_receiver_are_named_and_the_sender_is_the_actor(post: Post) -> None:
    task_id = post.running()
    for name in ("fromAgent", "toAgent"):
        post.refuses("invalid_envelope", without(report(task_id), name))
        post.refuses("invalid_envelope", having(report(task_id), name, 7))
    for to_agent in ("dispatcher", "swe-qa"):
        seen = post.fabric.store.head()
        post.takes(update(task_id, notes=to_agent) | {"toAgent": to_agent})
        assert {event.actor for event in post.fabric.store.events(seen)} == {"ada"}


@requirement("aof1.envelope.sent-at-field", "aof1.envelope.payload-field")
def test_the_moment_is_a_moment_and_the_payload_an_object(post: Post) -> None:
    sound = update(post.running(), notes="n")
    wrong: dict[str, tuple[object, ...]] = {
        "sentAt": ("yesterday", "2026-13-40T00:00:00Z", 7),
        "payload": (None, [], "x"),
    }
    for name, values in wrong.items():
        post.refuses("invalid_envelope", without(sound, name))
        for odd in values:
            sent = post.refuses("invalid_envelope", having(sound, name, odd))
            assert name in str(sent.detail)
    post.takes(having(sound, "sentAt", "2026-02-09T21:00:00.000Z"))


@requirement("aof1.detect.parsed-object", "aof1.detect.json-content", "aof1.detect.prefix")
@pytest.mark.parametrize("form", [dict, json.dumps, prefixed])
def test_a_message_is_taken_in_each_of_its_forms(post: Post, form: Any) -> None:
    task_id = post.running()
    seen = post.fabric.store.head()
    post.takes(form(update(task_id, progress="half way")))
    assert post.types(seen) == ["protocol.message.received", "task.progress"]
    assert post.room.body(task_id).endswith("Progress: half way\n")
    post.takes(form(report(task_id)))
    assert post.room.run_file(task_id, "run_result")["outcome"] == "done"
    post.ignores(f"the agent says AOF/1 {json.dumps(update(task_id, notes='n'))}")


@requirement("aof1.detect.order")
@pytest.mark.parametrize("event", [Incoming, lambda payload, content: {"payload": payload, "content": content}])
def test_a_parsed_message_comes_before_text_and_is_handled_once(post: Post, event: Any) -> None:
    task_id = post.running()
    seen = post.fabric.store.head()
    post.takes(event(update(task_id, progress="parsed"), prefixed(update(task_id, progress="text"))))
    assert post.types(seen) == ["protocol.message.received", "task.progress"]
    assert "parsed" in post.room.body(task_id)
    assert "text" not in post.room.body(task_id)


@requirement("aof1.detect.plain-text-ignored", "aof1.detect.foreign-json-ignored")
@pytest.mark.parametrize(
    "given",
    [
        "hello",
        "",
        "12 tests passed in 0.3s",
        "{not json",
        'is "protocol" always "aof"?',
        '{"foo":1}',
        "[1,2]",
        "42",
        '{"jsonrpc":"2.0","method":"x"}',
        {"foo": 1},
        b"\xff",
    ],
)
def test_what_is_no_message_is_left_alone(post: Post, given: object) -> None:
    post.running()
    post.ignores(given)
    assert not [kind for kind in post.types() if kind.startswith("protocol.")]


@requirement("aof1.validate.invalid-json", "aof1.detect.plain-text-ignored")
@pytest.mark.parametrize(
    "text", ['AOF/1 {"protocol":"aof",', "AOF/1 nonsense", '{"protocol":"aof",', '{\n  "protocol": "aof",\n']
)
def test_text_that_claims_to_be_ours_and_is_no_json_is_refused(post: Post, text: str) -> None:
    task_id = post.running()
    post.refuses("invalid_json", text)
    assert post.status(task_id) == "in-progress"


@requirement("aof1.validate.invalid-envelope", "aof1.validate.payload-schema")
def test_each_field_that_is_missing_or_wrong_refuses_the_message(post: Post) -> None:
    task_id, child = post.pair()
    for sound in five(task_id, child):
        for name in EIGHT[1:]:
            post.refuses("invalid_envelope", without(sound, name))
            post.refuses("invalid_envelope", having(sound, name, {"a": 1} if name != "payload" else 7))
        payload = sound["payload"]
        for name in payload:
            if name == "progress":
                continue
            post.refuses("invalid_envelope", without(sound, f"payload.{name}"))
            sent = post.refuses("invalid_envelope", having(sound, f"payload.{name}", {"a": 1}))
            assert f"payload.{name}" in str(sent.detail)


@requirement("aof1.validate.unknown-type")
def test_a_type_that_nobody_knows_is_noted_and_does_nothing(post: Post) -> None:
    task_id = post.running()
    before, seen = post.files(), post.fabric.store.head()
    sent = post.send(having(report(task_id), "type", "task.explode"))
    assert (sent.outcome, sent.type) == ("unknown", "task.explode")
    (event,) = post.fabric.store.events(seen)
    assert (event.type, event.payload["type"]) == ("protocol.message.unknown", "task.explode")
    assert post.files() == before
    post.refuses("invalid_envelope", without(having(report(task_id), "type", "task.explode"), "sentAt"))


@requirement("aof1.validate.task-not-found")
def test_a_message_about_no_task_is_refused_and_makes_none(post: Post) -> None:
    missing = "TASK-2026-02-09-999"
    parent = post.running()
    for sound in five(missing, missing):
        beside = ("delegation.rejected",) if sound["type"].startswith("handoff") else ()
        if sound["type"] == "handoff.request":
            sound = request(missing, parent)  # noqa: PLW2901 - its parent exists
        post.refuses("task_not_found", sound, beside=beside)
    assert not list(post.room.root.rglob(f"*{missing}*"))
    assert post.fabric.list().total == 1
    assert {event.task_id for event in post.fabric.events(task_id=missing)} == {missing}
    assert post.fabric.create("Next").task_id == f"{parent[:-3]}002"


@requirement("aof1.validate.no-effect")
def test_no_refusal_of_any_kind_changes_a_file(post: Post) -> None:
    """`refuses` compares every file but the log's; here is one message for each reason."""
    task_id, child = post.pair()
    post.takes(request(child, task_id))
    stale = message(
        "status.update", task_id, "ada", {"taskId": task_id, "agentId": "ada", "notes": "n"}, runId="RUN-x-9"
    )
    for reason, fields in {
        "invalid_json": "AOF/1 {",
        "invalid_envelope": without(report(task_id), "sentAt"),
        "payload_too_large": report(task_id, notes="x" * 10_001),
        "task_not_found": report("TASK-2026-02-09-999"),
        "not_lease_holder": report(task_id, "bob"),
        "stale_lease": stale,
        "taskId_mismatch": having(accepted(child), "payload.taskId", task_id),
    }.items():
        post.refuses(reason, fields)
    post.fabric.doctor()
    assert post.fabric.doctor().ok


@requirement("aof1.validate.not-lease-holder")
def test_only_the_one_whose_task_it_is_may_speak_about_it(post: Post) -> None:
    task_id, child = post.pair("ada")
    for foreign in (report(task_id, "bob"), update(task_id, "bob", notes="n"), request(child, task_id, "bob")):
        post.refuses("not_lease_holder", foreign)
    assert not (post.room.root / "runs" / task_id / "run_result.json").exists()
    for own in (update(task_id, "ada", notes="n"), report(task_id, "ada"), request(child, task_id, "ada", "bob")):
        post.takes(own)
    post.refuses("not_lease_holder", accepted(child, "cem"))
    post.takes(accepted(child, "bob"))
    free = post.room.task()
    post.takes(update(free, "anybody", notes="nobody holds it"))


@pytest.mark.parametrize("fields", [update(notes="n"), report(), request()])
def test_nobody_speaks_in_the_name_of_another(post: Post, fields: Fields) -> None:
    task_id, child = post.pair("ada")
    subject = child if fields["type"] == "handoff.request" else task_id
    named = having(fields, "taskId", subject) | {"fromAgent": "bob"}
    if fields["type"] != "completion.report":
        named = having(named, "payload.taskId", subject)
    if fields["type"] == "handoff.request":
        named = having(named, "payload.parentTaskId", task_id)
    post.refuses("not_lease_holder", named)
    lease = post.fabric.get(task_id).lease
    assert lease is not None
    post.refuses("not_lease_holder", named | {"runId": lease.run_id})


@requirement("aof1.validate.size-texts", "aof1.validate.size-lists")
def test_sizes_are_allowed_up_to_their_limits(post: Post) -> None:
    task_id, child = post.pair()
    post.takes(update(task_id, notes="ü" * 10_000, progress="ü" * 1_000))
    post.refuses("payload_too_large", update(task_id, notes="x" * 10_001))
    post.refuses("payload_too_large", update(task_id, progress="x" * 1_001))
    limits: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        ({"deliverables": ["x" * 256] * 50}, {"deliverables": ["x"] * 51}),
        ({"deliverables": ["x" * 256]}, {"deliverables": ["x" * 257]}),
        ({"blockers": ["b"] * 20, "notes": "n" * 10_000}, {"blockers": ["b"] * 21}),
    )
    for good, bad in limits:
        post.takes(report(task_id, **good))
        post.refuses("payload_too_large", report(task_id, **bad))
    post.takes(request(child, task_id, acceptanceCriteria=["x" * 256] * 50))
    post.refuses("payload_too_large", request(child, task_id, acceptanceCriteria=["x"] * 51))
    post.refuses("payload_too_large", request(child, task_id, acceptanceCriteria=["x" * 257]))
    post.refuses("payload_too_large", rejected(child, reason="x" * 513))
    post.takes(rejected(child, reason="ü" * 512))
    assert post.reasons(child) == ["ü" * 512]


def test_an_envelope_of_more_than_ten_megabytes_is_refused(post: Post) -> None:
    task_id = post.running()
    large = report(task_id, more="x" * 10_000_000)
    for form in (large, json.dumps(large), prefixed(large)):
        assert post.refuses("payload_too_large", form).detail
    assert post.takes(report(task_id)).outcome == "accepted"


def test_messages_come_one_by_one_or_as_a_list(post: Post, fabric: Fabric) -> None:
    task_id = post.running()
    results = fabric.send(update(task_id, notes="1"), [json.dumps(update(task_id, notes="2")), "hello"], "AOF/1 {")
    assert [sent.outcome for sent in results] == ["accepted", "accepted", "ignored", "rejected"]


@given(fields=mutated())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_message_that_is_almost_right_changes_no_file_when_it_is_refused(
    room: Room, post: Post, fields: dict[str, Any]
) -> None:
    before = post.files()
    sent = post.send(fields)
    if sent.outcome in ("rejected", "unknown", "ignored", "noop"):
        assert post.files() == before
    assert room.fabric.store.head() == len(room.events())
