"""MCP on standard input and output: the process is the session, and ends when its client goes. Must not know tools."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from aof.adapters.mcp.hub import Hub
from aof.adapters.mcp.server import make_server
from aof.adapters.mcp.sessions import Session
from aof.app.calling import Caller
from aof.app.fabric import Fabric


def serve_stdio(
    fabric: Fabric, tiers: tuple[str, ...], run: str | None, version: str, secret: str | None = None
) -> None:
    """Serve one client until it goes. Who calls is the fabric's actor, unless a call says otherwise.

    With the secret of the run that the process was started for, a call cannot.
    """
    caller = Caller(fabric.actor, "agent", proven=True, secret=secret) if secret else Caller(fabric.actor)
    hub = Hub(fabric, lambda _request: caller, tiers)
    anyio.run(_serve, hub, Session(hub, caller, run), version)


async def _serve(hub: Hub, alone: Session, version: str) -> None:
    server = make_server(hub, alone, version)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
