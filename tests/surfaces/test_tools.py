"""The tools as agents see them: the ten of the reference with exactly its parameters, on stdio and over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations

from aof.api.catalogue import BY_TOOL
from aof.kernel.model import STATUSES
from tests.support.requirements import requirement
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import OverHttp, OverMcp, answer_of, environment, mcp_session, of_tool

BUDGETS = {"core": 1_800, "worker": 4_000, "handoff": 6_000, "mail": 7_500, "all": 20_000}  # tokens
PRIORITIES = {"low", "normal", "high", "critical"}
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
ID, ACTOR = TEXT, {"actor": TEXT}
# What the reference says, each with its parameters; what may be left out has no default unless it says so.
REFERENCE: dict[str, tuple[dict[str, Any], set[str]]] = {
    "aof_dispatch": (
        {
            **dict.fromkeys(("title", "brief", "agent", "team", "role", "parentId", "actor"), TEXT),
            "priority": {"type": "string", "enum": PRIORITIES, "default": "normal"},
            "dependsOn": TEXTS | {"default": []},
            "tags": TEXTS | {"default": []},
            "metadata": {"type": "object", "default": {}},
        },
        {"title", "brief"},
    ),
    "aof_task_complete": (
        {
            "taskId": ID,
            "summary": TEXT,
            "outcome": {"type": "string", "enum": {"complete", "needs_review", "blocked"}},
            "blockers": TEXTS,
            "callerRole": TEXT,
            **ACTOR,
        },
        {"taskId"},
    ),
    "aof_task_update": (
        {"taskId": ID, "body": TEXT, "status": {"type": "string", "enum": set(STATUSES)}, "reason": TEXT, **ACTOR},
        {"taskId"},
    ),
    "aof_task_edit": (
        {
            "taskId": ID,
            "title": TEXT,
            "description": TEXT,
            "priority": {"type": "string", "enum": PRIORITIES},
            "routing": {"type": "object", "properties": {"role": TEXT, "team": TEXT, "agent": TEXT, "tags": TEXTS}},
            **ACTOR,
        },
        {"taskId"},
    ),
    "aof_task_cancel": ({"taskId": ID, "reason": TEXT, **ACTOR}, {"taskId"}),
    "aof_task_dep_add": ({"taskId": ID, "blockerId": ID, **ACTOR}, {"taskId", "blockerId"}),
    "aof_task_dep_remove": ({"taskId": ID, "blockerId": ID, **ACTOR}, {"taskId", "blockerId"}),
    "aof_task_block": ({"taskId": ID, "reason": TEXT, **ACTOR}, {"taskId", "reason"}),
    "aof_task_unblock": ({"taskId": ID, **ACTOR}, {"taskId"}),
    "aof_status": (
        {
            "agent": TEXT,
            "status": {"type": "string", "enum": set(STATUSES)},
            "compact": {"type": "boolean", "default": False},
            "limit": {"type": "integer"},
            **ACTOR,
        },
        set(),
    ),
}


@pytest.fixture(scope="module")
def over_http(http: OverHttp) -> Iterator[list[Tool]]:
    """The tools that the streamable HTTP endpoint lists."""
    with http.mcp() as (portal, client):
        yield portal.call(client.list_tools).tools


@pytest.fixture(scope="module")
def listed(mcp: OverMcp) -> dict[str, Tool]:
    """The tools that a session on stdio is told about by default."""
    with mcp_session(mcp.root) as (portal, client):
        return {tool.name: tool for tool in portal.call(client.list_tools).tools}


def _bare(schema: Any) -> Any:
    """A schema without words for people and least lengths; what is enumerated has no order."""
    if isinstance(schema, dict):
        dropped = ("description", "additionalProperties", "minLength")
        kept = {key: _bare(one) for key, one in schema.items() if key not in dropped}
        return kept | ({"enum": set(schema["enum"])} if "enum" in schema else {})
    return [_bare(one) for one in schema] if isinstance(schema, list) else schema


def _parameters(tool: Tool) -> dict[str, Any]:
    return {name: _bare(one) for name, one in tool.input_schema["properties"].items()}


def _as_the_reference(listed: dict[str, Tool], *names: str) -> None:
    for name in names:
        expected, required = REFERENCE[name]
        found = _parameters(listed[name])
        assert {key: found[key] for key in expected} == expected, name
        assert set(listed[name].input_schema.get("required", ())) == required, name


@requirement("tools.actor.every-tool")
def test_the_ten_tools_are_listed_on_stdio_and_over_http(listed: dict[str, Tool], over_http: list[Tool]) -> None:
    for tools in (listed, {tool.name: tool for tool in over_http}):
        assert set(REFERENCE) <= set(tools)
        assert len(tools) <= 14
        for name in REFERENCE:
            schema = tools[name].input_schema
            assert schema["properties"]["actor"]["type"] == "string"
            assert "actor" not in schema.get("required", ())


@requirement("tools.dispatch.params", "tools.complete.params", "tools.update.params", "tools.edit.params")
def test_tools_that_carry_work_have_the_parameters_of_the_reference(mcp: OverMcp, listed: dict[str, Tool]) -> None:
    _as_the_reference(listed, "aof_dispatch", "aof_task_complete", "aof_task_update", "aof_task_edit")
    made = answer_of(mcp.call("aof_dispatch", {"title": "Only what is needed", "brief": "This."}))
    assert mcp.elsewhere.get(made["taskId"]).priority == "normal"


def test_a_task_that_is_dispatched_without_review_is_done_with_its_completion(
    mcp: OverMcp, listed: dict[str, Tool]
) -> None:
    assert _parameters(listed["aof_dispatch"])["review"] == {"type": "boolean"}
    made = answer_of(mcp.call("aof_dispatch", {"title": "No second look", "brief": "This.", "review": False}))
    task = {"taskId": made["taskId"]}
    assert isinstance(mcp.call("aof_task_claim", task), dict)
    assert mcp.call("aof_task_complete", task | {"summary": "Done."}) == task | {"status": "done"}


@requirement(
    "tools.cancel.params-and-result",
    "tools.dep-add.params-and-result",
    "tools.dep-remove.params-and-result",
    "tools.block.params-and-result",
    "tools.unblock.params-and-result",
)
def test_tools_that_hold_and_order_have_the_parameters_and_results_of_the_reference(
    mcp: OverMcp, listed: dict[str, Tool]
) -> None:
    _as_the_reference(listed, *(name for name in REFERENCE if name.startswith("aof_task_") and "dep" in name))
    _as_the_reference(listed, "aof_task_cancel", "aof_task_block", "aof_task_unblock")
    one, two, three = (_made(mcp) for _ in range(3))
    assert mcp.call("aof_task_dep_add", {"taskId": one[5:], "blockerId": two[5:]}) == {
        "taskId": one, "blockerId": two, "dependsOn": [two],
    }  # fmt: skip
    assert mcp.call("aof_task_dep_add", {"taskId": one[5:], "blockerId": three[5:]}) == {
        "taskId": one, "blockerId": three, "dependsOn": [two, three],
    }  # fmt: skip
    assert list(mcp.elsewhere.get(one).depends_on) == [two, three]
    removed = mcp.call("aof_task_dep_remove", {"taskId": one[5:], "blockerId": two[5:]})
    assert removed == {"taskId": one, "blockerId": two, "dependsOn": [three]}
    assert list(mcp.elsewhere.get(one).depends_on) == [three]
    assert mcp.call("aof_task_block", {"taskId": two[5:], "reason": "no key"}) == {"taskId": two, "status": "blocked"}
    assert mcp.call("aof_task_unblock", {"taskId": two[5:]}) == {"taskId": two, "status": "ready"}
    assert mcp.call("aof_task_cancel", {"taskId": two[5:], "reason": "x"}) == {"taskId": two, "status": "cancelled"}


@requirement("tools.status.params")
def test_status_takes_only_what_may_be_left_out(mcp: OverMcp, listed: dict[str, Tool]) -> None:
    _as_the_reference(listed, "aof_status")
    assert isinstance(mcp.call("aof_status", {}), dict)
    for wrong in ({"status": "open"}, {"limit": -1}, {"limit": 1.5}):
        refused = of_tool(mcp.portal.call(mcp.client.call_tool, "aof_status", wrong))
        assert not isinstance(refused, dict)
        assert refused.code == "invalid"


@pytest.mark.parametrize("tier", BUDGETS)
def test_the_tools_of_a_tier_cost_a_model_no_more_than_their_budget(mcp: OverMcp, tier: str) -> None:
    with mcp_session(mcp.root, tools=tier) as (portal, client):
        listed = portal.call(client.list_tools).tools
    # JSON has about four characters per token; written with spaces, which it does not have on the wire.
    tokens = sum(len(json.dumps(tool.model_dump(by_alias=True, exclude_none=True))) / 4 for tool in listed)
    assert tokens < BUDGETS[tier]


def test_a_tool_says_what_it_does_to_the_world(listed: dict[str, Tool]) -> None:
    for name, tool in listed.items():
        said = tool.annotations or ToolAnnotations()  # by the protocol's defaults a tool may write and destroy
        only_reads = bool(said.read_only_hint)
        assert only_reads == (name in ("aof_status", "aof_task_show", "aof_help"))
        assert (not only_reads and said.destructive_hint is not False) == (name == "aof_task_cancel")


def test_every_tool_is_listed_when_all_are_asked_for(mcp: OverMcp) -> None:
    assert {tool.name for tool in mcp.portal.call(mcp.client.list_tools).tools} == {*BY_TOOL, "aof_help"}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_client_of_either_era_lists_and_calls(doors: Doors, mode: str) -> None:
    with mcp_session(doors["mcp"].root, mode=mode) as (portal, client):
        assert len(portal.call(client.list_tools).tools) >= 10
        assert isinstance(of_tool(portal.call(client.call_tool, "aof_status", {"compact": True})), dict)


def _made(mcp: OverMcp) -> str:
    made = answer_of(mcp.call("aof_dispatch", {"title": "Do it", "brief": "All of it."}))
    return str(made["taskId"])


def test_a_client_that_did_not_wait_for_the_answer_what_we_speak_falls_back_to_the_handshake(doors: Doors) -> None:
    root = doors["mcp"].root
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "hasty", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "hasty", "version": "1"}}
    call = {"name": "aof_status", "arguments": {"compact": True}}
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "server/discover", "params": {"_meta": envelope}},
        {"id": 2, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 3, "method": "tools/call", "params": call},
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "aof", "mcp"],
        env=environment(root),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for one in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0"} | one) + "\n")
        said: dict[int, Any] = {}
        while 3 not in said:
            answer = json.loads(server.stdout.readline())
            said[answer["id"]] = answer
        server.stdin.close()
        assert server.wait(timeout=60) == 0
    assert said[2]["result"]["protocolVersion"] == "2025-11-25"
    assert said[3]["result"]["structuredContent"]["tasks"] is not None
