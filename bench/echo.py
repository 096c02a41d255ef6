"""An MCP server made with the official SDK, with one tool that gives back what it gets: what that SDK costs alone."""

from __future__ import annotations

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer


def echo(text: str) -> dict[str, str]:
    """Give back the text."""
    return {"text": text}


def main() -> None:
    """Serve until terminated; prints the port."""
    server = MCPServer("echo", log_level="ERROR")
    server.add_tool(echo)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        sys.stdout.write(f"{bound.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(server.streamable_http_app(json_response=True), log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main()
