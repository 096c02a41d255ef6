"""A lean MCP client over HTTP: one connection that is kept, and no more of the protocol than calling tools needs.

What it sends is what any client sends, and every answer is read and checked. A client library would take more of the
processor than the server that is measured.
"""

from __future__ import annotations

import http.client
import json
from typing import Any

SESSIONS, NEWEST = "2025-11-25", "2026-07-28"
_WHO = {"name": "bench", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientInfo": _WHO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """One agent's connection: with a session of its own, or in the newest revision, which has none."""

    def __init__(self, port: int, token: str, revision: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._sent = 0
        self._newest = revision == NEWEST
        if not self._newest:
            hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": _WHO}
            _, answer = self._post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
            self._headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        self._headers["MCP-Protocol-Version"] = revision
        if not self._newest:
            self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; what it answered."""
        self._sent += 1
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        headers = {}
        if self._newest:
            params["_meta"] = _META
            headers = {"Mcp-Method": "tools/call", "Mcp-Name": tool}
        said, _ = self._post({"jsonrpc": "2.0", "id": self._sent, "method": "tools/call", "params": params}, **headers)
        result = said["result"] if said.get("id") == self._sent and "result" in said else None
        if result is None or result.get("isError"):
            raise RuntimeError(f"{tool} failed: {said}")
        found: dict[str, Any] = result["structuredContent"]
        return found

    def close(self) -> None:
        """End the session and the connection."""
        if not self._newest:
            self._connection.request("DELETE", "/mcp", headers=self._headers)
            self._connection.getresponse().read()
        self._connection.close()

    def _post(self, message: dict[str, Any], **headers: str) -> tuple[dict[str, Any], http.client.HTTPResponse]:
        self._connection.request("POST", "/mcp", json.dumps(message), {**self._headers, **headers})
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status not in (http.client.OK, http.client.ACCEPTED):
            raise RuntimeError(f"{answer.status}: {said.decode(errors='replace')}")
        return (json.loads(said) if said else {}), answer
