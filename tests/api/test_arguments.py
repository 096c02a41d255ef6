"""What operations are called with, and what is said about values that they do not take."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, get_args

import pytest

from aof.api.call import parameters
from aof.api.catalogue import OPERATIONS
from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidEnvelope, InvalidInput
from aof.kernel import arguments, declarations, kinds
from aof.kernel.arguments import parameter_type
from aof.messages.protocol import validate
from tests.support.desk import Desk
from tests.support.messages import message

# --- what is said about a value that no operation takes: one sentence with the parameter, the value, and what fits


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
        ("inbox", {"kind": ["Gate", "QUESTION"]}, "kind", ["gate", "question"]),
        ("inbox", {"kind": "Gate"}, "kind", ["gate"]),
        ("complete", {"taskId": "1", "outcome": "Needs-Review"}, "outcome", "needs_review"),
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


# --- whatever is handed to an operation: the answer is an AofError that helps, and nothing has changed


TASK = "TASK-2026-03-02-001"
RUNNING = "TASK-2026-03-02-002"
REVIEW = "TASK-2026-03-02-003"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """One directory for all: nothing changes it."""
    desk = Desk(tmp_path_factory.mktemp("bad") / "data")
    desk.create()
    desk.fabric.claim(desk.create(), agent="ada")
    review = desk.create()
    run = desk.fabric.claim(review, agent="ada").run_id
    desk.fabric.complete(review, run=run, agent="ada", summary="done")
    return desk


def assert_refused(desk: Desk, call: Callable[[], object], *, on_record: bool = False) -> AofError:
    """The refusal, which has changed nothing; one that is `on_record` is in the log."""
    tops = _TOPS if not on_record else tuple(top for top in _TOPS if top != "events")
    before = state(desk.root, tops)
    with pytest.raises(AofError) as caught:
        _exhausted(call)
    error = caught.value
    assert error.code
    assert error.hint
    assert len(error.message) < 2_000, "an error does not repeat what it was flooded with"
    assert error.message.isprintable(), "an error can be shown on one line"
    assert error.message.encode()
    assert state(desk.root, tops) == before, "nothing has changed"
    return error


def _exhausted(call: Callable[[], object]) -> None:
    answer = call()
    if inspect.isgenerator(answer):
        list(answer)


_TOPS = ("aof.toml", "tasks", "runs", "events", "archive")


def state(root: Path, tops: tuple[str, ...] = _TOPS) -> dict[str, tuple[int, int, int]]:
    """Every file but locks and caches, as the file system knows it: a rewrite with the same bytes shows too."""
    found: dict[str, tuple[int, int, int]] = {}
    folders = [str(root / top) for top in tops]
    for folder in folders:
        for entry in os.scandir(folder) if os.path.isdir(folder) else ():
            file = entry.stat(follow_symlinks=False)
            found[entry.path] = (file.st_ino, file.st_mtime_ns, file.st_size)
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return found


HOSTILE_IDS = {
    "empty": "",
    "blank": "   ",
    "a newline behind": f"{TASK}\n",
    "a newline inside": "TASK-2026-03-02\n-001",
    "Arabic digits": "TASK-\u0662\u0660\u0662\u0666-\u0660\u0663-\u0660\u0662-\u0660\u0660\u0661",
    "full-width digits": "TASK-2026-03-02-00\uff11",
    "a path upward": "../TASK-2026-03-02-001",
    "a path upward behind": "TASK-2026-03-02-001/../../..",
    "an absolute path": "/etc/passwd",
    "a NUL": f"{TASK}\x00",
    "a lone surrogate": "TASK-2026-03-02-00\ud800",
    "lower case": "task-2026-03-02-777",
    "a wildcard": "%",
    "an SQL string": "' OR 1=1 --",
    "10 kB": "TASK-" + "9" * 10_000,
    "unknown": "TASK-2020-01-01-001",
    "no day": "TASK-9999-99-99-999",
}
ON_A_TASK: dict[str, dict[str, Any]] = {
    "get": {},
    "show": {},
    "claim": {"agent": "ada"},
    "heartbeat": {"agent": "ada"},
    "release": {"agent": "ada"},
    "progress": {"agent": "ada", "text": "on"},
    "update": {"body": "x"},
    "edit": {"title": "x"},
    "complete": {"agent": "ada"},
    "approve": {},
    "reject": {"blockers": ["x"]},
    "fail": {"agent": "ada"},
    "cancel": {},
    "settle": {},
    "block": {"reason": "x"},
    "unblock": {},
    "pause": {},
    "resume": {},
    "retry": {"reason": "x"},
    "archive": {},
    "dep_add": {"blocker_id": TASK},
    "dep_remove": {"blocker_id": TASK},
}


@pytest.mark.parametrize("name", [name for name in HOSTILE_IDS if name != "a newline behind"])
@pytest.mark.parametrize("operation", ON_A_TASK)
def test_a_hostile_id_is_refused(desk: Desk, operation: str, name: str) -> None:
    error = assert_refused(desk, lambda: getattr(desk.fabric, operation)(HOSTILE_IDS[name], **ON_A_TASK[operation]))
    assert error.kind in {"not_found", "invalid"}


@pytest.mark.parametrize("name", HOSTILE_IDS)
@pytest.mark.parametrize("field", ["depends_on", "parent_id", "blocker_id"])
def test_a_hostile_id_in_a_field_is_refused(desk: Desk, field: str, name: str) -> None:
    value = HOSTILE_IDS[name]
    if (field, name) == ("parent_id", "empty") or name == "a newline behind":
        pytest.skip("an empty parent is none, and space around an ID is taken off")
    if field == "blocker_id":
        assert_refused(desk, lambda: desk.fabric.dep_add(TASK, value))
    else:
        given: Any = {field: [value] if field == "depends_on" else value}
        assert_refused(desk, lambda: desk.fabric.create("New", **given))


@pytest.mark.parametrize(
    "ref", ["../out.md", "/etc/passwd", "a/../../b", "..", "a\x00b", "\ud800", "a\nb", "..\\x", "\\x", "x" * 5_000, ""]
)
@pytest.mark.parametrize("field", ["summary_ref", "deliverables"])
def test_a_reference_that_leaves_the_tasks_folder_is_refused(desk: Desk, field: str, ref: str) -> None:
    if (field, ref) == ("summary_ref", ""):
        pytest.skip("an empty reference is none")
    given: Any = {field: [ref] if field == "deliverables" else ref}
    assert_refused(desk, lambda: desk.fabric.complete(RUNNING, agent="ada", **given))


@pytest.mark.parametrize("value", ["", "   ", "x" * 1_000_000, "two\nlines", "a\x00b", "\ud800", "\x1b[31m", "\u2028"])
def test_a_title_that_no_line_can_hold_is_refused(desk: Desk, value: str) -> None:
    assert_refused(desk, lambda: desk.fabric.create(value))
    assert_refused(desk, lambda: desk.fabric.edit(TASK, title=value))


@pytest.mark.parametrize("value", ["x" * 1_000_001, "a\x00b", "\udfff"])
def test_a_text_that_no_file_can_hold_is_refused(desk: Desk, value: str) -> None:
    for call in (
        lambda: desk.fabric.create("New", brief=value),
        lambda: desk.fabric.update(TASK, body=value),
        lambda: desk.fabric.edit(TASK, description=value),
        lambda: desk.fabric.progress(RUNNING, agent="ada", text=value),
        lambda: desk.fabric.progress(RUNNING, agent="ada", note=value),
        lambda: desk.fabric.complete(RUNNING, agent="ada", summary=value),
        lambda: desk.fabric.complete(RUNNING, agent="ada", notes=value),
        lambda: desk.fabric.fail(RUNNING, agent="ada", message=value),
        lambda: desk.fabric.block(TASK, reason=value),
        lambda: desk.fabric.cancel(TASK, reason=value),
        lambda: desk.fabric.reject(REVIEW, blockers=[value]),
        lambda: desk.fabric.create("New", metadata={"x": value}) if len(value) < 10 else desk.fabric.create(value),
        lambda: desk.fabric.create("New", metadata={value: 1}),
        lambda: desk.fabric.create("New", key=value),
    ):
        assert_refused(desk, call)


@pytest.mark.parametrize("status", ["doing", "Ready", "archive", "", "ready\n", "../ready", "in_progress"])
def test_a_status_that_does_not_exist_is_refused(desk: Desk, status: str) -> None:
    assert_refused(desk, lambda: desk.fabric.update(TASK, status=status))  # type: ignore[arg-type] # what a user mistypes
    assert_refused(desk, lambda: desk.fabric.list(status=status or "-"))  # type: ignore[arg-type] # as above


@pytest.mark.parametrize(
    "metadata",
    [
        {"x": float("nan")},
        {"x": float("inf")},
        {"x": 2**70},
        {"x": object()},
        {"x": {1, 2}},
        {"x": b"bytes"},
        {1: "x"},
        {"x": "y" * 100_000},
        {"leaseTtlMs": -1},
        {"leaseTtlMs": "long"},
    ],
)
def test_data_that_no_file_gives_back_the_same_is_refused(desk: Desk, metadata: Any) -> None:
    assert_refused(desk, lambda: desk.fabric.create("New", metadata=metadata))
    assert_refused(desk, lambda: desk.fabric.edit(TASK, metadata=metadata))


def test_data_that_is_nested_without_end_is_refused(desk: Desk) -> None:
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    assert_refused(desk, lambda: desk.fabric.create("New", metadata={"x": deep}))
    round_and_round: dict[str, Any] = {}
    round_and_round["x"] = round_and_round
    assert_refused(desk, lambda: desk.fabric.create("New", metadata=round_and_round))


SKIPPED = {"close", "follow", "now"}
USUAL: dict[str, Any] = {
    "title": "New", "task_id": TASK, "agent": "ada", "blockers": ["x"], "reason": "x", "blocker_id": RUNNING, "at": 1,
}  # fmt: skip


def wrong_values(annotation: str) -> Iterator[Any]:
    """Values that are surely not what the annotation says."""
    yield object()
    if "float" not in annotation and "int" not in annotation:
        yield 7
    if "bool" not in annotation:
        yield 1.5 if "float" not in annotation else "fast"
    if "bytes" not in annotation:
        yield b"bytes"
    if "Sequence" in annotation:
        yield "text"
        yield [object()]
        yield {"a": 1}
    else:
        yield ["a"]
    if "dict" not in annotation and "Sequence" not in annotation:
        yield {"a": 1}
    if "str" not in annotation or "dict" in annotation:
        yield "text"


def _annotation(method: FunctionType, parameter: inspect.Parameter) -> str:
    """An annotation without the words that an operation says of a parameter."""
    function = inspect.unwrap(method)
    kind = parameter_type(function, parameter.name) if hasattr(function, "declared") else None
    return str(parameter.annotation if kind is None else kind[0])


def every_parameter() -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for name, method in inspect.getmembers(Fabric, inspect.isfunction):
        if name.startswith("_") or name in SKIPPED:
            continue
        found += [
            (name, parameter.name, _annotation(method, parameter))
            for parameter in inspect.signature(method).parameters.values()
            if parameter.name not in ("self", "context", "fabric")
            and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        ]
    return found


@pytest.mark.parametrize(("operation", "parameter", "annotation"), every_parameter())
def test_a_value_of_the_wrong_type_is_refused(desk: Desk, operation: str, parameter: str, annotation: str) -> None:
    method = getattr(desk.fabric, operation)
    needed = {
        one.name: USUAL.get(one.name, RUNNING)
        for one in inspect.signature(method).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }
    if operation in {"heartbeat", "progress", "release", "fail", "complete"}:
        needed |= {"task_id": RUNNING, "agent": "ada"}
    if operation in {"approve", "reject"}:
        needed |= {"task_id": REVIEW}
    if operation == "progress":
        needed |= {"text": "on"}
    for value in wrong_values(annotation):
        assert_refused(desk, partial(method, **(needed | {parameter: value})), on_record=operation == "handoff_new")


@pytest.mark.parametrize("name", ["status", "agent", "tag", "search", "limit", "archived", "nonsense"])
@pytest.mark.parametrize("operation", ["list", "ready", "blocked", "status"])
def test_a_filter_of_the_wrong_type_is_refused(desk: Desk, operation: str, name: str) -> None:
    for value in (object(), b"x", {"a": 1}, 1.5, -1 if name == "limit" else [object()]):
        assert_refused(desk, partial(getattr(desk.fabric, operation), **{name: value}))


def test_an_actor_that_is_no_name_is_refused(desk: Desk) -> None:
    for actor in ("", "x" * 10_000, "two\nlines", "a\x00", "\ud800"):
        fabric = Fabric(desk.store, desk.clock, desk.fabric.services.environment.policy, actor)
        assert_refused(desk, partial(fabric.create, "New"))


@pytest.mark.parametrize("agent", ["", "two words", "../x", "x" * 200, "a\x00", "\ud800", "é", "-x"])
def test_an_agent_that_is_no_name_is_refused(desk: Desk, agent: str) -> None:
    assert_refused(desk, lambda: desk.fabric.claim(TASK, agent=agent))
    assert_refused(desk, lambda: desk.fabric.claim(agent=agent))
    if agent:
        assert_refused(desk, lambda: desk.fabric.create("New", agent=agent))


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e300, 10**12])
def test_a_lease_that_nobody_could_keep_is_refused(desk: Desk, ttl: float) -> None:
    assert_refused(desk, lambda: desk.fabric.claim(TASK, agent="ada", ttl=ttl))
    assert_refused(desk, lambda: desk.fabric.heartbeat(RUNNING, agent="ada", ttl=ttl))


def test_what_was_refused_left_a_directory_that_works(desk: Desk, tmp_path: Path) -> None:
    assert desk.fabric.doctor().ok
