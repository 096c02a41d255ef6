"""Claims that wait for work: many at once leave the server free, and nobody who has gone gets any."""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from aof.surfaces.http.responses import PREFIX
from tests.surfaces.doors import OverHttp, http_door

_MANY = 60  # more than a server has threads


@pytest.fixture
def http(tmp_path: Path) -> Iterator[OverHttp]:
    """A server on which nobody has left anything to claim."""
    with http_door(tmp_path) as door:
        yield door


def _sent(http: OverHttp, path: str, given: dict[str, Any], **headers: str) -> socket.socket:
    """A request that is on its way; what comes back is for the caller to read."""
    url = http.client.base_url
    connection = socket.create_connection((url.host, url.port), timeout=90)
    body = json.dumps(given).encode()
    lines = {
        "Host": url.host,
        "Authorization": http.client.headers["authorization"],
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Connection": "close",
        "Content-Length": str(len(body)),
    } | headers
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
    return connection


def _answer(connection: socket.socket) -> Any:
    said = b"".join(iter(lambda: connection.recv(65536), b""))
    return json.loads(said.partition(b"\r\n\r\n")[2])


def _answered(claims: list[socket.socket]) -> list[socket.socket]:
    """Those that an answer comes to first."""
    with selectors.DefaultSelector() as selector:
        by_number = {selector.register(claim, selectors.EVENT_READ).fd: claim for claim in claims}
        return [by_number[key.fd] for key, _ in selector.select(60)]


@contextmanager
def _waiting(http: OverHttp, many: int, **given: str) -> Iterator[list[socket.socket]]:
    """So many agents that wait; each on a connection of its own."""
    with ExitStack() as stack:
        claims = ({"agent": f"waiting-{number}", "wait": 60, **given} for number in range(many))
        yield [stack.enter_context(_sent(http, f"{PREFIX}/claim", claim)) for claim in claims]


def test_a_server_answers_others_while_many_claims_wait_and_each_gets_what_comes(http: OverHttp) -> None:
    with _waiting(http, _MANY) as claims:
        assert http.client.get("/health").status_code == 200
        for _ in range(3):
            assert http.client.get(f"{PREFIX}/list", timeout=15).status_code == 200
        made = {http.client.post(f"{PREFIX}/create", json={"title": "Work"}).json()["taskId"] for _ in claims}
        assert {_answer(claim)["taskId"] for claim in claims} == made


def test_claims_that_wait_for_one_task_leave_the_server_free_too_and_one_of_them_gets_it(http: OverHttp) -> None:
    task_id = http.ask("create", title="Wanted")["taskId"]  # type: ignore[index]
    run = http.ask("claim", task_id=task_id, agent="holder")["runId"]  # type: ignore[index]
    with _waiting(http, _MANY, taskId=task_id) as claims:
        assert http.client.get(f"{PREFIX}/list", timeout=15).status_code == 200
        http.ask("release", task_id=task_id, run=run)
        assert [_answer(claim)["taskId"] for claim in _answered(claims)] == [task_id]


@pytest.mark.parametrize("over", ["http", "mcp"])
def test_nothing_is_claimed_for_who_has_gone_while_waiting(http: OverHttp, over: str) -> None:
    given = {"agent": "gone", "wait": 60}
    if over == "http":
        _sent(http, f"{PREFIX}/claim", given).close()
    else:
        _sent(http, "/mcp", _tool_call("aof_task_claim", given), **_NEWEST).close()
    in_vain = http.client.post(f"{PREFIX}/claim", json={"agent": "patient", "wait": 1})
    assert in_vain.status_code == 404, "and the one before has tried and waits by now, if it does"
    task_id = http.ask("create", title="Not for the dead")["taskId"]  # type: ignore[index]
    claimed = _answer(_sent(http, f"{PREFIX}/claim", {"agent": "still-here", "wait": 60}))
    assert claimed["taskId"] == task_id


_REVISION = "2026-07-28"
_NEWEST = {"MCP-Protocol-Version": _REVISION, "Mcp-Method": "tools/call", "Mcp-Name": "aof_task_claim"}


def _tool_call(name: str, given: dict[str, Any]) -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": _REVISION, f"{prefix}clientCapabilities": {}}
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": given, "_meta": meta},
    }


def test_a_claim_that_waits_in_vain_says_so_when_its_time_is_over(http: OverHttp) -> None:
    response: httpx.Response = http.client.post(f"{PREFIX}/claim", json={"agent": "patient", "wait": 0.2})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "nothing_ready")
