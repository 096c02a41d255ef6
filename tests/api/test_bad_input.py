"""Whatever is handed to an operation: the answer is an AofError that helps, and nothing has changed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.arguments import parameter_type
from tests.support.desk import Desk

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


def parameters() -> list[tuple[str, str, str]]:
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


@pytest.mark.parametrize(("operation", "parameter", "annotation"), parameters())
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
