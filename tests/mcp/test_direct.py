"""A plain tool call takes a shorter way, on which it is answered as the protocol's own machinery would answer it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from aof.service import serve
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.surfaces.mcp.direct import DirectCall, direct_call

HANDSHAKE, NEWEST = "2025-11-25", "2026-07-28"
WHO = {"name": "a test", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientInfo": WHO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Mcp:
    """A client that counts which of its calls took the shorter way, and can close that way."""

    def __init__(self, client: TestClient, token: str, revision: str) -> None:
        self.client = client
        self.revision = revision
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        self.direct: list[bool] = []
        self.open = True
        if revision == HANDSHAKE:
            hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": WHO}
            answer = self.send("initialize", hello)
            self.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
            self.client.post(
                "/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=self.headers
            )
        self.headers["MCP-Protocol-Version"] = revision

    def send(self, method: str, params: dict[str, Any], **headers: str) -> Any:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return self.client.post("/mcp", json=message, headers={**self.headers, **headers})

    def call(self, tool: str, *, open_way: bool = True, **arguments: Any) -> Any:
        self.open = open_way
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if self.revision == HANDSHAKE:
            return self.send("tools/call", params)
        return self.send("tools/call", params | {"_meta": META}, **{"Mcp-Method": "tools/call", "Mcp-Name": tool})


@pytest.fixture(params=[HANDSHAKE, NEWEST])
def mcp(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mcp]:
    root = init_data_dir(tmp_path / ".aof")[0]
    with open_fabric(root) as fabric:
        fabric.create("Compare the two parsers")
    token = serve.create_token(root, "ada", "agent").token

    def noted(*given: Any) -> DirectCall | None:
        found = direct_call(*given) if made.open else None
        made.direct.append(found is not None)
        return found

    with TestClient(serve.make_http(root), base_url="http://127.0.0.1") as client:
        made = Mcp(client, token, request.param)
        monkeypatch.setattr("aof.surfaces.mcp.http.direct_call", noted)
        made.call("aof_list")
        made.direct.clear()
        yield made


def shape(value: Any) -> Any:
    """What an answer says without IDs and times."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("aof_list", {"status": "ready"}),
        ("aof_task_show", {"taskId": "001"}),
        ("aof_task_show", {"taskId": "404"}),
        ("aof_task_complete", {"taskId": "001"}),
        ("aof_list", {"statuses": "ready"}),
        ("aof_list", {"limit": "ä" * 100}),
        ("aof_task_cancel", {"taskId": "001", "actor": "mallory"}),
    ],
)
def test_both_ways_give_the_same_answer(mcp: Mcp, tool: str, arguments: dict[str, Any]) -> None:
    short, long = mcp.call(tool, **arguments), mcp.call(tool, open_way=False, **arguments)
    assert mcp.direct == [True, False]
    assert short.json() == long.json()
    assert (short.status_code, short.headers["content-type"], short.headers.get("mcp-session-id")) == (
        long.status_code,
        long.headers["content-type"],
        long.headers.get("mcp-session-id"),
    )


def test_both_ways_create_and_claim_and_keep_secrets_from_the_model(mcp: Mcp) -> None:
    shapes = []
    for open_way in (True, False):
        made = mcp.call("aof_dispatch", open_way=open_way, title="Next", brief="Do it.").json()["result"]
        task = made["structuredContent"]["taskId"]
        claimed = mcp.call("aof_task_claim", open_way=open_way, taskId=task).json()["result"]
        assert "secret" not in claimed["structuredContent"]
        shapes.append((shape(made), shape(claimed)))
    assert mcp.direct == [True, True, False, False]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"id": 1.5},
        {"jsonrpc": "1.0"},
        {"method": "tools/list"},
        {"params": {"name": "aof_nothing", "arguments": {}, "_meta": META}},
        {"params": {"name": "aof_list", "arguments": [], "_meta": META}},
        {"params": {"name": "aof_task_claim", "arguments": {"wait": 0}, "_meta": META}},
        {"params": {"name": "aof_list", "arguments": {}, "_meta": {**META, "progressToken": 1}}},
        {"params": {"name": "aof_list", "arguments": {}, "task": {"ttl": 1}, "_meta": META}},
    ],
    ids=str,
)
def test_what_is_odd_or_waits_or_wants_reports_is_left_to_the_protocols_machinery(
    mcp: Mcp, change: dict[str, Any]
) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "aof_list", "arguments": {}, "_meta": META},
    }
    headers = mcp.headers | {"Mcp-Method": "tools/call", "Mcp-Name": "aof_list"}
    mcp.client.post("/mcp", json=message | change, headers=headers)
    assert not any(mcp.direct)


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp-Name": "aof_task_show"},
        {"Mcp-Method": "tools/list"},
        {"MCP-Protocol-Version": "1999-01-01"},
        {"Accept": "text/plain"},
        {"Content-Type": "text/plain"},
    ],
    ids=str,
)
def test_headers_that_disagree_are_left_to_it_too(mcp: Mcp, headers: dict[str, str]) -> None:
    if mcp.revision == HANDSHAKE and {"Mcp-Name", "Mcp-Method"} & headers.keys():
        pytest.skip("that revision has no such headers")
    params = {"name": "aof_list", "arguments": {}, "_meta": META}
    named = {"Mcp-Method": "tools/call", "Mcp-Name": "aof_list"}
    answer = mcp.send("tools/call", params, **(named | headers))
    assert not any(mcp.direct)
    assert answer.status_code >= 400


def test_another_token_cannot_use_a_session(mcp: Mcp, tmp_path: Path) -> None:
    if mcp.revision == NEWEST:
        pytest.skip("that revision has no sessions")
    mcp.headers["Authorization"] = f"Bearer {serve.create_token(str(tmp_path / '.aof'), 'ada', 'agent').token}"
    assert mcp.call("aof_list").status_code == 404
    assert mcp.direct == [False]


def test_a_body_over_the_limit_is_not_performed_however_it_begins(mcp: Mcp) -> None:
    params = {"name": "aof_list", "arguments": {}, "_meta": META}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    named = {"Mcp-Method": "tools/call", "Mcp-Name": "aof_list", "Content-Type": "application/json"}
    pieces = iter((message, *[b" " * 1_000_000] * 20))  # without a length that could be refused at once
    answer = mcp.client.post("/mcp", content=pieces, headers=mcp.headers | named)
    assert answer.status_code == 413
    assert not any(mcp.direct)
