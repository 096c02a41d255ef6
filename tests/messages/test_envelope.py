"""A message on the wire: its envelope, how it is found in text, and what is refused."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.messages.protocol import LARGEST, PAYLOADS, Incoming, Unknown, Valid, detect, incoming, messages_in, validate
from tests.support.messages import (
    CHILD,
    TASK,
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

# --- which messages are valid, and how a refusal names the field


SOUND: dict[str, Fields] = {
    "completion.report": report(),
    "status.update": update(progress="x"),
    "handoff.request": request(),
    "handoff.accepted": accepted(),
    "handoff.rejected": rejected(),
}
REQUIRED = {
    "completion.report": ("outcome", "summaryRef"),
    "status.update": ("taskId", "agentId"),
    "handoff.request": ("taskId", "parentTaskId", "fromAgent", "toAgent"),
    "handoff.accepted": ("taskId", "accepted"),
    "handoff.rejected": ("taskId", "accepted", "reason"),
}
OPTIONAL = {
    "completion.report": ("deliverables", "tests", "blockers", "notes"),
    "status.update": ("status", "progress", "blockers", "notes"),
    "handoff.request": ("expectedOutputs", "contextRefs", "constraints", "dueBy"),
}


def refusal(fields: Fields) -> AofError:
    verdict = validate(fields)
    assert isinstance(verdict, AofError), verdict
    assert verdict.hint
    return verdict


def test_there_are_five_types_and_each_has_a_sound_message() -> None:
    assert set(PAYLOADS) == set(SOUND)
    for fields in SOUND.values():
        assert isinstance(validate(fields), Valid)


@pytest.mark.parametrize("kind", SOUND)
@pytest.mark.parametrize("name", ["protocol", "version", "type", "taskId", "fromAgent", "toAgent", "sentAt", "payload"])
@pytest.mark.parametrize("odd", ["missing", None, 7, [], {}, ""])
def test_each_field_of_the_envelope_is_required_and_has_its_type(kind: str, name: str, odd: object) -> None:
    if (name, odd) == ("payload", {}):
        return
    wrong = without(SOUND[kind], name) if odd == "missing" else having(SOUND[kind], name, odd)
    problem = refusal(wrong)
    assert problem.code == "invalid_envelope"
    assert name in problem.message


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in REQUIRED.items() for name in names])
@pytest.mark.parametrize("odd", ["missing", None, [], {"a": 1}])
def test_a_required_field_of_a_payload_is_named_when_it_is_wrong(kind: str, name: str, odd: object) -> None:
    wrong = without(SOUND[kind], f"payload.{name}") if odd == "missing" else having(SOUND[kind], f"payload.{name}", odd)
    problem = refusal(wrong)
    assert problem.code == "invalid_envelope"
    assert "payload" in problem.message
    assert name in problem.message


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in OPTIONAL.items() for name in names])
@pytest.mark.parametrize("odd", [7, {"a": 1}, [1], True])
def test_an_optional_field_of_a_payload_is_named_when_it_is_wrong(kind: str, name: str, odd: object) -> None:
    problem = refusal(having(SOUND[kind], f"payload.{name}", odd))
    assert problem.code == "invalid_envelope"
    assert f"payload.{name}" in problem.message


@pytest.mark.parametrize(("version", "shown"), [(2, "2"), (0, "0"), (-1, "-1"), (1.5, "1.5"), (True, "True")])
def test_another_version_is_named(version: object, shown: str) -> None:
    problem = refusal(having(report(), "version", version))
    assert problem.code == "invalid_envelope"
    assert shown in problem.message
    assert problem.details["version"] == version


@pytest.mark.parametrize("version", ["1", 1.0, None, [1]])
def test_the_version_is_the_number_one(version: object) -> None:
    assert refusal(having(report(), "version", version)).code == "invalid_envelope"


@pytest.mark.parametrize("kind", ["task.explode", "Completion.Report", "completion.report ", "handoff"])
def test_a_type_that_is_not_known_is_no_error_unless_the_envelope_is_broken(kind: str) -> None:
    verdict = validate(having(report(), "type", kind))
    assert isinstance(verdict, Unknown)
    assert verdict.envelope.type == kind
    assert refusal(without(having(report(), "type", kind), "sentAt")).code == "invalid_envelope"


@pytest.mark.parametrize(
    "task_id",
    ["001", "2026-02-09-057", "task-2026-02-09-057", "TASK-2026-2-9-57", "TASK-2026-02-09-57", f" {TASK}", f"{TASK} ",
     f"{TASK}\n", "TASK-2026-02-09-\uff1057", "../../x"],
)  # fmt: skip
def test_only_a_whole_id_names_a_task(task_id: str) -> None:
    assert refusal(having(report(), "taskId", task_id)).code == "invalid_envelope"


def test_an_id_may_have_more_than_three_digits_at_its_end() -> None:
    assert isinstance(validate(report("TASK-2026-02-09-1000")), Valid)


@pytest.mark.parametrize(
    "moment",
    ["yesterday", "2026-02-09", "2026-13-40T00:00:00Z", "2026-02-09 21:00", "2026-02-30T00:00:00Z", "20260209T210000Z",
     "2026-02-09T25:00:00Z", "2026-W07-1T00:00:00Z", "2026-02-09T21:00:00.000Z\n", "0000-01-01T00:00:00Z"],
)  # fmt: skip
def test_a_moment_is_a_date_and_a_time(moment: str) -> None:
    assert refusal(having(report(), "sentAt", moment)).code == "invalid_envelope"
    assert refusal(having(request(), "payload.dueBy", moment)).code == "invalid_envelope"


@pytest.mark.parametrize(
    "moment", ["2026-02-09T21:00:00.000Z", "2026-02-09T21:00:00Z", "2026-02-09T21:00Z", "2026-02-09T21:00:00+01:00"]
)
def test_a_moment_may_be_exact_or_not(moment: str) -> None:
    assert isinstance(validate(having(report(), "sentAt", moment)), Valid)


def test_fields_that_version_one_does_not_know_are_passed_over() -> None:
    assert isinstance(validate(report(confidence=0.9) | {"traceId": "x"}), Valid)


@pytest.mark.parametrize("kind", ["status.update", "handoff.request", "handoff.accepted", "handoff.rejected"])
def test_envelope_and_payload_name_the_same_task(kind: str) -> None:
    problem = refusal(having(SOUND[kind], "taskId", "TASK-2026-02-09-099"))
    assert problem.code == "taskId_mismatch"


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (report(notes="ü" * 10_000), report(notes="x" * 10_001)),
        (update(notes="ü" * 10_000), update(notes="x" * 10_001)),
        (update(progress="ü" * 1_000), update(progress="x" * 1_001)),
        (rejected(reason="ü" * 512), rejected(reason="x" * 513)),
        (report(deliverables=["ü" * 256] * 50), report(deliverables=["x"] * 51)),
        (report(deliverables=["x" * 256]), report(deliverables=["x" * 257])),
        (report(blockers=["x" * 256] * 20), report(blockers=["x"] * 21)),
        (update(blockers=["x"] * 20), update(blockers=["x"] * 21)),
        (request(acceptanceCriteria=["x" * 256] * 50), request(acceptanceCriteria=["x"] * 51)),
        (request(acceptanceCriteria=["x"]), request(acceptanceCriteria=["x" * 257])),
        (request(contextRefs=["x"] * 50), request(contextRefs=["x"] * 51)),
        (request(expectedOutputs=["x" * 256]), request(expectedOutputs=["x" * 257])),
        (request(constraints=["x"] * 50), request(constraints=["x"] * 51)),
    ],
)
def test_a_size_is_allowed_and_one_more_is_too_much(good: Fields, bad: Fields) -> None:
    assert isinstance(validate(good), Valid)
    problem = refusal(bad)
    assert problem.code == "payload_too_large"
    assert "payload." in problem.message


@pytest.mark.parametrize(
    ("counts", "fine"),
    [
        ((10, 8, 2), True),
        ((10, 8, 1), True),
        ((0, 0, 0), True),
        ((10, 8, 3), False),
        ((10, -1, 0), False),
        ((10, "8", 2), False),
    ],
)
def test_tests_are_counts_that_fit_together(counts: tuple[Any, ...], *, fine: bool) -> None:
    tests = dict(zip(("total", "passed", "failed"), counts, strict=True))
    assert isinstance(validate(report(tests=tests)), Valid) == fine
    for name in tests:
        assert isinstance(validate(report(tests=without(tests, name))), AofError)


@pytest.mark.parametrize("ref", ["/etc/passwd", "../x", "a/../../x", "\\\\host\\x", "a\nb", ""])
def test_a_reference_stays_in_its_folder(ref: str) -> None:
    assert refusal(report(summaryRef=ref)).code == "invalid_envelope"
    assert refusal(report(deliverables=[ref])).code == "invalid_envelope"


@pytest.mark.parametrize("given", [{}, {"notes": ""}, {"blockers": []}, {"status": None, "progress": " "[:0]}])
def test_an_update_says_something(given: dict[str, Any]) -> None:
    assert refusal(update(**given)).code == "invalid_envelope"


@pytest.mark.parametrize(
    ("criteria", "told"),
    [
        ("all pass", ("all pass",)),
        ([1], ("1",)),
        ({"a": 1}, ('{"a":1}',)),
        (None, ()),
        ([""], ()),
        (["a", 2], ("a", "2")),
    ],
)
def test_criteria_of_a_wrong_form_do_not_stop_a_handoff(criteria: object, told: tuple[str, ...]) -> None:
    verdict = validate(request(acceptanceCriteria=criteria))
    assert isinstance(verdict, Valid)
    assert getattr(verdict.payload, "acceptance_criteria") == told  # noqa: B009 - of one payload only
    assert [one["field"] for one in verdict.odd] == ["payload.acceptanceCriteria"]


def test_a_task_is_not_its_own_parent() -> None:
    assert refusal(request(CHILD, CHILD)).code == "invalid_envelope"


def test_names_of_agents_can_be_written_into_a_log() -> None:
    for field, name in itertools.product(("fromAgent", "toAgent"), ("a b", "", "a\nb", "../x", "x" * 129, "\x00")):
        assert refusal(having(report(), field, name)).code == "invalid_envelope"


# --- nothing that arrives raises, and what is refused says why


TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["aof", "AOF/1 ", "TASK-2026-02-09-057", "done", "\ud800", "\x00", "2026-02-09T21:00:00.000Z", "x" * 20_000]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def assert_answered(arrived: object) -> None:
    found = detect(arrived if isinstance(arrived, Incoming) else incoming(arrived))
    if found is None:
        return
    verdict = found.problem or validate(found.fields)
    assert isinstance(verdict, Valid | Unknown | AofError)
    if isinstance(verdict, AofError):
        assert verdict.code in ("invalid_json", "invalid_envelope", "payload_too_large", "taskId_mismatch")
        assert verdict.message
        assert verdict.hint
        json.dumps(verdict.message).encode()


@given(JSON | st.binary(max_size=60))
def test_whatever_arrives_is_answered(arrived: object) -> None:
    assert_answered(arrived)
    assert_answered(Incoming(payload=arrived, content=arrived))
    if isinstance(arrived, str):
        assert_answered(f"AOF/1 {arrived}")
        assert isinstance(messages_in(arrived), list)


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    fields = SOUND[draw(st.sampled_from(sorted(SOUND)))]
    for _ in range(draw(st.integers(1, 3))):
        inner = draw(st.booleans()) and isinstance(fields.get("payload"), dict)
        there = fields["payload"] if inner else fields
        names = sorted(name for name in there if "." not in name)  # a dot in a drawn name would be read as a path
        name = draw(st.sampled_from([*names, "notes", "status", "tests", "dueBy", "runId"]))
        path = f"payload.{name}" if inner else name
        fields = without(fields, path) if draw(st.booleans()) else having(fields, path, draw(JSON))
    return fields


@given(mutated())
def test_a_message_that_is_almost_right_is_answered(fields: dict[str, Any]) -> None:
    assert_answered(fields)
    try:
        text = json.dumps(fields)
    except ValueError:
        return
    assert_answered(text)
    assert_answered(prefixed(fields))


# --- which messages are taken, refused or left alone, whatever their type


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


# --- what is a message, in which of the three forms, and what is none of ours


def found(given: object) -> dict[str, Any] | None:
    detected = detect(incoming(given))
    if detected is None:
        return None
    assert detected.problem is None, detected.problem
    return detected.fields


def problem(given: object) -> str:
    detected = detect(incoming(given))
    assert detected is not None
    assert detected.problem is not None
    return detected.problem.code


@pytest.mark.parametrize(
    "form", [dict, json.dumps, prefixed, lambda m: json.dumps(m, indent=2), lambda m: json.dumps(m).encode()]
)
def test_a_message_is_recognised_in_each_form(form: Any) -> None:
    message = update(progress="x")
    assert found(form(message)) == message


def test_the_parsed_object_comes_before_the_text() -> None:
    first, second = update(progress="parsed"), update(progress="text")
    assert found(Incoming(payload=first, content=json.dumps(second))) == first
    assert found({"type": "message_received", "payload": first, "content": prefixed(second)}) == first
    assert found({"payload": {"foo": 1}, "content": prefixed(second)}) == second


@pytest.mark.parametrize(
    "given",
    [
        "hello", "", " ", "{not json", "[1,2]", "42", "null", '"AOF/1 {}"', '{"foo":1}', {"foo": 1}, [1], 42, None,
        '{"jsonrpc":"2.0","method":"x"}', '{"protocol":"AOF"}', {"protocol": "mcp"}, " AOF/1 {}", "AOF/2 {}", "AOF/1{}",
        "aof/1 {}", "[" * 100_000, "{" * 100_000, '{"a":' * 100_000, b"\xff\xfe", b"{\xff}", "\ud800", object(),
        {"payload": {"foo": 1}}, {"content": 42}, '{"protocol":"mcp"', '{"protocol":aof', "{protocol: aof}",
        'is "protocol" always "aof"?', '"protocol": "aof",', '{"jsonrpc":"2.0","method":"aof"',
    ],
)  # fmt: skip
def test_anything_else_is_left_alone(given: object) -> None:
    assert detect(incoming(given)) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"protocol":"aof"', '{"protocol":"aof",}', '  {"protocol" : "aof", "version": 1,\n',
        '{"protocol":"aof","a":NaN}', '[{"protocol":"aof"}, {"protocol":"aof"', '{"protocol":"aof"}{"protocol":"aof"}',
        '{"protocol":"aof","a":"\ud800"}', '{"protocol":"aof","a":' + "[" * 100_000,
    ],
)  # fmt: skip
def test_broken_json_that_names_the_protocol_was_meant_as_a_message(text: str) -> None:
    assert problem(text) == "invalid_json"
    assert problem(text.encode("utf-8", "surrogatepass")) == "invalid_json"


@pytest.mark.parametrize("form", [json.dumps, prefixed, lambda m: json.dumps(m).encode()])
def test_a_byte_order_mark_makes_a_message_no_plain_text(form: Any) -> None:
    message = update(progress="x")
    text = form(message)
    marked = b"\xef\xbb\xbf" + text if isinstance(text, bytes) else f"\ufeff{text}"
    assert found(marked) == message
    assert problem(marked[:-1]) == "invalid_json"


def test_words_before_the_prefix_make_it_plain_text() -> None:
    assert detect(incoming(f"I say: {prefixed(update(notes='n'))}")) is None


@pytest.mark.parametrize(
    "text", ["AOF/1 ", "AOF/1 nonsense", 'AOF/1 {"protocol":"aof",', 'AOF/1 {"a":NaN}', "AOF/1 " + "[" * 100_000]
)
def test_what_follows_the_prefix_must_be_json(text: str) -> None:
    assert problem(text) == "invalid_json"
    assert problem(text.encode()) == "invalid_json"


@pytest.mark.parametrize("rest", ["42", "[]", "null", '"x"'])
def test_what_follows_the_prefix_must_be_an_object(rest: str) -> None:
    assert problem(f"AOF/1 {rest}") == "invalid_envelope"


@pytest.mark.parametrize("value", [object(), "\ud800", 1j])
def test_a_parsed_object_must_be_plain_json(value: object) -> None:
    assert problem({"protocol": "aof", "notes": value}) == "invalid_envelope"


@pytest.mark.parametrize("form", [dict, json.dumps, prefixed])
def test_a_message_has_at_most_ten_megabytes(form: Any) -> None:
    message = update(notes="n")
    spare = LARGEST - len(json.dumps(message | {"more": ""}, separators=(",", ":")))
    whole = json.dumps(message | {"more": "x" * spare}, separators=(",", ":"))
    assert len(whole) == LARGEST
    assert found(whole) is not None
    assert problem(form(message | {"more": "x" * (spare + 1000)})) == "payload_too_large"


def test_a_large_text_of_somebody_else_is_none_of_ours() -> None:
    assert detect(incoming(json.dumps({"jsonrpc": "2.0", "data": "x" * LARGEST}))) is None
