"""`aof_help`, and the answers to tools that do not exist: both name tools that exist and calls that are well formed."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from mcp_types import TextContent

from aof.api.call import EVERYTHING, HintReader, parameters, wire_names
from aof.api.catalogue import BY_NAME, BY_TOOL, OPERATIONS, SCOPES, example_arguments, listed_in, needed_arguments
from aof.errors import Call, InvalidInput
from aof.surfaces.mcp import tools
from aof.surfaces.mcp.server import INSTRUCTIONS

CORE = HintReader(tiers=("core",))
WORKER = HintReader(tiers=("worker",))
_CALL = re.compile(r"\b(aof_\w+)\((\{.*\})\)")


def _asked(topic: str | None, reader: HintReader = CORE) -> str:
    (content,) = tools.help_answer({} if topic is None else {"topic": topic}, reader).content
    assert isinstance(content, TextContent)
    return content.text


def _topics() -> list[str]:
    return [line.partition(":")[0] for line in _asked(None).splitlines()[1:]]


def test_without_a_topic_every_tool_is_named_once_in_few_words() -> None:
    text = _asked(None)
    named = re.findall(r"aof_\w+", text.partition("\n")[2])
    assert sorted(named) == sorted(BY_TOOL)
    assert len(text) / 4 < 600


@pytest.mark.parametrize("scope", SCOPES)
def test_only_what_the_callers_token_allows_is_named(scope: Any) -> None:
    reader = HintReader(tiers=("core",), scope=scope)
    allowed = {one.tool for one in OPERATIONS if SCOPES.index(one.scope) <= SCOPES.index(scope)}
    assert {*re.findall(r"aof_\w+", _asked(None, reader).partition("\n")[2])} == allowed
    for operation in OPERATIONS:
        text = _asked(operation.tool, reader)
        assert ("parameters: " in text) == (operation.tool in allowed)
        assert (f"takes a token with the scope {operation.scope}" in text) == (operation.tool not in allowed)


@pytest.mark.parametrize("topic", _topics())
def test_a_topic_shows_a_call_of_each_of_its_tools(topic: str) -> None:
    calls = [_CALL.match(line) for line in _asked(topic).splitlines()]
    assert calls
    for call in calls:
        assert call is not None
        parameters(BY_TOOL[call.group(1)], json.loads(call.group(2)), tool=True)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_tool_is_shown_with_all_its_parameters_and_an_example(operation: Any) -> None:
    lines = dict(line.split(": ", 1) for line in _asked(operation.tool).splitlines() if ": " in line)
    fields = {field.encode_name for field in msgspec.structs.fields(operation.parameters)}
    assert json.loads(lines["parameters"]).keys() == fields
    found = _CALL.fullmatch(lines["example"])
    assert found is not None
    given = json.loads(found.group(2))
    assert given.keys() >= {*lines["required"].split(", ")} - {"none"}
    parameters(operation, given, tool=True)
    assert ("Not listed here" in _asked(operation.tool)) == (operation not in listed_in(("core",)))
    assert "Not listed here" not in _asked(operation.tool, EVERYTHING)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_example_has_what_is_needed_and_no_more_than_the_tool_takes(operation: Any) -> None:
    known = {field.name for field in msgspec.structs.fields(operation.parameters)}
    assert needed_arguments(operation).keys() <= example_arguments(operation).keys() <= known


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("aof_ask", "aof_ask"), ("ask", "aof_ask"), ("done", "aof_task_complete")],
)
def test_a_tool_is_found_by_what_people_call_it(asked: str, shown: str) -> None:
    assert _asked(asked).startswith(f"{shown}: ")


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("delegation", 'aof_dispatch({"title":"…","brief":"…","parentId":"001","agent":"bob"})'),
        ("delegate", 'aof_dispatch({"title":"…","brief":"…","parentId":"001","agent":"bob"})'),
        ("How do I delegate a task?", 'aof_dispatch({"title":"…","brief":"…","parentId":"001","agent":"bob"})'),
        ("questions", 'aof_ask({"taskId":"001","text":"Which region?","wait":60})'),
        ("rework", 'aof_task_complete({"taskId":"001","outcome":"needs_review","blockers":["no test for expiry"]})'),
        ("waiting", 'aof_task_release({"taskId":"001","waitForChildren":true})'),
        ("dependencies", 'aof_task_dep_add({"taskId":"001","blockerId":"001"})'),
        ("comments", "aof_task_comment("),
        ("handoffs", "aof_handoff_new("),
        ("How do I ask someone?", "aof_ask("),
        ("send mail to somebody", "aof_mail_send("),
    ],
)
def test_words_find_the_calls_that_they_are_about_the_simplest_first(asked: str, first: str) -> None:
    assert _asked(asked, WORKER).startswith(first)


@pytest.mark.parametrize(
    "word",
    [
        *("ask", "answer", "approve", "artifacts", "blocked", "blockers", "budget", "children", "claim", "comment"),
        *("deadline", "deliverables", "feedback", "handoff", "heartbeat", "hop", "human", "inbox", "lease", "locks"),
        *("mail", "message", "note", "outcome", "parent", "person", "progress", "question", "reject", "rejection"),
        *("release", "reopen", "report", "result", "retry", "review", "reviewer", "subtask", "summary", "wait"),
        *("workflow", "worklog"),
    ],
)
def test_a_word_of_a_workers_day_finds_calls_that_are_well_formed(word: str) -> None:
    for line in _asked(word).splitlines():
        if (call := _CALL.search(line)) is not None:
            parameters(BY_TOOL[call.group(1)], json.loads(call.group(2)), tool=True)
    assert len(_asked(word)) / 4 < 800


def test_every_call_of_a_subject_is_well_formed() -> None:
    for calls in tools._by_subject().values():
        for call in calls:
            operation = BY_NAME[call.operation]
            wire = wire_names(Call(call.operation, needed_arguments(operation) | call.arguments))
            assert parameters(operation, json.loads(msgspec.json.encode(wire)), tool=True) is not None


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"topic": "mial"}, "did you mean 'mail'?"),
        ({"topic": "aof_dispach"}, "did you mean 'aof_dispatch'?"),
        ({"topic": "quite another thing"}, "the topics are: plan, work"),
        ({"topic": 5}, 'call aof_help({"topic":"mail"})'),
        ({"tool": "mail"}, 'call aof_help({"topic":"…"})'),
    ],
)
def test_what_there_is_no_help_on_is_refused_with_a_suggestion(given: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tools.help_answer(given, CORE)
    assert refused.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("guess", "given", "said"),
    [
        ("aof_task_done", {"taskId": "007"}, 'use aof_task_complete({"taskId":"007"})'),
        ("aof_complete", {"task": "7"}, 'use aof_task_complete({"taskId":"001"})'),
        ("aof_task_create", {"title": "Do it"}, 'use aof_dispatch({"title":"Do it","brief":"…"})'),
        ("aof_create", {"title": 5, "brief": ["x"]}, 'use aof_dispatch({"title":5,"brief":"…"})'),
        ("aof_claim", {}, "use aof_task_claim({})"),
        ("mcp__aof__claim_task", {}, "use aof_task_claim({})"),
        ("aof_task_get", {"taskId": "x" * 500}, 'use aof_task_show({"taskId":"001"})'),
        ("aof-task-list", {"status": "ready"}, 'use aof_status({"status":"ready"})'),
        ("aof_next_task", {}, 'use aof_status({"status":"ready"})'),
        ("aof_delegate", {}, 'use aof_dispatch({"title":"…","brief":"…","parentId":"001","agent":"bob"})'),
        ("aof_delegate_task", {}, 'use aof_dispatch({"title":"…","brief":"…","parentId":"001","agent":"bob"})'),
        ("aof_task_updat", {}, "did you mean aof_task_update? aof_help({}) lists all tools by topic"),
        ("brew", {}, "aof_help({}) lists all tools by topic"),
    ],
)
def test_a_tool_that_there_is_not_leads_to_the_one_that_was_meant(guess: str, given: dict[str, Any], said: str) -> None:
    assert tools.tool_instead(guess, given, CORE) == said


def test_a_guess_leads_to_the_tool_itself_where_it_is_listed() -> None:
    assert tools.tool_instead("aof_next", {}, WORKER) == "use aof_ready({})"
    for guess in ("transfer", "aof_handoff_delegate"):
        assert tools.tool_instead(guess, {}, WORKER).startswith("use aof_handoff_new: ")


def test_a_guess_that_the_callers_token_does_not_allow_says_what_it_takes() -> None:
    reader = HintReader(tiers=("core",), scope="work")
    assert tools.tool_instead("aof_task_delete", {}, reader) == (
        "use aof_task_cancel, which takes a token with the scope lead"
    )


def test_every_guess_is_of_an_operation_that_there_is_and_of_no_other() -> None:
    guesses = [guess for names in tools._GUESSES.values() for guess in names]
    assert len(guesses) == len({*guesses})
    for name, names in tools._GUESSES.items():
        for guess in names:
            assert tools._by_guess().get(tools._plain(guess)) is BY_NAME[name], guess


def test_the_instructions_name_tools_that_there_are_and_the_simple_way_to_delegate() -> None:
    assert {*re.findall(r"aof_\w+", INSTRUCTIONS)} <= {*BY_TOOL, "aof_help"}
    assert "aof_dispatch with parentId and agent" in INSTRUCTIONS
    assert "Ask a person with aof_ask" in INSTRUCTIONS
    assert "cannot complete it" not in INSTRUCTIONS, "what is in review is completed without a claim"
    assert len(INSTRUCTIONS) / 4 < 260
    listed = {one.tool for one in listed_in(("worker",))}
    assert {"aof_dispatch", "aof_task_release"} <= listed
    assert "aof_handoff_new" not in listed
