"""How many MCP tool calls a second the HTTP server answers for eight clients at once, each call a durable commit.

Held against the same calls through Python, from as many threads. The clients speak the newest revision in plain HTTP:
what is measured is the server, not a client library.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import aof
from aof import serving
from aof.app.calling import Caller
from aof.bench.rounds import Figure
from aof.bench.table import Need, Part, Row

CLIENTS = 8
_CALLS_A_SECOND = 200
_VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": _VERSION,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "aof_dispatch",
}
_CONTEXT = multiprocessing.get_context("spawn")


class Measured(NamedTuple):
    """Calls a second over MCP and through Python, and the one over the other."""

    over_mcp: Figure
    in_python: Figure
    ratio: Figure


def measured(folder: Path, *, rounds: int, seconds: float, say: Callable[[str], object]) -> Part:
    """MCP over HTTP, as a part of the table."""
    found = measure(folder, rounds=rounds, seconds=seconds, say=say)
    wanted = Figure(*(value / _CALLS_A_SECOND for value in found.over_mcp))
    rows = (
        Row("tool calls over HTTP", found.over_mcp, "/s", wanted, f"{_CALLS_A_SECOND} a second", Need(1.0)),
        Row("the same through Python", found.in_python, "/s"),
        Row("tool calls", None, "", found.ratio, "the same through Python"),
    )
    return Part(f"MCP: aof_dispatch from {CLIENTS} clients, each a durable commit", rows)


def measure(folder: Path, *, rounds: int, seconds: float, say: Callable[[str], object]) -> Measured:
    """Both in turns, on a data directory each."""
    served, _ = aof.init(folder / "tools-mcp" / ".aof")
    plain, _ = aof.init(folder / "tools-python" / ".aof")
    ours, theirs = _CONTEXT.Pipe()
    server = _CONTEXT.Process(target=_serve, args=(served, theirs), daemon=True)
    server.start()
    port = ours.recv()
    mcp, python = [], []
    try:
        with aof.open(plain) as fabric:
            for number in range(rounds):
                say(f"tools: round {number + 1} of {rounds}")
                mcp.append(_rate(lambda: _Client(port).call, seconds))
                python.append(_rate(lambda: lambda: fabric.create("Measured", brief="x"), seconds))
    finally:
        server.terminate()
        server.join()
    return Measured(Figure.of(mcp), Figure.of(python), Figure.ratio(mcp, python))


def _serve(root: str, told: Connection) -> None:
    app = serving.make_http(root, authenticate=lambda _token: Caller("bench"))
    server, port = serving.http_server(app, "127.0.0.1", 0, lambda: told.send(port))
    server.run()


class _Client:
    """One connection that is kept."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._body = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "aof_dispatch", "arguments": {"title": "Measured", "brief": "x"}, "_meta": _META},
            }
        )

    def call(self) -> None:
        """Dispatch a task."""
        self._connection.request("POST", "/mcp", self._body, _HEADERS)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != http.client.OK or b'"isError":true' in said:
            raise RuntimeError(said.decode())


def _rate(opened: Callable[[], Callable[[], object]], seconds: float) -> float:
    def work(_number: int) -> int:
        call = opened()
        call()
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            call()
            count += 1
        return count

    with ThreadPoolExecutor(CLIENTS) as pool:
        return sum(pool.map(work, range(CLIENTS))) / seconds
