"""Which messages are valid, and how a refusal names the field."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from aof.errors import AofError
from aof.messages.protocol import PAYLOADS, Unknown, Valid, validate
from tests.support.messages import CHILD, TASK, Fields, accepted, having, rejected, report, request, update, without

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
