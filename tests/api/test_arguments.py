"""What is said about a value that no operation takes: one sentence with the parameter, the value, and what fits."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from aof.api.call import parameters
from aof.api.catalogue import OPERATIONS
from aof.api.fabric import Fabric
from aof.errors import InvalidEnvelope, InvalidInput
from aof.kernel import arguments, declarations, kinds
from aof.messages.protocol import validate
from tests.support.messages import message

BY_NAME = {operation.name: operation for operation in OPERATIONS}


@pytest.mark.parametrize(
    ("operation", "given", "said"),
    [
        ("create", {"title": "x", "priority": "urgent"}, "'priority' cannot be 'urgent'"),
        ("create", {"title": "x", "priority": 3}, "'priority' cannot be 3"),
        ("create", {"title": 5}, "'title' must be a text, not 5"),
        ("create", {"title": None}, "'title' must be a text, not null"),
        ("create", {"title": "x", "tags": "a, b"}, "'tags' must be a list, not 'a, b'"),
        ("create", {"title": "x", "tags": '["a"]'}, "'tags' must be a list, not '[\"a\"]'"),
        ("create", {"title": "x", "tags": ""}, "'tags' must be a list, not ''"),
        ("create", {"title": "x", "tags": ["a", 1]}, "'tags[1]' must be a text, not 1"),
        ("create", {"title": "x", "metadata": [1]}, "'metadata' must be an object, not a list"),
        ("create", {"title": "x", "review": "maybe"}, "'review' must be true or false, not 'maybe'"),
        ("create", {"title": "x", "maxAttempts": "a"}, "'maxAttempts' must be a whole number, not 'a'"),
        ("create", {"title": "x", "maxAttempts": 1.5}, "'maxAttempts' must be a whole number, not 1.5"),
        ("complete", {"taskId": "1", "tests": {"a": "x"}}, "a value in 'tests' must be a whole number, not a text"),
        ("create", {}, "'title' is missing"),
        ("create", {"title": "x", "prioritty": "low"}, "there is no parameter 'prioritty'"),
        ("replay", {"at": -1}, "'at' must be at least 0, not -1"),
        ("progress", {"taskId": "1", "percent": "x"}, "'percent' must be a number, not 'x'"),
        ("claim", {"agent": "a", "ttl": "x" * 500}, f"'ttl' must be a number, not '{'x' * 60}…'"),
        ("claim", ["a"], "the parameters must be an object, not a list"),
    ],
)
def test_a_call_from_outside_is_told_what_is_wrong_in_one_sentence(operation: str, given: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parameters(BY_NAME[operation], given)

    assert refused.value.message == said
    assert refused.value.hint


@pytest.mark.parametrize(
    ("operation", "given", "said"),
    [
        ("create", {"title": "x", "priority": "urgent"}, "'priority' cannot be 'urgent'"),
        ("create", {"title": 5}, "'title' must be a text, not 5"),
        ("create", {"title": "x", "tags": "abc"}, "'tags' must be a list, not 'abc'"),
        ("create", {"title": "x", "tags": [1]}, "'tags[0]' must be a text, not 1"),
        ("create", {"title": "x", "metadata": [1]}, "'metadata' must be an object, not a list"),
        ("create", {"title": "x", "max_attempts": "a"}, "'max_attempts' must be a whole number, not 'a'"),
        ("create", {"title": "x", "max_attempts": -3}, "'max_attempts' cannot be -3; choose a number from 1 to 100"),
        ("edit", {"task_id": "001", "priority": "urgent"}, "'priority' cannot be 'urgent'"),
        ("edit", {"task_id": "001"}, "there is nothing to change"),
        ("list", {"status": "open"}, "'status' cannot be 'open'"),
        ("block", {"task_id": "001", "reason": "x", "kind": "no"}, "'kind' cannot be 'no'"),
        ("replay", {"at": "x"}, "'x' is neither the number of an event nor its hash"),
    ],
)
def test_who_calls_from_python_is_told_the_same(fabric: Fabric, operation: str, given: Any, said: str) -> None:
    fabric.create("One")
    with pytest.raises(InvalidInput) as refused:
        getattr(fabric, operation)(**given)

    assert refused.value.message.startswith(said)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"payload": {"status": "open"}}, "'payload.status' cannot be 'open'"),
        ({"payload": {"agentId": 5}}, "'payload.agentId' must be a text, not 5"),
        ({"payload": {"agentId": "ada"}}, "'payload.taskId' is missing"),
        ({"payload": []}, "'payload' must be an object, not a list"),
        ({"type": "completion.report", "payload": {"outcome": "great"}}, "'payload.outcome' cannot be 'great'"),
        ({"version": "1"}, "'version' must be 1, not '1'"),
        ({"sentAt": None}, "'sentAt' must be a text, not null"),
    ],
)
def test_the_sender_of_a_message_is_told_alike(fields: dict[str, Any], said: str) -> None:
    sound = message("status.update", "TASK-2026-03-02-001", "ada", {"taskId": "TASK-2026-03-02-001", "agentId": "ada"})
    refused = validate(sound | fields)

    assert isinstance(refused, InvalidEnvelope)
    assert refused.message.startswith(said)


def test_the_hint_goes_on_from_what_was_said() -> None:
    def hint(operation: str, given: Any) -> str:
        with pytest.raises(InvalidInput) as refused:
            parameters(BY_NAME[operation], given)
        return refused.value.hint

    assert hint("graph", {"format": "png"}) == "format: one of tree, mermaid, dot, svg"
    assert hint("create", {"title": "x", "prioritty": "low"}) == "did you mean 'priority'?"
    assert hint("create", {"title": "x", "zzz": "low"}).startswith("the parameters are: actor, title, ")


def test_the_hint_for_a_wrong_value_has_a_place_for_the_right_one() -> None:
    for operation, given, shown in (
        ("edit", {"taskId": "001", "priority": "highest"}, {"task_id": "001", "priority": "…"}),
        ("create", {"title": "x", "tags": "one,two"}, {"title": "…", "tags": ["…"]}),
        ("progress", {"taskId": "001", "percent": "x"}, {"task_id": "001", "percent": 1}),
        ("create", {"title": "x", "review": "maybe"}, {"title": "…", "review": True}),
    ):
        with pytest.raises(InvalidInput) as refused:
            parameters(BY_NAME[operation], given)
        assert refused.value.call is not None
        assert refused.value.call.arguments == shown


@pytest.mark.parametrize(
    ("operation", "given", "name", "meant"),
    [
        ("handoff_new", {"type": "delegation", "taskId": "1", "reason": "x", "to": "bob"}, "to", ["bob"]),
        ("create", {"title": "x", "brief": "x", "dependsOn": "001"}, "depends_on", ["001"]),
        ("complete", {"taskId": "1", "blockers": "no tests, as before"}, "blockers", ["no tests, as before"]),
        ("create", {"title": "x", "brief": "x", "acceptance": "12 tests pass"}, "acceptance", ["12 tests pass"]),
        ("edit", {"taskId": "1", "clear": "owner"}, "clear", ["owner"]),
        ("mail_send", {"to": "bob", "subject": "x"}, "to", "bob"),
        ("mail_send", {"to": ["bob"], "subject": "x"}, "to", "bob"),
        ("progress", {"taskId": "1", "percent": "50"}, "percent", 50),
        ("release", {"taskId": "1", "waitForChildren": "true"}, "wait_for_children", True),
        ("update", {"taskId": "1", "status": "in_progress"}, "status", "in-progress"),
        ("update", {"taskId": "1", "status": "Done"}, "status", "done"),
        ("create", {"title": "x", "brief": "x", "priority": "HIGH"}, "priority", "high"),
        ("mail_send", {"to": "bob", "subject": "x", "type": "decision_required"}, "type", "decision-required"),
    ],
)
def test_what_a_model_plainly_means_is_understood_by_a_tool(operation: str, given: Any, name: str, meant: Any) -> None:
    assert getattr(parameters(BY_NAME[operation], given, tool=True), name) == meant


def test_a_single_text_of_a_tool_stands_for_a_list_of_one_inside_an_object_too() -> None:
    routing = parameters(BY_NAME["edit"], {"taskId": "1", "routing": {"tags": "api"}}, tool=True).given()["routing"]
    assert routing["tags"] == ["api"]


@pytest.mark.parametrize(
    ("operation", "given", "said"),
    [
        ("progress", {"taskId": "1", "percent": "half"}, "'percent' must be a number, not 'half'"),
        ("mail_send", {"to": ["bob", "ada"], "subject": "x"}, "'to' must be a text, not a list"),
        ("update", {"taskId": "1", "status": "open"}, "'status' cannot be 'open'"),
    ],
)
def test_what_a_model_may_mean_in_several_ways_is_refused(operation: str, given: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parameters(BY_NAME[operation], given, tool=True)
    assert refused.value.message == said


def test_over_http_a_list_is_a_list_as_its_schema_says() -> None:
    with pytest.raises(InvalidInput) as refused:
        parameters(BY_NAME["create"], {"title": "x", "tags": "api"})
    assert refused.value.message == "'tags' must be a list, not 'api'"


def test_an_unknown_field_within_a_parameter_is_not_taken_for_a_parameter_of_the_same_name() -> None:
    with pytest.raises(InvalidInput) as refused:
        parameters(BY_NAME["bulk"], {"command": "edit", "taskIds": ["001"], "changes": {"status": "done"}})
    assert refused.value.message == "there is no parameter 'changes.status'"
    assert refused.value.hint == "give another value for 'changes'"
    assert refused.value.details["parameter"] == "changes"


@pytest.mark.parametrize(
    ("operation", "given", "hint"),
    [
        ("create", {"title": "x", "priority": "urgent"}, "priority: one of critical, high, normal, low"),
        ("list", {"priority": "urgent"}, "priority: one of critical, high, normal, low"),
        ("edit", {"task_id": "001", "priority": "urgent"}, "priority: one of critical, high, normal, low"),
        ("create", {"title": "x", "visibility": "no"}, "visibility: one of foreground, background, internal, hidden"),
        ("graph", {"form": "no"}, "format: one of tree, mermaid, dot, svg"),
        ("output", {"task_id": "001", "stream": "no"}, "stream: one of stdout, stderr"),
        ("complete", {"task_id": "001", "outcome": "no"}, "outcome: one of complete, needs_review, blocked"),
        ("bulk", {"command": "no"}, "command: one of cancel, archive, retry, edit"),
    ],
)
def test_the_hint_lists_the_words_to_choose_from_in_their_natural_order(
    fabric: Fabric, operation: str, given: Any, hint: str
) -> None:
    fabric.create("One")
    with pytest.raises(InvalidInput) as refused:
        getattr(fabric, operation)(**given)

    assert refused.value.hint == hint


def test_the_hint_is_the_same_from_outside() -> None:
    with pytest.raises(InvalidInput) as refused:
        parameters(BY_NAME["create"], {"title": "x", "priority": "urgent"})

    assert refused.value.hint == "priority: one of critical, high, normal, low"


def test_the_hint_names_the_place_of_a_word_that_is_deeper_down() -> None:
    sent = {"taskId": "TASK-2026-03-02-001", "agentId": "ada", "status": "open"}
    refused = validate(message("status.update", "TASK-2026-03-02-001", "ada", sent))

    assert isinstance(refused, InvalidEnvelope)
    assert refused.hint.startswith("payload.status: one of backlog, ready, in-progress, review, blocked, done, ")


def test_what_stands_for_our_words_while_arguments_are_checked_is_what_they_mean() -> None:
    words = {name: kind for place in (kinds, declarations) for name, kind in vars(place).items() if get_args(kind)}
    stood_for = {name: kind for name, kind in words.items() if name in arguments._STAND_INS}
    assert {"Status", "TaskId", "At", "Object"} <= stood_for.keys()
    for name, kind in stood_for.items():
        meant = str(arguments._bare(kind)).replace("typing.Any", "object")
        assert set(str(arguments._bare(arguments._STAND_INS[name])).split(" | ")) == set(meant.split(" | ")), name
