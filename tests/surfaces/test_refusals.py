"""Refusals over the surfaces: an object with a code and a hint that works, and nothing changed."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.api.catalogue import BY_TOOL, OPERATIONS, input_schema, listed_in
from tests.support.desk import contents
from tests.support.repository import ROOT
from tests.support.requirements import requirement
from tests.support.service import workflow
from tests.support.workflows import hop, template
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import OverHttp, OverMcp, Refusal, answer_of, refusal_of
from tests.surfaces.scripts import MISSING

CORE = tuple(listed_in(("core",)))
Provoke = Callable[[OverMcp], tuple[str, dict[str, Any]]]


def _task(mcp: OverMcp, **given: Any) -> str:
    return mcp.elsewhere.create("Do it", brief="All of it.\n", **given).task_id


def _held(mcp: OverMcp, agent: str = "bob") -> str:
    task_id = _task(mcp)
    mcp.elsewhere.claim(task_id, agent=agent)
    return task_id


def _in_review(mcp: OverMcp) -> str:
    task_id = _held(mcp)
    mcp.elsewhere.complete(task_id, agent="bob")
    return task_id


def _gated(mcp: OverMcp) -> str:
    workflow(mcp.root, template(hop("a"), hop("b", "a")))
    task_id = _task(mcp, workflow="flow")
    mcp.elsewhere.claim(task_id, agent="tester")
    return task_id


def _cancelled(mcp: OverMcp) -> str:
    task_id = _task(mcp)
    mcp.elsewhere.cancel(task_id)
    return task_id


# A call that is refused and teaches another one.
TEACHING: dict[str, Provoke] = {
    "block without a reason": lambda mcp: ("aof_task_block", {"taskId": _task(mcp), "reason": " "}),
    "edit of nothing": lambda mcp: ("aof_task_edit", {"taskId": _task(mcp)}),
    "claim of a held task": lambda mcp: ("aof_task_claim", {"taskId": _held(mcp)}),
    "heartbeat of a task that nobody runs": lambda mcp: ("aof_task_heartbeat", {"taskId": _task(mcp)}),
    "completing what another holds": lambda mcp: ("aof_task_complete", {"taskId": _held(mcp)}),
    "an outcome that needs blockers": lambda mcp: (
        "aof_task_complete",
        {"taskId": _held(mcp, "tester"), "outcome": "blocked"},
    ),
    "an outcome that there is not": lambda mcp: (
        "aof_task_complete",
        {"taskId": _held(mcp, "tester"), "outcome": "maybe"},
    ),
    "such an outcome of a hop": lambda mcp: ("aof_task_complete", {"taskId": _gated(mcp), "outcome": "maybe"}),
    "completing what one has not claimed": lambda mcp: ("aof_task_complete", {"taskId": _task(mcp)}),
    "completing what is cancelled": lambda mcp: ("aof_task_complete", {"taskId": _cancelled(mcp)}),
    "claiming a draft": lambda mcp: ("aof_task_claim", {"taskId": _task(mcp, metadata={"draft": True})}),
    "claiming from the backlog": lambda mcp: ("aof_task_claim", {"taskId": _task(mcp, backlog=True)}),
    "an unknown task": lambda mcp: ("aof_task_show", {"taskId": MISSING}),
    "no progress to report": lambda mcp: ("aof_task_progress", {"taskId": _held(mcp, "tester")}),
    "rejecting without blockers": lambda mcp: ("aof_task_reject", {"taskId": _in_review(mcp), "blockers": []}),
    "dispatch without a brief": lambda mcp: ("aof_dispatch", {"title": "Do it"}),
    "moving to done": lambda mcp: ("aof_task_update", {"taskId": _in_review(mcp), "status": "backlog"}),
}
_CALL = re.compile(r"\b(aof_\w+)\((\{.*\})\)$", re.DOTALL)


@requirement("tools.errors.hint-works", "tools.errors.no-effect")
@pytest.mark.parametrize("name", TEACHING)
def test_following_the_hint_to_the_letter_succeeds(mcp: OverMcp, name: str) -> None:
    tool, arguments = TEACHING[name](mcp)
    before = contents(mcp.root)
    refused = mcp.call(tool, arguments)
    assert isinstance(refused, Refusal)
    assert contents(mcp.root) == before
    found = _CALL.search(refused.hint)
    assert found, refused.hint
    taught = _filled(mcp, json.loads(found.group(2)))
    if found.group(1) == "aof_task_claim" and "taskId" not in taught:
        _task(mcp)  # the next one, which there must be
    answer_of(mcp.call(found.group(1), taught))


def _filled(mcp: OverMcp, arguments: dict[str, Any]) -> dict[str, Any]:
    """Placeholders are filled with anything; a task with one that there is."""
    some = {"taskId": _task(mcp)} if arguments.get("taskId") == "…" else {}
    filled = {
        key: ["some text"] if one == ["…"] else "some-text" if one == "…" else one for key, one in arguments.items()
    }
    return filled | some


@requirement("tools.errors.structured")
def test_each_kind_of_error_has_its_code_on_every_surface(doors: Doors) -> None:
    for door in doors.values():
        held = door.elsewhere.create("Held", brief="x").task_id
        door.elsewhere.claim(held, agent="bob")
        draft = door.elsewhere.create("Draft", metadata={"draft": True}).task_id
        provoked = {
            "task_not_found": door.ask("show", task_id=MISSING),
            "already_claimed": door.ask("claim", task_id=held, agent="tester"),
            "not_ready": door.ask("claim", task_id=draft, agent="tester"),
            "invalid": door.ask("edit", task_id=draft, title=" "),
        }
        with _locked(*(door.root / "locks").glob("stripe-*")):
            provoked["lock_timeout"] = door.ask("edit", task_id=draft, title="Nobody lets go")
        with _poisoned(door.root / "locks" / "log"):
            provoked["log_poisoned"] = door.ask("create", title="A flush has failed", brief="x")
        for code, refusal in provoked.items():
            assert isinstance(refusal, Refusal), (door.name, code, refusal)
            assert (refusal.code, bool(refusal.message), bool(refusal.hint)) == (code, True, True), door.name


@contextmanager
def _locked(*paths: Path) -> Iterator[None]:
    """Somebody holds locks and does not let go."""
    with ExitStack() as stack:
        for path in paths:
            fcntl.flock(stack.enter_context(path.open()), fcntl.LOCK_EX)
        yield


@contextmanager
def _poisoned(path: Path) -> Iterator[None]:
    """A flush of the log has failed, as its lock file remembers it."""
    sound = path.read_bytes()
    with path.open("r+b") as file:
        file.write(sound.replace(b"sound", b"poisoned"))
    yield
    with path.open("r+b") as file:
        file.write(sound)


@requirement("tools.errors.bad-arguments")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("tool", [operation.tool for operation in CORE])
def test_arguments_that_do_not_fit_the_schema_are_invalid_and_write_nothing(
    mcp: OverMcp, tool: str, data: st.DataObject
) -> None:
    schema = input_schema(BY_TOOL[tool], tool=True)
    fitting = {name: _example(one) for name, one in schema["properties"].items() if name in schema.get("required", ())}
    arguments, culprit = data.draw(_spoilt(fitting, schema))
    before = contents(mcp.root)
    refused = refusal_of(mcp.call(tool, arguments), "invalid")
    assert culprit in refused.message
    assert contents(mcp.root) == before


def _example(schema: dict[str, Any]) -> Any:
    return {"string": "some", "array": [], "object": {}, "integer": 1, "number": 1, "boolean": True}[schema["type"]]


@st.composite
def _spoilt(draw: st.DrawFn, fitting: dict[str, Any], schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Arguments with one fault, and the parameter that it concerns."""
    required = sorted(schema.get("required", ()))
    fault = draw(st.sampled_from(["unknown", "wrong", *(["missing"] if required else [])]))
    if fault == "missing":
        missing = draw(st.sampled_from(required))
        return {name: one for name, one in fitting.items() if name != missing}, missing
    if fault == "unknown":
        unknown = draw(st.text("abcxyz", min_size=5, max_size=9))
        return fitting | {unknown: 1}, unknown
    name = draw(st.sampled_from(sorted(schema["properties"])))
    kind = schema["properties"][name]
    nothing = (None,) if name in required else ()  # for the others a null says nothing
    kinds: tuple[Any, ...] = ("text", 7.5, True, ["x", 3], *nothing)
    wrong = st.sampled_from([one for one in kinds if not _fits(one, kind)])
    return fitting | {name: draw(wrong)}, name


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    if "anyOf" in schema:
        return any(_fits(value, one) for one in schema["anyOf"])
    if schema["type"] == "array" and value == "text":  # one text stands for a list of one
        return "string" in (schema["items"].get("type"), *(one["type"] for one in schema["items"].get("anyOf", ())))
    kinds = {"string": str, "array": list, "object": dict, "integer": int, "number": float, "boolean": bool}
    return type(value) is kinds[schema["type"]] and value != ["x", 3]


def test_a_value_that_is_too_long_is_refused_by_its_name(mcp: OverMcp, http: OverHttp) -> None:
    for door in (mcp, http):
        before = contents(door.root)
        refused = door.ask("create", title="x" * 501, brief="x")
        assert isinstance(refused, Refusal)
        assert (refused.code, "'title'" in refused.message) == ("payload_too_large", True)
        assert contents(door.root) == before


def test_every_hint_in_the_source_names_an_operation_and_its_parameters() -> None:
    source = ROOT / "src" / "aof"
    names = {operation.name: set(operation.parameters.__struct_fields__) for operation in OPERATIONS}
    text = "".join(path.read_text() for path in source.rglob("*.py"))
    calls = re.findall(r'Call\("(\w+)", \{(.*?)\}\)', text)
    assert len(calls) > 20
    for operation, arguments in calls:
        assert set(re.findall(r'"(\w+)":', re.sub(r"\{.*", "", arguments))) <= names[operation], operation


@pytest.mark.parametrize(
    "body", [b'{"title": "a", "title": "b"}', b'{"title": "a", "metadata": {"b": [{"c": 1, "c": 2}]}}']
)
def test_a_body_that_names_something_twice_is_refused(http: OverHttp, body: bytes) -> None:
    before = contents(http.root)
    response = http.client.post("/api/v1/create", content=body)
    assert response.status_code == 400
    assert "twice" in response.json()["error"]["message"]
    assert contents(http.root) == before


@requirement("tools.errors.gate-outcome-unknown")
def test_every_surface_teaches_what_the_outcomes_of_a_hop_do(doors: Doors) -> None:
    for door in doors.values():
        workflow(door.root, template(hop("a"), hop("b", "a")))
        task_id = door.elsewhere.create("Gated", brief="x", workflow="flow").task_id
        before = contents(door.root)
        refused = door.ask("complete", task_id=task_id, outcome="maybe")
        assert isinstance(refused, Refusal)
        assert "'maybe'" in refused.message, door.name
        for word in ("complete (advance)", "needs_review (send back", "blocked (hold", task_id):
            assert word in f"{refused.message} {refused.hint}", (door.name, refused)
        assert contents(door.root) == before
